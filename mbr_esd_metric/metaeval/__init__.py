"""Meta-evaluation: the agreement of metrics with human judgements.

Functions take arrays (systems x segments, NaN = unrated) and return frozen results.

`spa`, `acc_eq`, `perm_both` and `rank_metrics` reproduce google-research/mt-metrics-eval.
"""

from mbr_esd_metric.metaeval.correlation import acc_eq, correlation, pairwise_accuracy, system_correlation, system_means
from mbr_esd_metric.metaeval.leaderboard import evaluate_metrics
from mbr_esd_metric.metaeval.metric_set import MetricEntry, MetricSet
from mbr_esd_metric.metaeval.ranking import Ranking, assign_ranks, average_ranking, rank_metrics
from mbr_esd_metric.metaeval.significance import EarlyStop, perm_both
from mbr_esd_metric.metaeval.spa import spa
from mbr_esd_metric.metaeval.spans import evaluate_omissions, evaluate_spans, lambda_sweep

__all__ = [
    "EarlyStop",
    "MetricEntry",
    "MetricSet",
    "Ranking",
    "acc_eq",
    "assign_ranks",
    "average_ranking",
    "correlation",
    "evaluate_metrics",
    "evaluate_omissions",
    "evaluate_spans",
    "lambda_sweep",
    "pairwise_accuracy",
    "perm_both",
    "rank_metrics",
    "spa",
    "system_correlation",
    "system_means",
]
