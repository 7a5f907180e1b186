"""Ratings that people gave: errors, scores, and what an annotation tool knows besides; and their JSON lines.

A line a translation and person::

    {"lp", "system", "doc", "seg_id", "rater", "src", "mt", "errors": [{"start", "end", "severity", "category",
     "side"?}], "score", "seconds", "suggested": [{..., "confidence", "fate"}] or null, "added",
     "checks": [passed, shown]}

Offsets are half-open, over mt. What the translation leaves out has ``"side": "source"`` and the offsets in src, or
none, as people who mark [missing] do not say what. ``"errors": null``: the person was asked for a score alone.
`annotate import` writes such files, and every verb that takes people's ratings reads them; where there are no `checks`,
the first eight keys are enough (lp may be called direction).
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

#: Why an error has no span: it is white space that the translation lost.
AT_THE_END = "span of white space at the end"
#: A person's treatment of a span that was there before: left, with another severity or extent, removed.
Fate = Literal["kept", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class MqmError:
    """One error that a rater marked.

    Attributes:
        severity: as in the file, in lower case ("major", "minor", "neutral", "critical" ...).
        category: as in the file, for example "Accuracy/Mistranslation".
        side: the text that the offsets belong to; None if the error has no place.
        start, end: half-open character offsets, equal if the error has no characters; 0 and 0 if it has no place. On
            the source's side that is an omission of which nobody says where it is.
        confidence: in [0, 1]; None if it is a person's.
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
        """The error of an object of a line. Raises `InputError` where it does not fit its text."""
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
    """An error that was marked before a person began, and its fate."""

    error: MqmError
    fate: Fate


@dataclass(frozen=True, slots=True)
class Rating:
    """One person's rating of one translation.

    Attributes:
        segment: with its position in the test set as label, as in the file; texts without markers and white space at
            the end, of rows that disagree the most frequent ones.
        rater: "" where the file does not say.
        errors: in the file's order, those of the source side and those without a place among them.
        lp: such as "en-de" where the file says it.
        line: the first one of the file that has it; 0 if there is no file.
        score: from 0 to 100, higher is better; None where nobody was asked for one, as in MQM.
        marked: whether the person was asked to mark errors; without, no errors say nothing.
        seconds: a pause counts as at most a minute.
        suggested: the errors that were marked beforehand; None if the translation was shown without any.
        added: how many of the errors were not there before in any form.
        checks: attention checks that the person passed, and that the person saw.
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
        """The major and minor errors of the translation and the omissions; errors of the source itself are neither."""
        return annotation_of_errors(e for e in self.errors if e.side == "translation" or is_omission(e.category))

    @property
    def annotation(self) -> Annotation:
        """The major and minor errors of the translation, each as often as it was marked."""
        return self.both.on("translation")

    def mqm(self, weights: str = "google") -> float:
        """WMT's gold score: minus the penalties of all errors, those of the source and repeats too; 0 is best."""
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
        """The rating of one line; raises what `untrusted.reading` catches where it is none."""
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
    """The major and minor errors that have a place or are omissions, with every repeat: spans, points where an error of
    the translation has no characters, and `unplaced` where one of the source has none."""
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
    """Something that the ratings leave out or change; equal reasons have one text.

    Attributes:
        line: of the file, from 1; 0 in a file that is not read line by line.
        lp: the language pair, where the reader knows it.
    """

    line: int
    reason: str
    lp: str | None = None


@dataclass(frozen=True, slots=True)
class RatingData:
    """The ratings of one file, in order of first appearance, and what was left out; iterates over ratings."""

    path: Path
    ratings: tuple[Rating, ...]
    left_out: tuple[LeftOut, ...]

    def __iter__(self) -> Iterator[Rating]:
        return iter(self.ratings)

    def __len__(self) -> int:
        return len(self.ratings)

    @property
    def lps(self) -> tuple[str, ...]:
        """The language pairs that the file names, sorted."""
        return tuple(sorted({one.lp for one in self.ratings if one.lp}))

    def report(self) -> str:
        """The number of ratings, and for each reason how much was left out, with the first lines."""
        lines = [f"{self.path.name}: {number_of(len(self.ratings), 'rating')}"]
        for reason, count in Counter(item.reason for item in self.left_out).most_common():
            places = [str(item.line) for item in self.left_out if item.reason == reason]
            lines.append(f"  {count:>6}  {reason} (line {first_of(places, 3)})")
        return "\n".join(lines)


def score_in_range(value: object) -> float:
    """A score from 0 to 100; raises `InputError` for another one."""
    score = finite(value)
    if not 0 <= score <= 100:
        raise InputError(f"score {score:g}; people's scores go from 0 to 100")
    return score


def check_comparable(ratings: Sequence[Rating]) -> None:
    """Raise `InputError` where ratings of several campaigns cannot stand in one table: of several language pairs, some
    with a score and some without, or of two translations of one segment by one system."""
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
    """Read ratings as JSON lines of this module's form, plain or compressed.

    Raises:
        InputError: with the line, where it is not such an object or a span does not fit its translation.
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
    """Write ratings as JSON lines; compressed by suffix, and whole or not at all."""
    with whole_file(path) as file:
        for rating in ratings:
            file.write(json_line(rating.to_json()))


def is_rating_lines(line: str) -> bool:
    """Whether a file that begins with this line holds ratings as JSON lines."""
    return line.lstrip().startswith("{") and re.search(r'"rater"\s*:', line) is not None
