"""ScoreSim (paper, Section 4.1): the similarity of the MQM scores of two annotations, regardless of span positions.

ScoreSim(Ec, Es) = 1 - |Score(Ec) - Score(Es)| / |alpha|
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, mqm_score, weights_of
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.similarities import Similarity


def score_sim(candidate: AnnotationLike, support: AnnotationLike, weights: str = "paper") -> float:
    """ScoreSim in [0, 1] of two annotations, or iterables of spans; 1 if the MQM scores by these weights are equal."""
    return 1.0 - abs(mqm_score(candidate, weights) - mqm_score(support, weights)) / -weights_of(weights).floor


class ScoreSim(Similarity):
    """ScoreSim with the paper's weights; a pseudometric, so 1 does not mean that the annotations are equal."""

    name: ClassVar[str] = "scoresim"
    symmetric: ClassVar[bool] = True

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        candidate.check_length(length)
        support.check_length(length)
        return score_sim(candidate, support)

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        scores, span = self._scores(table)
        return np.asarray(1.0 - np.abs(scores[rows, None] - scores[None, columns]) / span)

    def expected(self, table: AnnotationTable, rows: slice, columns: slice, weights: Floats) -> Floats:
        scores, span = self._scores(table)
        # There may be many supports, but few distinct scores.
        different, of = np.unique(scores[columns], return_inverse=True)
        return np.asarray((1.0 - np.abs(scores[rows, None] - different) / span) @ np.bincount(of, weights))

    def _scores(self, table: AnnotationTable) -> tuple[Floats, float]:
        """The annotations' MQM scores, shape (n,), and the range of scores."""
        return np.array([mqm_score(annotation) for annotation in table.annotations]), -weights_of("paper").floor


class ScoreSimMean(ScoreSim):
    """ScoreSim to the mean score of the supports, which the paper's released code uses for decisions.

        1 - |Score(Ec) - mean over s of Score(Es)| / |alpha|

    instead of the mean over s of ScoreSim(Ec, Es). It selects the candidate closest to the mean score; ScoreSim selects
    the one closest to the median. With a single support, both are equal.
    """

    name: ClassVar[str] = "scoresim-mean"

    def expected(self, table: AnnotationTable, rows: slice, columns: slice, weights: Floats) -> Floats:
        scores, span = self._scores(table)
        return np.asarray(1.0 - np.abs(scores[rows] - scores[columns] @ weights) / span)
