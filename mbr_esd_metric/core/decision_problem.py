"""One segment as a decision rule sees it: hypotheses, weighted supports, and the utility that compares them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.hypotheses import Hypotheses
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.mqm import MqmWeights, conditional_score, mqm_score
from mbr_esd_metric.core.similarity import Similarity


class DecisionProblem:
    """The folded candidates of one segment, and the supports that they are compared with.

    Args:
        hypotheses: of the candidates.
        length: L, the translation's characters, and those of the source where both texts are compared.
        utility: similarity u.
        weighting: of the supports; see `Hypotheses.weights`.
        supports: support hypotheses, if they are given separately; None if the candidates are the supports.
        source_length: how many of the characters are the source's.

    Attributes:
        supports: the support hypotheses.
        apart: whether they were given separately.
        table: the hypotheses in its first rows, and the supports in `columns`.
        weights: of the supports, shape (m,), of sum 1.

    Raises:
        InputError: a span past the end of the translation, or weights that need a log-probability which is missing.
        OptionError: an unknown weighting.
    """

    def __init__(
        self,
        hypotheses: Hypotheses,
        length: int,
        utility: Similarity,
        weighting: str = "uniform",
        supports: Hypotheses | None = None,
        source_length: int = 0,
    ) -> None:
        self.hypotheses, self.length, self.utility = hypotheses, length, utility
        self._weighting = weighting
        self._lengths = length - source_length, source_length
        self.apart = supports is not None
        self.supports = hypotheses if supports is None else supports
        n = len(hypotheses)
        others = [] if supports is None else supports.annotations
        self.rows = slice(0, n)
        self.columns = slice(0, n) if supports is None else slice(n, n + len(others))
        self.table = AnnotationTable([*hypotheses.annotations, *others], length)
        self.weights: Floats = self.supports.weights(weighting)

    @cached_property
    def expected(self) -> Floats:
        """The expected utility of each hypothesis, ``U(h) = sum_s w(s) u(h, s)``, shape (n,).

        Memory is bounded by a block of rows; O(n m) in time.
        """
        return self.utility.expected(self.table, self.rows, self.columns, self.weights)

    def score(self, score: str, mqm: str | MqmWeights) -> tuple[float, float]:
        """Mean and standard deviation over the weighted supports: what Score(E) may be.

        Args:
            score: "expected" for the supports' MQM scores, "conditional" for the scores of the spans that the model
                expected at each word of theirs (see `ExpectedSpans`), "given" for those that they state themselves.
            mqm: weights of the score; a stated one has its own.

        Raises:
            InputError: "conditional" or "given", and a candidate lacks what that needs.
        """
        if score == "expected":
            weights = self.weights
            scores = np.array([mqm_score(annotation, mqm) for annotation in self.supports.annotations])
        else:
            # Candidates that agree need not have the same score: another model, or other white space.
            weights = self.supports.candidate_weights(self._weighting)
            if score == "given":
                scores = np.array(self.supports.stated)
            else:
                said = [self.supports.annotations[hypothesis] for hypothesis in self.supports.of]
                walks = zip(self.supports.expected, said, strict=True)
                scores = np.array([conditional_score(*walk, self._lengths, mqm) for walk in walks])
        mean = float(weights @ scores)
        return mean, math.sqrt(max(float(weights @ (scores - mean) ** 2), 0.0))

    def with_confidence(self, hypothesis: int) -> Annotation:
        """The annotation of a hypothesis, each span with its confidence."""
        return with_confidence(self.hypotheses.annotations[hypothesis], self.table, self.columns, self.weights)

    def judged(self, annotation: Annotation, value: float | None = None) -> tuple[Annotation, float]:
        """An annotation that is no candidate's, with its confidences; and its expected utility, unless `value` is it.

        Raises:
            InputError: a span past the end of the translation.
        """
        table, columns = self.table, self.columns
        on_grid = all(start in table.place and end in table.place for start, end, _ in annotation.key)
        if value is None or not on_grid:
            supports = self.supports.annotations
            table, columns = AnnotationTable([annotation, *supports], self.length), slice(1, 1 + len(supports))
        if value is None:
            value = float(self.utility.expected(table, slice(0, 1), columns, self.weights)[0])
        return with_confidence(annotation, table, columns, self.weights), value


def with_confidence(annotation: Annotation, table: AnnotationTable, columns: slice, weights: Floats) -> Annotation:
    """The annotation, each span with the mean over its characters of the weight of supports that mark them.

    Args:
        annotation: one of the table's.
        table: of candidates and supports.
        columns: the supports in it.
        weights: of the supports, shape (C,), of sum 1.
    """
    if not annotation.spans:
        return annotation
    marked = ((weights @ table.marked[columns]) * table.widths).tolist()
    place = table.place
    spans = []
    for span in annotation:
        share = sum(marked[place[span.start] : place[span.end]]) / (span.end - span.start)
        spans.append(replace(span, confidence=min(max(share, 0.0), 1.0)))
    return annotation.with_spans(spans)
