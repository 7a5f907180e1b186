"""CSV and TSV with named columns (see `columns.py`). Scores and errors are written as columns. A row without a
translation has a blank translation."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.documents.columns import find_columns, missing_columns
from mbr_esd_metric.adapters.documents.document import (
    READY,
    Checked,
    Document,
    MissingKey,
    Names,
    Selection,
    TranslationUnit,
)
from mbr_esd_metric.core.annotation import CORRECTION
from mbr_esd_metric.core.segment import Context, Segment
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.streams import json_text, open_binary, whole_file
from mbr_esd_metric.files.tables import Row, is_quoted, quoted_cell, quoted_rows, table_rows, whole_text
from mbr_esd_metric.messages import number_of
from mbr_esd_metric.prompting.languages import language_pair

#: Columns added to a marked table.
_ADDED = ("mbr_esd_score", "mbr_esd_errors")
#: Columns of a table with one error per row.
ERROR_COLUMNS = (
    *("system", "id", "severity", "category", "side", "start", "end", "text", "confidence"),
    *("source", "translation"),
)
#: The line before the header that specifies the separator for Excel.
_SEPARATOR = re.compile(r'"?sep=([^\r\n])"?\r?\n', re.IGNORECASE)
#: Prefixes of texts that a spreadsheet would evaluate as a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def write_errors(path: str | Path, errors: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV with one error per row, in `ERROR_COLUMNS`, with the columns for corrections if there are any. Texts
    that a spreadsheet would evaluate as a formula are prefixed with an apostrophe, which `read_table` removes."""
    columns = (*ERROR_COLUMNS, *(name for name in CORRECTION if any(name in error for error in errors)))
    with whole_file(path) as file:
        for row in (columns, *(map(error.get, columns) for error in errors)):
            plain = ("" if one is None else round(one, 6) if isinstance(one, float) else one for one in row)
            texts = (f"'{cell}" if isinstance(cell, str) and _formula(cell) else str(cell) for cell in plain)
            file.write((",".join(map(quoted_cell, texts)) + "\n").encode(errors="backslashreplace"))


def _formula(text: str) -> bool:
    """Whether a text starts like a formula, after any apostrophes."""
    return text.lstrip("'").startswith(_FORMULAS)


def read_table(path: Path, selection: Selection = READY) -> Document:
    """The rows of a table with a header. Rows without a source are skipped, and unless `selection.every`, rows that are
    not ready. `find_columns` finds the source and target columns. Cells of a TSV are literal, unless `is_quoted`
    detects CSV quoting.
    """
    lp, chosen = selection.lp, selection.columns
    separator = _SEPARATOR.match(whole_text(path))
    delimiter = separator[1] if separator else _delimiter(path, lp, chosen)
    literal = path.suffix.lower() == ".tsv" and delimiter == "\t" and not is_quoted(path)
    rows = list(table_rows(path, delimiter, not literal))
    last = max((at for at, row in enumerate(rows) if len(row.cells) > 1 or "".join(row.cells).strip()), default=-1)
    top = 1 if separator else 0
    header = _header(rows[top]) if len(rows) > top else []
    at = find_columns(header, lp, chosen)
    hint = "; perhaps a line end inside a cell" if literal else ""
    if at is None:
        raise InputError(f"{missing_columns(path, top + 1, header, chosen)}{hint}")
    units, numbers, empty, unready, names, missing = [], [], [], dict[str, str](), Names(), list[MissingKey]()
    for number, row in enumerate(rows[top + 1 : last + 1], top + 1):
        cells = row.cells
        if len(cells) != len(header):
            raise InputError(
                f"{path}, line {row.line}: {number_of(len(cells), 'column')}, and {len(header)} in the header{hint}"
            )
        if header[: len(ERROR_COLUMNS)] == list(ERROR_COLUMNS):
            cells = [one[1:] if one.startswith("'") and _formula(one) else one for one in cells]
        source, target = cells[at.source].strip(), cells[at.target].strip()
        key, lp_cell = (cells[place].strip() if place is not None else "" for place in (at.id, at.lp))
        name = names.unique(key or str(number - top))
        if not source:
            empty.append(name)
            continue
        if not selection.every and (why := at.unready(cells)):
            unready[name] = why
            continue
        pair = at.languages
        with suppress(OptionError):
            pair = language_pair(lp_cell)
        segment = Segment(source, target, name, known=Context(pair[0] or None, pair[1] or None))
        units.append(TranslationUnit(segment, key, row.first_line))
        numbers.append(number)
        if not target:
            missing.append(MissingKey(name, row.first_line, source=f"{key}|{source}"))

    def mark(checked: Sequence[Checked | None], output: Path) -> None:
        """Write the table with scores and errors, replacing those of an earlier run; all other bytes are unchanged.
        Lines after row `last` are blank."""
        by_row = dict(zip(numbers, checked, strict=True))
        is_judged = any(one is not None for one in checked)
        quote = partial(quoted_cell, delimiter=delimiter, always=all(cell[:1] == '"' for cell in rows[top].raw))
        with open_binary(path) as file, whole_file(output) as out:
            out.write(codecs.BOM_UTF8 if file.read(3) == codecs.BOM_UTF8 else b"")
            for number, row in enumerate(rows):
                cells, one = list(row.raw), by_row.get(number)
                ours = _cells(one) if number > top else _ADDED
                for name, cell in zip(_ADDED, ours, strict=True) if is_judged and top <= number <= last else ():
                    if name not in header:
                        cells.append(cell if literal else quote(cell))
                    elif number > top and one is not None:
                        cells[header.index(name)] = cell if literal else quote(cell)
                out.write((delimiter.join(cells) + row.end).encode())

    return Document(path, tuple(units), mark, tuple(empty), unready, missing=tuple(missing))


def _header(row: Row) -> list[str]:
    return [name.strip().lower() for name in row.cells]


def _delimiter(path: Path, lp: str | None, chosen: tuple[str, str] | None) -> str:
    """The separator that yields a source and a target column: a comma, for TSV a tab, or another common separator; if
    none does, the one with the most columns."""
    text = whole_text(path)
    usual = "\t,;|" if path.suffix.lower() == ".tsv" else ",;\t|"
    marks = "".join(one for one in text.partition("\n")[0] if not one.isalnum() and one not in "\"' _-\r")
    columns = dict.fromkeys(usual[0], 1)
    for one in dict.fromkeys(usual + marks):
        with suppress(InputError):
            header = next((_header(row) for row in quoted_rows(path, text, one)), [])
            if find_columns(header, lp, chosen) is not None:
                return one
            columns[one] = len(header)
    return max(columns, key=columns.__getitem__)


def _cells(one: Checked | None) -> tuple[str, str]:
    """Score and errors of a row, both "" without `one`; a skipped blank translation (blank=skip) has no score."""
    if one is None:
        return "", ""
    keys = ("start", "end", "severity", "category", "side")
    errors = [{key: getattr(span, key) for key in keys} | span.correction_fields for span in one.annotation]
    return "" if math.isnan(one.score) else str(round(one.score, 6)), json_text(errors)
