"""Human MQM annotations: Google's TSV (since 2020), and ratings as JSON lines.

Google's TSV has one row per error; an output without errors has one `No-error` row. Every row repeats the
whole source and target, with the span of that one error between ``<v>`` and ``</v>`` in one of them. Columns
have changed their names over the years (`COLUMNS`), quotes are literal, and rows of severity ``HOTW-test``
are attention checks of the raters, not ratings. Marot's files are of the same kind, with or without a header;
rows without a rater carry metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, fold_severity
from mbr_esd_metric.core.mqm import MqmWeights, weights_of
from mbr_esd_metric.elicit.parse import is_omission
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import table_rows
from mbr_esd_metric.files.untrusted import json_objects, reading

#: Our name of a column -> its names in the files; the first one that a file has is used. In 2020-2022 `doc_id` is the
#: place of a segment in its document, and `seg_id` its place in the test set.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "system": ("system",),
    "doc": ("doc",),
    "doc_segment": ("docSegId", "doc_seg_id", "doc_id", "seg_id"),
    "segment": ("globalSegId", "global_seg_id", "seg_id", "docSegId", "doc_seg_id", "doc_id"),
    "rater": ("rater",),
    "source": ("source",),
    "target": ("target",),
    "category": ("category",),
    "severity": ("severity",),
}

#: The columns of Marot's files, whose header may be missing.
_MAROT = ("system", "doc", "docSegId", "globalSegId", "rater", "source", "target", "category", "severity", "metadata")
_MARKER = re.compile(r"</?v>")
_NO_ERROR = ("no-error", "no error", "noerror")
#: Two spellings of one text share at least this much (Ratcliff and Obershelp).
_SAME_TEXT = 0.5
AT_THE_END = "span of white space at the end"


@dataclass(frozen=True, slots=True)
class MqmError:
    """One error that a rater marked.

    Attributes:
        severity: as in the file, in lower case ("major", "minor", "neutral", "critical" ...).
        category: as in the file, for example "Accuracy/Mistranslation".
        side: the text that the offsets belong to; None if the error has no place.
        start, end: half-open character offsets, equal if the error has no characters; 0 and 0 if it has no place. On
            the source's side that is an omission of which nobody says where it is.
    """

    severity: str
    category: str
    side: Literal["target", "source"] | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class MqmRating:
    """One rater's annotation of one translation.

    Attributes:
        system, doc, rater: as in the file.
        doc_segment: the segment's position in its document, as in the file.
        segment: its position in the test set, as in the file.
        source, target: without markers and without white space at the end. If rows of one output disagree, the most
            frequent text.
        errors: in the file's order, those of the source side and those without a place among them.
        lp: such as "en-de" where the file says it.
        line: the first one of the file that has it; 0 if there is no file.
    """

    system: str
    doc: str
    doc_segment: str
    segment: str
    rater: str
    source: str
    target: str
    errors: tuple[MqmError, ...]
    lp: str | None = None
    line: int = field(default=0, compare=False)

    @property
    def annotation(self) -> Annotation:
        """The error spans of the target side, major and minor, each as often as it was marked, and the errors there
        that have no characters."""
        there = [
            (e, severity)
            for e in self.errors
            if e.side == "target" and (severity := fold_severity(e.severity)) is not None
        ]
        spans = Annotation.of_rater(ErrorSpan(e.start, e.end, s, e.category) for e, s in there if e.start < e.end)
        return spans.pointing((e.start, s) for e, s in there if e.start == e.end)

    @property
    def omissions(self) -> Annotation:
        """What the translation leaves out: the error spans of the source side whose category is an omission, and the
        severities of omissions without a place. Errors of the source itself are none."""
        missing = [
            (e, severity)
            for e in self.errors
            if e.side == "source" and is_omission(e.category) and (severity := fold_severity(e.severity)) is not None
        ]
        spans = [ErrorSpan(e.start, e.end, s, e.category, side="source") for e, s in missing if e.start < e.end]
        return Annotation.of_rater(spans).missing(s for e, s in missing if e.start == e.end)

    @property
    def both(self) -> Annotation:
        """Annotation and omissions in one."""
        return self.annotation.with_omissions(self.omissions)

    def score(self, weights: str | MqmWeights = "google") -> float:
        """Minus the sum of the penalties of all errors, source side included. 0 is best, and there is no lowest score.

        This is how WMT computes gold scores: each row counts, even if two rows mark the same characters.
        """
        return score_of(self.errors, weights_of(weights))


def score_of(errors: Iterable[MqmError], weights: MqmWeights) -> float:
    """Minus the sum of the errors' penalties, which depend on severity and category alone, not on a place."""
    spans = [(fold_severity(error.severity), error.category) for error in errors]
    return weights.total(ErrorSpan(0, 1, severity, kind) for severity, kind in spans if severity is not None)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in the file that the ratings leave out or change.

    Attributes:
        line: the number of the line, from 1.
        reason: the same text for everything that is left out for the same reason.
    """

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class MqmData:
    """The ratings of one file, in order of first appearance, and what was left out; iterates over ratings."""

    path: Path
    ratings: tuple[MqmRating, ...]
    left_out: tuple[LeftOut, ...]

    def __iter__(self) -> Iterator[MqmRating]:
        return iter(self.ratings)

    def __len__(self) -> int:
        return len(self.ratings)

    def report(self, examples: int = 3) -> str:
        """The number of ratings, and for each reason how much was left out, with the first lines."""
        lines = [f"{self.path.name}: {len(self.ratings)} ratings"]
        for reason, count in Counter(item.reason for item in self.left_out).most_common():
            shown = [str(item.line) for item in self.left_out if item.reason == reason][:examples]
            more = ", ..." if count > examples else ""
            lines.append(f"  {count:>6}  {reason} (line {', '.join(shown)}{more})")
        return "\n".join(lines)


def read_mqm_tsv(path: str | Path, quoted: bool = False) -> MqmData:
    """Read Google's MQM TSV, plain or compressed.

    Args:
        path: the file.
        quoted: fields are quoted as in CSV. Google's files are not (their quotes are literal), except a few
            that went through a spreadsheet.

    Raises:
        InputError: without one of the needed columns, for text that is not UTF-8, or a file without ratings.
    """
    path = Path(path)
    groups: dict[tuple[str, str, str, str], _Group] = {}
    texts: dict[tuple[str, ...], Counter[str]] = {}
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    left_out: list[LeftOut] = []
    rows = table_rows(path, "\t", quoted)
    try:
        header = next(rows)[1]
    except StopIteration:
        raise InputError(f"{path}: the file is empty; give Google's MQM TSV with its header line") from None
    body = list(rows)
    if len(header) == len(_MAROT) and header[:2] != list(_MAROT[:2]) and header[-1][:1] in ("", "{"):
        body.insert(0, (1, header))
        header = list(_MAROT)
    index = {name: _column(path, header, name) for name in COLUMNS}
    needed = max(index.values())
    numbers = [{row[index[name]] for _, row in body if len(row) > needed} for name in ("segment", "doc_segment")]
    if len(numbers[0]) == 1 < len(numbers[1]):
        index["segment"] = index["doc_segment"]  # Marot has a constant where segments have no number of their own
    for line, row in body:
        if len(row) <= needed:
            left_out.append(LeftOut(line, "row with too few columns"))
            continue
        cell = {name: row[position] for name, position in index.items()}
        severity = cell["severity"].strip().lower()
        if severity == "hotw-test":
            left_out.append(LeftOut(line, "attention check, not a rating"))
            continue
        if not cell["rater"].strip() and not severity:
            left_out.append(LeftOut(line, "row of metadata, not a rating"))
            continue
        key = (cell["system"], cell["doc"], cell["segment"], cell["rater"])
        group = groups.setdefault(key, _Group(line, cell["doc_segment"]))
        source, target = _Marked.read(cell["source"]), _Marked.read(cell["target"])
        text, at = first.setdefault((*key[:3], source.text), (target.text, line))
        what = f"system {key[0]} for segment {key[2]} of {key[1]}"
        check_same_text(path, what, text, at, target.text, line)
        texts.setdefault(("source", *key[1:3]), Counter())[source.text] += 1
        texts.setdefault(("target", *key[:3]), Counter())[target.text] += 1
        if severity not in _NO_ERROR:
            group.rows.append(_Row(line, severity, cell["category"].strip(), source, target))
    ratings = tuple(_rating(key, group, texts, left_out) for key, group in groups.items())
    if not ratings:
        why = f"; of {len(left_out)} rows the first is a {left_out[0].reason}" if left_out else ""
        raise InputError(f"{path}: no ratings in this file{why}")
    return MqmData(path, ratings, tuple(sorted(left_out, key=lambda item: item.line)))


def read_mqm_json(path: str | Path) -> MqmData:
    """Read ratings as JSON lines, plain or compressed: those of `adapters.ratings`, or others in this form.

    Each line is an object with lp (or direction), system, doc, seg_id, rater, src, mt and errors, each of these with
    start, end (half-open, over mt), severity and category. What the translation leaves out has ``"side": "source"``
    and the offsets in src, or none.

    Raises:
        InputError: with the line, where it is no such object or a span does not fit its translation.
    """
    path = Path(path)
    ratings: list[MqmRating] = []
    left_out: list[LeftOut] = []
    for where, number, item in json_objects(path):
        with reading(where):
            ratings.append(rating_of(item, number, left_out))
    if not ratings:
        raise InputError(f"{path}: no ratings in this file")
    return MqmData(path, tuple(ratings), tuple(left_out))


def rating_of(item: Mapping[str, Any], number: int, left_out: list[LeftOut]) -> MqmRating:
    """The rating of one line.

    Raises:
        InputError, KeyError, ValueError, TypeError: it is no such object, or a span does not fit its translation.
    """
    target = str(item["mt"]).rstrip()
    errors = []
    if item["errors"] is None:
        raise InputError("a score without errors (direct assessment); only `wmt import` and `annotate report` read it")
    for error in item["errors"]:
        severity, category = str(error["severity"]).lower(), str(error["category"] or "")
        if error.get("start") is None and error.get("end") is None:
            errors.append(MqmError(severity, category, "source" if error.get("side") == "source" else None))
            continue
        start, end = int(error["start"]), int(error["end"])
        if error.get("side") == "source":
            if not 0 <= start < end <= len(str(item["src"])):
                raise InputError(f"error span [{start}, {end}) does not fit its source")
            errors.append(MqmError(severity, category, "source", start, end))
            continue
        if not 0 <= start < end <= len(str(item["mt"])):
            raise InputError(f"error span [{start}, {end}) does not fit its translation")
        if start >= len(target):
            left_out.append(LeftOut(number, AT_THE_END))
            continue
        errors.append(MqmError(severity, category, "target", start, min(end, len(target))))
    return MqmRating(
        str(item["system"]),
        str(item["doc"]),
        str(item["seg_id"]),
        str(item["seg_id"]),
        str(item["rater"]),
        str(item["src"]).rstrip(),
        target,
        tuple(errors),
        str(item["direction" if "direction" in item else "lp"]),
        number,
    )


def check_same_text(path: Path, what: str, text: str, line: int, other: str, other_line: int) -> None:
    """Raise `InputError` where two texts that are called by one name are not two spellings of one text."""
    if text != other and SequenceMatcher(None, text, other, autojunk=False).ratio() < _SAME_TEXT:
        raise InputError(
            f"{path}, lines {min(line, other_line)} and {max(line, other_line)}: two texts of {what} "
            f"({text[:40]!r}, {other[:40]!r}); give each a name of its own"
        )


def carry_span(start: int, end: int, text: str, into: str) -> tuple[int, int] | None:
    """The offsets in `into` of the characters ``text[start:end]``; None if they are not clear.

    A span inside the common beginning of both texts keeps its offsets. A span inside the common end moves with the end.
    A span that only loses white space at the end of the text is cut. The characters of other spans must occur exactly
    once in `into`.
    """
    if text == into:
        return start, end
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


@dataclass(frozen=True, slots=True)
class _Marked:
    """A text without its markers, and the markers' places; `problem` says what is wrong with the markers."""

    text: str
    start: int = 0
    end: int = 0
    problem: str | None = None
    marked: bool = False

    @classmethod
    def read(cls, raw: str) -> _Marked:
        marks = list(_MARKER.finditer(raw))
        text = _MARKER.sub("", raw)
        if not marks:
            return cls(text)
        if [m.group() for m in marks] != ["<v>", "</v>"] * (len(marks) // 2):
            return cls(text, problem="unbalanced markers", marked=True)
        # Each marker stands after the text between the start and it, less the markers before it.
        start = marks[0].start()
        end = marks[-1].start() - sum(len(m.group()) for m in marks[:-1])
        return cls(text, start, end, None if start < end else "empty span", True)


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    severity: str
    category: str
    source: _Marked
    target: _Marked


@dataclass(slots=True)
class _Group:
    line: int
    doc_segment: str
    rows: list[_Row] = field(default_factory=list)


def _rating(
    key: tuple[str, str, str, str],
    group: _Group,
    texts: Mapping[tuple[str, ...], Counter[str]],
    left_out: list[LeftOut],
) -> MqmRating:
    system, doc, segment, rater = key
    # Among equals `most_common` keeps the order of first appearance: the result does not depend on hashing.
    source = texts["source", doc, segment].most_common(1)[0][0].rstrip()
    target = texts["target", system, doc, segment].most_common(1)[0][0].rstrip()
    errors = []
    for row in group.rows:
        if fold_severity(row.severity) is None and row.severity != "neutral":
            left_out.append(LeftOut(row.line, f"severity {row.severity!r}: has no penalty"))
        errors.append(_error(row, source, target, left_out))
    return MqmRating(system, doc, group.doc_segment, segment, rater, source, target, tuple(errors), line=group.line)


def _error(row: _Row, source: str, target: str, left_out: list[LeftOut]) -> MqmError:
    """The error of a row, with its place in the kept texts. An error without a place is reported."""
    side: Literal["target", "source"] = "target" if row.target.marked or not row.source.marked else "source"
    text, into = (row.target, target) if side == "target" else (row.source, source)
    if not text.marked:
        problem: str | None = "error without a marked span"
    else:
        problem = text.problem
    if problem is None:
        place = carry_span(text.start, text.end, text.text, into)
        if place is not None:
            return MqmError(row.severity, row.category, side, *place)
        same = text.text.rstrip() == into
        problem = AT_THE_END if same else "span lost between rows whose texts differ"
    left_out.append(LeftOut(row.line, f"{problem}: counts in the score, has no span"))
    return MqmError(row.severity, row.category)


def _column(path: Path, header: Sequence[str], name: str) -> int:
    for variant in COLUMNS[name]:
        if variant in header:
            return header.index(variant)
    raise InputError(
        f"{path}, line 1: no column {' or '.join(repr(v) for v in COLUMNS[name])} in the header "
        f"({', '.join(header)}); give Google's MQM TSV with its header line"
    )
