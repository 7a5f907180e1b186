"""Evaluates a metric with error spans: its Score(E) against gold scores, and its spans against human ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import AnnotationLike, as_annotation
from mbr_esd_metric.core.mqm import MqmWeights, mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.acc_eq import calibrated, gold_pairs
from mbr_esd_metric.metaeval.matrices import FloatMatrix, Missing, matched
from mbr_esd_metric.metaeval.spa import spa
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, Raters, SpanEvaluator, SpanScores


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of one prediction.

    Attributes:
        spa, acc_eq: of Score(E), as in the functions of these names; higher is better.
        epsilon: acc_eq's tie threshold.
        major, minor: predicted spans in the translations that have a gold score.
        spans: against human annotations; None if none were given.
        constant: whether Score(E) is the same for all translations with gold; SPA then says nothing.
    """

    spa: float
    acc_eq: float
    epsilon: float
    major: int
    minor: int
    spans: SpanScores | None
    constant: bool = False


class Evaluator:
    """The human side, checked once and kept for many predictions.

    Args:
        gold: systems x segments, NaN if unrated, higher is better.
        human: annotations of one or more raters, systems x segments each; without any, no span measure is computed.
        lengths: systems x segments, characters of each translation; needed with `human`.
        measures: span measures, see `span_measures`.
        raters: what several raters of one translation count, see `spans`.
        weights: MQM weights of Score(E).
        missing: for SPA, see `matrices.packed`.
        exact_spa: whether SPA is that of infinitely many permutations, see `spa`.

    Raises:
        InputError: for matrices that do not fit, or no rating; see `matrices` and `spans`.
        OptionError: for unknown names.
    """

    def __init__(
        self,
        gold: npt.ArrayLike,
        human: Sequence[AnnotationMatrix] = (),
        lengths: npt.ArrayLike | None = None,
        measures: Sequence[str] = DEFAULT_MEASURES,
        raters: Raters = "mean",
        weights: str | MqmWeights = "paper",
        missing: Missing = "toolkit",
        exact_spa: bool = False,
    ) -> None:
        data = matched(gold, {})
        self._gold, self._rated = data.gold, data.rated
        self._pairs = gold_pairs(data.gold)
        self._weights = weights
        self._missing: Missing = missing
        self._exact = exact_spa
        self._spans: SpanEvaluator | None = None
        if len(human):
            if lengths is None:
                raise InputError("span measures need the lengths of the translations")
            self._spans = SpanEvaluator(human, lengths, measures, raters)

    def evaluate(self, predicted: AnnotationMatrix) -> Evaluation:
        """Evaluate spans, systems x segments; None is allowed only where nobody rated."""
        scores = score_matrix(predicted, self._weights)
        matched(self._gold, {"Score(E) of the prediction": scores})
        agreement = calibrated(self._pairs, self._pairs.differences(scores))
        counted = [as_annotation(predicted[i][j] or ()) for i, j in np.argwhere(self._rated)]
        return Evaluation(
            spa(self._gold, scores, missing=self._missing, exact=self._exact),
            agreement.accuracy,
            agreement.epsilon,
            sum(annotation.count("major") for annotation in counted),
            sum(annotation.count("minor") for annotation in counted),
            self._spans.evaluate(predicted) if self._spans else None,
            bool(np.ptp(scores[self._rated]) == 0),
        )


def score_matrix(predicted: AnnotationMatrix, weights: str | MqmWeights = "paper") -> FloatMatrix:
    """Score(E) of each translation, (systems, segments), NaN for None. E is a set: a repeated span counts once."""
    return np.array([[np.nan if spans is None else _score(spans, weights) for spans in row] for row in predicted])


def _score(spans: AnnotationLike, weights: str | MqmWeights) -> float:
    annotation = as_annotation(spans)
    return mqm_score(annotation.with_spans(annotation), weights)
