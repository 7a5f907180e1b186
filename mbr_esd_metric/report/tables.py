"""One table, six ways to write it: text, Markdown, LaTeX, HTML, TSV and JSON.

Text, Markdown, LaTeX and HTML are for reading: values are rounded, and the best one of a column is marked if they can.
TSV and JSON are for programs: values in full, cluster ranks and daggers in fields of their own.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mbr_esd_metric.errors import unknown

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.metric_status import Status

Value = float | int | str | None

DAGGER = "†"

#: What stands before the name where only text can be written, as in mt-metrics-eval's tables.
_BEFORE: Mapping[Status | None, str] = {"contrastive": "*", "baseline": "_"}
STATUS_NOTE = "*: contrastive submission, or none; _: baseline"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes:
        value: None for an empty cell.
        rank: significance cluster from 1, or None.
        dagger: whether the value is marked as a significant gain.
        interval: lowest and highest value of a bootstrap, which TSV and JSON have.
        status: of the metric that the cell names.
    """

    value: Value = None
    rank: int | None = None
    dagger: bool = False
    interval: tuple[float, float] | None = None
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        key: its name in JSON and TSV; unique within its group.
        title: its heading.
        group: heading above several columns, such as a language pair; "" for none.
        digits: after the point, in formats for reading.
        percent: show 100 times the value there.
        best: "max" to mark the highest value, or None.
        label: whether it names the row; such columns stay where others are chosen.
    """

    key: str
    title: str
    group: str = ""
    digits: int = 3
    percent: bool = False
    best: str | None = None
    label: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, rows of as many cells, and notes below; JSON also has what stands `beside` the rows, by its key."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    beside: Mapping[str, Any] = field(default_factory=dict)


#: The values of a row, by its columns.
TableRow: TypeAlias = Mapping[Column, Value]


def table_of(
    title: str, rows: Sequence[TableRow], notes: Sequence[str] = (), beside: Mapping[str, Any] | None = None
) -> Table:
    """A table of at least one row; all have the same columns, in the same order."""
    cells = tuple(tuple(map(Cell, row.values())) for row in rows)
    return Table(title, tuple(rows[0]), cells, tuple(notes), beside or {})


def render_table(table: Table, form: str = "text") -> str:
    """`table` in that format, with a line end at the end.

    Raises:
        OptionError: for an unknown format.
    """
    if form not in TABLE_FORMATS:
        raise unknown("table format", form, TABLE_FORMATS)
    return TABLE_FORMATS[form](table)


def render_all(tables: Sequence[Table], form: str = "text") -> str:
    """Tables one below the other; as JSON, several are one list of them, and as HTML one page.

    Raises:
        OptionError: for an unknown format.
    """
    if form == "html":
        return _page(tables)
    rendered = [render_table(table, form) for table in tables]
    if form == "json" and len(rendered) > 1:
        return "[\n" + ",\n".join(text.rstrip("\n") for text in rendered) + "\n]\n"
    return "\n".join(rendered)


def blocks(table: Table, width: int) -> list[Table]:
    """The table as several, one below the other, none wider than `width` characters in text where that can be.

    A table is cut between groups of columns, such as language pairs; the columns before the first group come again in
    each block. The title is that of the first, notes and the columns behind the groups are those of the last.
    """
    groups = _groups(table)
    if len(groups) < 2 or _width(table) <= width:
        return [table]
    labels = list(range(groups[0][1])) if not groups[0][2] else []
    pieces = [list(range(start, end)) for start, end, _ in groups if start >= len(labels)]
    if not groups[-1][2] and len(pieces) > 1:
        pieces[-2:] = [pieces[-2] + pieces[-1]]
    packed = [pieces[0]]
    for piece in pieces[1:]:
        if _width(of_columns(table, [*labels, *packed[-1], *piece])) <= width:
            packed[-1] = packed[-1] + piece
        else:
            packed.append(piece)
    parts = [_said(of_columns(table, [*labels, *piece]), len(labels)) for piece in packed]
    last = len(parts) - 1
    return [
        replace(part, title=table.title if at == 0 else "", notes=table.notes if at == last else ())
        for at, part in enumerate(parts)
    ]


def _said(table: Table, labels: int) -> Table:
    """Without the rows that have only labels, unless that is all of them."""
    rows = tuple(row for row in table.rows if any(cell.value is not None for cell in row[labels:]))
    return replace(table, rows=rows or table.rows)


def with_columns(table: Table, keys: Sequence[str]) -> Table:
    """The table with only these columns, by key or heading, in this order in every group; those that name the rows
    stay.

    Raises:
        OptionError: a name that no column has.
    """
    there = {name.lower(): column.key for column in table.columns for name in (column.title, column.key)}
    for key in keys:
        if key.lower() not in there:
            raise unknown("column", key, {column.key for column in table.columns if not column.label})
    order = list(dict.fromkeys(there[key.lower()] for key in keys))
    kept: list[int] = []
    for start, end, _ in _groups(table):
        own = range(start, end)
        kept += [at for at in own if table.columns[at].label]
        kept += [at for key in order for at in own if table.columns[at].key == key and not table.columns[at].label]
    return of_columns(table, kept)


def with_status(table: Table, status_of: Callable[[str], Status | None]) -> Table:
    """The table with the status of each metric that its column "metric" names; people have no input beside theirs."""
    at = next((i for i, column in enumerate(table.columns) if column.key == "metric"), None)
    if at is None:
        return table
    rows = tuple(
        row
        if row[at + 1].value is None
        else (*row[:at], replace(row[at], status=status_of(str(row[at].value))), *row[at + 1 :])
        for row in table.rows
    )
    marked = any(row[at].status in _BEFORE for row in rows)
    return replace(table, rows=rows, notes=(STATUS_NOTE, *table.notes) if marked else table.notes)


def of_columns(table: Table, at: Sequence[int]) -> Table:
    """The table with only these columns, by their numbers."""
    columns = tuple(table.columns[i] for i in at)
    return replace(table, columns=columns, rows=tuple(tuple(row[i] for i in at) for row in table.rows))


def _width(table: Table) -> int:
    return max(map(len, _text(replace(table, title="", notes=())).splitlines()), default=0)


def _text(table: Table) -> str:
    body = [[_shown(cell, column) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows]
    titles = [column.title for column in table.columns]
    groups = _groups(table)
    lines = [titles, *body]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    for start, end, name in groups:
        # A group's heading needs room over its columns; the last of them gives it.
        widths[end - 1] += max(0, len(name) - sum(widths[start:end]) - 2 * (end - start - 1))
    left = [_is_text(table, i) for i in range(len(titles))]

    def line(cells: Sequence[str]) -> str:
        parts = (c.ljust(w) if flush else c.rjust(w) for c, w, flush in zip(cells, widths, left, strict=True))
        return "  ".join(parts).rstrip()

    out = [table.title, ""] if table.title else []
    if any(name for _, _, name in groups):
        heads = (name.center(sum(widths[s:e]) + 2 * (e - s - 1)) for s, e, name in groups)
        out.append("  ".join(heads).rstrip())
    out += [line(titles), "  ".join("-" * width for width in widths), *map(line, body)]
    return "\n".join([*out, *([""] if table.notes else []), *table.notes]) + "\n"


def _markdown(table: Table) -> str:
    best = _best(table)
    titles = [f"{column.group} {column.title}".strip() for column in table.columns]
    out = [f"**{table.title}**", ""] if table.title else []
    out.append("| " + " | ".join(_escaped_markdown(title) for title in titles) + " |")
    out.append("|" + "|".join(":--" if _is_text(table, i) else "--:" for i in range(len(titles))) + "|")
    for number, row in enumerate(table.rows):
        shown = []
        for i, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
            mark = ("**", "**") if number in best[i] else ("", "")
            shown.append(_escaped_markdown(_shown(cell, column, mark)))
        out.append("| " + " | ".join(shown) + " |")
    return "\n".join([*out, *([""] if table.notes else []), *(f"- {_escaped_markdown(n)}" for n in table.notes)]) + "\n"


def _latex(table: Table) -> str:
    """A booktabs tabular; the notes are comments."""
    best = _best(table)
    alignment = "".join("l" if _is_text(table, i) else "r" for i in range(len(table.columns)))
    out = [f"% {line}" for line in (table.title, *table.notes) if line]
    out += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
    groups = _groups(table)
    if any(name for _, _, name in groups):
        out.append(" & ".join(rf"\multicolumn{{{e - s}}}{{c}}{{{_escaped_latex(n)}}}" for s, e, n in groups) + r" \\")
        out.append("".join(rf"\cmidrule(lr){{{s + 1}-{e}}}" for s, e, n in groups if n))
    out.append(" & ".join(_escaped_latex(column.title) for column in table.columns) + r" \\")
    out.append(r"\midrule")
    for number, row in enumerate(table.rows):
        cells = []
        for i, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
            plain = Cell(_escaped_latex(cell.value)) if isinstance(cell.value, str) else cell
            mark = (r"\textbf{", "}") if number in best[i] else _LATEX_STATUS.get(cell.status, ("", ""))
            cells.append(_shown(plain, column, mark).replace(DAGGER, r"$^{\dagger}$"))
        out.append(" & ".join(cells) + r" \\")
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}"]) + "\n"


_LATEX_STATUS: Mapping[Status | None, tuple[str, str]] = {
    "contrastive": (r"\textit{", "}"),
    "baseline": (r"\underline{", "}"),
}


#: What a page of tables looks like. It loads nothing, and has no program.
_STYLE = """\
body{font:15px/1.4 system-ui,sans-serif;margin:2rem;color-scheme:light dark}
table{border-collapse:collapse;margin:.5rem 0}th,td{padding:.15rem .6rem;border-bottom:1px solid #8886}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}ul{color:#777;font-size:13px;padding-left:1.2rem}"""


def _page(tables: Sequence[Table]) -> str:
    """One HTML file."""
    title = html.escape(next((table.title for table in tables if table.title), "tables"))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n<style>\n{_STYLE}\n'
        "</style>\n" + "".join(map(_section, tables)) + "</html>\n"
    )


def _section(table: Table) -> str:
    """A heading, a table and its notes."""
    best = _best(table)
    of = ["" if _is_text(table, i) else ' class="n"' for i in range(len(table.columns))]
    groups = "".join(f'<th colspan="{end - start}">{html.escape(name)}</th>' for start, end, name in _groups(table))
    titles = "".join(f"<th{kind}>{html.escape(c.title)}</th>" for kind, c in zip(of, table.columns, strict=True))
    out = [f"<h2>{html.escape(table.title)}</h2>"] if table.title else []
    out += ["<table>", *([f"<tr>{groups}</tr>"] if any(c.group for c in table.columns) else []), f"<tr>{titles}</tr>"]
    for number, row in enumerate(table.rows):
        shown = [html.escape(_shown(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
        shown = [f"<b>{text}</b>" if number in best[i] else text for i, text in enumerate(shown)]
        out.append("<tr>" + "".join(f"<td{kind}>{text}</td>" for kind, text in zip(of, shown, strict=True)) + "</tr>")
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    return "\n".join([*out, "</table>", *([f"<ul>{notes}</ul>"] if notes else [])]) + "\n"


def _tsv(table: Table) -> str:
    """Full values. A column with ranks, daggers, intervals or statuses has columns ``KEY_rank``, ``KEY_dagger``,
    ``KEY_low``, ``KEY_high`` and ``KEY_status`` beside it."""
    extra = [_extras(table, i) for i in range(len(table.columns))]
    header = []
    for column, more in zip(table.columns, extra, strict=True):
        name = f"{column.group}:{column.key}" if column.group else column.key
        header += [name, *(f"{name}_{suffix}" for suffix in more)]
    lines = [header]
    for row in table.rows:
        line: list[str] = []
        for cell, more in zip(row, extra, strict=True):
            line.append(_plain(cell.value))
            line += [_plain(int(cell.dagger) if suffix == "dagger" else _extra(cell, suffix)) for suffix in more]
        lines.append(line)
    return "".join("\t".join(line) + "\n" for line in lines)


def _json(table: Table) -> str:
    """An object with title, rows (an object each, groups nested) and notes; full values."""
    extra = [_extras(table, i) for i in range(len(table.columns))]
    rows = []
    for row in table.rows:
        item: dict[str, Any] = {}
        for cell, column, more in zip(row, table.columns, extra, strict=True):
            place = item.setdefault(column.group, {}) if column.group else item
            place[column.key] = cell.value
            for suffix in more:
                place[f"{column.key}_{suffix}"] = _extra(cell, suffix)
        rows.append(item)
    content = {"title": table.title, "rows": rows, "notes": list(table.notes), **table.beside}
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


#: Format -> what writes it.
TABLE_FORMATS: Mapping[str, Callable[[Table], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "tsv": _tsv,
    "json": _json,
    "html": lambda table: _page([table]),
}


def shown_values(cells: Sequence[Cell], columns: Sequence[Column]) -> str:
    """The values in words, for a line below a table: ``SPA 0.379, acc_eq* 0.480``."""
    return ", ".join(
        f"{column.title} {_shown(cell, column)}"
        for cell, column in zip(cells, columns, strict=True)
        if cell.value is not None
    )


def _shown(cell: Cell, column: Column, mark: tuple[str, str] = ("", "")) -> str:
    """A value for reading, with its dagger and cluster: ``0.864† (1)``; `mark` is put around the value."""
    if cell.value is None:
        return ""
    text = mark[0] + _BEFORE.get(cell.status, "") + _rounded(cell.value, column) + mark[1]
    return text + (DAGGER if cell.dagger else "") + (f" ({cell.rank})" if cell.rank is not None else "")


def _rounded(value: float | int | str, column: Column) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    return f"{100 * value if column.percent else value:.{column.digits}f}"


def _plain(value: Value) -> str:
    return "" if value is None else " ".join(str(value).splitlines()).replace("\t", " ")


def _is_text(table: Table, index: int) -> bool:
    """Whether the column is flush left: it holds words."""
    return any(isinstance(row[index].value, str) for row in table.rows)


def _extras(table: Table, index: int) -> list[str]:
    cells = [row[index] for row in table.rows]
    found = ["rank"] if any(cell.rank is not None for cell in cells) else []
    found += ["dagger"] if any(cell.dagger for cell in cells) else []
    found += ["status"] if any(cell.status is not None for cell in cells) else []
    return found + (["low", "high"] if any(cell.interval is not None for cell in cells) else [])


def _extra(cell: Cell, suffix: str) -> Value:
    if suffix in ("low", "high"):
        return None if cell.interval is None else cell.interval[suffix == "high"]
    return {"rank": cell.rank, "dagger": cell.dagger, "status": cell.status}[suffix]


def _best(table: Table) -> list[set[int]]:
    """For each column, the rows with the best value as shown. None if the column has only one value."""
    found = []
    for i, column in enumerate(table.columns):
        shown = {
            number: round(100 * v if column.percent else v, column.digits)
            for number, row in enumerate(table.rows)
            if isinstance(v := row[i].value, float)
        }
        top = max(shown.values(), default=0.0)
        marked = column.best == "max" and len(set(shown.values())) > 1
        found.append({number for number, value in shown.items() if marked and value == top})
    return found


def _groups(table: Table) -> list[tuple[int, int, str]]:
    """(first column, one past the last, name) of each run of columns in one group."""
    groups: list[tuple[int, int, str]] = []
    for i, column in enumerate(table.columns):
        if groups and groups[-1][2] == column.group:
            groups[-1] = (groups[-1][0], i + 1, column.group)
        else:
            groups.append((i, i + 1, column.group))
    return groups


def _escaped_markdown(text: str) -> str:
    return text.replace("|", r"\|")


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


def _escaped_latex(text: str) -> str:
    return text.translate(_LATEX)
