"""Calibration of span confidences against human annotations.

A *predicted span* is an error span of a metric, or one of its characters, with a confidence c. Its *confirmation* y in
[0, 1] is the share of its characters that a human marks (for a character, 1 or 0), averaged over raters. Severity is
ignored, because a confidence is the probability of an error, whatever its severity. (`spans.precision_recall_curve` has
curves of the span measures of leaderboards, which depend on severity.)

* Reliability: the mean of c and the mean of y of the predicted spans in each bin of c.
* Expected calibration error: the mean over predicted spans of ``|mean c - mean y|`` of their bin.
* Precision and recall at each threshold on c: the mean of y over the remaining predicted spans, and the share of human
  marks that they cover (for spans, averaged over human spans; for characters, over marked characters).
* Risk and coverage, with predicted spans in descending order of confidence: 1 - precision of the spans above a
  threshold, and their share of all spans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, as_annotation
from mbr_esd_metric.core.kernels import Floats, covered
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.metaeval.matrices import cell_name
from mbr_esd_metric.metaeval.spans import AnnotationMatrix

CalibrationLevel: TypeAlias = Literal["span", "character"]
CALIBRATION_LEVELS: tuple[CalibrationLevel, ...] = ("span", "character")
_BINS = 10


@dataclass(frozen=True)
class Predicted:
    """Predicted spans and their confirmation by humans.

    Attributes:
        confidence, confirmed: c and y of each predicted span, in [0, 1], shape (n,).
        segment: the index of its translation in the flattened systems x segments matrix, shape (n,).
        reached: for each human mark (a marked character), the highest confidence of a predicted span that covers it, or
            -1; shape (m,).
        weight: the weight of each mark in recall, shape (m,).
    """

    confidence: Floats
    confirmed: Floats
    segment: npt.NDArray[np.intp]
    reached: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.confidence)


def predicted_spans(
    predicted: AnnotationMatrix,
    human: Sequence[AnnotationMatrix],
    lengths: npt.ArrayLike,
    level: CalibrationLevel = "span",
) -> Predicted:
    """The predicted spans of a metric on every rated translation, with their confirmation.

    The arguments are those of `evaluate_spans`. Raises `InputError` for a rated translation without a prediction, a
    span without a confidence, or one beyond the end of its translation; the message has the system and the segment
    (from 1).
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    rows: list[tuple[float, float, int]] = []
    marks: list[tuple[float, float]] = []
    for (system, segment), size in np.ndenumerate(sizes):
        cells = (rater[system][segment] for rater in human)
        raters = [as_annotation(spans).on("translation") for spans in cells if spans is not None]
        if not raters:
            continue
        where, at, length = cell_name(system, segment), system * sizes.shape[1] + segment, int(size)
        cell = predicted[system][segment]
        if cell is None:
            raise InputError(f"no prediction for {where}, which is rated")
        annotation = as_annotation(cell).on("translation")
        with labelled(where):
            marked = [covered(rater, length, "major") | covered(rater, length, "minor") for rater in raters]
            confidence = _confidences(annotation, length)
        share = np.array(marked, dtype=np.float64).mean(0)
        if level == "span":
            for span in annotation:
                rows.append((float(span.confidence or 0), float(share[span.start : span.end].mean()), at))
            for span in (span for rater in raters for span in rater):
                weight = 1 / (span.end - span.start) / len(raters)
                marks += [(c, weight) for c in confidence[span.start : span.end].tolist()]
        else:
            over = confidence >= 0
            rows += [(c, y, at) for c, y in zip(confidence[over].tolist(), share[over].tolist(), strict=True)]
            marks += zip(confidence[share > 0].tolist(), share[share > 0].tolist(), strict=True)
    confidence, confirmed, number = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    reached, mass = np.array(marks, dtype=np.float64).reshape(-1, 2).T
    return Predicted(confidence, confirmed, number.astype(np.intp), reached, mass)


@dataclass(frozen=True, slots=True)
class Bin:
    """The mean confidence and confirmation of `count` >= 1 predicted spans with confidences in [low, high); the last
    bin includes 1."""

    low: float
    high: float
    count: int
    confidence: float
    confirmed: float


def reliability(predicted: Predicted) -> list[Bin]:
    """The reliability of predicted spans, in ten bins of equal width; empty bins are omitted."""
    at = np.minimum((predicted.confidence * _BINS + 1e-12).astype(np.intp), _BINS - 1)
    bins = []
    for k in np.unique(at).tolist():
        c, y = predicted.confidence[at == k], predicted.confirmed[at == k]
        bins.append(Bin(k / _BINS, (k + 1) / _BINS, len(c), float(c.mean()), float(y.mean())))
    return bins


def calibration_error(predicted: Predicted) -> float:
    """The expected calibration error, in [0, 1], lower is better; NaN without predicted spans."""
    parts = [b.count * abs(b.confidence - b.confirmed) for b in reliability(predicted)]
    return sum(parts) / len(predicted) if parts else math.nan


@dataclass(frozen=True)
class ThresholdCurve:
    """Precision, recall and coverage of the predicted spans at each threshold, in descending order, shape (t,).
    Coverage is the share of spans whose confidence is at least the threshold."""

    threshold: Floats
    precision: Floats
    recall: Floats
    coverage: Floats

    @property
    def risk(self) -> Floats:
        """1 - precision."""
        return 1 - self.precision

    @property
    def average_precision(self) -> float:
        """The area under the precision-recall curve, as a step function; NaN without predicted spans."""
        return _area(self.recall, self.precision)

    @property
    def mean_risk(self) -> float:
        """The area under the risk-coverage curve, as a step function; lower is better; NaN without predicted spans."""
        return _area(self.coverage, self.risk)

    @property
    def best_f1(self) -> float:
        """The highest harmonic mean of precision and recall over all thresholds; 0 without predicted spans."""
        total = self.precision + self.recall
        f1 = np.divide(2 * self.precision * self.recall, total, out=np.zeros_like(total), where=total > 0)
        return float(f1.max(initial=0.0))


def _area(x: Floats, y: Floats) -> float:
    return float((np.diff(x, prepend=0.0) * y).sum()) if len(x) else math.nan


def threshold_curve(predicted: Predicted) -> ThresholdCurve:
    """Precision, recall and coverage at each threshold."""
    threshold, of = np.unique(-predicted.confidence, return_inverse=True)
    threshold = -threshold
    count = np.bincount(of, minlength=len(threshold)).cumsum()
    right = np.bincount(of, predicted.confirmed, len(threshold)).cumsum()
    order = np.argsort(-predicted.reached, kind="stable")
    sums = np.concatenate([[0.0], predicted.weight[order].cumsum()])
    # A human mark is recalled if the confidence of a predicted span over it reaches the threshold.
    recalled = sums[np.searchsorted(-predicted.reached[order], -threshold, "right")]
    total = predicted.weight.sum()
    recall = recalled / total if total else np.zeros_like(recalled)
    return ThresholdCurve(threshold, right / count, recall, count / max(len(predicted), 1))


def _confidences(annotation: Annotation, length: int) -> Floats:
    """The highest confidence of a span over each character, -1 outside all spans, shape (length,)."""
    annotation.check_length(length)
    highest = np.full(length, -1.0)
    for span in annotation:
        if span.confidence is None:
            raise InputError(f"the error span [{span.start}, {span.end}) has no confidence")
        part = highest[span.start : span.end]
        np.maximum(part, min(max(span.confidence, 0.0), 1.0), out=part)
    return highest
