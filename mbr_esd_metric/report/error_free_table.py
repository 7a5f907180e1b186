"""How well metrics tell translations without error, as in WMT26's task 3."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name
from mbr_esd_metric.metaeval.error_free import (
    ESA_THRESHOLD,
    ErrorFree,
    best_threshold,
    error_free,
    gold_labels,
    unmarked,
)
from mbr_esd_metric.metaeval.error_free_model import Tried
from mbr_esd_metric.report.leaderboard_table import row_name
from mbr_esd_metric.report.tables import Cell, Column, Table


def error_free_table(
    test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = (), threshold: float | None = None
) -> Table:
    """Each metric, by its spans and by its score.

    Args:
        test_set: one language pair.
        metrics: full or base names; none for all.
        raters: sets of human ratings.
        threshold: a metric's score of at least this says "without error"; None for the best on these translations.
    """
    gold = test_set.info.gold
    least = ESA_THRESHOLD if gold.startswith("esa") else 0.0 if gold.startswith("mqm") else -math.inf
    labels = gold_labels(test_set.gold, list(test_set.human(raters).values()), least)
    rated, clean = int((~np.isnan(labels)).sum()), int(np.nansum(labels))
    rows = [(Cell("none without error"), Cell(), *_cells(error_free(labels, np.zeros(labels.shape))), Cell(), Cell())]
    found, notes = test_set.read_metrics(metrics)
    for metric in found:
        shown = row_name(base_name(metric.name))
        if metric.ratings is not None:
            said = unmarked(metric.ratings.of(test_set.systems, test_set.segments))
            rows.append((Cell(shown), Cell("no span"), *_cells(error_free(labels, said)), Cell(), Cell()))
        best = best_threshold(labels, metric.scores)
        auc = Cell(None if math.isnan(best.auc) else best.auc)
        if threshold is None:
            where = Cell(None if math.isinf(best.threshold) else best.threshold)
            rows.append((Cell(shown), Cell("score, best"), *_cells(best.result), where, auc))
        else:
            result = error_free(labels, (metric.scores >= threshold).astype(np.float64))
            rows.append((Cell(shown), Cell("score"), *_cells(result), Cell(threshold), auc))
    columns = (
        Column("metric", "metric", label=True),
        Column("by", "by", label=True),
        Column("mcc", "MCC", best="max"),
        Column("precision", "P", best="max"),
        Column("recall", "R", best="max"),
        Column("f1", "F1", best="max"),
        Column("accuracy", "accuracy", best="max"),
        Column("threshold", "threshold", label=True),
        Column("auc", "AUC", best="max"),
    )
    score = "" if least == -math.inf else f" and a gold score of at least {least:g}"
    legend = [f"{clean} of {rated} rated translations are without error: no marked error{score}"]
    if threshold is None:
        legend.append("best: the threshold of the score with the highest MCC on these translations")
    return Table(f"{test_set.name} {test_set.lp}", columns, tuple(rows), (*legend, *test_set.notes, *notes))


def learning_tables(
    title: str, tried: Sequence[Tried], labels: Sequence[bool], precision: float | None = None
) -> list[Table]:
    """Ways to say "without error" on translations that they were not learnt on, and each language pair by itself."""
    pairs = list(tried[0].by_pair)
    columns = (
        Column("by", "by", label=True),
        Column("mcc", "MCC", best="max"),
        Column("interval", "95% interval", label=True),
        Column("precision", "P", best="max"),
        Column("recall", "R", best="max"),
        Column("f1", "F1", best="max"),
        Column("accuracy", "accuracy", best="max"),
        *(Column(f"mcc {pair}", f"MCC {pair}", best="max") for pair in pairs if len(pairs) > 1),
    )
    rows = tuple(
        (
            Cell(one.name),
            *_cells(one.result)[:1],
            Cell("{:+.3f} to {:+.3f}".format(*one.interval)),
            *_cells(one.result)[1:],
            *(Cell(one.by_pair[pair].mcc) for pair in pairs if len(pairs) > 1),
        )
        for one in tried
    )
    aim = "the highest MCC" if precision is None else f"a precision of {precision:g}"
    notes = (
        f"{sum(labels)} of {len(labels)} rated translations are without error",
        f"learnt on four fifths of the documents, for {aim}, and tried on the last; intervals resample documents",
    )
    return [Table(f"{title}: without error", columns, rows, notes)]


def _cells(result: ErrorFree) -> list[Cell]:
    return [Cell(value) for value in (result.mcc, result.precision, result.recall, result.f1, result.accuracy)]
