"""Lambda sweep (paper, Section 6): evaluates a metric without the error spans that it is not sure of.

For each threshold lambda, spans with ``confidence < lambda`` are dropped. Score(E) is computed from the others, and the
metric is evaluated again.

Precision-recall curves of error spans, over all thresholds on the confidence, and the area under each curve.

    area = sum_k (R_k - R_{k-1}) P_k

with the thresholds in falling order, beginning with no span at all (R = 0). This is average precision, without
interpolation. Every confidence that occurs is a threshold, so nothing is rounded. A span without a confidence counts at
every threshold. (`calibration` asks another question: is a confidence of 0.7 confirmed in 70 of 100 cases?)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, as_annotation
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.evaluation import Evaluation, Evaluator
from mbr_esd_metric.metaeval.matrices import place
from mbr_esd_metric.metaeval.span_measures import CorpusMeasure, span_measure
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, Raters, SpanEvaluator

#: 0.0, 0.1, ..., 1.0
LAMBDAS = tuple(step / 10 for step in range(11))


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The metric at one threshold: spans with a lower confidence were dropped."""

    threshold: float
    evaluation: Evaluation


def lambda_sweep(
    evaluator: Evaluator, predicted: AnnotationMatrix, lambdas: Sequence[float] = LAMBDAS
) -> list[SweepPoint]:
    """Evaluate a metric at each threshold of its spans' confidence.

    Args:
        evaluator: the human side.
        predicted: systems x segments of spans with confidences; None only where gold is unrated.
        lambdas: thresholds in [0, 1].

    Raises:
        InputError: a span without a confidence in [0, 1], and what `Evaluator.evaluate` raises.
        OptionError: a threshold outside [0, 1].
    """
    for threshold in lambdas:
        if not 0 <= threshold <= 1:
            raise OptionError(f"lambda is {threshold}; a confidence, and so its threshold, is in [0, 1]")
    annotations = _with_confidence(predicted)
    return [
        SweepPoint(threshold, evaluator.evaluate([[_above(cell, threshold) for cell in row] for row in annotations]))
        for threshold in lambdas
    ]


def _above(annotation: Annotation | None, threshold: float) -> Annotation | None:
    if annotation is None:
        return None
    spans = [span for span in annotation if (span.confidence or 0.0) >= threshold]
    return annotation if len(spans) == len(annotation) else Annotation.of_rater(spans)


def _with_confidence(predicted: AnnotationMatrix) -> list[list[Annotation | None]]:
    annotations = [[None if cell is None else as_annotation(cell) for cell in row] for row in predicted]
    for system, row in enumerate(annotations):
        for segment, annotation in enumerate(row):
            for span in annotation or ():
                if span.confidence is None or not 0 <= span.confidence <= 1:
                    raise InputError(
                        f"{place(system, segment)}: error span [{span.start}, {span.end}) has the confidence "
                        f"{span.confidence}; a sweep needs one in [0, 1] for every span, as comet-score --to_json "
                        "writes it"
                    )
    return annotations


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
