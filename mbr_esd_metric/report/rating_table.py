"""Several annotations of the same translations, side by side: what the viewer and the terminal show.

An *input* is what one metric or one rater says about some translations. Inputs come from different files with
different names for segments; `files.records` says how they are joined.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mbr_esd_metric.adapters.scored_files import SegmentRating, Text
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.files.records import Join


@dataclass(frozen=True, slots=True)
class RatingInput:
    """The ratings of one metric or one human rater; in a table None for rows that it does not have."""

    name: str
    ratings: Sequence[SegmentRating | None]
    human: bool = False


@dataclass(frozen=True, slots=True)
class AnnotationCount:
    """One distinct annotation among a segment's candidates: how often, and its best log-probability."""

    annotation: Annotation
    count: int
    logprob: float | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """The candidates of one segment: numbers of valid, distinct and invalid ones, and the most frequent annotations.

    `runs` are (characters, candidates that mark them, candidates that mark them as major), from the first character to
    the last; their widths sum to the length of the translation.
    """

    text: Text
    valid: int
    distinct: int
    invalid: int
    runs: Sequence[tuple[int, int, int]]
    annotations: Sequence[AnnotationCount]


@dataclass(frozen=True, slots=True)
class CandidateInput:
    """The candidates that one model sampled; in a table None for rows that it does not have."""

    name: str
    distributions: Sequence[Distribution | None]


#: What an input says of one row.
_Entry = TypeVar("_Entry", SegmentRating, Distribution)


@dataclass(frozen=True, slots=True)
class RatingTable:
    """Translations as rows, metrics and raters as columns; and what was repaired in the inputs, and which share only a
    part of their rows with the rest."""

    rows: Sequence[Text]
    columns: Sequence[RatingInput]
    candidates: Sequence[CandidateInput]
    notes: Sequence[str] = ()


def join(inputs: Sequence[RatingInput], candidates: Sequence[CandidateInput] = ()) -> RatingTable:
    """Put inputs side by side. Rows are in the order of first appearance, and no row is left out.

    Raises:
        InputError: no input at all, two inputs of one name, a span that ends past its translation, or a score
            that is not finite.
    """
    name, times = Counter(one.name for one in inputs).most_common(1)[0] if inputs else ("", 0)
    if times > 1:
        raise InputError(f"two inputs are named {name!r}; name them apart with NAME=FILE")
    for one in inputs:
        for rating in filter(None, one.ratings):
            with labelled(f"{one.name}, segment {rating.text.id}"):
                _check(rating)
    rows: list[Text] = []
    placed = [_place(one.ratings, rows) for one in inputs]
    sampled = [_place(one.distributions, rows) for one in candidates]
    if not rows:
        raise InputError("there is no segment to show; give at least one file with segments")
    inputs_of_row = Counter(row for ratings in placed for row in ratings)
    notes = []
    for one, ratings in zip(inputs, placed, strict=True):
        if (alone := sum(inputs_of_row[row] == 1 for row in ratings)) and len(inputs) > 1:
            notes.append(f"{alone} of the segments of {one.name} are in no other input")
    at = range(len(rows))
    return RatingTable(
        rows,
        [replace(one, ratings=[of.get(row) for row in at]) for one, of in zip(inputs, placed, strict=True)],
        [replace(one, distributions=[of.get(row) for row in at]) for one, of in zip(candidates, sampled, strict=True)],
        notes,
    )


def _check(rating: SegmentRating) -> None:
    if rating.input_score is not None and not math.isfinite(rating.input_score):
        raise InputError(f"the score {rating.input_score} is no number")
    if rating.annotation is None:
        return
    rating.annotation.on("translation").check_length(len(rating.text.translation))
    for span in rating.annotation.on("source"):
        if span.end > len(rating.text.source):
            raise InputError(f"the omission [{span.start}, {span.end}) ends past the source")


def _place(entries: Sequence[_Entry | None], rows: list[Text]) -> dict[int, _Entry]:
    """Row -> its entry; new rows are appended, and no two entries of one call share a row."""
    known = Join(((text.place, row) for row, text in enumerate(rows)), {one.text.system for one in entries if one})
    taken: dict[int, _Entry] = {}
    for one in filter(None, entries):
        row = next((row for row in known.all_of(one.text.place) if row not in taken), len(rows))
        if row == len(rows):
            rows.append(one.text)
        taken[row] = one
    return taken
