"""Compares predicted error spans with those of one or several human raters, over the rated translations.

Only spans in the translation count. Errors that a rater marked in the source are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, ErrorSpan, as_annotation
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.bootstrap import Bootstrap, paired_bootstrap
from mbr_esd_metric.metaeval.matrices import FloatMatrix, place
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES, SpanMeasure, span_measure

FloatVector = npt.NDArray[np.float64]

#: Systems x segments; None = unrated, or nothing predicted.
AnnotationMatrix: TypeAlias = "Sequence[Sequence[AnnotationLike | None]]"

#: How several raters of one translation count: "mean" takes their mean, "best" the one nearest to the prediction.
Raters = Literal["mean", "best"]
RATERS: tuple[Raters, ...] = ("mean", "best")


@dataclass(frozen=True, slots=True)
class SpanCounts:
    """Numbers of error spans in the rated translations.

    Attributes:
        major, minor: of the prediction.
        gold_major, gold_minor: of the raters; if several rated a translation, their mean.
    """

    major: float
    minor: float
    gold_major: float
    gold_minor: float

    @property
    def ratio(self) -> float:
        """Predicted spans per gold span; NaN if gold has none."""
        gold = self.gold_major + self.gold_minor
        return (self.major + self.minor) / gold if gold else float("nan")


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Predicted spans against gold.

    Attributes:
        values: measure -> its value in [0, 1], higher is better.
        counts: numbers of spans.
        rated: the number of translations that somebody rated.
        statistics: measure -> the statistics behind its value, (systems, segments, width of the measure); NaN if
            unrated.
    """

    values: Mapping[str, float]
    counts: SpanCounts
    rated: int
    statistics: Mapping[str, FloatMatrix] = field(repr=False, compare=False)


def evaluate_spans(
    predicted: AnnotationMatrix,
    gold: Sequence[AnnotationMatrix],
    lengths: npt.ArrayLike,
    measures: Sequence[str] = DEFAULT_MEASURES,
    raters: Raters = "mean",
) -> SpanScores:
    """Evaluate predicted spans on every translation that somebody rated.

    Args:
        predicted: systems x segments; needed wherever a rater has one.
        gold: the annotations of one or more raters, systems x segments each; None if that rater did not rate.
        lengths: systems x segments, characters of each translation.
        measures: names, see `span_measures`.
        raters: how several raters of one translation count.

    Raises:
        InputError: shapes that differ, a rated translation without prediction, a span past the end of its translation,
            or no rating at all; names system and segment (from 1).
        OptionError: an unknown measure or value of `raters`.
    """
    return SpanEvaluator(gold, lengths, measures, raters).evaluate(predicted)


def confidence_of(span: ErrorSpan) -> float:
    """A span's confidence; 1 if it has none."""
    return 1.0 if span.confidence is None else span.confidence


def span_bootstrap(a: SpanScores, b: SpanScores, measure: str, k: int = 1000, seed: int = 0) -> Bootstrap:
    """`paired_bootstrap` of two predictions for the same translations, by the name of a span measure."""
    return paired_bootstrap(a.statistics[measure], b.statistics[measure], k, seed, measure=span_measure(measure).value)


class SpanEvaluator:
    """The human side of `evaluate_spans`, checked once and used for many predictions.

    If a translation has the same prediction as in the evaluation before, nothing is computed again. This makes a sweep
    cheap, because it changes few predictions at each step.
    """

    def __init__(
        self,
        gold: Sequence[AnnotationMatrix],
        lengths: npt.ArrayLike,
        measures: Sequence[str] = DEFAULT_MEASURES,
        raters: Raters = "mean",
    ) -> None:
        """See `evaluate_spans`."""
        if raters not in RATERS:
            raise unknown("treatment of several raters", raters, RATERS)
        if not len(gold):
            raise InputError("there are no human annotations to evaluate spans against")
        self._lengths = np.asarray(lengths, dtype=np.int64)
        if self._lengths.ndim != 2:
            raise InputError(f"lengths have {self._lengths.ndim} dimension(s); give systems x segments")
        self._measures = {name: span_measure(name) for name in measures}
        self._best = raters == "best"
        # (system, segment) -> one annotation from each rater
        self._gold: dict[tuple[int, int], list[Annotation]] = {}
        for rater, matrix in enumerate(gold, 1):
            for cell, annotation in self._cells(matrix, f"rater {rater}").items():
                if annotation is not None:
                    self._gold.setdefault(cell, []).append(annotation)
        if not self._gold:
            raise InputError("no rater has rated any translation")
        self._known: dict[tuple[int, int], tuple[Annotation, list[FloatMatrix]]] = {}

    def evaluate(self, predicted: AnnotationMatrix) -> SpanScores:
        """See `evaluate_spans`."""
        shape = self._lengths.shape
        statistics = {name: np.full((*shape, m.width), np.nan) for name, m in self._measures.items()}
        counts = np.zeros(4)
        cells = self._cells(predicted, "prediction")
        for cell, raters in self._gold.items():
            annotation = cells[cell]
            if annotation is None:
                raise InputError(f"no prediction for {place(*cell)}, which is rated")
            for name, found in zip(self._measures, self._statistics(cell, annotation, raters), strict=True):
                statistics[name][cell] = found
            counts += (
                annotation.count("major"),
                annotation.count("minor"),
                sum(rater.count("major") for rater in raters) / len(raters),
                sum(rater.count("minor") for rater in raters) / len(raters),
            )
        values = {
            name: float(measure.value(np.nansum(statistics[name], axis=(0, 1))))
            for name, measure in self._measures.items()
        }
        return SpanScores(values, SpanCounts(*counts.tolist()), len(self._gold), statistics)

    def sums(self, measure: str, predicted: AnnotationMatrix) -> tuple[FloatVector, FloatMatrix]:
        """The sums behind a measure at each threshold on the confidence; a span without a confidence is certain.

        Args:
            measure: one of the evaluator's.
            predicted: as for `evaluate`.

        Returns:
            The thresholds in falling order, shape (T,), from infinity, which leaves no span, to the least confidence;
            and the sums of the statistics over the rated translations at each threshold, shape (T, width of the
            measure).

        Raises:
            InputError: as `evaluate` does.
        """
        one = self._measures[measure]
        cells = self._cells(predicted, "prediction")
        steps: dict[float, FloatMatrix] = {math.inf: np.zeros(one.width)}
        for cell, raters in self._gold.items():
            annotation = cells[cell]
            if annotation is None:
                raise InputError(f"no prediction for {place(*cell)}, which is rated")
            length = int(self._lengths[cell])
            before = np.zeros(one.width)
            levels = sorted({confidence_of(span) for span in annotation}, reverse=True)
            for level in (math.inf, *levels):
                left = Annotation(span for span in annotation if confidence_of(span) >= level)
                found = self._combined(one, left, raters, length)
                steps[level] = steps.get(level, 0.0) + (found - before)
                before = found
        thresholds = np.array(sorted(steps, reverse=True))
        return thresholds, np.cumsum([steps[threshold] for threshold in thresholds], axis=0)

    def _statistics(self, cell: tuple[int, int], annotation: Annotation, raters: list[Annotation]) -> list[FloatMatrix]:
        known = self._known.get(cell)
        if known is None or known[0] != annotation:
            length = int(self._lengths[cell])
            each = [self._combined(measure, annotation, raters, length) for measure in self._measures.values()]
            known = self._known[cell] = (annotation, each)
        return known[1]

    def _combined(
        self, measure: SpanMeasure, annotation: Annotation, raters: list[Annotation], length: int
    ) -> FloatMatrix:
        each = np.array([measure.statistics(annotation, rater, length) for rater in raters])
        if len(raters) == 1:
            return np.asarray(each[0])
        if self._best:
            return np.asarray(each[int(np.argmax(measure.value(each)))])
        return np.asarray(each.mean(axis=0))

    def _cells(self, matrix: AnnotationMatrix, what: str) -> dict[tuple[int, int], Annotation | None]:
        systems, segments = self._lengths.shape
        if len(matrix) != systems or any(len(row) != segments for row in matrix):
            raise InputError(f"{what} is not {systems} systems x {segments} segments, as the lengths are")
        cells: dict[tuple[int, int], Annotation | None] = {}
        for system, row in enumerate(matrix):
            for segment, spans in enumerate(row):
                annotation = None if spans is None else as_annotation(spans)
                if annotation is not None:
                    try:
                        annotation.check_length(int(self._lengths[system, segment]))
                    except InputError as error:
                        raise InputError(f"{what}, {place(system, segment)}: {error}") from None
                cells[system, segment] = annotation
        return cells
