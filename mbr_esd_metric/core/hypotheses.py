"""The distinct annotations among the candidates of a segment: what every decision rule chooses from.

Duplicates are folded first: candidates with the same spans are one *hypothesis* with a weight, and everything is
computed over distinct hypotheses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, SpanKey
from mbr_esd_metric.core.candidate import WEIGHTINGS, ExpectedSpans
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, NoValidCandidateError, unknown

#: Values this close to the best are ties.
TIE = 1e-9


class Hypotheses:
    """The distinct annotations among the candidates of one segment.

    Args:
        annotations: one for each candidate; None if it is invalid.
        logprobs: one for each candidate; None if unknown.
        outputs: what each candidate wrote, if known; the weights "model" add up different outputs only.
        models: which model wrote each candidate, if there are several; each weighs the same as a support.
        expected: how many spans the model expected along each candidate, if that is known.
        stated: the score that each candidate states, if it states one.

    Attributes:
        of: the hypothesis of each candidate, -1 for an invalid one.
        counts: candidates of each hypothesis, shape (n,).
        index: the candidate that represents each hypothesis: the likeliest of its duplicates, then the first.
        annotations: of these candidates.
        logprobs: of these candidates, shape (n,); -inf where unknown.

    Raises:
        InputError: a log-probability that is not a number or above 0 by more than rounding.
        NoValidCandidateError: there is no valid candidate.
    """

    def __init__(
        self,
        annotations: Sequence[Annotation | None],
        logprobs: Sequence[float | None] | None = None,
        outputs: Sequence[Hashable | None] | None = None,
        models: Sequence[Hashable | None] | None = None,
        expected: Sequence[ExpectedSpans | None] | None = None,
        stated: Sequence[float | None] | None = None,
    ) -> None:
        self._given = logprobs
        self._stated = stated
        self._expected = expected
        self._models = models
        self._outputs = outputs
        by_object: dict[int, int] = {}
        by_spans: dict[object, int] = {}
        # Each object is compared only once; a parser returns the same object for the same spans.
        for annotation in {id(annotation): annotation for annotation in annotations}.values():
            if annotation is None:
                by_object[id(annotation)] = -1
            else:
                same = (annotation.key, annotation.unplaced) if annotation.unplaced else annotation.key
                by_object[id(annotation)] = by_spans.setdefault(same, len(by_spans))
        self.of: list[int] = [by_object[id(annotation)] for annotation in annotations]
        n = len(by_spans)
        if not n:
            raise NoValidCandidateError(
                f"none of the {len(annotations)} candidates is valid" if annotations else "no candidates"
            )
        self.index: list[int] = [-1] * n
        best = [-math.inf] * n
        if logprobs is None or logprobs.count(None) == len(logprobs):
            for i in range(len(self.of) - 1, -1, -1):
                if self.of[i] >= 0:
                    self.index[self.of[i]] = i
        else:
            values = [-math.inf if value is None else value for value in logprobs]
            if not (np.array(values) <= 1e-3).all():
                i = next(i for i, value in enumerate(values) if not value <= 1e-3)
                raise InputError(f"candidate {i + 1}: {values[i]!r} is not a log-probability (a number <= 0)")
            for i, h in enumerate(self.of):
                if h >= 0 and (values[i] > best[h] or self.index[h] < 0):
                    best[h] = values[i]
                    self.index[h] = i
        self.annotations: list[Annotation] = [annotations[i] for i in self.index]  # type: ignore[misc]
        self.logprobs: Floats = np.array(best)
        valid = self.of if min(self.of) >= 0 else [h for h in self.of if h >= 0]
        self.counts: npt.NDArray[np.intp] = np.bincount(valid, minlength=n)

    def __len__(self) -> int:
        return len(self.index)

    def weights(self, weighting: str = "uniform") -> Floats:
        """The weight of each hypothesis as a support, shape (n,), of sum 1.

        With several models, the weights of each model's candidates sum to the same, and so for "model".

        "uniform" counts candidates. "model" takes the probability of the hypothesis under the model: the sum over the
        different outputs with this annotation, normalised over the hypotheses.

        Raises:
            InputError: "model", if a log-probability is missing or all are -inf.
        """
        if weighting == "uniform" and self._models is None:
            uniform: Floats = self.counts / self.counts.sum()
            return uniform
        shares: Floats = np.zeros(len(self))
        # An invalid candidate counts for the last hypothesis, and weighs nothing.
        np.add.at(shares, self.of, self.candidate_weights(weighting))
        return shares

    def candidate_weights(self, weighting: str = "uniform") -> Floats:
        """The weight of each candidate as a support, shape (N,), of sum 1; 0 for an invalid one.

        Those of a hypothesis sum to its weight. With "model", candidates with one output share the output's weight.

        Raises:
            InputError: as `weights`.
        """
        if weighting not in WEIGHTINGS:
            raise unknown("weights", weighting, WEIGHTINGS)
        by_model: dict[Hashable, list[int]] = {}
        for i, hypothesis in enumerate(self.of):
            if hypothesis >= 0:
                by_model.setdefault(None if self._models is None else self._models[i], []).append(i)
        shares: Floats = np.zeros(len(self.of))
        for candidates in by_model.values():
            shares[candidates] = self._shares(candidates, weighting) / len(by_model)
        return shares

    def _shares(self, candidates: Sequence[int], weighting: str) -> Floats:
        """`candidate_weights` among these valid candidates alone."""
        if weighting == "uniform":
            return np.full(len(candidates), 1 / len(candidates))
        outputs = [(self.of[i], self._outputs[i] if self._outputs is not None else None) for i in candidates]
        chances: dict[tuple[int, Hashable], float] = {}
        for i, output in zip(candidates, outputs, strict=True):
            logprob = self._given[i] if self._given is not None else None
            if logprob is None:
                raise InputError(f"candidate {i + 1} has no log-probability, which weights 'model' needs")
            chances[output] = max(chances.get(output, -math.inf), logprob)
        highest = max(chances.values())
        if highest == -math.inf:
            raise InputError("every candidate has log-probability -inf, so weights 'model' are undefined")
        copies = Counter(outputs)
        mass: Floats = np.array([math.exp(chances[output] - highest) / copies[output] for output in outputs])
        mass /= mass.sum()
        return mass

    def models_of(self, annotation: Annotation) -> tuple[tuple[str, ...], ...]:
        """For each span the models that have it, with its severity, in one of their candidates; () of one model."""
        if self._models is None:
            return ()
        models: dict[SpanKey, dict[str, None]] = {}
        for model, hypothesis in zip(self._models, self.of, strict=True):
            for key in self.annotations[hypothesis].key if hypothesis >= 0 and model is not None else ():
                models.setdefault(key, {})[str(model)] = None
        return tuple(tuple(models.get(span.key, ())) for span in annotation)

    @property
    def expected(self) -> list[ExpectedSpans]:
        """How many spans the model expected along each candidate.

        Raises:
            InputError: that of a candidate is not known.
        """
        spans: list[ExpectedSpans] = []
        for i, one in enumerate(self._expected or [None] * len(self.of), 1):
            if one is None:
                whose = "" if self._models is None else f" of {self._models[i - 1]}"
                raise InputError(
                    f"candidate {i}{whose} does not say how many error spans the model expected, which "
                    "score=conditional needs; take score=expected, or sample again, into a new store, with "
                    "format=marked on engine=transformers"
                )
            spans.append(one)
        return spans

    @property
    def stated(self) -> list[float]:
        """The score that each candidate states, in [-25, 0]; 0 for an invalid one, which weighs nothing.

        Raises:
            InputError: a valid candidate states none.
        """
        scores: list[float] = []
        for i, (one, hypothesis) in enumerate(zip(self._stated or [None] * len(self.of), self.of, strict=True), 1):
            if one is None and hypothesis >= 0:
                raise InputError(
                    f"candidate {i} states no score, which score=given needs; take format=esa or gemba-mqm, or another "
                    "score"
                )
            scores.append(one or 0.0)
        return scores

    def best(self, values: Floats) -> int:
        """The hypothesis with the highest value. In a tie the likelier one wins, then the lower candidate index."""
        tied = np.flatnonzero(values >= values.max() - TIE)
        if len(tied) == 1:
            return int(tied[0])
        return int(min(tied, key=lambda h: (-self.logprobs[h], self.index[h])))
