"""CSV and TSV with named columns: `source` and `target`, and `id` and `lp` if there are any. Scores and errors become
columns. A row without a translation has one that is blank."""

from __future__ import annotations

import codecs
import csv
import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.documents.document import Checked, Document, TranslationUnit
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import json_text, numbered_lines, open_binary, whole_file
from mbr_esd_metric.files.tables import is_quoted, table_rows

#: Our name of a column -> what files call it.
_NAMES = {
    "source": ("source", "src"),
    "target": ("target", "translation", "mt", "tgt"),
    "id": ("id", "key"),
    "lp": ("lp", "language_pair"),
}

#: The columns of a table with one error a row.
ERROR_COLUMNS = (
    *("system", "id", "severity", "category", "side", "start", "end", "text", "confidence"),
    *("source", "translation"),
)

#: How a text begins that a spreadsheet would take for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def write_errors(path: str | Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV with one error a row. A text that a spreadsheet would take for a formula has an apostrophe before it,
    which `read_table` takes off again; numbers stay numbers."""
    with whole_file(path) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file), lineterminator="\n")
        writer.writerow(ERROR_COLUMNS)
        for row in rows:
            writer.writerow(f"'{cell}" if isinstance(cell, str) and _formula(cell) else cell for cell in row)


def _formula(text: str) -> bool:
    """Whether a text begins as a formula, behind any apostrophes."""
    return text.lstrip("'").startswith(_FORMULAS)


def read_table(path: Path, every: bool = False) -> Document:
    """The rows of a table with a header; those without a source are left out. No row says that it is not ready.

    Columns are divided by commas, of a TSV by tabs; where the header has none, by semicolons and the like, as
    spreadsheets write them in many countries. Cells of a TSV are literal, unless `is_quoted` says that they are quoted.
    """
    tabs = path.suffix.lower() == ".tsv"
    first = next((line for _, line in numbered_lines(path)), "")
    delimiter = next((one for one in ("\t" if tabs else ",", *";\t|,") if one in first), ",")
    literal = tabs and delimiter == "\t" and not is_quoted(path)
    rows = list(table_rows(path, delimiter, not literal))
    while rows and not "".join(rows[-1][1]).strip() and len(rows[-1][1]) < 2:
        rows.pop()
    header = [name.strip().lower() for name in rows[0][1]] if rows else []
    at = {name: next((header.index(one) for one in names if one in header), None) for name, names in _NAMES.items()}
    hint = "; perhaps a line end inside a cell" if literal else ""
    for name in ("source", "target"):
        if at[name] is None:
            raise InputError(f"{path}, line 1: no column {' or '.join(_NAMES[name])} in the header{hint}")
    units, numbers, empty = [], [], []
    for number, (line, row) in enumerate(rows[1:], 1):
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: {len(row)} columns, and {len(header)} in the header{hint}")
        if header == list(ERROR_COLUMNS):
            row = [one[1:] if one.startswith("'") and _formula(one) else one for one in row]
        cell = {name: row[place].strip() if place is not None else "" for name, place in at.items()}
        name = cell["id"] or str(number)
        if not cell["source"]:
            empty.append(name)
            continue
        pair = cell["lp"].partition("-")
        units.append(TranslationUnit(name, cell["source"], cell["target"], (pair[0], pair[2])))
        numbers.append(number)
    cells = [row for _, row in rows]
    with open_binary(path) as file:
        start = codecs.BOM_UTF8 if file.read(3) == codecs.BOM_UTF8 else b""
    return Document(path, tuple(units), partial(_mark, start, cells, numbers, delimiter, literal), tuple(empty))


def _mark(
    start: bytes,
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int],
    delimiter: str,
    literal: bool,
    checked: Sequence[Checked],
    output: Path,
) -> None:
    """Write the table with score and errors, in place of those that an earlier run added."""
    by_row = dict(zip(numbers, checked, strict=True))
    header = [name.strip().lower() for name in rows[0]]
    at = next((i for i in range(len(header)) if header[i : i + 2] == ["score", "errors"]), len(header))
    with whole_file(output) as file:
        file.write(start)
        text = codecs.getwriter("utf-8")(file)
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        for number, row in enumerate(rows):
            one = by_row.get(number)
            # A score that is no number is that of a blank translation which was left out (blank=skip).
            score = "" if one is None or math.isnan(one.score) else str(one.score)
            added = [score, "" if one is None else _errors(one.annotation)] if number else ["score", "errors"]
            cells = [*row[:at], *added, *row[at + 2 :]]
            if literal:
                text.write(delimiter.join(cells) + "\n")
            else:
                writer.writerow(cells)


def _errors(annotation: Annotation) -> str:
    keys = ("start", "end", "severity", "category", "side")
    return json_text([{key: getattr(span, key) for key in keys} for span in annotation])
