"""Several annotations of the same translations, side by side: what the viewer and the terminal show.

An *input* is what one metric or one rater says about some translations. Inputs come from different files with
different names for segments; `files.records` says how they are joined.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TypeVar

from mbr_esd_metric.core.annotation import Annotation, mqm_score, unit_score, weights_of
from mbr_esd_metric.core.corrections import corrected
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.files.records import Join, SegmentKey
from mbr_esd_metric.prompting.pieces import pieces
from mbr_esd_metric.prompting.text import is_untranslated


@dataclass(frozen=True, slots=True)
class Text:
    """A translation: the segment's name, its system ("" if there is one only), source and translation."""

    id: str
    system: str
    source: str
    translation: str

    @property
    def place(self) -> SegmentKey:
        """The translation, for `files.records`."""
        return SegmentKey(self.system, self.source, self.translation)


@dataclass(frozen=True, slots=True)
class SegmentRating:
    """The rating of one translation by an input.

    Attributes:
        annotation: its error spans; None if the input has only a score, or left the translation out.
        input_score: the score that came with it; higher is better. Our models and COMET's give one in [0, 1].
        input_mqm: the MQM score that came with it, in [-25, 0].
        data_warning: what the pair was warned of, such as "equal to its source".
        parts: the sentences that were judged one by one, with scores in [0, 1]; () where it was judged at once.
    """

    text: Text
    annotation: Annotation | None
    input_score: float | None = None
    input_mqm: float | None = None
    data_warning: str | None = None
    parts: tuple[ScoredPart, ...] = ()

    @property
    def corrections(self) -> list[tuple[str, str]]:
        """The words of the translation and of the corrected one in their order, as runs: "=" of both, "-" of the
        translation alone, "+" of the corrected one alone; none where no span has a correction."""
        if self.annotation is None or all(span.correction is None for span in self.annotation):
            return []
        old, new = _pieces(self.text.translation), _pieces(corrected(self.text.translation, self.annotation))
        runs: list[tuple[str, str]] = []
        for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            some = (("=", old[i:j]),) if kind == "equal" else (("-", old[i:j]), ("+", new[k:m]))
            runs += [(sign, "".join(words)) for sign, words in some if words]
        return runs

    @property
    def blank(self) -> bool:
        """Whether nothing is translated although there is something to translate."""
        return is_untranslated(self.text.source, self.text.translation)

    @property
    def stored_mqm(self) -> float | None:
        """The MQM score that does not come from spans: the input's own, or the lowest one for a blank translation whose
        score is 0, as it has no character to mark."""
        lowest = self.input_score == 0 and self.blank and not self.annotation
        return weights_of("paper").floor if self.input_mqm is None and lowest else self.input_mqm

    @property
    def mqm(self) -> float | None:
        """The MQM score that came with it, or that of its spans; None without either."""
        if self.stored_mqm is not None:
            return self.stored_mqm
        return None if self.annotation is None else mqm_score(self.annotation)

    @property
    def score(self) -> float | None:
        """The score that came with it, or that of its spans, in [0, 1]; None without either."""
        if self.input_score is not None:
            return self.input_score
        return None if self.mqm is None else unit_score(self.mqm)


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
    """Translations as rows, metrics and raters as columns.

    Attributes:
        notes: what was repaired in the inputs, and which share only a part of their rows with the rest.
    """

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


def _pieces(text: str) -> list[str]:
    """The words, marks and white space of a text, with numbers such as 4.500 whole."""
    parts = re.split(r"(\d+(?:[.,]\d+)+)", text)
    return [piece for i, part in enumerate(parts) for piece in ([part] if i % 2 else pieces(part))]


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
