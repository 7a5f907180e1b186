"""Tables as text: rows and cells, with or without CSV quoting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines, whole_lines
from mbr_esd_metric.messages import number_of


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        line: the number of its last line; quoted cells may contain line ends.
        cells: the texts of the cells; empty for a blank line.
        raw: the cells as written in the file, with quotation marks.
        end: the line end, "" if the file ends without one.
    """

    line: int
    cells: list[str]
    raw: list[str]
    end: str

    @property
    def first_line(self) -> int:
        """The number of its first line."""
        return self.line - sum(cell.count("\n") for cell in self.raw)


def quoted_rows(path: str | Path, text: str, delimiter: str) -> Iterator[Row]:
    """The rows of a text with CSV quoting (RFC 4180). Unlike Python's reader, it preserves the raw cells, does not
    limit their length, and accepts carriage returns in quotes. Raises `InputError`, with `path` and line, for
    unbalanced quotation marks, or a carriage return outside quotes."""
    between = re.escape(delimiter)
    cell = re.compile(rf'("[^"]*(?:""[^"]*)*"|[^"{between}\r\n][^{between}\r\n]*|)({between}|\r?\n|\Z)')
    at, line, raw = 0, 1, list[str]()
    while at < len(text) or raw:
        found = cell.match(text, at)
        if found is None:
            line = text.count("\n", 0, at) + 1
            fault = "an unbalanced quotation mark" if text[at] == '"' else "a carriage return outside quotation marks"
            raise InputError(f"{path}, line {line}: {fault}; is this file really quoted?")
        raw.append(found[1])
        at = found.end()
        if found[2] != delimiter:
            line += sum(one.count("\n") for one in raw)
            cells = [one[1:-1].replace('""', '"') if one[:1] == '"' else one for one in raw]
            yield Row(line, [] if cells == [""] else cells, raw, found[2])
            line, raw = line + 1, []


def table_rows(path: str | Path, delimiter: str, quoted: bool | None = None) -> Iterator[Row]:
    """The rows of a table; `is_quoted` decides by default whether it has CSV quoting. Raises the exceptions of
    `numbered_lines` or `quoted_rows`."""
    if is_quoted(path, delimiter) if quoted is None else quoted:
        yield from quoted_rows(path, whole_text(path), delimiter)
        return
    for (number, text), (_, line) in zip(numbered_lines(path), whole_lines(path), strict=True):
        cells = text.split(delimiter)
        yield Row(number, cells, cells, line[len(text) :])


def whole_text(path: str | Path) -> str:
    """The text of a file; raises the exceptions of `whole_lines`."""
    return "".join(line for _, line in whole_lines(path))


def table_cells(
    path: str | Path, delimiter: str, needed: Iterable[str], quoted: bool | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, column -> cell) of each row of a table with a header. Raises `InputError` also for a missing
    column, or a row of a different length."""
    rows = table_rows(path, delimiter, quoted)
    header = next((row.cells for row in rows), [])
    if missing := [name for name in needed if name not in header]:
        raise InputError(f"{path}, line 1: no column {', '.join(missing)} in the header")
    for row in rows:
        if len(row.cells) != len(header):
            raise InputError(
                f"{path}, line {row.line}: {number_of(len(row.cells), 'column')}, and {len(header)} in the header"
            )
        yield row.line, dict(zip(header, row.cells, strict=True))


def quoted_cell(text: str, delimiter: str = ",", always: bool = False) -> str:
    """A text as a CSV cell, with quotation marks if needed."""
    return '"' + text.replace('"', '""') + '"' if always or set(text) & {delimiter, '"', "\r", "\n"} else text


def is_quoted(path: str | Path, delimiter: str = "\t") -> bool:
    """Whether a table has CSV quoting; otherwise quotation marks are literal, as in Google's files. It does if every
    header cell is quoted; if some cell has doubled quotes inside quotes and no cell contradicts CSV quoting; or if the
    numbers of cells differ between lines, but not between the rows parsed as CSV.
    """
    text = whole_text(path)
    lines = [line.removesuffix("\n").removesuffix("\r") for line in text.split("\n")]
    if text and all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in lines[0].split(delimiter)):
        return True
    if len({line.count(delimiter) for line in lines if line}) > 1:
        try:
            return len({len(row.cells) for row in quoted_rows(path, text, delimiter) if row.cells}) == 1
        except InputError:
            return False
    cells = [cell for line in lines for cell in line.split(delimiter) if len(cell) > 1 and cell[0] == '"']
    inner = [cell[1:-1] if cell[-1] == '"' else '"' for cell in cells]
    return any('""' in one for one in inner) and not any('"' in one.replace('""', "") for one in inner)
