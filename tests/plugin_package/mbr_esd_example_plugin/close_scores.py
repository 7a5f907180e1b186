"""A statistic of scores."""

from __future__ import annotations

import numpy as np

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.metaeval.score_statistics import ScoreStatistic


def share_of_close(gold: Floats, metric: Floats) -> float:
    """The share of rated translations whose score is within one MQM point of people's."""
    rated = ~np.isnan(gold)
    return float((np.abs(gold - metric)[rated] <= 1).mean())


CLOSE = ScoreStatistic("example-close", "within a point", "seg", share_of_close, lowest=0.0)
