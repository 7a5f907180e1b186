"""From the text of a candidate to an annotation: JSON is read, and each error span is located in the translation.

A text that is not an answer in the expected form is `Invalid`, with a reason. Nothing malformed is ever taken
for "no error", and no text whatever raises. An error span is located where its words first stand in the translation;
only if they do not, in the folded translation (`text.FoldedText`), which is counted apart. A well-formed error whose
span is in neither, or whose severity is neutral, is dropped and counted. In answers that say what is left out of the
source too, such an error has ``omitted_span`` instead of ``error_span``, and its words are located in the source. An
omission is *unplaced* if its words are in neither text; it has a severity and counts in the score if the user says so.

Answers of a constrained model have exactly the spacing of `formats.json`, and the errors of one segment's
samples repeat. So a text is first cut at ``}, {`` and each piece looked up: only a piece that is new is read,
by a regular expression. Pieces that all match spell valid JSON between them, so that reading is exact;
anything else goes through the JSON decoder.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias, cast

from mbr_esd_metric.core.annotation import (
    EMPTY,
    NO_PENALTY,
    Annotation,
    ErrorSpan,
    Severity,
    Side,
    SpanKey,
    fold_severity,
)
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.prompting.text import FoldedText

LOCATIONS = ("first", "successive")

#: The most characters of a candidate that are read; no model's answer is as long.
LONGEST_ANSWER = 1 << 20

#: The keys that every error has, as in the grammar.
KEYS = ("error_span", "category", "sub_category", "severity")
#: The first key of an omission; its words are the source's.
OMITTED_KEY = "omitted_span"

#: The beginning and the end of an answer in the grammar's spacing, and the text between two errors.
_FIRST, _BETWEEN, _LAST = '{"errors": [{', "}, {", "}]}"
_NO_ERROR = '{"errors": []}'
_STRING = r'"([^"\\\x00-\x1f]*)"'
_ESCAPED = r'"((?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)"'


@cache
def _patterns(both: bool, more: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """An error, and one as the grammar has it, with the comma before it; by whether omissions have words of the source,
    and the keys after the usual ones."""
    first = f"{KEYS[0]}|{OMITTED_KEY}" if both else KEYS[0]
    plain, escaped = (
        f'"({first})": {string}, ' + ", ".join(f'"{key}": {string}' for key in (*KEYS[1:], *more))
        for string in (_STRING, _ESCAPED)
    )
    return re.compile(plain), re.compile(rf"(?:, )?\{{{escaped}\}}")


#: The most errors of an answer that are read; a real one has dozens.
MOST_ERRORS = 1000
#: Span -> the characters ``[start, end)`` of an answer that say it.
Ranges: TypeAlias = "dict[SpanKey, tuple[tuple[int, int], ...]]"
#: For each text of a side, where its last occurrence ended.
_Ends: TypeAlias = "dict[tuple[Side, str], int]"


@dataclass(frozen=True, slots=True)
class Invalid:
    """A candidate that is no answer.

    Attributes:
        reason: the fault, in a few words; the same fault has the same words.
        self_reported_score: as `Parsed.self_reported_score`.
    """

    reason: str
    self_reported_score: float | None = field(default=None, compare=False)


#: The value of a text beyond `LONGEST_ANSWER`.
TOO_LONG = Invalid(f"longer than {LONGEST_ANSWER} characters")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of an answer.

    Attributes:
        annotation: the errors that were located.
        dropped: errors dropped because their span is empty or does not occur in the translation, or an omission not
            in the source; or because there are more than `MOST_ERRORS`.
        no_penalty: errors dropped because their severity is neutral.
        unplaced: omissions among the dropped errors.
        inexact: located errors whose words stand in the text with other blanks, quotation marks, hyphens or the like.
        self_reported_score: the score in the answer, on the scale of Score(E), in [-25, 0]; None if it has none.
        ranges: see `AnswerParser.ranges`; None where they are not at hand.
    """

    annotation: Annotation
    dropped: int = 0
    no_penalty: int = 0
    unplaced: int = 0
    inexact: int = 0
    self_reported_score: float | None = field(default=None, compare=False)
    ranges: Ranges | None = field(default=None, compare=False)


class _Place(NamedTuple):
    """The characters ``[start, end)`` of a text; `exact` if they are the words as the answer writes them."""

    side: Side
    start: int
    end: int
    exact: bool = True


@dataclass(eq=False)
class AnswerParser(ABC):
    """The reader of the candidates of one segment; each different text is read once. A text that is no answer gives a
    value (`Invalid`), not an error.

    Args:
        translation: t, in which spans are located.
        location: "first" takes the first verbatim occurrence of a span, as the paper's code does; with
            "successive" a span text that is repeated within one annotation takes its next occurrence.
        source: s, in which omissions are located; None where answers do not say them.
        unplaced: annotations have omissions that were not located (`Annotation.unplaced`).

    Raises:
        InputError: the translation is no text.
        OptionError: another location.
    """

    translation: str
    location: str = "first"
    source: str | None = None
    unplaced: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.translation, str):
            raise InputError(f"the translation is {type(self.translation).__name__}; give a text")
        if self.location not in LOCATIONS:
            raise unknown("location", self.location, LOCATIONS)
        self._parsed: dict[str, Parsed | Invalid] = {}

    @abstractmethod
    def read(self, text: str) -> Parsed | Invalid:
        """The annotation that `text` spells, or why it spells none; never raises."""

    def parse(self, text: object) -> Parsed | Invalid:
        """`read` of a text that is no longer than an answer, the same object for the same text; never raises."""
        if not isinstance(text, str):
            return Invalid("not a text")
        parsed = self._parsed.get(text)
        if parsed is None:
            parsed = self._parsed[text] = self.read(text) if len(text) <= LONGEST_ANSWER else TOO_LONG
        return parsed

    def ranges(self, text: str) -> Ranges:
        """The characters that say each span: that there is (another) error, its words and its severity; not its
        category, which is not part of a span's identity. Of equal spans the first is meant. Empty where the answer is
        not in the grammar's spacing."""
        parsed = self.parse(text)
        return (parsed.ranges or {}) if isinstance(parsed, Parsed) else {}

    @cached_property
    def _folded(self) -> dict[Side, FoldedText]:
        return {"translation": FoldedText(self.translation), "source": FoldedText(self.source or "")}

    def _locate(self, words: str, sides: Sequence[Side], ends: _Ends) -> _Place | None:
        """The next occurrence of words, in the first of these texts that has them; its end goes into `ends`."""
        if not words:
            return None
        place: _Place | None = None
        for side in sides:
            whole = self.translation if side == "translation" else self.source or ""
            start = whole.find(words, ends.get((side, words), 0))
            if start >= 0:
                place = _Place(side, start, start + len(words))
                break
        else:
            for side in sides:
                found = self._folded[side].find(words, ends.get((side, words), 0))
                if found is not None:
                    place = _Place(side, *found, exact=False)
                    break
        if place is not None and self.location == "successive":
            ends[place.side, words] = place.end
        return place


class Written(NamedTuple):
    """An error, given by its words and the text in which they stand."""

    severity: Severity
    text: str
    side: Side = "translation"
    category: str | None = None


class PlainParser(AnswerParser):
    """The reader of answers that give each error by its words."""

    def located(self, errors: Sequence[tuple[Written, tuple[int, int]]]) -> Parsed:
        """The annotation of errors, each with the characters of the answer that say it."""
        spans: list[ErrorSpan] = []
        ranges: Ranges = {}
        unplaced: list[Severity] = []
        inexact = 0
        ends: _Ends = {}
        for (severity, text, side, category), written in errors[:MOST_ERRORS]:
            place = self._locate(text, (side,), ends)
            if place is not None:
                name = category or ("omission" if side == "source" else None)
                spans.append(ErrorSpan(place.start, place.end, severity, name, side=side))
                ranges.setdefault(spans[-1].key, (written,))
                inexact += not place.exact
            elif side == "source":
                unplaced.append(severity)
        annotation = Annotation(spans).with_unplaced(unplaced if self.unplaced else ())
        return Parsed(annotation, len(errors) - len(spans), 0, len(unplaced), inexact, ranges=ranges)


class _Error(NamedTuple):
    """One error as written, a tuple because thousands are made a second: `severity` is None if it carries no penalty,
    `place` its first occurrence if any, `omission` whether its category says that something is left
    out, `more` the values of further keys."""

    text: str
    severity: Severity | None
    category: str
    place: _Place | None
    omission: bool
    more: Mapping[str, Any]

    def span(self, place: _Place | None) -> ErrorSpan | None:
        """The error span at a place; None where there is none."""
        if place is None or self.severity is None:
            return None
        more = self.more if place.side == "translation" else {}
        return ErrorSpan(place.start, place.end, self.severity, self.category, None, place.side, **more)


class JsonParser(AnswerParser):
    """The reader of answers in JSON; errors that repeat are read once too."""

    #: Keys behind the usual ones, named like attributes of `ErrorSpan`. An error need not have them.
    more_keys: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._in_piece, self._in_answer = _patterns(self.source is not None, self.more_keys)
        self._parsed[_NO_ERROR] = Parsed(EMPTY)
        self._pieces: dict[str, _Error] = {}
        #: Of each piece the key and the span of its first occurrence; None and None if that has to be counted.
        self._located: dict[str, tuple[SpanKey, ErrorSpan] | tuple[None, None]] = {}

    def ranges(self, text: str) -> Ranges:
        at, end = len(_FIRST) - 1, len(text) - len(_LAST) + 1
        ranges: Ranges = {}
        ends: _Ends = {}
        while text.startswith(_FIRST) and at < end:
            match = self._in_answer.match(text, at)
            if match is None:
                return {}
            error = self._error(match[1], *(json.loads(f'"{value}"', strict=False) for value in match.groups()[1:]))
            span = error.span(self._next_place(error, ends))
            if span is not None:
                # The quote after the words says that they end.
                ranges.setdefault(span.key, ((at, match.end(2) + 1), match.span(len(KEYS) + 1)))
            at = match.end()
        return ranges

    def read(self, text: str) -> Parsed | Invalid:
        if text.startswith(_FIRST) and text.endswith(_LAST):
            pieces = text[len(_FIRST) : -len(_LAST)].split(_BETWEEN)
            located = self._located
            keyed = [*map(located.get, pieces)]
            if None in keyed and all(piece in located or self._piece(piece) for piece in pieces):
                keyed = [*map(located.get, pieces)]
            if None not in keyed:
                # Backwards, so that of equal spans the first is kept.
                spans = dict(reversed(cast("list[tuple[SpanKey, ErrorSpan]]", keyed)))
                if None in spans or self.location == "successive" or len(pieces) > MOST_ERRORS:
                    return self._annotation([self._pieces[piece] for piece in pieces])
                return Parsed(Annotation.of_keys(spans))
        errors = _decode(text, self.source is not None, self.more_keys)
        return errors if isinstance(errors, Invalid) else self._annotation([self._error(*error) for error in errors])

    def _piece(self, piece: str) -> bool:
        """Read one piece; False if it is no error in the grammar's spacing."""
        match = self._in_piece.fullmatch(piece)
        if match is None:
            return False
        error = self._error(*match.groups())
        if error.severity is None and not is_severity(match[len(KEYS) + 1]):
            return False
        self._pieces[piece] = error
        span = error.span(error.place) if error.place is not None and error.place.exact else None
        self._located[piece] = (None, None) if span is None else (span.key, span)
        return True

    def _error(self, key: str, text: str, category: str, sub_category: str, severity: str, *more: str | None) -> _Error:
        folded = fold_severity(severity)
        name = f"{category}/{sub_category}" if sub_category else category
        omission = key == OMITTED_KEY or is_omission(name)
        sides: tuple[Side, ...] = () if key == OMITTED_KEY else ("translation",)
        if omission and self.source is not None:
            sides += ("source",)
        place = None if folded is None else self._locate(text, sides, {})
        return _Error(text, folded, name, place, omission, dict(zip(self.more_keys, more, strict=True)))

    def _next_place(self, error: _Error, ends: _Ends) -> _Place | None:
        """The place of an error; successive ones with the same words stand one behind the other."""
        if error.place is None or self.location == "first":
            return error.place
        return self._locate(error.text, (error.place.side,), ends)

    def _annotation(self, errors: Sequence[_Error]) -> Parsed:
        spans: list[ErrorSpan] = []
        unplaced: list[Severity] = []
        no_penalty = inexact = 0
        ends: _Ends = {}
        for error in errors[:MOST_ERRORS]:
            if error.severity is None:
                no_penalty += 1
                continue
            place = self._next_place(error, ends)
            if (span := error.span(place)) is not None:
                spans.append(span)
                inexact += place is not None and not place.exact
            elif error.omission:
                unplaced.append(error.severity)
        annotation = Annotation(spans).with_unplaced(unplaced if self.unplaced else ())
        return Parsed(annotation, len(errors) - no_penalty - len(spans), no_penalty, len(unplaced), inexact)


class _Malformed(ValueError):
    """JSON that Python's decoder accepts and the format does not."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Of a key given twice the decoder keeps the last: an empty list could hide a full one.
    decoded = dict(pairs)
    if len(decoded) < len(pairs):
        raise _Malformed("a key given twice")
    return decoded


def _no_constant(name: str) -> NoReturn:
    raise _Malformed("not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
_FENCE = "```"


def is_severity(severity: str) -> bool:
    """Whether a word says how bad an error is; "neutral" says that it has no penalty."""
    return fold_severity(severity) is not None or severity.strip().lower() in NO_PENALTY


def is_omission(category: str | None) -> bool:
    """Whether an error's category, as a model or a person wrote it, says that something is left out."""
    return "omission" in (category or "").lower()


def _decode(text: str, both: bool, more: tuple[str, ...] = ()) -> list[tuple[Any, ...]] | Invalid:
    """First key, span text, category, sub-category and severity of each error, and the values of `more` keys, None
    where an error has none."""
    before, *fenced = text.split(_FENCE, 3)
    if len(fenced) == 2 and "{" not in before + fenced[1]:  # JSON in Markdown, with prose around it
        text = fenced[0].lstrip("jsonJSON")
    try:
        answer: object = _DECODER.decode(text)
    except _Malformed as error:
        return Invalid(str(error))
    except RecursionError:
        return Invalid("nested too deeply")
    except (ValueError, MemoryError):
        return Invalid("not JSON")
    errors = answer.get("errors") if isinstance(answer, dict) else None
    if not isinstance(errors, list):
        return Invalid("no list of errors")
    decoded: list[tuple[Any, ...]] = []
    for item in errors:
        if not isinstance(item, dict):
            return Invalid("an error that is no object")
        first = KEYS[0]
        if both and (item.get(OMITTED_KEY) or (OMITTED_KEY in item and first not in item)):
            if item.get(first):
                return Invalid(f"an error with {first} and {OMITTED_KEY}")
            first = OMITTED_KEY
        keys = (first, *KEYS[1:])
        values: list[Any] = [item.get(key) for key in keys]
        if not all(isinstance(value, str) for value in values):
            missing = any(key not in item for key in keys)
            return Invalid("an error without " + "/".join(KEYS) if missing else "an error's field is no text")
        if not is_severity(values[3]):  # else a major error in other words would be no error
            return Invalid("an error of unknown severity")
        others = [item.get(key) for key in more]
        if not all(value is None or isinstance(value, str) for value in others):
            return Invalid("an error's field is no text")
        decoded.append((first, *values, *others))
    return decoded
