"""Compares predicted error spans with those of one or several human raters, over the rated translations.

Only spans in the translation count. Those of the source are left out: `metaeval.omissions` has what says that something
is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, ErrorSpan, as_annotation
from mbr_esd_metric.core.character_sums import AnnotationPairs
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector, place
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES, SpanMeasure, span_measure

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


@dataclass(frozen=True, slots=True)
class _Known:
    """What was predicted last for each rated translation, and its statistics.

    Attributes:
        said: spans and points; None before the first evaluation.
        statistics: measure -> (translations, width).
    """

    said: list[object]
    statistics: dict[str, FloatMatrix]

    @classmethod
    def of(cls, translations: int, measures: Mapping[str, SpanMeasure]) -> _Known:
        """Nothing yet."""
        nothing = {name: np.zeros((translations, measure.width)) for name, measure in measures.items()}
        return cls([None] * translations, nothing)


def rater_agreement(
    human: Sequence[AnnotationMatrix], lengths: npt.ArrayLike, measures: Sequence[str], raters: Raters = "mean"
) -> dict[str, float]:
    """Measure -> the agreement of each rater with the others, over the translations that another one rated too.

    It is what a second rater reaches where `evaluate_spans` says what a metric reaches. Empty if no translation has
    two raters.
    """
    sums: dict[str, FloatVector] = {}
    for at, one in enumerate(human):
        others = [
            [[None if a is None else b for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]
            for number, other in enumerate(human)
            if number != at
        ]
        if any(cell is not None for other in others for row in other for cell in row):
            for name, values in SpanEvaluator(others, lengths, measures, raters).evaluate(one).statistics.items():
                sums[name] = sums.get(name, 0) + np.nansum(values, axis=(0, 1))
    return {name: float(span_measure(name).value(found)) for name, found in sums.items()}


class SpanEvaluator:
    """The human side of `evaluate_spans`, checked once and used for many predictions.

    If a translation has the same prediction as in the evaluation before, or none as once before, nothing is computed
    again. This makes a sweep cheap, because it changes few predictions at each step.
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
        self._gold_counts = [
            sum(sum(rater.count(severity) for rater in raters) / len(raters) for raters in self._gold.values())
            for severity in ("major", "minor")
        ]
        self._known = _Known.of(len(self._gold), self._measures)
        self._nothing = _Known.of(len(self._gold), self._measures)

    def evaluate(self, predicted: AnnotationMatrix) -> SpanScores:
        """See `evaluate_spans`."""
        cells = self._cells(predicted, "prediction")
        annotations: list[Annotation] = []
        for cell in self._gold:
            annotation = cells[cell]
            if annotation is None:
                raise InputError(f"no prediction for {place(*cell)}, which is rated")
            annotations.append(annotation)
        rows, columns = np.array(list(self._gold), dtype=np.intp).T
        found = self._statistics(annotations)
        statistics = {}
        for name, measure in self._measures.items():
            statistics[name] = np.full((*self._lengths.shape, measure.width), np.nan)
            statistics[name][rows, columns] = found[name]
        major = sum(annotation.count("major") for annotation in annotations)
        minor = sum(len(annotation) for annotation in annotations) - major
        values = {
            name: float(measure.value(np.nansum(statistics[name], axis=(0, 1))))
            for name, measure in self._measures.items()
        }
        counts = SpanCounts(float(major), float(minor), *self._gold_counts)
        return SpanScores(values, counts, len(self._gold), statistics)

    def sums(self, measure: str, predicted: AnnotationMatrix) -> tuple[FloatVector, FloatMatrix]:
        """The sums behind a measure at each threshold on the confidence; a span without a confidence is certain.

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
                left = Annotation.of_rater(span for span in annotation if confidence_of(span) >= level)
                found = self._combined(one, left, raters, length)
                steps[level] = steps.get(level, 0.0) + (found - before)
                before = found
        thresholds = np.array(sorted(steps, reverse=True))
        return thresholds, np.cumsum([steps[threshold] for threshold in thresholds], axis=0)

    def _statistics(self, annotations: Sequence[Annotation]) -> dict[str, FloatMatrix]:
        """The statistics of each rated translation by each measure, (translations, width), in the order of `_gold`."""
        # Equal annotations may repeat a span, or have errors without characters.
        said = [(annotation.spans, annotation.points) for annotation in annotations]
        stores = [self._known if any(one) else self._nothing for one in said]
        new = [at for at, one in enumerate(said) if stores[at].said[at] != one]
        if new:
            computed = self._computed(new, annotations)
            for store in (self._known, self._nothing):
                own = [number for number, at in enumerate(new) if stores[at] is store]
                places = [new[number] for number in own]
                for name, values in computed.items():
                    store.statistics[name][places] = values[own]
                for at in places:
                    store.said[at] = said[at]
        silent = np.array([store is self._nothing for store in stores])[:, None]
        return {
            name: np.where(silent, self._nothing.statistics[name], self._known.statistics[name])
            for name in self._measures
        }

    def _computed(self, new: Sequence[int], annotations: Sequence[Annotation]) -> dict[str, FloatMatrix]:
        """The statistics of these translations, numbers in `_gold`; several raters as one."""
        cells = list(self._gold)
        raters = [self._gold[cells[at]] for at in new]
        each = [at for at, own in zip(new, raters, strict=True) for _ in own]
        pairs = AnnotationPairs(
            [annotations[at] for at in each],
            [rater for own in raters for rater in own],
            [int(self._lengths[cells[at]]) for at in each],
        )
        found = {name: measure.each(pairs) for name, measure in self._measures.items()}
        if len(each) == len(new):
            return found
        counts = np.array([len(own) for own in raters])
        starts = np.cumsum(counts) - counts
        if not self._best:
            return {name: np.add.reduceat(values, starts, axis=0) / counts[:, None] for name, values in found.items()}
        ends = (starts + counts).tolist()
        nearest = {
            name: [int(np.argmax(of[start:end])) + start for start, end in zip(starts.tolist(), ends, strict=True)]
            for name, of in ((name, self._measures[name].value(values)) for name, values in found.items())
        }
        return {name: values[nearest[name]] for name, values in found.items()}

    def _combined(
        self, measure: SpanMeasure, annotation: Annotation, raters: list[Annotation], length: int
    ) -> FloatMatrix:
        if len(raters) == 1:
            return np.asarray(measure.statistics(annotation, raters[0], length))
        each = np.array([measure.statistics(annotation, rater, length) for rater in raters])
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
                annotation = None if spans is None else as_annotation(spans).on("translation")
                if annotation is not None:
                    try:
                        annotation.check_length(int(self._lengths[system, segment]))
                    except InputError as error:
                        raise InputError(f"{what}, {place(system, segment)}: {error}") from None
                cells[system, segment] = annotation
        return cells
