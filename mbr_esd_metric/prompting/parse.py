"""Parse a candidate's text to an annotation: decode the JSON and locate each error span in the translation.

A text that is not in the expected form is `Invalid`, with a reason. Malformed text is never read as "no error"
and never raises. A malformed error of an answer is dropped and counted, if another one of the answer is
located; else the answer is invalid. An error span is located where its words first stand in the translation; only if
they do not, in the folded translation (`text.FoldedText`), or with their escapes (``&uuml;``, ``\\u00fc``) replaced,
which is counted. Whole words come first, and a place inside a word only where there is none. A well-formed error whose
span is not found, or whose severity is neutral, is dropped and counted. Words of an omission are located in the source;
it is *unplaced* if they are in neither text.
"""

from __future__ import annotations

import html
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias, cast

from mbr_esd_metric.core.annotation import (
    NO_PENALTY,
    Annotation,
    ErrorSpan,
    Severity,
    Side,
    SpanKey,
    fold_severity,
)
from mbr_esd_metric.core.words import is_ambiguous, places
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.prompting.text import FoldedText

LOCATIONS = ("word", "first", "successive")

#: The most characters of a candidate that are read; no model's answer is as long.
LONGEST_ANSWER = 1 << 20

_CATEGORY_KEYS = ("category", "sub_category")
#: The keys that every error has, as in the grammar. One without the keys of its category is read, too.
KEYS = ("error_span", *_CATEGORY_KEYS, "severity")
#: The first key of an omission; its words are the source's.
OMITTED_KEY = "omitted_span"

#: The beginning and the end of an answer in the grammar's spacing, and the text between two errors.
_FIRST, _BETWEEN, _LAST = '{"errors": [{', "}, {", "}]}"
#: The inside of a JSON string.
_STRING = r'(?:[^"\\]|\\.)*'
#: The most errors of an answer that are read; a real one has dozens.
MOST_ERRORS = 1000
#: Span -> the characters ``[start, end)`` of an answer that say it.
Ranges: TypeAlias = "dict[SpanKey, tuple[tuple[int, int], ...]]"


@dataclass(frozen=True, slots=True)
class Invalid:
    """A candidate that is not an answer; equal faults have equal reasons, a few words. The score is as in `Parsed`."""

    reason: str
    self_reported_score: float | None = field(default=None, compare=False)


#: The value of a text beyond `LONGEST_ANSWER`.
TOO_LONG = Invalid(f"longer than {LONGEST_ANSWER} characters")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of an answer.

    Attributes:
        annotation: the errors that were located.
        dropped: errors dropped because their words are empty or not in their text, or beyond `MOST_ERRORS`.
        no_penalty: errors dropped because their severity is neutral.
        unplaced: omissions among the dropped errors.
        inexact: located errors whose words stand in the text with other blanks, quotation marks, hyphens or the like.
        malformed: errors that could not be read, of an answer with one that was located.
        self_reported_score: the score in the answer, on the scale of Score(E), in [-25, 0]; None if it has none.
        ranges: see `AnswerParser.ranges`; None where they are not at hand.
    """

    annotation: Annotation
    dropped: int = 0
    no_penalty: int = 0
    unplaced: int = 0
    inexact: int = 0
    malformed: int = 0
    self_reported_score: float | None = field(default=None, compare=False)
    ranges: Ranges | None = field(default=None, compare=False)


class Written(NamedTuple):
    """An error as an answer gives it, by its words.

    Attributes:
        severity: None if it has no penalty.
        sides: the texts in which the words may stand, the first that has them; an omission's include the source.
        category: None if the answer gives none; an omission's is then "omission".
        said: the characters ``[start, end)`` of the answer that say it, for the confidences of a single answer.
        correction, reason: those of an `ErrorSpan` of the translation.
    """

    severity: Severity | None
    text: str
    sides: tuple[Side, ...] = ("translation",)
    category: str | None = None
    said: tuple[tuple[int, int], ...] = ()
    correction: str | None = None
    reason: str | None = None


#: The span of an error, its key, and whether its words stand in the text as the answer writes them.
_Located: TypeAlias = "tuple[SpanKey, ErrorSpan, bool]"
#: Side, start and end of some words, and whether they stand there exactly.
_Place: TypeAlias = "tuple[Side, int, int, bool]"


@dataclass(eq=False)
class AnswerParser(ABC):
    """The reader of the candidates of one segment; each different text is read once.

    Args:
        translation: t, in which spans are located; `InputError` if it is not text.
        location: "word" takes the first occurrence of a span as whole words, or else one inside a word; "first" the
            first verbatim one, as the paper's code does; "successive" the same, and a text that is repeated within
            one annotation takes its next occurrence. `OptionError` for others.
        source: s, in which omissions are located; None where answers do not say them.
    """

    translation: str
    location: str = "word"
    source: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.translation, str):
            raise InputError(f"the translation is {type(self.translation).__name__}; give a text")
        if self.location not in LOCATIONS:
            raise unknown("location", self.location, LOCATIONS)
        self._texts: dict[Side, str] = {"translation": self.translation, "source": self.source or ""}
        self._parsed: dict[str, Parsed | Invalid] = {}
        self._folded: dict[Side, FoldedText] = {}
        self._located: dict[Written, _Located] = {}

    @abstractmethod
    def read(self, text: str) -> Parsed | Invalid:
        """The annotation that `text` spells, or why it spells none; never raises."""

    def parse(self, text: str) -> Parsed | Invalid:
        """`read` of a text that is no longer than an answer, the same object for the same text; never raises."""
        if text not in self._parsed:
            self._parsed[text] = self.read(text) if len(text) <= LONGEST_ANSWER else TOO_LONG
        return self._parsed[text]

    def ranges(self, text: str) -> Ranges:
        """The characters that say each span: that there is (another) error, its words and its severity, but not its
        category. Of equal spans the first is meant. Empty where the answer is not in the grammar's spacing."""
        parsed = self.parse(text)
        return (parsed.ranges or {}) if isinstance(parsed, Parsed) else {}

    def located(self, errors: Sequence[Written]) -> Parsed:
        """The annotation of the errors of an answer, and the counts of those that have no span."""
        spans: dict[SpanKey, ErrorSpan] = {}
        no_penalty = unplaced = inexact = dropped = 0
        ranges: Ranges = {}
        ends: dict[tuple[Side, str], int] | None = {} if self.location == "successive" else None
        for error in errors[:MOST_ERRORS]:
            if error.severity is None:
                no_penalty += 1
                continue
            found = self._located.get(error) if ends is None else None
            if found is None:
                found = self._locate(error, error.severity, ends)
                if found is None:
                    dropped += 1
                    unplaced += "source" in error.sides
                    continue
                self._located[error] = found
            key, span, exact = found
            spans.setdefault(key, span)
            inexact += not exact
            if error.said:
                ranges.setdefault(key, error.said)
        dropped += max(len(errors) - MOST_ERRORS, 0)
        return Parsed(Annotation.of_keys(spans), dropped, no_penalty, unplaced, inexact, ranges=ranges)

    def _locate(self, error: Written, severity: Severity, ends: dict[tuple[Side, str], int] | None) -> _Located | None:
        """The span of an error that has a penalty. Successive ones with the same words stand one behind the other;
        `ends` has where the last one of each text on a side ended."""
        place = self._place(error, ends)
        if place is None:
            return None
        side, start, end, exact = place
        if side == "source":
            category = "omission" if error.category is None else error.category
            span = ErrorSpan(start, end, severity, category, side=side)
        else:
            span = ErrorSpan(start, end, severity, error.category, correction=error.correction, reason=error.reason)
            if error.correction is not None and is_ambiguous(self.translation, start, end):
                span = replace(span, ambiguous=True)
        return span.key, span, exact

    def _place(self, error: Written, ends: dict[tuple[Side, str], int] | None) -> _Place | None:
        found = None
        if self.location == "word":
            found = self._search(error.text, error.sides, 0, whole=True)
        found = found or self._search(error.text, error.sides, 0)
        if ends is not None and found is not None:
            text = (found[0], error.text)
            found = self._search(error.text, (found[0],), ends.get(text, 0))
            if found is not None:
                ends[text] = found[2]
        return found

    def _search(self, words: str, sides: Sequence[Side], after: int, whole: bool = False) -> _Place | None:
        """The first place of words, perhaps of `whole` ones alone, that does not begin before `after`, on the first
        side that has them, and whether they stand there exactly. Words that are nowhere are searched without one layer
        of escapes, then without two."""
        found = self._find(words, sides, after, whole)
        for _ in range(2):
            plain = _unescaped(words)
            if found is not None or plain == words:
                return found
            found, words = self._find(plain, sides, after, whole), plain
            found = found and (*found[:3], False)
        return found

    def _find(self, words: str, sides: Sequence[Side], after: int, whole: bool) -> _Place | None:
        for side in sides if words else ():
            start = next(places(self._texts[side], words, after, whole), None)
            if start is not None:
                return side, start, start + len(words), True
        for side in sides if words else ():
            if side not in self._folded:
                self._folded[side] = FoldedText(self._texts[side])
            if (found := self._folded[side].find(words, after, whole)) is not None:
                return side, *found, False
        return None


#: Escapes of JSON.
_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')


def _unescaped(words: str) -> str:
    """The words without one layer of HTML's entities and JSON's escapes."""
    words = html.unescape(words) if "&" in words else words
    return _ESCAPES.sub(lambda escape: cast("str", json.loads(f'"{escape[0]}"')), words)


class _Malformed(Exception):
    """Why a text is not an answer, or an item of its list no error."""


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
    """Whether a word is a severity, including "neutral", which has no penalty."""
    return fold_severity(severity) is not None or severity.strip().lower() in NO_PENALTY


def is_omission(category: str | None) -> bool:
    """Whether an error category, as written by a model or a person, denotes an omission."""
    return "omission" in (category or "").lower()


def _decoded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise _Malformed("nested too deeply") from None
    except (ValueError, MemoryError):
        raise _Malformed("not JSON") from None


class JsonParser(AnswerParser):
    """The reader of answers in JSON.

    Answers of a constrained model have the spacing of `formats.json`, and errors repeat in a segment's samples. So a
    text is first cut at ``}, {``, and only a new piece is read. Pieces that are all errors spell valid JSON between
    them; any other text is read as a whole.
    """

    #: Keys behind the usual ones, named like attributes of `ErrorSpan`. An error need not have them.
    more_keys: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._errors: dict[str, Written] = {}
        #: The errors whose words stand exactly in the text: nothing of them has to be counted.
        self._exact: dict[str, tuple[SpanKey, ErrorSpan]] = {}

    def ranges(self, text: str) -> Ranges:
        if not text.startswith(_FIRST):
            return {}
        first = f"{KEYS[0]}|{OMITTED_KEY}" if self.source is not None else KEYS[0]
        others = "".join(f', "{key}": "({_STRING})"' for key in (*KEYS[1:], *self.more_keys))
        pattern = re.compile(f'"(?:{first})": "({_STRING})"{others}')
        errors: list[Written] = []
        between, at = "{", len(_FIRST)
        while match := pattern.match(text, at):
            # The quote after the words says that they end.
            said = ((at - len(between), match.end(1) + 1), match.span(len(KEYS)))
            try:
                errors.append(self._error(_decoded(f"{{{match[0]}}}"))._replace(said=said))
            except _Malformed:
                return {}
            between, at = ", {", match.end() + len(_BETWEEN)
        return self.located(errors).ranges or {} if text[at - len(_BETWEEN) :] == _LAST else {}

    def read(self, text: str) -> Parsed | Invalid:
        if text.startswith(_FIRST) and text.endswith(_LAST):
            pieces = text[len(_FIRST) : -len(_LAST)].split(_BETWEEN)
            spans = [*map(self._exact.get, pieces)]
            with suppress(_Malformed):
                if None in spans:
                    spans = [self._exact.get(piece) or self._read_piece(piece) for piece in pieces]
                if None in spans or len(pieces) > MOST_ERRORS:
                    return self.located([self._errors[piece] for piece in pieces])
                # Backwards, so that of equal spans the first is kept.
                return Parsed(Annotation.of_keys(dict(reversed(cast("list[tuple[SpanKey, ErrorSpan]]", spans)))))
        before, *fenced = text.split(_FENCE, 3)
        if len(fenced) == 2 and "{" not in before + fenced[1]:  # JSON in Markdown, with prose around it
            text = fenced[0].lstrip("jsonJSON")
        try:
            answer = _decoded(text)
            errors = answer.get("errors") if isinstance(answer, dict) else None
            if not isinstance(errors, list):
                raise _Malformed("no list of errors")
        except _Malformed as error:
            return Invalid(str(error))
        return self._located_items(errors)

    def _located_items(self, items: Sequence[object]) -> Parsed | Invalid:
        """The annotation of the items that can be read; the fault of another one if none of them has a span."""
        errors: list[Written] = []
        faults: list[str] = []
        for item in items:
            try:
                errors.append(self._error(item))
            except _Malformed as fault:
                faults.append(str(fault))
        parsed = self.located(errors)
        if faults and not parsed.annotation:
            return Invalid(faults[0])
        return replace(parsed, malformed=len(faults)) if faults else parsed

    def _read_piece(self, piece: str) -> tuple[SpanKey, ErrorSpan] | None:
        """The span of a piece in `_exact`, if it has one. Raises `_Malformed`."""
        if piece not in self._errors:
            error = self._errors[piece] = self._error(_decoded(f"{{{piece}}}"))
            if self.location != "successive" and error.severity is not None:
                found = self._locate(error, error.severity, None)
                if found is not None and found[2]:
                    self._exact[piece] = found[:2]
        return self._exact.get(piece)

    def _error(self, item: object) -> Written:
        """The error of an item of the list. Raises `_Malformed`."""
        if not isinstance(item, dict):
            raise _Malformed("an error that is not an object")
        first, sides = KEYS[0], cast("tuple[Side, ...]", ("translation",))
        if self.source is not None and (item.get(OMITTED_KEY) or (OMITTED_KEY in item and first not in item)):
            if item.get(first):
                raise _Malformed(f"an error with {first} and {OMITTED_KEY}")
            first, sides = OMITTED_KEY, ("source",)
        text, severity = item.get(first), item.get("severity")
        if not isinstance(text, str) or not isinstance(severity, str):
            raise _Malformed(f"an error without {KEYS[0]} and severity")
        more: dict[str, Any] = {key: one for key in self.more_keys if isinstance(one := item.get(key), str)}
        folded = fold_severity(severity)
        if folded is None and not is_severity(severity):
            raise _Malformed("an error of unknown severity")  # else a major error in other words would be no error
        categories = [one for key in _CATEGORY_KEYS if isinstance(one := item.get(key), str) and one]
        name = "/".join(categories) or None
        if first != OMITTED_KEY and is_omission(name):
            sides += ("source",)
        return Written(folded, text, sides, name, **more)
