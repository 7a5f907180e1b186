"""Human ratings: errors, scores, and metadata of the annotation tool; and their JSON lines format.

One line per translation and annotator::

    {"lp", "system", "doc", "seg_id", "rater", "src", "mt", "errors": [{"start", "end", "severity", "category",
     "side"?}], "score", "seconds", "suggested": [{..., "confidence", "fate"}] or null, "added",
     "checks": [passed, shown]}

Offsets are half-open, in mt. Omissions have ``"side": "source"`` and offsets in src, or none, because annotators who
mark [missing] do not specify what is missing. ``"errors": null``: the protocol only has scores. `annotate import`
writes such files, and every verb that accepts human ratings reads them. Without `checks`, the first eight keys are
sufficient (lp may be called direction).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from mbr_esd_metric.core.annotation import (
    Annotation,
    ErrorSpan,
    Point,
    Severity,
    Side,
    fold_severity,
    weights_of,
)
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import json_line
from mbr_esd_metric.files.streams import whole_file
from mbr_esd_metric.files.untrusted import finite, json_objects, reading
from mbr_esd_metric.messages import first_of, number_of
from mbr_esd_metric.prompting.parse import is_omission

#: Reason for an error without span: it is trailing white space that was stripped.
AT_THE_END = "span of white space at the end"
#: An annotator's treatment of a pre-filled span: unchanged, with another severity or extent, or removed.
Fate = Literal["kept", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class MqmError:
    """One error that a rater marked.

    Attributes:
        severity: the severity in the file, in lower case ("major", "minor", "neutral", "critical" ...).
        category: the category in the file, for example "Accuracy/Mistranslation".
        side: the text that the offsets refer to; None if the error has no position.
        start, end: half-open character offsets, equal if the error has no characters; 0 and 0 if it has no position. On
            the source side, the latter is an omission at an unspecified position.
        confidence: in [0, 1]; None for human annotations.
    """

    severity: str
    category: str | None
    side: Side | None = None
    start: int = 0
    end: int = 0
    confidence: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Its JSON object, as one line of the file."""
        place: dict[str, Any] = {"start": self.start, "end": self.end} if self.start < self.end else {}
        side = {"side": "source"} if self.side == "source" else {}
        confidence = {} if self.confidence is None else {"confidence": self.confidence}
        return place | side | {"severity": self.severity, "category": self.category} | confidence

    @classmethod
    def from_json(cls, item: Mapping[str, Any], source: str, translation: str) -> MqmError:
        """The error of an object of a line. Raises `InputError` if it does not fit its text."""
        severity, category = str(item["severity"]).lower(), str(item["category"] or "")
        side: Side = "source" if item.get("side") == "source" else "translation"
        confidence = None if item.get("confidence") is None else finite(item["confidence"])
        if item.get("start") is None and item.get("end") is None:
            return cls(severity, category, "source" if side == "source" else None, confidence=confidence)
        start, end = int(item["start"]), int(item["end"])
        if not 0 <= start < end <= len(source if side == "source" else translation):
            raise InputError(f"error span [{start}, {end}) does not fit its {side}")
        return cls(severity, category, side, start, end, confidence)


class Suggestion(NamedTuple):
    """A pre-filled error, and its fate."""

    error: MqmError
    fate: Fate


@dataclass(frozen=True, slots=True)
class Rating:
    """One annotator's rating of one translation.

    Attributes:
        segment: labelled by its position in the test set, as in the file; texts without markers and trailing white
            space; if rows disagree, the most frequent texts.
        rater: "" if the file does not specify it.
        errors: in file order, including those in the source and those without a position.
        lp: such as "en-de", if the file specifies it.
        line: its first line in the file; 0 without a file.
        score: from 0 to 100, higher is better; None if the protocol has no score, as in MQM.
        marked: whether the protocol includes marking errors; otherwise, an empty list is not informative.
        seconds: the time taken; a pause counts as at most a minute.
        suggested: the pre-filled errors; None if the translation was shown without any.
        added: the number of errors that are not based on a pre-filled one.
        checks: numbers of attention checks passed and seen by the annotator.
        doc_segment: the segment's position in its document, as in the file.
    """

    segment: Segment
    rater: str
    errors: tuple[MqmError, ...] = ()
    lp: str | None = None
    line: int = field(default=0, compare=False)
    score: float | None = None
    marked: bool = True
    seconds: float = 0.0
    suggested: tuple[Suggestion, ...] | None = None
    added: int = 0
    checks: tuple[int, int] = (0, 0)
    doc_segment: str = ""

    @property
    def both(self) -> Annotation:
        """The major and minor errors of the translation and the omissions, without errors of the source itself."""
        return annotation_of_errors(e for e in self.errors if e.side == "translation" or is_omission(e.category))

    @property
    def annotation(self) -> Annotation:
        """The major and minor errors of the translation, including duplicates."""
        return self.both.on("translation")

    def mqm(self, weights: str = "google") -> float:
        """WMT's gold score: minus the penalties of all errors, including source errors and duplicates; 0 is best."""
        errors = [(fold_severity(error.severity), error.category) for error in self.errors]
        return weights_of(weights).total(ErrorSpan(0, 1, severity, kind) for severity, kind in errors if severity)

    def to_json(self) -> dict[str, Any]:
        """The object of one line."""
        return {
            "lp": self.lp,
            "system": self.segment.system,
            "doc": self.segment.document,
            "seg_id": self.segment.label,
            "rater": self.rater,
            "src": self.segment.source,
            "mt": self.segment.translation,
            "errors": [error.to_json() for error in self.errors] if self.marked else None,
            "score": self.score,
            "seconds": round(self.seconds, 3),
            "suggested": self.suggested and [error.to_json() | {"fate": fate} for error, fate in self.suggested],
            "added": self.added,
            "checks": list(self.checks),
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any], line: int, left_out: list[LeftOut]) -> Rating:
        """The rating of one line; for malformed lines, raises the exceptions that `untrusted.reading` handles."""
        source, translation = str(item["src"]), str(item["mt"])
        errors = []
        for one in item["errors"] or ():
            error = MqmError.from_json(one, source, translation)
            length = len((source if error.side == "source" else translation).rstrip())
            if error.start < error.end and error.start >= length:
                left_out.append(LeftOut(line, AT_THE_END))
            else:
                errors.append(error if error.end <= length else replace(error, end=length))
        system, document, label, rater = (str(item[key]) for key in ("system", "doc", "seg_id", "rater"))
        texts, lp = (source.rstrip(), translation.rstrip()), str(item["direction" if "direction" in item else "lp"])
        segment, marked = Segment(*texts, label, system, document), item["errors"] is not None
        rating = cls(segment, rater, tuple(errors), lp, line, marked=marked)
        if "checks" not in item:
            return rating
        if unknown := {one["fate"] for one in item["suggested"] or ()} - set(get_args(Fate)):
            raise InputError(f"a span's fate must be {', '.join(get_args(Fate))}, not {unknown.pop()!r}")
        if (seconds := finite(item["seconds"])) < 0:
            raise InputError(f'"seconds" must not be negative (got {seconds:g})')
        passed, shown = map(int, item["checks"])
        suggested = (Suggestion(MqmError.from_json(one, *texts), one["fate"]) for one in item["suggested"] or ())
        return replace(
            rating,
            score=None if item["score"] is None else score_in_range(item["score"]),
            seconds=seconds,
            suggested=None if item["suggested"] is None else tuple(suggested),
            added=int(item["added"]),
            checks=(passed, shown),
        )


def annotation_of_errors(errors: Iterable[MqmError]) -> Annotation:
    """The annotation of the major and minor errors that have a position or are omissions, with duplicates: spans,
    points for errors of the translation without characters, and `unplaced` for omissions without a position."""
    spans: list[ErrorSpan] = []
    points: list[Point] = []
    unplaced: list[Severity] = []
    for error in errors:
        severity = fold_severity(error.severity)
        if severity is None or error.side is None:
            continue
        if error.start == error.end and error.side == "translation":
            points.append((int(error.start), severity))
        elif error.start == error.end:
            unplaced.append(severity)
        else:
            spans.append(ErrorSpan(error.start, error.end, severity, error.category, error.confidence, error.side))
    return Annotation.of_rater(spans).with_points(points).with_unplaced(unplaced)


class LeftOut(NamedTuple):
    """An item that was dropped or changed when reading ratings; equal reasons have the same text.

    Attributes:
        line: the line in the file, from 1; 0 for a file that is not read line by line.
        lp: the language pair, if known.
    """

    line: int
    reason: str
    lp: str | None = None


@dataclass(frozen=True, slots=True)
class RatingData:
    """The ratings of one file, in order of first appearance, and the dropped items; iterates over ratings."""

    path: Path
    ratings: tuple[Rating, ...]
    left_out: tuple[LeftOut, ...]

    def __iter__(self) -> Iterator[Rating]:
        return iter(self.ratings)

    def __len__(self) -> int:
        return len(self.ratings)

    @property
    def lps(self) -> tuple[str, ...]:
        """The language pairs in the file, sorted."""
        return tuple(sorted({one.lp for one in self.ratings if one.lp}))

    def report(self) -> str:
        """The number of ratings, and for each reason the number of dropped items, with the first lines."""
        lines = [f"{self.path.name}: {number_of(len(self.ratings), 'rating')}"]
        for reason, count in Counter(item.reason for item in self.left_out).most_common():
            places = [str(item.line) for item in self.left_out if item.reason == reason]
            lines.append(f"  {count:>6}  {reason} (line {first_of(places, 3)})")
        return "\n".join(lines)


def score_in_range(value: object) -> float:
    """A score from 0 to 100; raises `InputError` for other values."""
    score = finite(value)
    if not 0 <= score <= 100:
        raise InputError(f"score {score:g}; people's scores go from 0 to 100")
    return score


def check_comparable(ratings: Sequence[Rating]) -> None:
    """Raise `InputError` if ratings of several campaigns cannot be in one table: several language pairs, ratings with
    and without scores, or two translations of a segment by one system."""
    if len(pairs := sorted({str(one.lp) for one in ratings})) > 1:
        raise InputError(f"ratings of {' and of '.join(pairs)}; report each language pair separately")
    by_errors = {one.score is None: f"{one.rater} rates {one.segment.system}" for one in ratings}
    if len(by_errors) > 1:
        raise InputError(
            f"{by_errors[False]} from 0 to 100, and {by_errors[True]} by their errors; report ESA and MQM separately"
        )
    texts: dict[tuple[str, ...], str] = {}
    for segment in (one.segment for one in ratings):
        key = segment.system, segment.document, segment.label, segment.source
        if texts.setdefault(key, segment.translation) != segment.translation:
            raise InputError(
                f"two translations of segment {segment.label} of {segment.document} by {segment.system} "
                f"({texts[key][:40]!r}, {segment.translation[:40]!r}); report them separately, or rename a system"
            )


def read_rating_lines(path: str | Path) -> RatingData:
    """Read ratings in this module's JSON lines format, plain or compressed.

    Raises:
        InputError: a malformed line, or a span that does not fit its translation (with the line).
    """
    left_out: list[LeftOut] = []
    ratings = []
    for where, number, item in json_objects(path):
        with reading(where):
            ratings.append(Rating.from_json(item, number, left_out))
    if not ratings:
        raise InputError(f"{path}: no ratings in this file")
    return RatingData(Path(path), tuple(ratings), tuple(left_out))


def write_rating_lines(path: str | Path, ratings: Iterable[Rating]) -> None:
    """Write ratings as JSON lines, compressed by suffix, atomically."""
    with whole_file(path) as file:
        for rating in ratings:
            file.write(json_line(rating.to_json()))


def is_rating_lines(line: str) -> bool:
    """Whether a file with this first line contains ratings as JSON lines."""
    return line.lstrip().startswith("{") and re.search(r'"rater"\s*:', line) is not None
