"""Error span annotations as WMT's quality estimation task publishes them (Task 2 of 2022 and 2023).

A row is a rater's complete annotation of one translation: start offsets, end offsets and severities, each separated by
spaces, or ``-1``, ``-1`` and ``no-error``. Quotes are literal. There are two formats:

- nine fields (2021 and 2022): system, document, segment, rater, source, target, starts, ends, severities, with or
  without a header line that begins with ``mt_system``. The direction is not in the file;
- seven fields (the 2023 test set): direction, number, source, target, starts, ends, severities, with a header line that
  begins with ``lp``. There is one system, which the file does not name, and one rater.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mbr_esd_metric.adapters.mqm_tsv import AT_THE_END, LeftOut, MqmData, MqmError, MqmRating
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines

_WITH_SYSTEM, _WITH_DIRECTION = 9, 7
#: Stands for the names that a file does not have.
UNNAMED_SYSTEM, UNNAMED_RATER = "mt", "rater"
_HEADERS = ("mt_system", "lp")
_DIRECTION = re.compile(r"(?<![a-z])([a-z]{2}-[a-z]{2})(?![a-z])")


def is_qe(line: str) -> bool:
    """Whether a file that begins with this line has one of the task's formats."""
    cells = line.split("\t")
    if len(cells) not in (_WITH_SYSTEM, _WITH_DIRECTION):
        return False
    return cells[0] in _HEADERS or all(re.fullmatch(r"-?\d+( -?\d+)*", cell) for cell in cells[-3:-1])


def read_qe(path: str | Path, direction: str | None = None) -> MqmData:
    """Read a table of the task, plain or compressed.

    Args:
        path: the file.
        direction: such as en-de; without it the one in the file's name, where there is one.

    Returns:
        A rating a row. Offsets past the end of the translation are cut to it. Errors without characters count in the
        score but have no span; rows without sense are left out. All of it is reported.

    Raises:
        InputError: for text that is not UTF-8, or a file without such a row.
    """
    path = Path(path)
    named = _DIRECTION.search(plain_name(path))
    direction = direction or (named[1] if named else None)
    ratings: list[MqmRating] = []
    left_out: list[LeftOut] = []
    for number, line in numbered_lines(path):
        cells = line.split("\t")
        if cells[0] in _HEADERS or not line.strip():
            continue
        if len(cells) == _WITH_SYSTEM:
            system, doc, segment, rater = cells[:4]
            said = direction
        elif len(cells) == _WITH_DIRECTION:
            system, doc, segment, rater = UNNAMED_SYSTEM, "document", cells[1], UNNAMED_RATER
            said = cells[0]
        else:
            left_out.append(LeftOut(number, f"row with neither {_WITH_DIRECTION} nor {_WITH_SYSTEM} fields", line[:60]))
            continue
        source, target = cells[-5].rstrip(), cells[-4].rstrip()
        if not source or not target:
            left_out.append(LeftOut(number, "row without a source or a translation", line[:60]))
            continue
        errors = _errors(number, cells[-3:], target, left_out)
        if errors is not None:
            ratings.append(MqmRating(system, doc, segment, segment, rater, source, target, errors, said))
    if not ratings:
        raise InputError(
            f"{path}: no row of WMT's quality estimation Task 2; `mbr-esd wmt import-mqm` reads other forms"
        )
    return MqmData(path, tuple(ratings), tuple(left_out))


def span_columns(starts: str, ends: str, severities: str) -> list[tuple[str, str, str]]:
    """Start, end and severity of each error, as words; none if the severities say ``no-error`` or nothing.

    Raises:
        ValueError: not as many of each.
    """
    columns = starts.split(), ends.split(), severities.split()
    if columns[2] in ([], ["no-error"]):
        return []
    if len({len(column) for column in columns}) != 1:
        raise ValueError(f"{len(columns[0])} starts, {len(columns[1])} ends and {len(columns[2])} severities")
    return list(zip(*columns, strict=True))


def _errors(line: int, cells: Sequence[str], target: str, left_out: list[LeftOut]) -> tuple[MqmError, ...] | None:
    """The errors of a row; None if they cannot be told, which is noted."""
    if cells[2].split() == ["no-error"]:
        return ()
    try:
        spans = [(int(start), int(end), severity) for start, end, severity in span_columns(*cells)]
    except ValueError:
        left_out.append(LeftOut(line, "row whose offsets and severities do not fit together", " | ".join(cells)[:60]))
        return None
    if not spans:
        left_out.append(LeftOut(line, "row that says neither errors nor no-error", ""))
        return None
    errors = []
    for start, end, severity in spans:
        if fold_severity(severity) is None:
            left_out.append(LeftOut(line, f"severity {severity!r}: has no penalty", f"{start} {end}"))
            errors.append(MqmError(severity.lower(), ""))
        elif not 0 <= start < end or start >= len(target):
            why = AT_THE_END if 0 <= start < end else "error without characters"
            left_out.append(LeftOut(line, f"{why}: counts in the score, has no span", f"{start} {end} {severity}"))
            # As the task's scorer has it: at a place, which may be the end of the text.
            placed = 0 <= start <= min(end, len(target))
            errors.append(MqmError(severity.lower(), "", *(("target", start, start) if placed else ())))
        else:
            if end > len(target):
                left_out.append(
                    LeftOut(line, "span cut to the end of the translation", f"{start} {end} of {len(target)}")
                )
            errors.append(MqmError(severity.lower(), "", "target", start, min(end, len(target))))
    return tuple(errors)
