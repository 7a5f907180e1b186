"""Ratings that people gave in an annotation tool, as JSON lines, with what the tool knows besides.

A line a translation and person::

    {"lp", "system", "doc", "seg_id", "rater", "src", "mt", "errors": [{"start", "end", "severity", "category"}],
     "score", "seconds", "suggested": [{..., "confidence", "fate"}] or null, "added", "checks": [passed, shown]}

``"errors": null`` says that the person was asked for a score alone.

`read_mqm` and `read_esa` read these files as well, so that every verb for ratings of people takes them. An error
of ``"side": "source"`` is left out of the translation; people who mark [missing] do not say what, so it has no place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from mbr_esd_metric.adapters.mqm_tsv import MqmError, MqmRating, rating_of
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import json_line
from mbr_esd_metric.files.streams import whole_file
from mbr_esd_metric.files.untrusted import finite, json_objects, reading

#: What a person did with a span that was there before: left it, gave it another severity or extent, removed it.
Fate = Literal["kept", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A span that a person saw, and what became of it."""

    span: ErrorSpan
    fate: Fate


@dataclass(frozen=True, slots=True)
class PersonRating:
    """One person's rating of one translation.

    Attributes:
        rating: system, segment, person, texts and errors.
        score: from 0 to 100, higher is better; None where the tool asked for none.
        seconds: that the person spent on it; a pause counts as at most a minute.
        suggested: the spans that were there before; None if the translation was shown without any.
        added: how many of the errors were not there before in any form.
        checks: attention checks that the person passed, and that the person saw.
        marked: whether the person was asked to mark errors; without, no errors say nothing.
    """

    rating: MqmRating
    score: float | None
    seconds: float
    suggested: tuple[Suggestion, ...] | None
    added: int
    checks: tuple[int, int]
    marked: bool = True

    def to_json(self) -> dict[str, Any]:
        """The object of one line."""
        one = self.rating
        suggested = None if self.suggested is None else [asdict(s.span) | {"fate": s.fate} for s in self.suggested]
        return {
            "lp": one.lp,
            "system": one.system,
            "doc": one.doc,
            "seg_id": one.segment,
            "rater": one.rater,
            "src": one.source,
            "mt": one.target,
            "errors": [_error(error) for error in one.errors] if self.marked else None,
            "score": self.score,
            "seconds": round(self.seconds, 3),
            "suggested": suggested,
            "added": self.added,
            "checks": list(self.checks),
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> PersonRating:
        """The rating of one decoded line.

        Raises:
            InputError, KeyError, ValueError, TypeError: it is no such object.
        """
        suggested = None
        if item["suggested"] is not None:
            suggested = tuple(Suggestion(_read_span(s), _fate(s["fate"])) for s in item["suggested"])
        score = None if item["score"] is None else score_in_range(item["score"])
        passed, shown = map(int, item["checks"])
        seconds, marked = finite(item["seconds"]), item["errors"] is not None
        if seconds < 0:
            raise InputError(f"{seconds:g} seconds; nobody needs less than none")
        rating = rating_of(item if marked else {**item, "errors": []}, 0, [])
        return cls(rating, score, seconds, suggested, int(item["added"]), (passed, shown), marked)


def score_in_range(value: object) -> float:
    """A score from 0 to 100.

    Raises:
        InputError: it is none.
    """
    score = finite(value)
    if not 0 <= score <= 100:
        raise InputError(f"score {score:g}; people's scores go from 0 to 100")
    return score


def check_comparable(ratings: Iterable[PersonRating]) -> None:
    """Raise `InputError` where ratings of several campaigns cannot stand in one table: of several language pairs, some
    with a score and some without, or of two translations of one segment by one system."""
    first: PersonRating | None = None
    texts: dict[tuple[str, ...], str] = {}
    for one in ratings:
        first, rating = first or one, one.rating
        if rating.lp != first.rating.lp:
            raise InputError(f"ratings of {first.rating.lp} and of {rating.lp}; give each language pair a report")
        if (one.score is None) != (first.score is None):
            ways = ["from 0 to 100" if each.score is not None else "by their errors" for each in (first, one)]
            raise InputError(
                f"{first.rating.rater} rates {first.rating.system} {ways[0]}, and {rating.rater} rates {rating.system} "
                f"{ways[1]}; give ESA and MQM to a report each"
            )
        key = (str(rating.lp), rating.system, rating.doc, rating.segment, rating.source)
        if texts.setdefault(key, rating.target) != rating.target:
            raise InputError(
                f"two translations of segment {rating.segment} of {rating.doc} by {rating.system} "
                f"({texts[key][:40]!r}, {rating.target[:40]!r}); give them to a report each, or change a system's name"
            )


def read_person_ratings(path: str | Path) -> tuple[PersonRating, ...]:
    """The ratings that `write_person_ratings` wrote.

    Raises:
        InputError: names the line and what is wrong, or says that there is no rating.
    """
    found = []
    for where, _, item in json_objects(path):
        with reading(where):
            found.append(PersonRating.from_json(item))
    if not found:
        raise InputError(f"{path}: no ratings in this file")
    return tuple(found)


def write_person_ratings(path: str | Path, ratings: Iterable[PersonRating]) -> None:
    """Write ratings as JSON lines; compressed by suffix, and whole or not at all."""
    with whole_file(path) as file:
        for rating in ratings:
            file.write(json_line(rating.to_json()))


def _error(error: MqmError) -> dict[str, Any]:
    place = {"start": error.start, "end": error.end} if error.start < error.end else {}
    side = {"side": "source"} if error.side == "source" else {}
    return place | side | {"severity": error.severity, "category": error.category}


def _read_span(item: Mapping[str, Any]) -> ErrorSpan:
    return ErrorSpan(item["start"], item["end"], item["severity"], item["category"], item["confidence"], item["side"])


def _fate(name: object) -> Fate:
    if name not in get_args(Fate):
        raise InputError(f"a span's fate is {', '.join(get_args(Fate))}, not {name!r}")
    return cast("Fate", name)
