"""Leaderboards, correlations and WMT's overall score as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mbr_esd_metric.metaeval.leaderboard import Leaderboard, LeaderboardRow, Result
from mbr_esd_metric.metaeval.metric_set import Key
from mbr_esd_metric.metaeval.score_statistics import Overall, ScoreStatistic
from mbr_esd_metric.report.tables import DAGGER, Cell, Column, Table, of_columns

_TITLES = {
    "spa": "SPA",
    "acc_eq": "acc_eq*",
    "softf1": "SoftF1",
    "f1": "F1",
    "softdice": "softdice",
    "mpp-corpus": "MPP corpus",
    "softdice-corpus": "softdice corpus",
    "f1-corpus": "F1 corpus",
    "f1-wmt25-corpus": "F1 WMT25",
    "mpp": "MPP",
}

#: Measure -> heading; others are headed by their name.
MEASURE_TITLES = {
    **_TITLES,
    **{f"{name}-precision": f"{title} P" for name, title in _TITLES.items()},
    **{f"{name}-recall": f"{title} R" for name, title in _TITLES.items()},
}


def input_of(uses_reference: bool) -> str:
    """What a metric compares with, in the words of tables."""
    return "src+ref" if uses_reference else "src"


def row_name(metric: Key) -> str:
    """A metric's name in every language pair, if there is no column for its input."""
    base, uses_reference = metric
    return f"{base} ({input_of(uses_reference)})"


def leaderboard_table(board: Leaderboard, signatures: str = "notes") -> Table:
    """One row for each metric, with measures and span counts for the average and for each language pair.

    Where no metric samples candidates, people read a table without their number N.

    Args:
        board: what `compute_leaderboard` returned.
        signatures: "column" for a column of their own, as programs read it, "notes" for lines below the table.
    """
    several = len(board.lps) > 1
    groups = [*(["average"] if several else []), *board.lps]
    measures = ("spa", "acc_eq", *board.measures)
    columns = [
        Column("metric", "metric", label=True),
        Column("input", "input", label=True),
        Column("n", "N", label=True),
    ]
    for group in groups:
        columns += [Column(m, MEASURE_TITLES.get(m, m), group, best="max") for m in measures]
        if board.measures:
            columns += [
                # The numbers of spans of all language pairs are added up, so they are no average.
                Column("major", "major", "sum" if group == "average" else group, digits=0),
                Column("minor", "minor", "sum" if group == "average" else group, digits=0),
                Column("ratio", "ratio", "sum" if group == "average" else group, digits=2),
            ]
    if signatures == "column":
        columns.append(Column("signature", "signature"))
    rows = [_row(row, several, measures, bool(board.measures)) for row in board.rows]
    if board.measures:
        rows.append(_human_row(board, several, measures))
    if signatures == "column":
        texts = [*(row.signature for row in board.rows), *([None] if board.measures else [])]
        rows = [[*cells, Cell(text)] for cells, text in zip(rows, texts, strict=True)]
    notes = [*_legend(board), board.settings, *board.notes]
    if signatures == "notes":
        notes += [f"{row.name}: {row.signature}" for row in board.rows if row.signature]
    title = f"{board.test_set} {', '.join(board.lps)}"
    table = Table(title, tuple(columns), tuple(tuple(cells) for cells in rows), tuple(notes), _beside(board))
    if signatures == "column" or any(row.samples is not None for row in board.rows):
        return table
    return of_columns(table, [at for at, column in enumerate(columns) if column.key != "n"])


def _beside(board: Leaderboard) -> dict[str, Any]:
    """For JSON: the p-values of every statistic and measure, and the intervals of differences."""
    found: dict[str, Any] = {}
    for group, comparisons in board.comparisons.items():
        of_group = found.setdefault(group, {})
        for what, one in comparisons.items():
            names = one.ranking.names
            of_group[what] = {"metrics": list(names), "p_values": one.ranking.p_values.tolist()}
            if one.resampled is not None:
                of_group[what]["differences"] = [[one.resampled.difference(a, b) for b in names] for a in names]
    return {"comparisons": found} if found else {}


def _row(row: LeaderboardRow, several: bool, measures: Sequence[str], counted: bool) -> list[Cell]:
    cells = [Cell(row.name), Cell(input_of(row.uses_reference)), Cell(row.samples)]
    # Daggers are for all language pairs together, so they are in the columns of the average.
    if several:
        cells += _cells(row.average, row.daggers, measures, counted)
    for result in row.results:
        cells += _cells(result, frozenset() if several else row.daggers, measures, counted)
    return cells


def _cells(result: Result | None, daggers: frozenset[str], measures: Sequence[str], counted: bool) -> list[Cell]:
    if result is None:
        return [Cell()] * (len(measures) + 3 * counted)
    cells = [Cell(result.values.get(m), result.ranks.get(m), m in daggers, result.intervals.get(m)) for m in measures]
    counts = result.counts
    if counted and counts is None:
        cells += [Cell()] * 3
    elif counted and counts is not None:
        ratio = None if math.isnan(counts.ratio) else counts.ratio
        cells += [Cell(float(counts.major)), Cell(float(counts.minor)), Cell(ratio)]
    return cells


def _human_row(board: Leaderboard, several: bool, measures: Sequence[str]) -> list[Cell]:
    """The humans' own counts. The ratios refer to them."""
    there = [human for human in board.human if human is not None]
    total = (sum(h[0] for h in there), sum(h[1] for h in there)) if len(there) == len(board.human) else None
    cells = [Cell("human"), Cell(), Cell()]
    for human in [*([total] if several else []), *board.human]:
        cells += [Cell()] * len(measures)
        cells += [Cell(), Cell(), Cell()] if human is None else [Cell(human[0]), Cell(human[1]), Cell(1.0)]
    return cells


def _legend(board: Leaderboard) -> list[str]:
    lines = []
    if any(row.average is not None and row.average.ranks for row in board.rows):
        tested = {what for row in board.rows if row.average for what in row.average.ranks}
        over = "; of span measures over segments" if tested.intersection(board.measures) else ""
        lines.append(f"(r): significance cluster, PERM-BOTH{over}")
    if board.rivals:
        where = "in every language pair" if len(board.lps) > 1 else "here"
        lines.append(f"{DAGGER}: better than {' and '.join(board.rivals)} {where}, p < {board.alpha:g}")
    if board.measures:
        lines.append("ratio: error spans per human error span")
    return lines


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
