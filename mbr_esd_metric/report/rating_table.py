"""Several annotations of the same translations, side by side: what the viewer and the terminal show.

An *input* is what one metric or one rater says about some translations. Inputs come from different files with
different names for segments; `files.records` says how they are joined.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from mbr_esd_metric.core.annotation import Annotation, mqm_score, unit_score, weights_of
from mbr_esd_metric.core.corrections import corrected
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import Join, SegmentKey
from mbr_esd_metric.prompting.text import is_untranslated, pieces


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

    def on(self, text: Text) -> Distribution:
        """The same on a row whose translation differs in white space at the end."""
        left = len(text.translation)
        if left == len(self.text.translation):
            return self
        runs = []
        for width, marked, major in self.runs:
            runs.append((min(width, left), marked, major))
            left -= runs[-1][0]
        runs.append((left, 0, 0))
        return replace(self, runs=[run for run in runs if run[0]])


@dataclass(frozen=True, slots=True)
class CandidateInput:
    """The candidates that one model sampled; in a table None for rows that it does not have."""

    name: str
    distributions: Sequence[Distribution | None]


@dataclass(frozen=True, slots=True)
class RatingTable:
    """Translations as rows, metrics and raters as columns.

    Attributes:
        unmatched: (input, rows of it that no other input has) for inputs that share only a part with the rest.
        notes: what was repaired in the inputs.
    """

    rows: Sequence[Text]
    columns: Sequence[RatingInput]
    candidates: Sequence[CandidateInput]
    unmatched: Sequence[tuple[str, int]] = ()
    notes: Sequence[str] = ()


def join(inputs: Iterable[RatingInput], candidates: Iterable[CandidateInput] = ()) -> RatingTable:
    """Put inputs side by side. Rows are in the order of first appearance, and no row is left out.

    Raises:
        InputError: no input at all, two inputs of one name, a span that ends past its translation, or a score
            that is not finite.
    """
    inputs, candidates = list(inputs), list(candidates)
    names = [one.name for one in inputs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two inputs are named {name!r}; name them apart with NAME=FILE")
    rows: list[Text] = []
    placed: list[tuple[str, Sequence[int]]] = []
    columns = []
    for one in inputs:
        ratings = [rating for rating in one.ratings if rating is not None]
        for rating in ratings:
            try:
                _check(rating)
            except InputError as error:
                raise InputError(f"{one.name}, segment {rating.text.id}: {error}") from None
        at = _place([rating.text for rating in ratings], rows)
        placed.append((one.name, at))
        columns.append((one, dict(zip(at, ratings, strict=True))))
    summaries = []
    for sampled in candidates:
        distributions = [distribution for distribution in sampled.distributions if distribution is not None]
        at = _place([distribution.text for distribution in distributions], rows)
        summaries.append((sampled, dict(zip(at, distributions, strict=True))))
    if not rows:
        raise InputError("there is no segment to show; give at least one file with segments")
    inputs_of_row = Counter(row for _, at in placed for row in at)
    alone = [(name, sum(inputs_of_row[row] == 1 for row in at)) for name, at in placed]
    return RatingTable(
        rows,
        [replace(one, ratings=[of.get(row) for row in range(len(rows))]) for one, of in columns],
        [
            replace(sampled, distributions=[at[row].on(text) if row in at else None for row, text in enumerate(rows)])
            for sampled, at in summaries
        ],
        [(name, count) for name, count in alone if count and len(placed) > 1],
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


def _place(texts: Sequence[Text], rows: list[Text]) -> list[int]:
    """The row of each text, new ones appended; no two texts of one call share a row."""
    known = Join(((text.place, row) for row, text in enumerate(rows)), {text.system for text in texts})
    taken: dict[int, None] = {}
    for text in texts:
        row = next((row for row in known.all_of(text.place) if row not in taken), None)
        if row is None:
            row = len(rows)
            rows.append(text)
        taken[row] = None
    return list(taken)
