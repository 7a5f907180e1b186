"""Tables of correlations and of WMT's overall score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mbr_esd_metric.metaeval.metric_set import Key
from mbr_esd_metric.metaeval.score_statistics import Overall, ScoreStatistic
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES, input_of
from mbr_esd_metric.report.tables import Cell, Column, Table


def statistic_title(statistic: ScoreStatistic) -> str:
    """A heading such as "Kendall by item" or "accuracy of systems"."""
    if str(statistic) in MEASURE_TITLES:
        return MEASURE_TITLES[str(statistic)]
    kind = statistic.kind if statistic.kind == "accuracy" else statistic.kind.capitalize()
    if statistic.level == "sys":
        return f"{kind} sys"
    level = "docs " if statistic.level == "doc" else ""
    return f"{kind} {statistic.level}" if statistic.by == "none" else f"{kind} {level}by {statistic.by}"


def correlation_table(
    title: str,
    lps: Sequence[str],
    statistics: Sequence[ScoreStatistic],
    values: Mapping[tuple[str, str], Mapping[Key, float]],
    notes: Sequence[str] = (),
) -> Table:
    """One row for each metric; the statistics of each language pair, and of several their mean first.

    Args:
        title: above the table.
        lps, statistics: in the order of the columns.
        values: (language pair, name of the statistic) -> metric -> value.
        notes: below the table.
    """
    several = len(lps) > 1
    keys = dict.fromkeys(key for column in values.values() for key in column)
    means = {
        (key, str(statistic)): _mean([values[lp, str(statistic)].get(key) for lp in lps])
        for key in keys
        for statistic in statistics
    }
    columns = [Column("metric", "metric", label=True), Column("input", "input", label=True)]
    for group in [*(["average"] if several else []), *lps]:
        columns += [Column(str(s), statistic_title(s), group, best="max") for s in statistics]
    first = str(statistics[0])
    ordered = sorted(keys, key=lambda key: (means[key, first] is None, -(means[key, first] or 0.0), key))
    rows = []
    for key in ordered:
        cells = [Cell(key[0]), Cell(input_of(key[1]))]
        if several:
            cells += [Cell(means[key, str(statistic)]) for statistic in statistics]
        for lp in lps:
            cells += [Cell(values[lp, str(statistic)].get(key)) for statistic in statistics]
        rows.append(tuple(cells))
    return Table(title, tuple(columns), tuple(rows), tuple(notes))


def overall_table(
    title: str, found: Overall, ranks: Mapping[Key, int] | None = None, notes: Sequence[str] = ()
) -> Table:
    """One row for each metric: the overall score, then the value of each task; metrics that miss a task come last.

    Args:
        title: above the table.
        found: what `overall` returned.
        ranks: metric -> significance cluster, where they were tested.
        notes: below the table.
    """
    ranks = ranks or {}
    columns = [
        Column("metric", "metric", label=True),
        Column("input", "input", label=True),
        Column("overall", "overall", best="max"),
    ]
    for task in found.tasks:
        group = task.lps[0] if len(task.lps) == 1 else "all"
        columns.append(Column(str(task.statistic), statistic_title(task.statistic), group, best="max"))
    keys = [*found.overall, *sorted(key for key in found.values if key not in found.overall)]
    rows = tuple(
        (
            Cell(key[0]),
            Cell(input_of(key[1])),
            Cell(found.overall.get(key), ranks.get(key)),
            *map(Cell, found.values[key]),
        )
        for key in keys
    )
    lines = [f"overall: mean of {len(found.tasks)} tasks by their weights, each scaled to 0 to 1", *notes]
    if ranks:
        lines.insert(1, "(r): significance cluster, PERM-BOTH over all tasks together")
    return Table(title, tuple(columns), rows, tuple(lines))


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there and len(there) == len(values) else None
