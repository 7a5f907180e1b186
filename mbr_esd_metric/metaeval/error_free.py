"""Detection of translations without error (WMT26's task 3): a yes or no for each translation.

Gold says yes if no rater marked an error and the score reaches a threshold (85 of 100 for ESA). The task's measure is
Matthews' correlation coefficient,

    MCC = (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))

with "without error" as the positive class; 0 if a factor is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import as_annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import FloatMatrix
from mbr_esd_metric.metaeval.spans import AnnotationMatrix

#: The least score of an ESA annotation without error.
ESA_THRESHOLD = 85.0


@dataclass(frozen=True, slots=True)
class ErrorFree:
    """How a prediction agrees with gold.

    Attributes:
        true_positives, false_positives: translations said to be without error, rightly and wrongly.
        false_negatives, true_negatives: the others, wrongly and rightly.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def mcc(self) -> float:
        """Matthews' correlation coefficient, in [-1, 1]."""
        tp, fp, fn, tn = self.true_positives, self.false_positives, self.false_negatives, self.true_negatives
        product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        return (tp * tn - fp * fn) / math.sqrt(product) if product else 0.0

    @property
    def precision(self) -> float:
        """The share of the translations predicted to be without error that are; 1 if none is predicted."""
        said = self.true_positives + self.false_positives
        return self.true_positives / said if said else 1.0

    @property
    def recall(self) -> float:
        """The share of the translations without error that are predicted; 1 if there are none."""
        there = self.true_positives + self.false_negatives
        return self.true_positives / there if there else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def accuracy(self) -> float:
        """The share of translations with a correct prediction."""
        right = self.true_positives + self.true_negatives
        return right / (right + self.false_positives + self.false_negatives)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The best result that a score can reach with one threshold, found on the same translations.

    Attributes:
        threshold: a score of at least this predicts "without error"; infinity predicts it for none.
        result: with this threshold.
        auc: area under the ROC curve: the probability that a translation without error scores above one with errors,
            where a tie counts half; NaN if only one of the two kinds occurs.
    """

    threshold: float
    result: ErrorFree
    auc: float


def gold_labels(
    gold: npt.ArrayLike, human: Sequence[AnnotationMatrix] = (), threshold: float = -math.inf
) -> FloatMatrix:
    """1 if a translation is without error, 0 if it is not, NaN if nobody rated it; (systems, segments).

    Args:
        gold: systems x segments, NaN if unrated, higher is better.
        human: error spans of the raters, systems x segments each; without any rater the score alone decides.
        threshold: of the score, such as 85 for ESA, and 0 for MQM.

    Raises:
        InputError: for spans that are not systems x segments as gold is.
    """
    scores = np.asarray(gold, dtype=np.float64)
    labels: FloatMatrix = np.where(np.isnan(scores), np.nan, (scores >= threshold).astype(np.float64))
    for number, matrix in enumerate(human, 1):
        if len(matrix) != len(labels) or any(len(row) != labels.shape[1] for row in matrix):
            raise InputError(
                f"rater {number} is not {labels.shape[0]} systems x {labels.shape[1]} segments, as gold is"
            )
        marked = np.array([[spans is not None and not as_annotation(spans).clean for spans in row] for row in matrix])
        labels = np.where(marked & ~np.isnan(labels), 0.0, labels)
    return labels


def unmarked(predicted: AnnotationMatrix) -> FloatMatrix:
    """1 if no error is predicted, 0 if one is, NaN if there is no prediction; (systems, segments)."""
    return np.array(
        [[np.nan if spans is None else float(as_annotation(spans).clean) for spans in row] for row in predicted]
    )


def error_free(labels: npt.ArrayLike, predicted: npt.ArrayLike) -> ErrorFree:
    """Compare two matrices of 1 and 0.

    Args:
        labels: of `gold_labels`, NaN if unrated.
        predicted: the same of a metric, with a value wherever gold has one.

    Raises:
        InputError: for shapes that differ, no rating, or a prediction that is missing where gold has one.
    """
    gold, said = _paired(labels, predicted)
    return _counted(gold > 0.5, said > 0.5)


def best_threshold(labels: npt.ArrayLike, scores: npt.ArrayLike) -> Calibrated:
    """The threshold of a score with the highest MCC; of several such thresholds the highest.

    Args:
        labels, scores: as for `error_free`, scores higher for better translations.

    Raises:
        InputError: as for `error_free`.
    """
    gold, said = _paired(labels, scores)
    positive = gold > 0.5
    order = np.argsort(-said, kind="stable")
    ranked = said[order]
    last = np.append(ranked[1:] != ranked[:-1], True)  # one past it, the threshold is a lower score
    tp = np.append(0, np.cumsum(positive[order])[last])
    fp = np.append(0, np.cumsum(~positive[order])[last])
    there, others = int(positive.sum()), int((~positive).sum())
    results = [ErrorFree(int(t), int(f), there - int(t), others - int(f)) for t, f in zip(tp, fp, strict=True)]
    best = max(range(len(results)), key=lambda at: results[at].mcc)
    thresholds = np.append(np.inf, ranked[last])
    auc = math.nan
    if there and others:
        wide, high = np.diff(fp), (tp[1:] + tp[:-1]) / 2
        auc = float((wide * high).sum() / (there * others))
    return Calibrated(float(thresholds[best]), results[best], auc)


def _paired(labels: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[FloatMatrix, FloatMatrix]:
    gold, said = np.asarray(labels, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if gold.shape != said.shape:
        raise InputError(f"gold is {gold.shape} and the prediction is {said.shape}; both are systems x segments")
    rated = ~np.isnan(gold)
    if not rated.any():
        raise InputError("gold has no rating at all")
    if np.isnan(said[rated]).any():
        raise InputError(f"nothing is predicted for {int(np.isnan(said[rated]).sum())} rated translations")
    return gold[rated], said[rated]


def _counted(positive: npt.NDArray[np.bool_], said: npt.NDArray[np.bool_]) -> ErrorFree:
    return ErrorFree(
        int((positive & said).sum()),
        int((~positive & said).sum()),
        int((positive & ~said).sum()),
        int((~positive & ~said).sum()),
    )
