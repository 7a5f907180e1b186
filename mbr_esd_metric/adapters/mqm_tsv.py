"""Human MQM annotations in Google's TSV format (since 2020), and the similar files of Marot.

A row is an error; an output without errors has one `No-error` row. Every row repeats the whole source and target, with
the span of its error between ``<v>`` and ``</v>`` in one of them. Quotes are literal. Rows of severity ``HOTW-test``
are attention checks; rows without a rater contain metadata.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from mbr_esd_metric.adapters.ratings import AT_THE_END, LeftOut, MqmError, Rating, RatingData
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.tables import table_rows

#: Our name of a column -> its names in files; the first one in a file is used. In 2020-2022, `doc_id` is the position
#: of a segment in its document, and `seg_id` its position in the test set.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("system", "doc", "rater", "source", "target", "category", "severity")},
    "doc_segment": ("docSegId", "doc_seg_id", "doc_id", "seg_id"),
    "segment": ("globalSegId", "global_seg_id", "seg_id", "docSegId", "doc_seg_id", "doc_id"),
}
#: Names of an optional column with the language pair, such as "en-de".
_LP = ("lp", "language_pair")
#: The columns of Marot's files, which may lack the header.
_MAROT = ("system", "doc", "docSegId", "globalSegId", "rater", "source", "target", "category", "severity", "metadata")
_MARKER = re.compile(r"</?v>")
_NO_ERROR = ("no-error", "no error", "noerror")
_UNMARKED = "error without a marked span"
#: Two spellings of one text share at least this much (Ratcliff and Obershelp).
_SAME_TEXT = 0.5


def is_mqm_tsv(line: str) -> bool:
    """Whether a file with this first line is in this format, with a header or Marot's metadata."""
    cells = line.replace('"', "").split("\t")
    of_marot = len(cells) == len(_MAROT) and cells[-1][:1] == "{"
    return of_marot or {"system", "source", "target", "severity"} <= {*cells}


def read_mqm_tsv(path: str | Path) -> RatingData:
    """Read Google's MQM TSV, plain or compressed. Some files were exported from a spreadsheet, with CSV quoting."""
    path = Path(path)
    groups: dict[tuple[str, str, str, str, str], list[_Row]] = defaultdict(list)
    texts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    left_out: list[LeftOut] = []
    (_, header), *body = [(row.line, row.cells) for row in table_rows(path, "\t")] or [(1, [])]
    if not header:
        raise InputError(f"{path}: the file is empty; give Google's MQM TSV with its header line")
    if len(header) == len(_MAROT) and header[:2] != list(_MAROT[:2]) and header[-1][:1] in ("", "{"):
        body.insert(0, (1, header))
        header = list(_MAROT)
    index = {}
    for name, variants in _COLUMNS.items():
        known = [variant for variant in variants if variant in header]
        if not known:
            raise InputError(
                f"{path}, line 1: no column {' or '.join(map(repr, variants))} in the header ({', '.join(header)}); "
                "give Google's MQM TSV with its header"
            )
        index[name] = header.index(known[0])
    pair = next((header.index(name) for name in _LP if name in header), None)
    needed = max(index.values())
    numbers = [{row[index[name]] for _, row in body if len(row) > needed} for name in ("segment", "doc_segment")]
    if len(numbers[0]) == 1 < len(numbers[1]):
        index["segment"] = index["doc_segment"]  # a constant in Marot's files without segment numbers
    for line, row in body:
        cell = {name: row[position] for name, position in index.items()} if len(row) > needed else {}
        severity = cell.get("severity", "").strip().lower()
        if not cell or severity == "hotw-test" or not (severity or cell["rater"].strip()):
            what = "attention check" if severity == "hotw-test" else "row of metadata"
            left_out.append(LeftOut(line, f"{what}, not a rating" if cell else "row with too few columns"))
            continue
        lp = "" if pair is None or len(row) <= pair else row[pair].strip()
        key = cell["system"], cell["doc"], cell["segment"], cell["rater"], lp
        source, translation = _Marked.read(cell["source"]), _Marked.read(cell["target"])
        text, at = first.setdefault((*key[:3], lp, source.text), (translation.text, line))
        what = f"system {key[0]} for segment {key[2]} of {key[1]}"
        check_same_text(path, what, text, at, translation.text, line)
        texts["source", key[1], key[2], lp][source.text] += 1
        texts["translation", key[0], key[1], key[2], lp][translation.text] += 1
        groups[key].append(_Row(line, cell["doc_segment"], severity, cell["category"].strip(), source, translation))
    ratings = tuple(_rating(key, group, texts, left_out) for key, group in groups.items())
    if not ratings:
        why = f"; of {len(left_out)} rows the first is a {left_out[0].reason}" if left_out else ""
        raise InputError(f"{path}: no ratings in this file{why}")
    return RatingData(path, ratings, tuple(sorted(left_out, key=lambda item: item.line)))


def check_same_text(path: Path, what: str, text: str, line: int, other: str, other_line: int) -> None:
    """Raise `InputError` if two texts with the same id are not spelling variants of one text."""
    if text != other and SequenceMatcher(None, text, other, autojunk=False).ratio() < _SAME_TEXT:
        raise InputError(
            f"{path}, lines {min(line, other_line)} and {max(line, other_line)}: two texts of {what} "
            f"({text[:40]!r}, {other[:40]!r}); give each a name of its own"
        )


def carry_span(start: int, end: int, text: str, into: str) -> tuple[int, int] | None:
    """The offsets in `into` of the characters ``text[start:end]``; None if they are ambiguous: a span outside the
    common prefix and suffix, except for white space, must occur exactly once."""
    limit = min(len(text), len(into))
    prefix = next((i for i in range(limit) if text[i] != into[i]), limit)
    if end <= prefix:
        return start, end
    if prefix == len(into) and not text[prefix:].strip():
        return (start, prefix) if start < prefix else None
    suffix = next((i for i in range(limit) if text[-1 - i] != into[-1 - i]), limit)
    if start >= len(text) - suffix:
        shift = len(into) - len(text)
        return start + shift, end + shift
    marked = text[start:end]
    return (into.index(marked), into.index(marked) + len(marked)) if into.count(marked) == 1 else None


class _Marked(NamedTuple):
    """A text without markers, and the positions of the markers; `problem` is the reason for a missing span."""

    text: str
    start: int = 0
    end: int = 0
    problem: str | None = _UNMARKED

    @classmethod
    def read(cls, raw: str) -> _Marked:
        marks = list(_MARKER.finditer(raw))
        text = _MARKER.sub("", raw)
        if not marks:
            return cls(text)
        if [m.group() for m in marks] != ["<v>", "</v>"] * (len(marks) // 2):
            return cls(text, problem="unbalanced markers")
        # Subtract the lengths of preceding markers from the position of each marker.
        start = marks[0].start()
        end = marks[-1].start() - sum(len(m.group()) for m in marks[:-1])
        return cls(text, start, end, None if start < end else "empty span")


class _Row(NamedTuple):
    line: int
    doc_segment: str
    severity: str
    category: str
    source: _Marked
    translation: _Marked


def _rating(
    key: tuple[str, ...], rows: Sequence[_Row], texts: Mapping[tuple[str, ...], Counter[str]], left_out: list[LeftOut]
) -> Rating:
    system, document, label, rater, lp = key
    # In ties, `most_common` keeps insertion order, so the result is deterministic.
    source = texts["source", document, label, lp].most_common(1)[0][0].rstrip()
    translation = texts["translation", system, document, label, lp].most_common(1)[0][0].rstrip()
    errors = []
    for row in rows:
        if row.severity in _NO_ERROR:
            continue
        if fold_severity(row.severity) is None and row.severity != "neutral":
            left_out.append(LeftOut(row.line, f"severity {row.severity!r}: has no penalty"))
        errors.append(_error(row, source, translation, left_out))
    segment, first = Segment(source, translation, label, system, document), rows[0]
    return Rating(segment, rater, tuple(errors), lp or None, first.line, doc_segment=first.doc_segment)


def _error(row: _Row, source: str, translation: str, left_out: list[LeftOut]) -> MqmError:
    """The error of a row, with its position in the kept texts."""
    of_source = row.translation.problem == _UNMARKED != row.source.problem
    text, into = (row.source, source) if of_source else (row.translation, translation)
    problem = text.problem
    if problem is None:
        place = carry_span(text.start, text.end, text.text, into)
        if place is not None:
            return MqmError(row.severity, row.category, "source" if of_source else "translation", *place)
        same = text.text.rstrip() == into
        problem = AT_THE_END if same else "span lost between rows whose texts differ"
    left_out.append(LeftOut(row.line, f"{problem}: counts in the score, has no span"))
    return MqmError(row.severity, row.category)
