"""The rows of errors of `score`, and the tables of `--summary`: scores, errors, changed and untranslated strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mbr_esd_metric.adapters.documents.document import Document
from mbr_esd_metric.files.judged import JudgedSegment, span_json
from mbr_esd_metric.messages import number_of, printable
from mbr_esd_metric.report.tables import Column, Table, TableRow, table_of

#: Columns and maximum number of rows of the errors in a summary; a single system, and lines equal to ids, are omitted.
_SHOWN = ("system", "id", "line", "text", "severity", "category", "correction", "reason")
_MOST = 50
#: File -> its judged segments.
_Judged = Mapping[str, Sequence[JudgedSegment]]


def score_tables(
    documents: Mapping[str, Document], data: _Judged, scores: Mapping[str, float], notes: Sequence[str], changed: bool
) -> list[Table]:
    """The tables of a run, those with strings only if they have rows; the notes are about the scores. `changed` adds
    the changed strings."""
    rows = [_system_row(path, segments, scores[path]) for path, segments in data.items()]
    tables = [_error_table(data), *([_changed_table(data)] if changed else []), _missing_table(documents)]
    return [table_of("scores", rows, notes), *(table for table in tables if table.rows)]


def listed_errors(data: _Judged) -> list[dict[str, Any]]:
    """Each error with its system, the id and line of its segment, and both texts."""
    return [
        {
            **{"system": printable(path), "id": one.name, "line": one.place.line},
            **{"source": one.segment.source, "translation": one.segment.translation},
            **{"side": span.side, "lost": span.lost, **span_json(span, one.words(span))},
        }
        for path, rows in data.items()
        for one in rows
        for span in one.errors
    ]


def _error_table(data: _Judged) -> Table:
    """A Markdown table of the first errors; texts are formatted as code, because they are untrusted."""
    errors = listed_errors(data)
    usual = {"system"} if len(data) < 2 else set()
    usual |= {"line"} if all(error["id"] == str(error["line"]) for error in errors) else set()
    columns = {title: Column(title, title) for title in _SHOWN if title not in usual}
    rows = [
        {
            column: f"{error['lost']}{_as_code(error[key])}" if key == "text" else _as_code(error[key])
            for key, column in columns.items()
            if error.get(key) is not None
        }
        for error in errors[:_MOST]
    ]
    notes = [f"and {number_of(len(errors) - _MOST, 'error')} more"] if len(errors) > _MOST else []
    return table_of("errors", rows, notes)


def _changed_table(data: _Judged) -> Table:
    """A Markdown table of the first changed strings; texts are formatted as code."""
    rows = [
        {
            **{"system": path, "id": one.name, "line": one.place.line, "source": one.segment.source},
            **{"translation": one.segment.translation, "score": one.score_or_nan},
        }
        for path, segments in data.items()
        for one in segments
    ]
    return _strings_table("changed strings", rows, len(data))


def _missing_table(documents: Mapping[str, Document]) -> Table:
    """A Markdown table of the first units and keys without a translation."""
    rows = [
        {"system": path, "id": one.key, "line": one.line, "problem": one.problem}
        for path, document in documents.items()
        for one in document.missing
    ]
    return _strings_table("strings without a translation", rows, len(documents))


def _strings_table(title: str, strings: Sequence[Mapping[str, Any]], systems: int) -> Table:
    """A table of the first strings; a single system is omitted."""
    rows = [
        {
            Column(name, name, digits=4): _as_code(value) if isinstance(value, str) and name != "problem" else value
            for name, value in one.items()
            if name != "system" or systems > 1
        }
        for one in strings[:_MOST]
    ]
    notes = [f"and {number_of(len(strings) - _MOST, 'string')} more"] if len(strings) > _MOST else []
    return table_of(title, rows, notes)


def _as_code(value: str | int) -> str | int:
    """A text as inline code in Markdown; an empty one (a correction that deletes) as a dash."""
    if isinstance(value, int):
        return value
    return f"`{printable(value).replace('`', chr(39))}`" if value else "\N{EM DASH}"


def _system_row(path: str, segments: Sequence[JudgedSegment], score: float) -> TableRow:
    """The row of a system: its score, and counts of its error spans."""
    severities = [span.severity for one in segments for span in one.errors.on("translation")]
    row: dict[Column, Any] = {
        Column("system", "system"): path,
        Column("segments", "segments"): len(segments),
        Column("score", "score", digits=4): score,
        Column("major", "major spans"): severities.count("major"),
        Column("minor", "minor spans"): severities.count("minor"),
    }
    if any(one.marks_source for one in segments):
        row[Column("omissions", "omitted")] = sum(len(one.errors.on("source")) for one in segments)
    return row
