"""ScoreSim to the mean score of the supports, by which the authors' released code decides.

    1 - |Score(Ec) - mean over s of Score(Es)| / |alpha|

instead of the mean over s of ScoreSim(Ec, Es). The candidate nearest to the mean score wins. Under ScoreSim it is the
one nearest to the median. With a single support both are the same.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.similarities.scoresim import ScoreSim


class ScoreSimMean(ScoreSim):
    """ScoreSim whose expectation is taken of the supports' scores, not of the similarities."""

    name: ClassVar[str] = "scoresim-mean"
    mean_over_supports = False

    def expected(self, table: AnnotationTable, rows: slice, columns: slice, weights: Floats) -> Floats:
        scores, span = self._scores(table)
        nearness: Floats = 1.0 - np.abs(scores[rows] - scores[columns] @ weights) / span
        return nearness
