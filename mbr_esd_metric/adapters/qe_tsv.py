"""Error span annotations of WMT's quality estimation task (Task 2 of 2022 and 2023).

A row is a rater's complete annotation of one translation: start offsets, end offsets and severities, each separated by
spaces, or ``-1``, ``-1`` and ``no-error``. Fields:

- nine (2021, 2022): system, document, segment, rater, source, target and these, with an optional header
(``mt_system``);
- seven (the 2023 test set, one system and rater): language pair, number, source, target and these, with a header
(``lp``).

Some texts have CSV quoting; offsets refer to the text without these quotes (2022 and 2023), or to the quoted text (2021
en-ru). Ends are the first character after the error, or three further (2021 en-ru). The files do not specify this, but
annotators mark whole words: the second interpretation is used, and reported, if there are at least twenty informative
spans, and it aligns a quarter more of them with word boundaries. Texts without spaces, such as Chinese ones, are not
informative.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mbr_esd_metric.adapters.ratings import AT_THE_END, LeftOut, MqmError, Rating, RatingData
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.words import UNSPACED
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines

_WITH_SYSTEM, _WITH_LP = 9, 7
_HEADERS = ("mt_system", "lp")
_LP = re.compile(r"(?<![a-z])([a-z]{2}-[a-z]{2})(?![a-z])")
#: Possible distances of ends from the correct end.
_FURTHER = 3
#: Minimum number of informative spans for another interpretation of a file, and by which share more of them must fit
#: it.
_ENOUGH, _CLEARLY = 20, 0.25


def is_qe(line: str) -> bool:
    """Whether a file with this first line is in one of the task's formats."""
    cells = line.split("\t")
    if len(cells) not in (_WITH_SYSTEM, _WITH_LP) or without_source(cells):
        return False
    return cells[0] in _HEADERS or all(re.fullmatch(r"-?\d+( -?\d+)*", cell) for cell in cells[-3:-1])


def read_qe(path: str | Path) -> RatingData:
    """Read a table of the task, plain or compressed, with one rating per row. Rows without a language pair get the one
    in the file's name, if any. Offsets past the end of the translation are clipped, and malformed rows are skipped.

    Raises:
        InputError: text that is not UTF-8, a file without valid rows, or without sources, such as a submission.
    """
    path = Path(path)
    left_out: list[LeftOut] = []
    rows = _rows(path, left_out)
    reading = _reading(rows)
    ratings = [replace(row.rating, errors=_errors(row, reading, left_out)) for row in rows]
    if not ratings:
        raise InputError(f"{path}: no row of WMT's quality estimation Task 2; `mbr-esd wmt import` tells what it is")
    return RatingData(path, tuple(ratings), tuple(left_out))


def unquoted(cell: str) -> str:
    """The text of a field with optional CSV quoting, where inner quotes are doubled. A text that merely starts and ends
    with a quote is not quoted: ``"Ja", sagte er, "gern."`` is returned unchanged."""
    inner = cell[1:-1]
    quoted = len(cell) > 2 and cell[0] == cell[-1] == '"' and '"' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell


class _Row(NamedTuple):
    """The rating without errors, the translation with its CSV quotes, and start, end and severity of each error."""

    rating: Rating
    translation: str
    spans: list[tuple[int, int, str]]

    @property
    def text(self) -> str:
        """The translation without quotes."""
        return self.rating.segment.translation

    @property
    def is_quoted(self) -> bool:
        """Whether the translation has CSV quotes, which the rating's translation lacks."""
        return self.text != self.translation


class _Reading(NamedTuple):
    """An interpretation of offsets: whether they refer to quoted texts, and the distance of ends from the correct
    end."""

    quoted: bool
    further: int


def _rows(path: Path, left_out: list[LeftOut]) -> list[_Row]:
    """The valid rows."""
    rows: list[_Row] = []
    named = [None, *_LP.findall(plain_name(path))][-1]  # the last one, such as en-de of 2022_en-de_dev.tsv.gz
    for number, line in numbered_lines(path):
        cells = line.split("\t")
        if len(cells) in (_WITH_SYSTEM + 1, _WITH_LP + 1) and not cells[-1].strip():
            cells.pop()
            source, translation = cells[-5], cells[-4]  # some rows of 2022 quote both texts together
            if (
                source.startswith('"')
                and translation.endswith('"')
                and source.count('"') == translation.count('"') == 1
            ):
                cells[-5:-3] = source[1:], translation[:-1]
        if without_source(cells):
            raise InputError(f"{path}, line {number}: no sources, as in a submission or its gold; give the test set")
        if cells[0] in _HEADERS or not line.strip():
            continue
        if len(cells) == _WITH_SYSTEM:
            pair, (system, document, label, rater) = named, cells[:4]
        elif len(cells) == _WITH_LP:
            pair, system, document, label, rater = cells[0], "mt", "document", cells[1], "rater"
        else:
            left_out.append(LeftOut(number, f"row with neither {_WITH_LP} nor {_WITH_SYSTEM} fields"))
            continue
        source, translation = unquoted(cells[-5]).rstrip(), cells[-4].rstrip()
        spans, problem = _spans(cells[-3:])
        if not source or not translation:
            problem = "row without a source or a translation"
        if problem:
            left_out.append(LeftOut(number, problem))
            continue
        segment = Segment(source, unquoted(translation).rstrip(), label, system, document)
        rows.append(_Row(Rating(segment, rater, (), pair, number), translation, spans))
    return rows


def _spans(columns: Sequence[str]) -> tuple[list[tuple[int, int, str]], str]:
    """Start, end and severity of each error, as in the file; and their problem, or ""."""
    try:
        spans = [(int(start), int(end), severity) for start, end, severity in span_columns(*columns)]
    except ValueError:
        return [], "row whose offsets and severities do not fit together"
    return spans, "" if columns[2].split() else "row with neither errors nor no-error"


def without_source(cells: list[str]) -> bool:
    """Whether a row is from a submission or its gold: language pair, method, number, translation, offsets,
    severities."""
    return len(cells) == _WITH_LP and cells[2].isdigit() and not cells[1].isdigit()


def _reading(rows: Iterable[_Row]) -> _Reading:
    """The interpretation that aligns most offsets of a file with word boundaries; see above."""
    spaced = [row for row in rows if not UNSPACED.search(row.text)]
    spans = [(row, start, end) for row in spaced for start, end, _ in row.spans if 0 <= start < end]
    quoted = [(row.translation, row.text, start) for row, start, _ in spans if row.is_quoted]
    plain = [(row.translation, start, end) for row, start, end in spans if not row.is_quoted]
    shown = sum(_between_words(whole, start) - _between_words(text, start) for whole, text, start in quoted)
    ends = [
        sum(start < end - further and _between_words(text, end - further) for text, start, end in plain)
        for further in range(_FURTHER + 1)
    ]
    best = max(range(_FURTHER + 1), key=lambda further: (ends[further], further))  # a word, not the space after it
    is_quoted = len(quoted) >= _ENOUGH and shown > _CLEARLY * len(quoted)
    is_further = len(plain) >= _ENOUGH and ends[best] - ends[0] > _CLEARLY * len(plain)
    return _Reading(is_quoted, best if is_further else 0)


def _between_words(text: str, at: int) -> bool:
    return at in (0, len(text)) or (at < len(text) and not (text[at - 1].isalnum() and text[at].isalnum()))


def _within(row: _Row, at: int) -> int:
    """Convert an offset in the CSV-quoted text to an offset in the text; negative offsets are unchanged."""
    before = row.translation[1 : max(1, at)].replace('""', '"')
    return min(at, len(before), len(unquoted(row.translation)))


def span_columns(starts: str, ends: str, severities: str) -> list[tuple[str, str, str]]:
    """Start, end and severity of each error, as strings; empty if the severities are ``no-error`` or empty."""
    columns = starts.split(), ends.split(), severities.split()
    if columns[2] in ([], ["no-error"]):
        return []
    if len({len(column) for column in columns}) != 1:
        raise ValueError(f"{len(columns[0])} starts, {len(columns[1])} ends and {len(columns[2])} severities")
    return list(zip(*columns, strict=True))


def _errors(row: _Row, reading: _Reading, left_out: list[LeftOut]) -> tuple[MqmError, ...]:
    """The errors of a row, with offsets into the text."""
    line, translation = row.rating.line, row.text
    errors, moved = [], False
    for start, end, severity in row.spans:
        if reading.further > 0 and end - reading.further > start >= 0:  # spans of few characters are not moved
            end, moved = end - reading.further, True
        if reading.quoted and row.is_quoted:
            start, end = _within(row, start), _within(row, end)
        if fold_severity(severity) is None:
            left_out.append(LeftOut(line, f"severity {severity!r}: has no penalty"))
            errors.append(MqmError(severity.lower(), ""))
        elif not 0 <= start < end or start >= len(translation):
            why = AT_THE_END if 0 <= start < end else "error without characters"
            left_out.append(LeftOut(line, f"{why}: counts in the score, has no span"))
            # As in the task's scorer: at a position, possibly the end of the text.
            placed = 0 <= start <= min(end, len(translation))
            errors.append(MqmError(severity.lower(), "", *(("translation", start, start) if placed else ())))
        else:
            if end > len(translation):
                left_out.append(LeftOut(line, "span cut to the end of the translation"))
            errors.append(MqmError(severity.lower(), "", "translation", start, min(end, len(translation))))
    if moved:
        left_out.append(LeftOut(line, f"ends moved {reading.further} characters to the left, where words end"))
    if row.is_quoted:
        kind = "quoted" if reading.quoted else "unquoted"
        note = f"text quoted as in CSV: read without quotes, offsets as those of the {kind} text"
        left_out.append(LeftOut(line, note))
    return tuple(errors)
