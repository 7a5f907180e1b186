"""Evaluation of predicted error spans against one or several human raters, over the rated translations.

A measure is a function of sums of statistics over translations, so that bootstrap resamples and subsets of segments can
be evaluated without the annotations:

* The name of a similarity, or of a mean of several ("softf1", "f1", "softdice", "softf1+scoresim"): its mean over
  translations.
* A name that ends in "-corpus": computed once, from sums over the corpus. Translations with many errors have a higher
  weight than those with few, and translations without any predicted or human span have no effect.

      mpp-corpus       MPP, micro-averaged (Perrella et al. 2026)
      softdice-corpus  sum 2 |min(vc, vs)|_1 / sum (|vc|_1 + |vs|_1)
      f1-corpus        2 sum C / sum (S(Ec) + S(Es)): the character F1 of the WMT quality estimation tasks
      f1-wmt25-corpus  the same as the WMT25 task counts it, where a character counts for each span over it

* Any of these followed by "-precision" or "-recall": the precision or the recall of the measure. Means of several
  similarities and scoresim do not have them.

      f1, f1-corpus      P = C / S(Ec)                         R = C / S(Es)
      mpp, mpp-corpus    P = credits / spans predicted         R = credits / gold spans
      softdice           P = (2 M + eps) / (2 |vc|_1 + eps)    R = (2 M + eps) / (2 |vs|_1 + eps),  M = |min(vc, vs)|_1
      softdice-corpus    P = sum M / sum |vc|_1                R = sum M / sum |vs|_1
      softf1             P and R as in its definition

Spans in the translation and omissions (spans in the source) are evaluated separately. An omission is correct if it
shares a character with a human one of any severity, because raters agree less on the boundaries of omissions. Over all
pairs of a translation and a rater,

    precision = predicted omissions that share a character with a human one / predicted omissions
    recall    = human omissions that share a character with a predicted one / human omissions

Omissions without a location are counted, but do not enter any measure.

Precision-recall curves cover all thresholds on the confidence of spans. The area under a curve is average precision,

    area = sum_k (R_k - R_{k-1}) P_k

with the thresholds in descending order, starting without any span (R = 0). Every distinct confidence is a threshold.
Spans without a confidence are kept at every threshold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import EMPTY, Annotation, AnnotationLike, ErrorSpan, Severity, as_annotation
from mbr_esd_metric.core.kernels import Floats, severity_vector
from mbr_esd_metric.core.similarities import SIMILARITIES, get_similarity
from mbr_esd_metric.core.similarities.f1 import wmt23_counts, wmt25_counts
from mbr_esd_metric.core.similarities.mpp import Mpp, share
from mbr_esd_metric.errors import InputError, OptionError, labelled, unknown
from mbr_esd_metric.metaeval.matrices import BoolMatrix, cell_name, rater_counts

#: Thresholds of a sweep: 0.0, 0.1, ..., 1.0
LAMBDAS = tuple(step / 10 for step in range(11))

#: Systems x segments; None = unrated, or no prediction.
AnnotationMatrix: TypeAlias = "Sequence[Sequence[AnnotationLike | None]]"
#: The default measures of tables.
DEFAULT_MEASURES = ("softf1", "f1", "softdice", "mpp-corpus", "softdice-corpus", "f1-corpus")

#: Suffixes of the parts of a measure.
PARTS = ("precision", "recall")


@dataclass(frozen=True, slots=True)
class SpanMeasure:
    """One measure, in [0, 1], higher is better.

    Attributes:
        statistics: function of a prediction, a gold annotation and the length of the translation. For a mean over
            translations: the value and 1; for a corpus measure: the credit of the prediction and its maximum, and the
            same for gold.
        value: function from sums of statistics, shape (..., number of statistics), to the measure, shape (...).
    """

    name: str
    statistics: Callable[[Annotation, Annotation, int], tuple[float, ...]]
    value: Callable[[Floats], Floats]


def corpus_precision(sums: Floats) -> Floats:
    """Precision from the sums of a corpus measure; 1 if nothing is predicted."""
    return share(sums[..., 0], sums[..., 1])


def corpus_recall(sums: Floats) -> Floats:
    """Recall from the sums of a corpus measure; 1 if there are no gold spans."""
    return share(sums[..., 2], sums[..., 3])


def _harmonic_mean(sums: Floats) -> Floats:
    precision, recall = corpus_precision(sums), corpus_recall(sums)
    total = precision + recall
    return np.asarray(2 * precision * recall / np.where(total > 0, total, 1.0))


_MPP = Mpp()


def _overlap(name: str, counts: Callable[[Annotation, Annotation, int], tuple[float, float, float]]) -> SpanMeasure:
    """The measure 2 credit / (maximum of the prediction + maximum of gold); `counts` returns these three."""

    def statistics(predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        credit, most_c, most_s = counts(predicted, gold, length)
        return (credit, most_c, credit, most_s)

    return SpanMeasure(name, statistics, lambda sums: share(sums[..., 0] + sums[..., 2], sums[..., 1] + sums[..., 3]))


def _soft_dice_counts(predicted: Annotation, gold: Annotation, length: int) -> tuple[float, float, float]:
    """The counts of SoftDice, without the eps of the segment-level similarity."""
    v_c, v_s = severity_vector(predicted, length), severity_vector(gold, length)
    return float(np.minimum(v_c, v_s).sum()), float(v_c.sum()), float(v_s.sum())


#: The corpus measures, each a function of its precision and recall.
CORPUS_MEASURES: Mapping[str, SpanMeasure] = {
    measure.name: measure
    for measure in (
        SpanMeasure("mpp-corpus", lambda predicted, gold, length: _MPP.counts(predicted, gold), _harmonic_mean),
        _overlap("softdice-corpus", _soft_dice_counts),
        _overlap("f1-corpus", wmt23_counts),
        _overlap("f1-wmt25-corpus", wmt25_counts),
    )
}


def span_measure(name: str) -> SpanMeasure:
    """The measure with this name. Raises `OptionError` for an unknown name, or for precision or recall of a measure
    without them."""
    whole, _, part = name.rpartition("-")
    if part not in PARTS or not whole:
        whole, part = name, ""
    if whole in CORPUS_MEASURES:
        measure = CORPUS_MEASURES[whole]
        value = {"": measure.value, "precision": corpus_precision, "recall": corpus_recall}[part]
        return replace(measure, name=name, value=value)
    if not ({"+", "*"} & set(whole) or whole in SIMILARITIES.names()):
        raise unknown("span measure", name, [*CORPUS_MEASURES, *SIMILARITIES.names()])
    similarity = get_similarity(whole)
    if part and similarity.precision_recall(EMPTY, EMPTY, 1) is None:
        raise OptionError(f"{name}: {whole} has no precision and recall")

    def statistics(predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        if not part:
            return (similarity.scalar(predicted, gold, length), 1.0)
        parts = similarity.precision_recall(predicted, gold, length)
        assert parts is not None
        return (parts[PARTS.index(part)], 1.0)

    full = f"{similarity}-{part}" if part else str(similarity)
    return SpanMeasure(full, statistics, lambda sums: share(sums[..., 0], sums[..., 1]))


def expand_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with "NAME-parts" replaced by the measure, its precision and its recall; names are not validated."""
    measures: list[str] = []
    for name in names:
        whole = name.removesuffix("-parts")
        measures += [name] if whole == name else [whole, *(f"{whole}-{part}" for part in PARTS)]
    return tuple(dict.fromkeys(measures))


@dataclass(frozen=True, slots=True)
class SpanCounts:
    """Numbers of error spans in the rated translations; gold numbers are averaged over the raters of a translation."""

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
    """The evaluation of predicted spans.

    Attributes:
        values: measure -> its value in [0, 1], higher is better.
        counts: the numbers of spans.
        rated: the number of rated translations.
        statistics: measure -> its statistics, shape (systems, segments, number of statistics), NaN if unrated.
    """

    values: Mapping[str, float]
    counts: SpanCounts
    rated: int
    statistics: Mapping[str, Floats] = field(repr=False, compare=False)

    def values_on(self, translations: BoolMatrix) -> dict[str, float]:
        """Measure -> its value on some translations, a mask of shape (systems, segments)."""
        chosen = translations[..., None]
        sums = {name: np.nansum(np.where(chosen, each, np.nan), axis=(0, 1)) for name, each in self.statistics.items()}
        return {name: float(span_measure(name).value(total)) for name, total in sums.items()}


def evaluate_spans(
    predicted: AnnotationMatrix,
    gold: Sequence[AnnotationMatrix],
    lengths: npt.ArrayLike,
    measures: Sequence[str] = DEFAULT_MEASURES,
) -> SpanScores:
    """Evaluate predicted spans on every rated translation. Statistics are averaged over the raters of a translation.

    Args:
        predicted: the predicted spans.
        gold: the annotations of one or more raters.
        lengths: the number of characters of each translation, systems x segments.
        measures: names of measures, see the module docstring.

    Raises:
        InputError: different shapes, a rated translation without a prediction, a span beyond the end of its
            translation, or no ratings. The message has the system and the segment (from 1).
        OptionError: an unknown measure.
    """
    return SpanEvaluator(gold, lengths, measures).evaluate(predicted)


def confidence_of(span: ErrorSpan) -> float:
    """The confidence of a span; 1 if it has none."""
    return 1.0 if span.confidence is None else span.confidence


def spans_above(annotation: Annotation, threshold: float) -> Annotation:
    """The annotation without the spans whose confidence is below the threshold."""
    spans = [span for span in annotation if confidence_of(span) >= threshold]
    return annotation if len(spans) == len(annotation) else Annotation.of_rater(spans)


def rater_agreement(
    human: Sequence[AnnotationMatrix], lengths: npt.ArrayLike, measures: Sequence[str]
) -> dict[str, float]:
    """Measure -> the agreement of one rater with the others, averaged over the raters of a translation, on the
    translations that at least two raters rated; empty if there are none."""
    counts = rater_counts(human)
    weights = counts.max() / np.maximum(counts, 1)  # each translation counts once
    sums: dict[str, Floats] = {}
    for one in human:
        others = [
            [[None if a is None else b for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]
            for other in human
            if other is not one
        ]
        if any(cell is not None for other in others for row in other for cell in row):
            for name, values in SpanEvaluator(others, lengths, measures).evaluate(one).statistics.items():
                sums[name] = sums.get(name, 0) + np.nansum(values * weights[..., None], axis=(0, 1))
    return {name: float(span_measure(name).value(total)) for name, total in sums.items()}


class SpanEvaluator:
    """Evaluates many predictions against the same human annotations, which are validated once."""

    def __init__(
        self, gold: Sequence[AnnotationMatrix], lengths: npt.ArrayLike, measures: Sequence[str] = DEFAULT_MEASURES
    ) -> None:
        if not len(gold):
            raise InputError("there are no human annotations to evaluate spans against")
        self._lengths = np.asarray(lengths, dtype=np.int64)
        if self._lengths.ndim != 2:
            raise InputError(f"lengths have {self._lengths.ndim} dimension(s), not two (systems x segments)")
        self._measures = {name: span_measure(name) for name in measures}
        # (system, segment) -> one annotation from each rater
        self._gold: dict[tuple[int, int], list[Annotation]] = {}
        for rater, matrix in enumerate(gold, 1):
            for cell, annotation in self._cells(matrix, f"rater {rater}").items():
                if annotation is not None:
                    self._gold.setdefault(cell, []).append(annotation)
        if not self._gold:
            raise InputError("no translation is rated")
        major, minor = (
            sum(sum(one.count(severity) for one in raters) / len(raters) for raters in self._gold.values())
            for severity in get_args(Severity)
        )
        #: Numbers of major and minor human spans, averaged over the raters of a translation.
        self.gold_counts = (float(major), float(minor))

    def evaluate(self, predicted: AnnotationMatrix) -> SpanScores:
        """See `evaluate_spans`."""
        annotations = self._rated(predicted)
        rows, columns = np.array(list(self._gold), dtype=np.intp).T
        statistics = {}
        for name, each in self._statistics(list(self._gold), annotations).items():
            statistics[name] = np.full((*self._lengths.shape, each.shape[1]), np.nan)
            statistics[name][rows, columns] = each
        sums = {name: np.nansum(each, axis=(0, 1)) for name, each in statistics.items()}
        values = {name: float(measure.value(sums[name])) for name, measure in self._measures.items()}
        major, minor = (float(sum(one.count(severity) for one in annotations)) for severity in get_args(Severity))
        return SpanScores(values, SpanCounts(major, minor, *self.gold_counts), len(self._gold), statistics)

    def sums(self, measure: str, predicted: AnnotationMatrix) -> tuple[Floats, Floats]:
        """The sums of a measure's statistics at each threshold on the confidence; a missing confidence counts as 1.

        Returns:
            The thresholds in descending order, shape (T,), from infinity (no spans) to the lowest confidence; and the
            sums over the rated translations, shape (T, number of statistics).
        """
        every = [
            (cell, level, spans_above(annotation, level))
            for cell, annotation in zip(self._gold, self._rated(predicted), strict=True)
            for level in (math.inf, *sorted({confidence_of(span) for span in annotation}, reverse=True))
        ]
        cells, levels, remaining = zip(*every, strict=True)
        statistics = self._statistics(cells, remaining)[measure]
        # For each translation: the statistics at the first level, then the differences between consecutive levels.
        added = np.diff(statistics, axis=0, prepend=0.0)
        first = np.isinf(levels)
        added[first] = statistics[first]
        thresholds, at = np.unique(-np.array(levels), return_inverse=True)
        steps = np.zeros((len(thresholds), statistics.shape[1]))
        np.add.at(steps, at, added)
        return -thresholds, np.cumsum(steps, axis=0)

    def _rated(self, predicted: AnnotationMatrix) -> list[Annotation]:
        """The prediction for each rated translation, in the order of `_gold`."""
        cells = self._cells(predicted, "prediction")
        annotations = []
        for cell in self._gold:
            if (annotation := cells[cell]) is None:
                raise InputError(f"no prediction for {cell_name(*cell)}, which is rated")
            annotations.append(annotation)
        return annotations

    def _statistics(self, cells: Sequence[tuple[int, int]], annotations: Sequence[Annotation]) -> dict[str, Floats]:
        """Measure -> the statistics of each annotation, shape (annotations, number of statistics), averaged over
        raters."""
        every: dict[str, list[tuple[float, ...]]] = {name: [] for name in self._measures}
        for cell, annotation in zip(cells, annotations, strict=True):
            # The outer loop is over pairs of annotations, because measures share cached counts.
            for rater in self._gold[cell]:
                for name, measure in self._measures.items():
                    every[name].append(measure.statistics(annotation, rater, int(self._lengths[cell])))
        counts = np.array([len(self._gold[cell]) for cell in cells])
        starts = np.cumsum(counts) - counts
        return {name: np.add.reduceat(np.array(rows), starts, axis=0) / counts[:, None] for name, rows in every.items()}

    def _cells(self, matrix: AnnotationMatrix, what: str) -> dict[tuple[int, int], Annotation | None]:
        systems, segments = self._lengths.shape
        if len(matrix) != systems or any(len(row) != segments for row in matrix):
            raise InputError(
                f"the shape of {what} differs from that of the lengths ({systems} systems x {segments} segments)"
            )
        cells: dict[tuple[int, int], Annotation | None] = {}
        for system, row in enumerate(matrix):
            for segment, spans in enumerate(row):
                annotation = None if spans is None else as_annotation(spans).on("translation")
                if annotation is not None:
                    with labelled(f"{what}, {cell_name(system, segment)}"):
                        annotation.check_length(int(self._lengths[system, segment]))
                cells[system, segment] = annotation
        return cells


def lambda_sweep(
    predicted: AnnotationMatrix, lambdas: Sequence[float] = LAMBDAS
) -> dict[float, list[list[Annotation | None]]]:
    """Threshold -> the prediction without the spans whose confidence is lower (paper, Section 6).

    Raises `InputError` for a span without a confidence in [0, 1], `OptionError` for a threshold outside [0, 1].
    """
    if wrong := [threshold for threshold in lambdas if not 0 <= threshold <= 1]:
        raise OptionError(f"lambda must be in [0, 1], like confidences (got {wrong[0]})")
    every = [[None if cell is None else as_annotation(cell) for cell in row] for row in predicted]
    for system, row in enumerate(every):
        for segment, cell in enumerate(row):
            for span in cell or ():
                if span.confidence is None or not 0 <= span.confidence <= 1:
                    raise InputError(
                        f"{cell_name(system, segment)}: error span [{span.start}, {span.end}) has confidence "
                        f"{span.confidence}; a sweep needs one in [0, 1] for every span, as in comet-score --to_json"
                    )
    return {
        threshold: [[None if cell is None else spans_above(cell, threshold) for cell in row] for row in every]
        for threshold in lambdas
    }


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Precision, recall and value of the measure at a threshold; infinity keeps no spans."""

    threshold: float
    precision: float
    recall: float
    value: float


@dataclass(frozen=True, slots=True)
class PrecisionRecallCurve:
    """The curve of a measure, from the threshold that keeps no spans to the one that keeps all."""

    points: tuple[CurvePoint, ...]

    @property
    def area(self) -> float:
        """Average precision, in [0, 1]."""
        pairs = zip(self.points[1:], self.points[:-1], strict=True)
        return sum(((point.recall - before.recall) * point.precision for point, before in pairs), 0.0)

    @property
    def best(self) -> CurvePoint:
        """The point with the highest value; of several such points, the one with the most spans."""
        return max(reversed(self.points), key=lambda point: point.value)


def precision_recall_curve(
    predicted: AnnotationMatrix, human: Sequence[AnnotationMatrix], lengths: npt.ArrayLike, measure: str = "f1-corpus"
) -> PrecisionRecallCurve:
    """The precision-recall curve over all thresholds on the confidence.

    The arguments are those of `evaluate_spans`. Raises `OptionError` for a measure other than a corpus measure.
    """
    if span_measure(measure).name not in CORPUS_MEASURES:
        raise OptionError(f"{measure}: a curve needs a corpus-level measure, such as f1-corpus or mpp-corpus")
    thresholds, sums = SpanEvaluator(human, lengths, [measure]).sums(measure, predicted)
    values = (thresholds, corpus_precision(sums), corpus_recall(sums), CORPUS_MEASURES[measure].value(sums))
    return PrecisionRecallCurve(tuple(CurvePoint(*map(float, row)) for row in zip(*values, strict=True)))


@dataclass(frozen=True, slots=True)
class OmissionScores:
    """The evaluation of predicted omissions. A translation with several raters counts once per rater.

    Attributes:
        predicted: the number of predicted omissions.
        right: the number of predicted omissions that share a character with a human one.
        gold: the number of human omissions.
        recalled: the number of human omissions that share a character with a predicted one.
        unplaced: the number of predicted omissions without a location.
        rated: the number of pairs of a translation and a rater.
    """

    predicted: int
    right: int
    gold: int
    recalled: int
    unplaced: int
    rated: int

    @property
    def precision(self) -> float:
        """In [0, 1]; NaN without predicted omissions."""
        return self.right / self.predicted if self.predicted else math.nan

    @property
    def recall(self) -> float:
        """In [0, 1]; NaN without human omissions."""
        return self.recalled / self.gold if self.gold else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if no omission is correct, NaN without any omission."""
        if not (self.predicted or self.gold):
            return math.nan
        if not (self.right and self.recalled):
            return 0.0
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def evaluate_omissions(predicted: AnnotationMatrix, gold: Sequence[AnnotationMatrix]) -> OmissionScores:
    """Evaluate predicted omissions (spans in the source) on every rated translation.

    Raises `InputError` for different shapes, a rated translation without a prediction, or no ratings.
    """
    counts: Counter[str] = Counter()
    for rater, matrix in enumerate(gold, 1):
        if [len(row) for row in matrix] != [len(row) for row in predicted]:
            raise InputError(f"rater {rater} has a different number of systems or segments from the prediction")
        for system, row in enumerate(matrix):
            for segment, human in enumerate(row):
                if human is None:
                    continue
                prediction = predicted[system][segment]
                if prediction is None:
                    raise InputError(f"no prediction for {cell_name(system, segment)}, which is rated")
                spans, human_spans = ([*as_annotation(one).on("source")] for one in (prediction, human))
                counts.update(predicted=len(spans), right=sum(_meets(span, human_spans) for span in spans))
                counts.update(gold=len(human_spans), recalled=sum(_meets(span, spans) for span in human_spans))
                counts.update(unplaced=len(as_annotation(prediction).unplaced), rated=1)
    if not counts["rated"]:
        raise InputError("no translation is rated")
    return OmissionScores(**counts)


def _meets(span: ErrorSpan, others: Sequence[ErrorSpan]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)
