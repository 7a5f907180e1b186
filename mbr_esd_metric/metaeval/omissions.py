"""Compares what metrics say a translation leaves out with what people say, by themselves: spans of the source.

People agree on that something is missing more than on where it begins, so a span is right if it shares a character
with a human one. Over the rated translations, each of them once for each rater,

    precision = predicted spans that share a character with a human one / predicted spans
    recall    = human spans that share a character with a predicted one / human spans

and F1 is their harmonic mean. The severity plays no part. Omissions without a place are counted, and in no measure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mbr_esd_metric.core.annotation import ErrorSpan, as_annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import place
from mbr_esd_metric.metaeval.spans import AnnotationMatrix


@dataclass(frozen=True, slots=True)
class OmissionScores:
    """Predicted omissions against gold; several raters of a translation count as several translations.

    Attributes:
        predicted, right: spans that are predicted, and those of them that share a character with a human one.
        gold, recalled: human spans, and those of them that share a character with a predicted one.
        unplaced: predicted omissions without a place.
        rated: translations that somebody rated.
    """

    predicted: int
    right: int
    gold: int
    recalled: int
    unplaced: int
    rated: int

    @property
    def precision(self) -> float:
        """In [0, 1]; NaN without a predicted span."""
        return self.right / self.predicted if self.predicted else math.nan

    @property
    def recall(self) -> float:
        """In [0, 1]; NaN without a human span."""
        return self.recalled / self.gold if self.gold else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, ``(right + recalled) / (predicted + gold)`` where each span meets one
        of the other side at most; 0 if neither has a right span, NaN without any span."""
        if not (self.predicted or self.gold):
            return math.nan
        if not (self.right and self.recalled):
            return 0.0
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def evaluate_omissions(predicted: AnnotationMatrix, gold: Sequence[AnnotationMatrix]) -> OmissionScores:
    """Evaluate predicted omissions, the spans of the source's side, on every translation that somebody rated.

    Arguments as of `evaluate_spans`.

    Raises:
        InputError: shapes that differ, a rated translation without prediction, or no rating at all.
    """
    counts: Counter[str] = Counter()
    for rater, matrix in enumerate(gold, 1):
        if [len(row) for row in matrix] != [len(row) for row in predicted]:
            raise InputError(f"rater {rater} has another number of systems or segments than the prediction")
        for system, row in enumerate(matrix):
            for segment, human in enumerate(row):
                if human is None:
                    continue
                prediction = predicted[system][segment]
                if prediction is None:
                    raise InputError(f"no prediction for {place(system, segment)}, which is rated")
                spans, human_spans = ([*as_annotation(one).on("source")] for one in (prediction, human))
                counts.update(
                    predicted=len(spans),
                    right=sum(_meets(span, human_spans) for span in spans),
                    gold=len(human_spans),
                    recalled=sum(_meets(span, spans) for span in human_spans),
                    unplaced=len(as_annotation(prediction).unplaced),
                    rated=1,
                )
    if not counts["rated"]:
        raise InputError("no rater has rated any translation")
    return OmissionScores(**counts)


def _meets(span: ErrorSpan, others: Sequence[ErrorSpan]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)
