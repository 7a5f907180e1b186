"""Tables as text: rows and cells, quoted as CSV or not."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines


def table_rows(path: str | Path, delimiter: str, quoted: bool | None = None) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of each row of a table; a quoted cell may have line ends, and the number is its last line's.

    Args:
        path: the file.
        delimiter: between cells.
        quoted: whether cells are quoted as in CSV; by default what `is_quoted` says.

    Raises:
        InputError: as `numbered_lines`, or quotation marks that do not fit, with the line.
    """
    lines = numbered_lines(path)
    if not (is_quoted(path, delimiter) if quoted is None else quoted):
        yield from ((number, line.split(delimiter)) for number, line in lines)
        return
    reader = csv.reader((line + "\n" for _, line in lines), delimiter=delimiter, strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; is this file really quoted?") from None


def table_cells(
    path: str | Path, delimiter: str, needed: Iterable[str], quoted: bool | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, column -> cell) of each row of a table with a header.

    Raises:
        InputError: as `table_rows`, a missing column, or a row of another length.
    """
    rows = table_rows(path, delimiter, quoted)
    header = next(rows, (1, []))[1]
    if missing := [name for name in needed if name not in header]:
        raise InputError(f"{path}, line 1: no column {', '.join(missing)} in the header")
    for number, row in rows:
        if len(row) != len(header):
            raise InputError(f"{path}, line {number}: {len(row)} columns, and {len(header)} in the header")
        yield number, dict(zip(header, row, strict=True))


def is_quoted(path: str | Path, delimiter: str = "\t") -> bool:
    """Whether the cells of a table are quoted as in CSV; else a quotation mark is a character, as in Google's files.

    They are if every cell of the header is in quotes; if some cell has doubled quotes between quotes and no cell
    contradicts it; or if lines have different numbers of cells, and the rows that CSV makes of them have not.
    """
    lines = [line for _, line in numbered_lines(path)]
    if lines and all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in lines[0].split(delimiter)):
        return True
    if len({line.count(delimiter) for line in lines if line}) > 1:
        rows = csv.reader((line + "\n" for line in lines), delimiter=delimiter, strict=True)
        try:
            return len({len(row) for row in rows if row}) == 1
        except csv.Error:
            return False
    cells = [cell for line in lines for cell in line.split(delimiter) if len(cell) > 1 and cell[0] == '"']
    inner = [cell[1:-1] if cell[-1] == '"' else '"' for cell in cells]
    return any('""' in one for one in inner) and not any('"' in one.replace('""', "") for one in inner)
