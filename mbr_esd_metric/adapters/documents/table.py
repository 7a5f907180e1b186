"""CSV and TSV with named columns: `source` and `target`, and `id` and `lp` if there are any. Scores and errors become
columns. A row without a translation has one that is blank."""

from __future__ import annotations

import codecs
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.documents.document import Checked, Document, Names, TranslationUnit
from mbr_esd_metric.core.annotation import CORRECTION
from mbr_esd_metric.errors import InputError, OptionError, number_of
from mbr_esd_metric.files.streams import json_text, open_binary, whole_file
from mbr_esd_metric.files.tables import Row, is_quoted, quoted_cell, quoted_rows, table_rows, whole_text
from mbr_esd_metric.prompting.languages import language_pair

#: Our name of a column -> what files call it.
_NAMES = {
    "source": ("source", "src"),
    "target": ("target", "translation", "mt", "tgt"),
    "id": ("id", "key"),
    "lp": ("lp", "language_pair"),
}
#: The columns that a marked table has more than the user's.
_ADDED = ("mbr_esd_score", "mbr_esd_errors")
#: The columns of a table with one error a row.
ERROR_COLUMNS = (
    *("system", "id", "severity", "category", "side", "start", "end", "text", "confidence"),
    *("source", "translation"),
)
#: How a text begins that a spreadsheet would take for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def write_errors(path: str | Path, errors: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV with one error a row, in `ERROR_COLUMNS`, and in those of corrections where there are any. A text
    that a spreadsheet would take for a formula has an apostrophe before it, which `read_table` takes off again."""
    columns = (*ERROR_COLUMNS, *(name for name in CORRECTION if any(name in error for error in errors)))
    with whole_file(path) as file:
        for row in (columns, *(map(error.get, columns) for error in errors)):
            plain = ("" if one is None else round(one, 6) if isinstance(one, float) else one for one in row)
            texts = (f"'{cell}" if isinstance(cell, str) and _formula(cell) else str(cell) for cell in plain)
            file.write((",".join(map(quoted_cell, texts)) + "\n").encode(errors="backslashreplace"))


def _formula(text: str) -> bool:
    """Whether a text begins as a formula, behind any apostrophes."""
    return text.lstrip("'").startswith(_FORMULAS)


def read_table(path: Path, every: bool = False) -> Document:
    """The rows of a table with a header; those without a source are left out. No row says that it is not ready.

    Cells of a TSV are literal, unless `is_quoted` says that they are quoted.
    """
    delimiter = _delimiter(path)
    literal = path.suffix.lower() == ".tsv" and delimiter == "\t" and not is_quoted(path)
    rows = list(table_rows(path, delimiter, not literal))
    last = max((at for at, row in enumerate(rows) if len(row.cells) > 1 or "".join(row.cells).strip()), default=-1)
    header = _header(rows[0]) if rows else []
    at = {name: next((header.index(one) for one in names if one in header), None) for name, names in _NAMES.items()}
    hint = "; perhaps a line end inside a cell" if literal else ""
    for name in ("source", "target"):
        if at[name] is None:
            raise InputError(f"{path}, line 1: no column {' or '.join(_NAMES[name])} in the header{hint}")
    units, numbers, empty, names = [], [], [], Names()
    for number, row in enumerate(rows[1 : last + 1], 1):
        cells = row.cells
        if len(cells) != len(header):
            raise InputError(
                f"{path}, line {row.line}: {number_of(len(cells), 'column')}, and {len(header)} in the header{hint}"
            )
        if header[: len(ERROR_COLUMNS)] == list(ERROR_COLUMNS):
            cells = [one[1:] if one.startswith("'") and _formula(one) else one for one in cells]
        cell = {name: cells[place].strip() if place is not None else "" for name, place in at.items()}
        name = names.unique(cell["id"] or str(number))
        if not cell["source"]:
            empty.append(name)
            continue
        pair = ("", "")
        with suppress(OptionError):
            pair = language_pair(cell["lp"])
        units.append(TranslationUnit(name, cell["source"], cell["target"], pair, key=cell["id"], line=row.first_line))
        numbers.append(number)

    def mark(checked: Sequence[Checked | None], output: Path) -> None:
        """Write the table with score and errors, in place of those that an earlier run added, and every other byte as
        it is; behind row `last` lines are blank."""
        by_row = dict(zip(numbers, checked, strict=True))
        is_judged = any(one is not None for one in checked)
        quote = partial(quoted_cell, delimiter=delimiter, always=all(cell[:1] == '"' for cell in rows[0].raw))
        with open_binary(path) as file, whole_file(output) as out:
            out.write(codecs.BOM_UTF8 if file.read(3) == codecs.BOM_UTF8 else b"")
            for number, row in enumerate(rows):
                cells, one = list(row.raw), by_row.get(number)
                ours = _cells(one) if number else _ADDED
                for name, cell in zip(_ADDED, ours, strict=True) if is_judged and number <= last else ():
                    if name not in header:
                        cells.append(cell if literal else quote(cell))
                    elif number and one is not None:
                        cells[header.index(name)] = cell if literal else quote(cell)
                out.write((delimiter.join(cells) + row.end).encode())

    return Document(path, tuple(units), mark, tuple(empty))


def _header(row: Row) -> list[str]:
    return [name.strip().lower() for name in row.cells]


def _delimiter(path: Path) -> str:
    """What divides the header into columns with a source and a target: a comma, of a TSV a tab, or another one of those
    in use in a country; the first where none does."""
    text = whole_text(path)
    usual = "\t,;|" if path.suffix.lower() == ".tsv" else ",;\t|"
    marks = "".join(one for one in text.partition("\n")[0] if not one.isalnum() and one not in "\"' _-\r")
    for one in dict.fromkeys(usual + marks):
        with suppress(InputError):
            header = next((_header(row) for row in quoted_rows(path, text, one)), [])
            if all(set(_NAMES[name]) & set(header) for name in ("source", "target")):
                return one
    return usual[0]


def _cells(one: Checked | None) -> tuple[str, str]:
    """Score and errors of a row, "" both without `one`; a blank translation left out (blank=skip) has no score."""
    if one is None:
        return "", ""
    keys = ("start", "end", "severity", "category", "side")
    errors = [{key: getattr(span, key) for key in keys} | span.correction_fields for span in one.annotation]
    return "" if math.isnan(one.score) else str(round(one.score, 6)), json_text(errors)
