"""Evaluates a metric with error spans: its Score(E) against gold scores, and its spans against human ones.

Two analyses use the spans' confidences:

* Lambda sweep (paper, Section 6): for each threshold lambda, spans with ``confidence < lambda`` are dropped. Score(E)
  is computed from the others, and the metric is evaluated again.
* Precision-recall curves of error spans, over all thresholds on the confidence, and the area under each curve,

      area = sum_k (R_k - R_{k-1}) P_k

  with the thresholds in falling order, beginning with no span at all (R = 0). This is average precision. Every
  confidence that occurs is a threshold. A span without a confidence counts at every threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import as_annotation, mqm_score
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.correlation import calibrate_ties, gold_pairs
from mbr_esd_metric.metaeval.matrices import FloatMatrix, cell_name, check_matrices
from mbr_esd_metric.metaeval.spa import spa
from mbr_esd_metric.metaeval.span_measures import (
    CORPUS_MEASURES,
    DEFAULT_MEASURES,
    corpus_precision,
    corpus_recall,
    span_measure,
)
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, SpanEvaluator, SpanScores, spans_above

#: 0.0, 0.1, ..., 1.0
LAMBDAS = tuple(step / 10 for step in range(11))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of one prediction.

    Attributes:
        spa, acc_eq: of Score(E).
        major, minor: predicted spans in the translations that have a gold score.
        spans: against human annotations; None without any.
        constant: whether Score(E) is the same for all translations with gold; SPA then says nothing.
    """

    spa: float
    acc_eq: float
    major: int
    minor: int
    spans: SpanScores | None
    constant: bool = False


class Evaluator:
    """The human side, checked once for many predictions.

    Args:
        gold: a gold matrix (`matrices`).
        human, lengths, measures: as of `spans.evaluate_spans`; without raters no span measure is computed.
        exact_spa: see `spa`.

    Raises:
        InputError: for matrices that do not fit, or no rating.
        OptionError: for unknown names.
    """

    def __init__(
        self,
        gold: npt.ArrayLike,
        human: Sequence[AnnotationMatrix] = (),
        lengths: npt.ArrayLike | None = None,
        measures: Sequence[str] = DEFAULT_MEASURES,
        exact_spa: bool = False,
    ) -> None:
        data = check_matrices(gold, {})
        self._gold, self._rated = data.gold, data.rated
        self._pairs = gold_pairs(data.gold)
        self._exact = exact_spa
        self._spans: SpanEvaluator | None = None
        if len(human):
            if lengths is None:
                raise InputError("span measures need the lengths of the translations")
            self._spans = SpanEvaluator(human, lengths, measures)

    def evaluate(self, predicted: AnnotationMatrix) -> Evaluation:
        """Evaluate spans, systems x segments; None is allowed only where nobody rated."""
        scores = score_matrix(predicted)
        check_matrices(self._gold, {"Score(E) of the prediction": scores})
        agreement = calibrate_ties(self._pairs, self._pairs.differences(scores))
        counted = [as_annotation(predicted[i][j] or ()) for i, j in np.argwhere(self._rated)]
        return Evaluation(
            spa(self._gold, scores, missing="pairs", exact=self._exact),
            agreement.accuracy,
            sum(annotation.count("major") for annotation in counted),
            sum(annotation.count("minor") for annotation in counted),
            self._spans.evaluate(predicted) if self._spans else None,
            bool(np.ptp(scores[self._rated]) == 0),
        )


def score_matrix(predicted: AnnotationMatrix) -> FloatMatrix:
    """Score(E) of each translation, (systems, segments), NaN for None. E is a set: a repeated span counts once."""
    annotations = [[None if spans is None else as_annotation(spans) for spans in row] for row in predicted]
    return np.array([[np.nan if a is None else mqm_score(a.with_spans(a)) for a in row] for row in annotations])


def lambda_sweep(
    evaluator: Evaluator, predicted: AnnotationMatrix, lambdas: Sequence[float] = LAMBDAS
) -> dict[float, Evaluation]:
    """Threshold of the spans' confidence -> the metric without the spans below it.

    Raises:
        InputError: a span without a confidence in [0, 1], or a rated translation without a prediction.
        OptionError: a threshold outside [0, 1].
    """
    if wrong := [threshold for threshold in lambdas if not 0 <= threshold <= 1]:
        raise OptionError(f"lambda is {wrong[0]}; a confidence, and so its threshold, is in [0, 1]")
    for system, row in enumerate(predicted):
        for segment, cell in enumerate(row):
            for span in as_annotation(cell or ()):
                if span.confidence is None or not 0 <= span.confidence <= 1:
                    raise InputError(
                        f"{cell_name(system, segment)}: error span [{span.start}, {span.end}) has the confidence "
                        f"{span.confidence}; a sweep needs one in [0, 1] for every span, as comet-score --to_json "
                        "writes it"
                    )
    return {
        threshold: evaluator.evaluate(
            [
                [None if cell is None else spans_above(as_annotation(cell), threshold) for cell in row]
                for row in predicted
            ]
        )
        for threshold in lambdas
    }


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Precision, recall and the measure itself of the spans of at least this confidence; infinity leaves none."""

    threshold: float
    precision: float
    recall: float
    value: float


@dataclass(frozen=True, slots=True)
class PrecisionRecallCurve:
    """A measure's points, from the threshold that leaves no span down to the one that leaves all."""

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
    """The curve of predicted spans against those of one or several raters; arguments and errors as of `evaluate_spans`.

    Raises `OptionError` for a measure that is not of a corpus.
    """
    if span_measure(measure).name not in CORPUS_MEASURES:
        raise OptionError(f"{measure}: a curve needs a measure of the corpus, such as f1-corpus or mpp-corpus")
    thresholds, sums = SpanEvaluator(human, lengths, [measure]).sums(measure, predicted)
    values = (thresholds, corpus_precision(sums), corpus_recall(sums), CORPUS_MEASURES[measure].value(sums))
    return PrecisionRecallCurve(tuple(CurvePoint(*map(float, row)) for row in zip(*values, strict=True)))
