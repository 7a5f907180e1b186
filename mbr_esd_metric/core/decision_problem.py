"""The decision problem of one segment: hypotheses, weighted supports, and the utility that compares them.

Candidates with the same spans are one *hypothesis* with a weight. *Supports* are what hypotheses are compared with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from operator import mul

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, mqm_score, unit_score, weights_of
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.panel import Panel
from mbr_esd_metric.core.similarities import Similarity
from mbr_esd_metric.errors import InputError, NoValidCandidateError

#: Values this close to the best are ties.
TIE = 1e-9


class Hypotheses:
    """The distinct annotations among the candidates of one segment. Arguments have one value per candidate, None if
    unknown or invalid. The weights "model" sum over different outputs.

    Attributes:
        hypothesis_of_candidate: the hypothesis of each candidate, -1 for an invalid one.
        counts: candidates of each hypothesis, shape (n,).
        index: the candidate that represents each hypothesis: the most probable of its duplicates, then the first.
        annotations: the annotations of these candidates.
        logprobs: the log-probabilities of these candidates, shape (n,); -inf if unknown.
        annotators: the annotators of all candidates.

    Raises:
        InputError: a log-probability that is not a number, or is positive beyond rounding.
        NoValidCandidateError: no candidate is valid.
    """

    def __init__(
        self,
        annotations: Sequence[Annotation | None],
        logprobs: Sequence[float | None] | None = None,
        outputs: Sequence[Hashable | None] | None = None,
        self_reported_scores: Sequence[float | None] | None = None,
        annotators: Sequence[str | None] | None = None,
    ) -> None:
        unknown = [None] * len(annotations)
        self._logprobs, self._outputs = logprobs or unknown, outputs or unknown
        self._scores = self_reported_scores or unknown
        self.annotators = annotators or unknown
        by_object: dict[int, int] = {id(None): -1}
        by_spans: dict[object, int] = {}
        # Compare each object only once; parsers return the same object for equal texts.
        for one in {id(one): one for one in annotations if one is not None}.values():
            by_object[id(one)] = by_spans.setdefault((one.key, one.unplaced), len(by_spans))
        self.hypothesis_of_candidate: list[int] = [by_object[id(one)] for one in annotations]
        n = len(by_spans)
        if not n:
            every = f"none of the {len(annotations)} candidates" if len(annotations) > 1 else "no candidate"
            raise NoValidCandidateError(f"{every} is valid" if annotations else "no candidates")
        self.index: list[int] = [-1] * n
        best = [-math.inf] * n
        values = [-math.inf if value is None else value for value in self._logprobs]
        for i, (h, value) in enumerate(zip(self.hypothesis_of_candidate, values, strict=True)):
            if not value <= 1e-3:
                raise InputError(f"candidate {i + 1}: {value!r} is not a log-probability (a number <= 0)")
            if h >= 0 and (value > best[h] or self.index[h] < 0):
                best[h] = value
                self.index[h] = i
        self.annotations: list[Annotation] = [annotations[i] for i in self.index]  # type: ignore[misc]
        self.logprobs: Floats = np.array(best)
        self.counts: npt.NDArray[np.intp] = np.bincount([h for h in self.hypothesis_of_candidate if h >= 0])

    def __len__(self) -> int:
        return len(self.index)

    def weights(self, weighting: str | Panel = "uniform") -> Floats:
        """The weight of each hypothesis as a support, shape (n,), of sum 1. "uniform" counts candidates. "model" uses
        the model's probability: the sum over the distinct outputs with this annotation, normalised over the hypotheses;
        raises `InputError` if a log-probability is missing or all are -inf. A panel uses the weights of its annotators;
        raises `InputError` for a candidate without annotator."""
        if weighting == "uniform":
            return np.asarray(self.counts / self.counts.sum())
        shares: Floats = np.zeros(len(self))
        # An invalid candidate is indexed as the last hypothesis, with weight 0.
        np.add.at(shares, self.hypothesis_of_candidate, self.candidate_weights(weighting))
        return shares

    def candidate_weights(self, weighting: str | Panel) -> Floats:
        """Weights of the candidates as supports, shape (N,), of sum 1; 0 for an invalid one. The weights of a
        hypothesis's candidates sum to its weight. With "model", candidates with the same output share its weight.
        Raises the exceptions of `weights`."""
        shares: Floats = np.zeros(len(self.hypothesis_of_candidate))
        valid = [i for i, hypothesis in enumerate(self.hypothesis_of_candidate) if hypothesis >= 0]
        if weighting == "uniform":
            shares[valid] = 1 / len(valid)
            return shares
        if isinstance(weighting, Panel):
            shares[valid] = weighting.shares([self.annotators[i] for i in valid])
            return shares
        outputs = [(self.hypothesis_of_candidate[i], self._outputs[i]) for i in valid]
        chances: dict[tuple[int, Hashable], float] = {}
        for i, output in zip(valid, outputs, strict=True):
            logprob = self._logprobs[i]
            if logprob is None:
                raise InputError(f"candidate {i + 1} has no log-probability, which weights 'model' needs")
            chances[output] = max(chances.get(output, -math.inf), logprob)
        highest = max(chances.values())
        if highest == -math.inf:
            raise InputError("every candidate has log-probability -inf, so weights 'model' are undefined")
        copies = Counter(outputs)
        mass = np.array([math.exp(chances[output] - highest) / copies[output] for output in outputs])
        shares[valid] = mass / mass.sum()
        return shares

    @property
    def self_reported_scores(self) -> list[float]:
        """The score stated by each candidate, in [-25, 0]; 0 for invalid ones, whose weight is 0. Raises `InputError`
        if a valid one states none."""
        for i, (score, hypothesis) in enumerate(zip(self._scores, self.hypothesis_of_candidate, strict=True), 1):
            if score is None and hypothesis >= 0:
                raise InputError(
                    f"candidate {i} has no stated score, which score=given needs; use format=esa, gemba-mqm or tags, "
                    "or another score"
                )
        return [score or 0.0 for score in self._scores]

    def best(self, values: Floats) -> int:
        """The hypothesis with the highest value. In a tie, the more probable one wins, then the lower candidate
        index."""
        tied = np.flatnonzero(values >= values.max() - TIE)
        if len(tied) == 1:
            return int(tied[0])
        return int(min(tied, key=lambda h: (-self.logprobs[h], self.index[h])))


class DecisionProblem:
    """The hypotheses of one segment and their supports (by default, the candidates); raises the exceptions of
    `Hypotheses.weights`.

    Attributes:
        length: L, the length of the translation, plus that of the source if both texts are compared.
        table: the hypotheses in the first rows, and the supports in `columns`; raises `InputError` for a span past the
            end.
        weights: weights of the supports, shape (m,), of sum 1.
    """

    def __init__(
        self,
        hypotheses: Hypotheses,
        length: int,
        utility: Similarity,
        weighting: str | Panel = "uniform",
        supports: Hypotheses | None = None,
    ) -> None:
        self.hypotheses, self.length, self.utility = hypotheses, length, utility
        self._weighting = weighting
        self.has_external_supports = supports is not None
        self.supports = hypotheses if supports is None else supports
        n = len(hypotheses)
        others = [] if supports is None else supports.annotations
        self.rows = slice(0, n)
        self.columns = self.rows if supports is None else slice(n, n + len(others))
        self.table = AnnotationTable([*hypotheses.annotations, *others], length)
        self.weights: Floats = self.supports.weights(weighting)

    @cached_property
    def expected(self) -> Floats:
        """The expected utility of each hypothesis, ``U(h) = sum_s w(s) u(h, s)``, shape (n,), in O(n m) time."""
        return self.utility.expected(self.table, self.rows, self.columns, self.weights)

    def score(self, score: str, mqm: str) -> tuple[float, float]:
        """Mean and standard deviation over the weighted supports, of their MQM scores with these MQM weights
        ("expected"), or of the scores stated in the answers ("given"; raises `InputError` if one is missing). In a
        panel, the scores of each annotator are first scaled to the same standard deviation, and the mean is rounded to
        an integer, because annotators give integers."""
        supports, panel = self.supports, self._weighting
        of_panel = score == "expected" and isinstance(panel, Panel)
        if score == "expected":
            weights = self.weights
            scores = np.array([mqm_score(annotation, mqm) for annotation in supports.annotations])
            if isinstance(panel, Panel):
                weights = supports.candidate_weights(panel)
                scores = scores[supports.hypothesis_of_candidate] * panel.scales(supports.annotators)
        else:
            # Candidates with equal annotations may state different scores.
            weights = supports.candidate_weights(panel)
            scores = np.array(supports.self_reported_scores)
        mean = float(weights @ scores)
        deviation = math.sqrt(max(float(weights @ (scores - mean) ** 2), 0.0))
        return max(float(round(mean)), weights_of(mqm).floor) if of_panel else mean, deviation

    def evaluate_external(self, annotation: Annotation, value: float | None = None) -> tuple[Annotation, float]:
        """An annotation that need not be a candidate, with confidences, and its expected utility (computed by default).
        Raises `InputError` if a span ends past the translation."""
        table, columns = self.table, self.columns
        on_grid = all(start in table.index_of_bound and end in table.index_of_bound for start, end, _ in annotation.key)
        if value is None or not on_grid:
            supports = self.supports.annotations
            table, columns = AnnotationTable([annotation, *supports], self.length), slice(1, 1 + len(supports))
        if value is None:
            value = float(self.utility.expected(table, slice(0, 1), columns, self.weights)[0])
        return with_confidence(annotation, table, columns, self.weights), value


def with_confidence(annotation: Annotation, table: AnnotationTable, columns: slice, weights: Floats) -> Annotation:
    """An annotation of the table with confidences: the weight of the supports that mark a character, averaged over the
    span's characters. `columns` are the supports in the table, and `weights` their weights, shape (C,), of sum 1."""
    if not annotation.spans:
        return annotation
    marked = ((weights @ table.marked[columns]) * table.widths).tolist()
    at = table.index_of_bound
    spans = []
    for span in annotation:
        share = sum(marked[at[span.start] : at[span.end]]) / (span.end - span.start)
        spans.append(replace(span, confidence=min(max(share, 0.0), 1.0)))
    return annotation.with_spans(spans)


def decided(
    problem: DecisionProblem,
    chosen: int | Annotation,
    values: Floats,
    mqm: str = "paper",
    score: str = "chosen",
    value: float | None = None,
) -> Decision:
    """The decision for a rule's choice: a hypothesis or another annotation. `values`, shape (n,), are reported as
    expected utilities of the hypotheses, and `value` (by default, the expected utility) as that of another annotation.
    The score, one of `SCORES`, uses the MQM weights `mqm`."""
    hypotheses, index = problem.hypotheses, None
    by_hypothesis = [*values.tolist(), math.nan]
    if isinstance(chosen, Annotation) and chosen in hypotheses.annotations:
        chosen = hypotheses.annotations.index(chosen)
    if isinstance(chosen, Annotation):
        annotation, value = problem.evaluate_external(chosen, value)
    else:
        index, value = hypotheses.index[chosen], by_hypothesis[chosen]
        annotation = with_confidence(hypotheses.annotations[chosen], problem.table, problem.columns, problem.weights)
    mean, deviation = (mqm_score(annotation, mqm), None) if score == "chosen" else problem.score(score, mqm)
    invalid = hypotheses.hypothesis_of_candidate.count(-1)
    sizes, counts = [*map(len, hypotheses.annotations)], hypotheses.counts.tolist()
    return Decision(
        index=index,
        annotation=annotation,
        score=unit_score(mean, mqm),
        mqm=mean,
        expected_utilities=tuple([by_hypothesis[h] for h in hypotheses.hypothesis_of_candidate]),
        expected_utility=value,
        valid=len(hypotheses.hypothesis_of_candidate) - invalid,
        distinct=len(hypotheses),
        invalid=invalid,
        located=sum(map(mul, counts, sizes)),
        unmarked=sum(many for many, size in zip(counts, sizes, strict=True) if not size),
        mqm_sd=deviation,
    )
