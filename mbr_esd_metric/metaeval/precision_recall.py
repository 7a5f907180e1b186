"""Precision-recall curves of error spans, over all thresholds on the confidence, and the area under each curve.

    area = sum_k (R_k - R_{k-1}) P_k

with the thresholds in falling order, beginning with no span at all (R = 0). This is average precision, without
interpolation. Every confidence that occurs is a threshold, so nothing is rounded. A span without a confidence counts at
every threshold. (`calibration` asks another question: is a confidence of 0.7 confirmed in 70 of 100 cases?)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval.span_measures import CorpusMeasure, span_measure
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, Raters, SpanEvaluator


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One point of a curve.

    Attributes:
        threshold: spans of at least this confidence count; infinity leaves none.
        precision, recall, value: of these spans; `value` is the measure itself.
    """

    threshold: float
    precision: float
    recall: float
    value: float


@dataclass(frozen=True, slots=True)
class PrecisionRecallCurve:
    """A curve.

    Attributes:
        measure: the measure whose precision and recall these are.
        points: from the threshold that leaves no span down to the one that leaves all.
    """

    measure: str
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
    predicted: AnnotationMatrix,
    human: Sequence[AnnotationMatrix],
    lengths: npt.ArrayLike,
    measure: str = "f1-corpus",
    raters: Raters = "mean",
) -> PrecisionRecallCurve:
    """The curve of predicted spans against those of one or several raters.

    Args:
        predicted: systems x segments, spans with confidences.
        human, lengths, raters: as for `spans.evaluate_spans`.
        measure: one of those of a corpus: "f1-corpus", "f1-wmt25-corpus", "mpp-corpus", "softdice-corpus".

    Raises:
        InputError: for what does not fit, see `spans.evaluate_spans`.
        OptionError: an unknown measure, or one that is no corpus measure.
    """
    one = span_measure(measure)
    if not isinstance(one, CorpusMeasure):
        raise OptionError(f"{measure}: a curve needs a measure of the corpus, such as f1-corpus or mpp-corpus")
    thresholds, sums = SpanEvaluator(human, lengths, [measure], raters).sums(measure, predicted)
    values = (thresholds, one.precision(sums), one.recall(sums), one.value(sums))
    return PrecisionRecallCurve(measure, tuple(CurvePoint(*map(float, row)) for row in zip(*values, strict=True)))
