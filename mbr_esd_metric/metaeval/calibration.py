"""Calibration: how often does a human confirm what a metric marks with confidence c?

A *predicted span* is an error span of a metric, or one of its characters, with a confidence c. A human *confirms* it to
the degree y in [0, 1]. For a span, y is the share of its characters that the human marks; for a character it is 1 or 0;
of several raters the mean counts. Severity plays no part, because a confidence says that there is an error, not how bad
it is. (`precision_recall` has curves of the span measures of leaderboards, in which severity counts.)

* Reliability: for predicted spans in bins of c, the mean of c beside the mean of y.
* Expected calibration error: the mean over predicted spans of ``|mean c - mean y|`` of their bin.
* Precision and recall at each threshold on c: the mean of y over the predicted spans that stay, and the share of what
  humans mark that these cover (for spans the mean over human spans, for characters over characters).
* Risk and coverage: with predicted spans in order of falling confidence, the share that is kept, and 1 - its precision.
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
    """Spans of a metric beside those of humans.

    Attributes:
        confidence, confirmed: c and y of each predicted span, in [0, 1], shape (n,).
        segment: the place of its translation, counted over all systems one after the other, shape (n,).
        reached: for each thing that humans mark, the highest confidence of a predicted span over it, or -1; shape (m,).
        weight: of each of these things, shape (m,).
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
    """The predicted spans of a metric about every translation that somebody rated; arguments as of `evaluate_spans`.

    Raises `InputError`: a rated translation without prediction, or a span without confidence or past the end of its
    translation; names system and segment (from 1).
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
    """The means of `count` predicted spans, at least 1, with confidences in [low, high), in the last bin up to 1."""

    low: float
    high: float
    count: int
    confidence: float
    confirmed: float


def reliability(predicted: Predicted) -> list[Bin]:
    """The predicted spans in ten bins of equal width, without the empty ones."""
    at = np.minimum((predicted.confidence * _BINS + 1e-12).astype(np.intp), _BINS - 1)
    bins = []
    for k in np.unique(at).tolist():
        c, y = predicted.confidence[at == k], predicted.confirmed[at == k]
        bins.append(Bin(k / _BINS, (k + 1) / _BINS, len(c), float(c.mean()), float(y.mean())))
    return bins


def calibration_error(predicted: Predicted) -> float:
    """The expected calibration error, in [0, 1], lower is better; NaN without any predicted span."""
    parts = [b.count * abs(b.confidence - b.confirmed) for b in reliability(predicted)]
    return sum(parts) / len(predicted) if parts else math.nan


@dataclass(frozen=True)
class ThresholdCurve:
    """Precision, recall and coverage of the predicted spans of at least each confidence, from the highest one down,
    shape (t,); coverage is the share of the predicted spans that stay."""

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
        """The area under precision over recall, as steps; NaN without any predicted span."""
        return _area(self.recall, self.precision)

    @property
    def mean_risk(self) -> float:
        """The area under risk over coverage, as steps; lower is better; NaN without any predicted span."""
        return _area(self.coverage, self.risk)

    @property
    def best_f1(self) -> float:
        """The highest harmonic mean of precision and recall over all thresholds; 0 without any predicted span."""
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
    # A predicted span covers a thing that humans mark if its confidence reaches the threshold.
    recalled = sums[np.searchsorted(-predicted.reached[order], -threshold, "right")]
    total = predicted.weight.sum()
    recall = recalled / total if total else np.zeros_like(recalled)
    return ThresholdCurve(threshold, right / count, recall, count / max(len(predicted), 1))


def _confidences(annotation: Annotation, length: int) -> Floats:
    """The highest confidence over each character, -1 outside of all spans, shape (length,)."""
    annotation.check_length(length)
    highest = np.full(length, -1.0)
    for span in annotation:
        if span.confidence is None:
            raise InputError(f"the error span [{span.start}, {span.end}) has no confidence")
        part = highest[span.start : span.end]
        np.maximum(part, min(max(span.confidence, 0.0), 1.0), out=part)
    return highest
