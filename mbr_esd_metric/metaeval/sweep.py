"""Lambda sweep (paper, Section 6): evaluates a metric without the error spans that it is not sure of.

For each threshold lambda, spans with ``confidence < lambda`` are dropped. Score(E) is computed from the others, and the
metric is evaluated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mbr_esd_metric.core.annotation import Annotation, as_annotation
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.evaluation import Evaluation, Evaluator
from mbr_esd_metric.metaeval.matrices import place
from mbr_esd_metric.metaeval.spans import AnnotationMatrix

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
