"""Leaderboards, correlations and WMT's overall score as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.metaeval.leaderboard import Leaderboard, Result
from mbr_esd_metric.metaeval.matrices import percentile_interval
from mbr_esd_metric.metaeval.metric_set import Key
from mbr_esd_metric.metaeval.ranking import Ranking
from mbr_esd_metric.metaeval.score_statistics import SCORE_STATISTICS, Overall
from mbr_esd_metric.metaeval.spans import PARTS
from mbr_esd_metric.report.tables import DAGGER, Cell, Column, Table, TableRow, Value, finite_or_empty, table_of

#: Span measure -> its column title.
_TITLES = {
    "softf1": "SoftF1",
    "f1": "F1",
    "softdice": "softdice",
    "mpp-corpus": "MPP corpus",
    "softdice-corpus": "softdice corpus",
    "f1-corpus": "F1 corpus",
    "f1-wmt25-corpus": "F1 WMT25",
    "mpp": "MPP",
}


def measure_title(name: str) -> str:
    """The title of a statistic or a span measure, such as "SoftF1 P" or "Kendall by item"."""
    if name in SCORE_STATISTICS.names():
        return SCORE_STATISTICS.get(name).title
    whole, _, part = name.rpartition("-")
    if part in PARTS and whole in _TITLES:
        return f"{_TITLES[whole]} {part[0].upper()}"
    return _TITLES.get(name, name)


def measure_column(name: str, group: str = "") -> Column:
    """The column of a statistic or a span measure."""
    return Column(name, measure_title(name), group, best="max")


def input_of(uses_reference: bool) -> str:
    """The inputs of a metric besides the translation: "src" or "src+ref"."""
    return "src+ref" if uses_reference else "src"


def named_cell(metric: Key) -> Cell:
    """The cell with a metric's name and input, for tables without an input column."""
    return Cell(row_name(metric), metric=metric[0])


def row_name(metric: Key) -> str:
    """A metric's name and input, such as "xcomet (src)", for tables without an input column."""
    base, uses_reference = metric
    return f"{base} ({input_of(uses_reference)})"


def leaderboard_table(board: Leaderboard, signatures: str = "notes") -> Table:
    """One row per metric, with measures and span counts for the average and for each language pair.

    Args:
        board: the leaderboard.
        signatures: "column" to write signatures in a column, for programs; "notes" to write them below the table. With
            "notes", the column N (the number of candidates) is omitted if no metric samples candidates.
    """
    several, column = len(board.lps) > 1, signatures == "column"
    sampled = column or any(row.samples is not None for row in board.rows)
    rows: list[TableRow] = []
    for row in board.rows:
        shown = metric_cells((row.name, row.uses_reference)) | ({Column("n", "N"): row.samples} if sampled else {})
        # Daggers apply to all language pairs together, so they are in the columns of the average.
        if several:
            shown |= result_cells("average", row.average, board.measures, row.daggers)
        for lp, result in zip(board.lps, row.results, strict=True):
            shown |= result_cells(lp, result, board.measures, frozenset() if several else row.daggers)
        rows.append(shown | ({Column("signature", "signature"): _printed(row.signatures)} if column else {}))
    if board.measures:
        # The span counts of the humans, the denominators of the ratios.
        counted = [human for human in board.human if human is not None]
        total = (sum(h[0] for h in counted), sum(h[1] for h in counted)) if len(counted) == len(board.human) else None
        people: dict[Column, Value | Cell] = {Column("metric", "metric"): "human"}
        for lp, human in [*([("average", total)] if several else []), *zip(board.lps, board.human, strict=True)]:
            people |= _counts(lp, *((None, None, None) if human is None else (*human, 1.0)))
        rows.append(people)
    notes = [*_legend(board), str(board.settings), *board.notes]
    if not column:
        notes += [f"{row.name}: {text}" for row in board.rows if (text := _printed(row.signatures))]
    return table_of(f"{board.test_set} {', '.join(board.lps)}", rows, notes, _beside(board))


def _printed(signatures: Sequence[Signature | None]) -> str | None:
    """The distinct signatures of a metric over language pairs; None if it has none."""
    return " ; ".join(map(str, dict.fromkeys(filter(None, signatures)))) or None


def result_cells(
    group: str, result: Result | None, measures: Sequence[str], daggers: frozenset[str] = frozenset()
) -> dict[Column, Value | Cell]:
    """SPA, acc_eq*, the span measures and the span counts of a metric; cells without a value are empty."""
    result = result or Result({}, {})
    cells: dict[Column, Value | Cell] = {
        measure_column(name, group): Cell(
            result.values.get(name), result.ranks.get(name), name in daggers, result.intervals.get(name)
        )
        for name in ("spa", "acc_eq", *measures)
    }
    spans = result.counts
    if measures or spans:
        cells |= _counts(group, *((spans.major, spans.minor, spans.ratio) if spans else (None, None, None)))
    return cells


def _counts(group: str, major: float | None, minor: float | None, ratio: float | None) -> TableRow:
    # Span counts are summed over language pairs, not averaged.
    group = "sum" if group == "average" else group
    return {
        Column("major", "major", group, digits=0): major,
        Column("minor", "minor", group, digits=0): minor,
        Column("ratio", "ratio", group, digits=2): finite_or_empty(ratio),
    }


def _beside(board: Leaderboard) -> dict[str, Any]:
    """For JSON: the p-values of each statistic and measure, and the confidence intervals of differences."""

    def shown(one: Ranking) -> dict[str, Any]:
        rows = {"metrics": list(one.names), "p_values": one.p_values.tolist()}
        if by := one.resamples:
            rows["differences"] = [[percentile_interval(by[a] - by[b]) for b in one.names] for a in one.names]
        return rows

    groups = {group: {what: shown(one) for what, one in of.items()} for group, of in board.rankings.items()}
    return {"comparisons": groups} if groups else {}


def _legend(board: Leaderboard) -> list[str]:
    lines = []
    if any(row.average is not None and row.average.ranks for row in board.rows):
        tested = {what for row in board.rows if row.average for what in row.average.ranks}
        over = "; of span measures over segments" if tested.intersection(board.measures) else ""
        lines.append(f"(r): significance cluster, PERM-BOTH{over}")
    if board.settings.against and board.rankings:
        where, alpha = "in every language pair" if len(board.lps) > 1 else "here", board.settings.alpha
        lines.append(f"{DAGGER}: better than {' and '.join(board.settings.against)} {where}, p < {alpha:g}")
    if board.measures:
        lines.append("ratio: error spans per human error span")
    return lines


def correlation_table(
    title: str, values: Mapping[str, Mapping[str, Mapping[Key, float]]], notes: Sequence[str] = ()
) -> Table:
    """One row per metric, with the statistics of each language pair; with several pairs, their mean comes first.

    Args:
        title: the title of the table.
        values: language pair -> statistic -> metric -> value.
        notes: the notes below the table.
    """
    groups = dict(values)
    names = list(next(iter(groups.values())))
    keys = dict.fromkeys(key for of in values.values() for column in of.values() for key in column)
    if len(values) > 1:
        means = {
            name: {
                key: sum(of[name][key] for of in values.values()) / len(values)
                for key in keys
                if all(key in of[name] for of in values.values())
            }
            for name in names
        }
        groups = {"average": means, **groups}
    first = next(iter(groups.values()))[names[0]]
    rows = []
    for key in sorted(keys, key=lambda key: (key not in first, -first.get(key, 0.0), key)):
        shown = {measure_column(name, group): of[name].get(key) for group, of in groups.items() for name in names}
        rows.append({**metric_cells(key), **shown})
    return table_of(title, rows, notes)


def metric_cells(metric: Key) -> dict[Column, Value | Cell]:
    """The first cells of a metric's row: name and input."""
    return {
        Column("metric", "metric"): Cell(metric[0], metric=metric[0]),
        Column("input", "input"): input_of(metric[1]),
    }


def overall_table(title: str, overall: Overall, notes: Sequence[str] = ()) -> Table:
    """One row per metric, with its overall score, cluster, and value in each task. Metrics without a value in some task
    come last, without an overall score."""
    groups = [(task.statistic, task.lps[0] if len(task.lps) == 1 else "all") for task in overall.tasks]
    columns = [measure_column(str(statistic), group) for statistic, group in groups]
    rows = [
        {
            **metric_cells(key),
            Column("overall", "overall", best="max"): Cell(overall.overall.get(key), overall.ranks.get(key)),
            **dict(zip(columns, overall.values[key], strict=True)),
        }
        for key in [*overall.overall, *sorted({*overall.values} - {*overall.overall})]
    ]
    lines = [f"overall: weighted mean of {len(overall.tasks)} tasks, each scaled to 0 to 1", *notes]
    if overall.ranks:
        lines.insert(1, "(r): significance cluster, PERM-BOTH over all tasks together")
    return table_of(title, rows, lines)
