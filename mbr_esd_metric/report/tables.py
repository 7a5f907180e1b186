"""Tables, and their formats: text, Markdown, LaTeX, TSV, CSV and JSON.

Text, Markdown and LaTeX are for reading: values are rounded, and the last two highlight the best value of a column.
TSV and CSV (six significant digits) and JSON (full precision) are for programs: cluster ranks and daggers have separate
fields.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from mbr_esd_metric.files.streams import json_text
from mbr_esd_metric.messages import printable

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.layout import Status

Value = float | int | str | None

DAGGER = "†"

_Marks: TypeAlias = "Mapping[Status | None, tuple[str, str]]"
#: Status -> the markup around a metric's name: the prefixes of mt-metrics-eval's tables, or LaTeX's commands.
_PREFIXES: _Marks = {"contrastive": ("*", ""), "baseline": ("_", "")}
_COMMANDS: _Marks = {"contrastive": (r"\textit{", "}"), "baseline": (r"\underline{", "}")}
STATUS_NOTE = "*: contrastive submission, or none; _: baseline"
_LATEX_NOTE = "italic: contrastive submission, or none; underlined: baseline"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes:
        value: the value; None for an empty cell.
        rank: the significance cluster, from 1.
        dagger: whether the value is marked as a significant gain.
        interval: the bounds of a confidence interval, written in TSV, CSV and JSON only.
        metric: the base name of the metric that the cell names, if it names one.
        status: the status of that metric.
    """

    value: Value = None
    rank: int | None = None
    dagger: bool = False
    interval: tuple[float, float] | None = None
    metric: str | None = None
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        key: its name in JSON, TSV and CSV; unique within its group.
        group: the heading above several columns, such as a language pair; "" for none.
        digits: the number of decimal places in formats for reading.
        percent: whether formats for reading show the value as a percentage.
        best: "max" to highlight the highest value, or None.
    """

    key: str
    title: str
    group: str = ""
    digits: int = 3
    percent: bool = False
    best: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with notes below it; `beside` are additional top-level fields of the JSON object."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def metrics(self) -> set[str]:
        """The base names of the metrics in the table."""
        return {cell.metric for row in self.rows for cell in row if cell.metric is not None}


#: Column -> value, or a `Cell` if it has more than a value.
TableRow: TypeAlias = Mapping[Column, Value | Cell]


def table_of(
    title: str, rows: Sequence[TableRow], notes: Sequence[str] = (), beside: Mapping[str, Any] | None = None
) -> Table:
    """The table with these rows. Its columns are the union of the rows' columns, in order of first appearance."""
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    values = ([row.get(column) for column in columns] for row in rows)
    cells = tuple(tuple(one if isinstance(one, Cell) else Cell(one) for one in row) for row in values)
    return Table(title, columns, cells, tuple(notes), beside or {})


def finite_or_empty(value: float | None) -> float | None:
    """The value, or None (an empty cell) if it is not finite."""
    return value if value is not None and math.isfinite(value) else None


def render_all(tables: Sequence[Table], form: str = "text") -> str:
    """The tables in one of `TABLE_FORMATS`, one below the other; in JSON, several tables become a list."""
    rendered = [TABLE_FORMATS[form](table) for table in tables]
    if form == "json" and len(rendered) > 1:
        return "[\n" + ",\n".join(text.rstrip("\n") for text in rendered) + "\n]\n"
    return "\n".join(rendered)


def blocks(table: Table, width: int) -> list[Table]:
    """The table, split into one block per group of columns (such as a language pair) if wider than `width` characters.

    Each block repeats the columns before the first group, and omits rows without a value in its group. The first block
    has the title; the last one has the notes and the columns after the groups.
    """
    pieces = [at for _, at in _groups(table)]
    labels = pieces.pop(0) if table.columns and not table.columns[0].group else []
    if len(pieces) > 1 and not table.columns[-1].group:
        pieces[-2:] = [pieces[-2] + pieces[-1]]
    if len(pieces) < 2 or max(map(len, _text(replace(table, title="", notes=())).splitlines())) <= width:
        return [table]
    parts = []
    for piece in pieces:
        at = [*labels, *piece]
        rows = [tuple(row[i] for i in at) for row in table.rows if any(row[i].value is not None for i in piece)]
        parts.append(replace(table, title="", columns=tuple(table.columns[i] for i in at), rows=tuple(rows), notes=()))
    parts[0], parts[-1] = replace(parts[0], title=table.title), replace(parts[-1], notes=table.notes)
    return parts


def with_status(table: Table, status_of: Callable[[str], Status | None]) -> Table:
    """The table with the status of each metric added to the cells that name it."""
    rows = tuple(
        tuple(cell if cell.metric is None else replace(cell, status=status_of(cell.metric)) for cell in row)
        for row in table.rows
    )
    marked = any(cell.metric is not None and cell.status in _PREFIXES for row in rows for cell in row)
    return replace(table, rows=rows, notes=(STATUS_NOTE, *table.notes) if marked else table.notes)


def _text(table: Table) -> str:
    titles = [printable(column.title) for column in table.columns]
    groups = _groups(table)
    if any(name for name, _ in groups):
        heads = {at[0]: name for name, at in groups}
        titles = [f"{heads.get(at, '')}\n{title}" for at, title in enumerate(titles)]
    return _framed(table.title, _tabulated(table, titles, "simple"), table.notes)


def _markdown(table: Table) -> str:
    notes = [f"- {_escaped_markdown(note)}" for note in table.notes]
    return _framed(table.title and f"**{table.title}**", _tabulated(table, _titles(table), "pipe"), notes)


def _framed(title: str, body: str, notes: Sequence[str]) -> str:
    return "\n".join([*([title, ""] if title else []), body, *([""] if notes else []), *map(printable, notes)]) + "\n"


def _latex(table: Table) -> str:
    """A booktabs tabular with the title and the notes as comments."""
    text = _tabulated(table, _titles(table), "latex_raw")
    for rule in ("toprule", "midrule", "bottomrule"):
        text = text.replace("\\hline", f"\\{rule}", 1)
    notes = (_LATEX_NOTE if note == STATUS_NOTE else note for note in table.notes)
    return "\n".join([*(f"% {line}" for line in (table.title, *notes) if line), text]) + "\n"


def _titles(table: Table) -> list[str]:
    return [printable(f"{column.group} {column.title}".strip()) for column in table.columns]


def _tabulated(table: Table, titles: Sequence[str], form: str) -> str:
    """The table in a `tabulate` format, without title and notes."""
    from tabulate import tabulate

    escaped, bold, statuses = _READABLE[form]
    best = _best(table)
    body = [
        [
            _shown(cell, column, escaped, [statuses.get(cell.status, _PLAIN), bold if number in marked else _PLAIN])
            for cell, column, marked in zip(row, table.columns, best, strict=True)
        ]
        for number, row in enumerate(table.rows)
    ]
    words = [any(isinstance(row[at].value, str) for row in table.rows) for at in range(len(titles))]
    align = ["left" if flush else "right" for flush in words]
    lines = tabulate(body, list(map(escaped, titles)), form, colalign=align, disable_numparse=True).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _csv(table: Table) -> str:
    """Like `_tsv`, but comma-separated, and quoted where necessary."""
    return _separated(table, delimiter=",")


def _tsv(table: Table) -> str:
    """Tab-separated values with six significant digits. Columns with ranks, daggers, intervals or statuses are followed
    by ``KEY_rank``, ``KEY_dagger``, ``KEY_status``, ``KEY_low`` and ``KEY_high``."""
    return _separated(table, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)


def _separated(table: Table, **form: Any) -> str:
    fields = _fields(table)
    file = io.StringIO()
    out = csv.writer(file, lineterminator="\n", **form)
    out.writerow(f"{group}:{key}".removeprefix(":") for _, group, key, _ in fields)
    for row in table.rows:
        values = [of(row[at]) for at, _, _, of in fields]
        shown = (f"{value:.6g}" if isinstance(value, bool | float) else value for value in values)
        out.writerow("" if value is None else " ".join(printable(str(value)).split()) for value in shown)
    return file.getvalue()


def _json(table: Table) -> str:
    """A JSON object with title, rows (one object per row, with nested groups) and notes, in full precision."""
    fields = _fields(table)
    rows = []
    for row in table.rows:
        item: dict[str, Any] = {}
        for at, group, key, of in fields:
            (item.setdefault(group, {}) if group else item)[key] = of(row[at])
        rows.append(item)
    content = {"title": table.title, "rows": rows, "notes": list(table.notes), **table.beside}
    return json_text(content, indent=2) + "\n"


#: Format -> its renderer.
TABLE_FORMATS = {"text": _text, "markdown": _markdown, "latex": _latex, "tsv": _tsv, "csv": _csv, "json": _json}


def _shown(cell: Cell, column: Column, escaped: Callable[[str], str], marks: Iterable[tuple[str, str]]) -> str:
    """The cell as text, with its dagger and cluster: ``0.864† (1)``; the marks enclose the value, the first inside."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, float):
        value = f"{100 * value if column.percent else value:.{column.digits}f}"
    text = escaped(printable(str(value)))
    for before, after in marks:
        text = before + text + after
    return text + escaped(DAGGER if cell.dagger else "") + (f" ({cell.rank})" if cell.rank is not None else "")


#: Suffix of a field -> the property of a cell that it contains.
_BESIDE: Mapping[str, Callable[[Cell], Value]] = {
    "rank": lambda cell: cell.rank,
    "dagger": lambda cell: cell.dagger,
    "status": lambda cell: cell.status,
    "low": lambda cell: cell.interval[0] if cell.interval else None,
    "high": lambda cell: cell.interval[1] if cell.interval else None,
}


def _fields(table: Table) -> list[tuple[int, str, str, Callable[[Cell], Value]]]:
    """The fields of TSV, CSV and JSON: column index, group, key, and the function from a cell to the field's value."""
    fields: list[tuple[int, str, str, Callable[[Cell], Value]]] = []
    for at, column in enumerate(table.columns):
        fields.append((at, column.group, column.key, lambda cell: cell.value))
        for suffix, of in _BESIDE.items():
            values = [of(row[at]) for row in table.rows]
            if any(value is not None and value is not False for value in values):
                fields.append((at, column.group, f"{column.key}_{suffix}", of))
    return fields


def _best(table: Table) -> list[set[int]]:
    """For each column, the rows with the best value after rounding; an empty set if all values are equal."""
    best = []
    for i, column in enumerate(table.columns):
        shown = {
            number: round(100 * v if column.percent else v, column.digits)
            for number, row in enumerate(table.rows)
            if isinstance(v := row[i].value, float)
        }
        top = max(shown.values(), default=0.0)
        marked = column.best == "max" and len(set(shown.values())) > 1
        best.append({number for number, value in shown.items() if marked and value == top})
    return best


def _groups(table: Table) -> list[tuple[str, list[int]]]:
    """(group, column indices) of each run of consecutive columns in one group."""
    return [(name, list(at)) for name, at in groupby(range(len(table.columns)), lambda i: table.columns[i].group)]


def _escaped_markdown(text: str) -> str:
    return text.replace("|", r"\|")


_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", DAGGER: r"$^{\dagger}$"}
    | {character: f"\\{character}" for character in "&%$#_{}"}
)


_PLAIN = ("", "")
#: `tabulate` format -> the function that escapes text, and the markup around the best value and metrics of a status.
_READABLE: Mapping[str, tuple[Callable[[str], str], tuple[str, str], _Marks]] = {
    "simple": (str, _PLAIN, _PREFIXES),
    "pipe": (_escaped_markdown, ("**", "**"), _PREFIXES),
    "latex_raw": (lambda text: text.translate(_LATEX), (r"\textbf{", "}"), _COMMANDS),
}
