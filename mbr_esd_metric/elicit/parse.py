"""From what a model wrote to an annotation: JSON is read, and each error span is located in the translation.

A text that is not an answer in the expected form is `Invalid`, with a reason. Nothing malformed is ever taken
for "no error", and no text whatever raises. A well-formed error whose span does not occur in the translation,
or whose severity is neutral, is dropped and counted.

Answers of a constrained model have exactly the spacing of `elicit.grammar`, and the errors of one segment's
samples repeat. So a text is first cut at ``}, {`` and each piece looked up: only a piece that is new is read,
by a regular expression. Pieces that all match spell valid JSON between them, so that reading is exact;
anything else goes through the JSON decoder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast

from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan, Severity, SpanKey, fold_severity
from mbr_esd_metric.errors import InputError, unknown

LOCATIONS = ("first", "successive")

#: The keys that every error has, as in the grammar.
KEYS = ("error_span", "category", "sub_category", "severity")

#: Severities that carry no penalty; whatever is neither here nor in `core.annotation.SEVERITIES` is no severity.
_NO_PENALTY = ("neutral",)
#: How an answer in the grammar's spacing begins and ends, and what stands between two errors.
_FIRST, _BETWEEN, _LAST = '{"errors": [{', "}, {", "}]}"
_NO_ERROR = '{"errors": []}'
_STRING = r'"([^"\\\x00-\x1f]*)"'
_PIECE = re.compile(", ".join(f'"{key}": {_STRING}' for key in KEYS))
#: An error as the grammar has it, with the comma before it.
_ESCAPED = r'"((?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)"'
_ERROR = re.compile(r"(?:, )?\{" + ", ".join(f'"{key}": {_ESCAPED}' for key in KEYS) + r"\}")


#: Span -> the characters ``[start, end)`` of an answer that say it.
Said: TypeAlias = "dict[SpanKey, tuple[tuple[int, int], ...]]"


@dataclass(frozen=True, slots=True)
class Invalid:
    """A candidate that is no answer.

    Attributes:
        reason: what is wrong with it, in a few words; the same fault has the same words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """An annotation as read from a text.

    Attributes:
        annotation: the errors that were located.
        not_found: errors dropped because their span is empty or does not occur in the translation.
        no_penalty: errors dropped because their severity is neutral.
    """

    annotation: Annotation
    not_found: int = 0
    no_penalty: int = 0


class _Error(NamedTuple):
    """One error as written: `severity` is None if it carries no penalty, `span` its first occurrence if any.

    A tuple, as thousands are made a second.
    """

    text: str
    severity: Severity | None
    category: str
    span: ErrorSpan | None


def check_parser_arguments(translation: object, location: str) -> None:
    """Make sure that a parser can locate spans.

    Raises:
        InputError: the translation is no text.
        OptionError: a location that is none of `LOCATIONS`.
    """
    if not isinstance(translation, str):
        raise InputError(f"the translation is {type(translation).__name__}; give a text")
    if location not in LOCATIONS:
        raise unknown("location", location, LOCATIONS)


class CandidateParser:
    """Reads the candidates of one segment; texts and errors that repeat are read once.

    Args:
        translation: t, in which spans are located.
        location: "first" takes the first verbatim occurrence of a span, as the paper's code does; with
            "successive" a span text that is repeated within one annotation takes its next occurrence.

    Raises:
        InputError: the translation is no text.
        OptionError: another location.
    """

    def __init__(self, translation: str, location: str = "first") -> None:
        check_parser_arguments(translation, location)
        self._translation = translation
        self._successive = location == "successive"
        self._texts: dict[str, Annotation | Invalid] = {_NO_ERROR: EMPTY}
        #: Of texts with dropped errors alone: how many were not found, and how many carry no penalty.
        self._dropped: dict[str | None, tuple[int, int]] = {}
        self._pieces: dict[str, _Error] = {}
        #: Of each piece the key and the span of its first occurrence; None and None if it is dropped.
        self._located: dict[str, tuple[SpanKey, ErrorSpan] | tuple[None, None]] = {}

    def parse(self, text: object) -> Parsed | Invalid:
        """The annotation that `text` spells, or why it spells none; never raises."""
        if not isinstance(text, str):
            return Invalid("not a text")
        annotation = self.annotations([text])[0]
        return annotation if isinstance(annotation, Invalid) else Parsed(annotation, *self._dropped.get(text, (0, 0)))

    def annotations(self, texts: Sequence[str]) -> list[Annotation | Invalid]:
        """The annotation of each text or why it has none; the same object for the same text."""
        read = self._texts
        for text in texts:
            if text not in read:
                read[text] = self._read(text)
        return [read[text] for text in texts]

    def not_found(self, texts: Sequence[str | None]) -> int:
        """How many errors of these texts, of those read so far, have a span that is not in the translation."""
        dropped = self._dropped
        return sum([dropped[text][0] for text in texts if text in dropped]) if dropped else 0

    def said(self, text: str) -> Said:
        """Where an answer says each span; see `AnswerParser.said`. Of equal spans the first is meant."""
        at, end = len(_FIRST) - 1, len(text) - len(_LAST) + 1
        found: Said = {}
        after: dict[str, int] = {}
        while text.startswith(_FIRST) and at < end:
            match = _ERROR.match(text, at)
            if match is None:
                return {}
            words, *_, severity = (json.loads(f'"{value}"', strict=False) for value in match.groups())
            folded = fold_severity(severity)
            start = self._translation.find(words, after.get(words, 0) if self._successive else 0) if words else -1
            if folded is not None and start >= 0:
                after[words] = start + len(words)
                # The quote after the words says that they end.
                ranges = ((at, match.end(1) + 1), match.span(len(KEYS)))
                found.setdefault((start, start + len(words), folded), ranges)
            at = match.end()
        return found

    def _read(self, text: str) -> Annotation | Invalid:
        if text.startswith(_FIRST) and text.endswith(_LAST):
            pieces = text[len(_FIRST) : -len(_LAST)].split(_BETWEEN)
            located = self._located
            found = [*map(located.get, pieces)]
            if None in found and all(piece in located or self._piece(piece) for piece in pieces):
                found = [*map(located.get, pieces)]
            if None not in found:
                # Backwards, so that of equal spans the first is kept.
                spans = dict(reversed(cast("list[tuple[SpanKey, ErrorSpan]]", found)))
                if None in spans or self._successive:
                    return self._annotation(text, [self._pieces[piece] for piece in pieces])
                return Annotation.of_keys(spans)
        read = _decode(text)
        return read if isinstance(read, Invalid) else self._annotation(text, [self._error(*error) for error in read])

    def _piece(self, piece: str) -> bool:
        """Read one piece; False if it is no error in the grammar's spacing."""
        match = _PIECE.fullmatch(piece)
        if match is None or not _is_severity(match[len(KEYS)]):
            return False
        error = self._pieces[piece] = self._error(*match.groups())
        self._located[piece] = (None, None) if error.span is None else (error.span.key, error.span)
        return True

    def _error(self, text: str, category: str, sub_category: str, severity: str) -> _Error:
        folded = fold_severity(severity)
        name = f"{category}/{sub_category}" if sub_category else category
        start = self._translation.find(text) if text else -1
        found = folded is not None and start >= 0
        span = ErrorSpan(start, start + len(text), folded, name) if found and folded else None
        return _Error(text, folded, name, span)

    def _annotation(self, text: str, errors: Sequence[_Error]) -> Annotation:
        spans: list[ErrorSpan] = []
        no_penalty = 0
        after: dict[str, int] = {}
        for error in errors:
            if error.severity is None:
                no_penalty += 1
            elif error.span is None:
                continue
            elif not self._successive:
                spans.append(error.span)
            else:
                start = self._translation.find(error.text, after.get(error.text, 0))
                if start >= 0:
                    after[error.text] = end = start + len(error.text)
                    spans.append(ErrorSpan(start, end, error.severity, error.category))
        if len(spans) < len(errors):
            self._dropped[text] = (len(errors) - no_penalty - len(spans), no_penalty)
        return Annotation(spans)


def parse_candidate(text: object, translation: str, location: str = "first") -> Annotation | Invalid:
    """The annotation that one text spells, or why it spells none; `CandidateParser` is for many of a segment.

    Args:
        text: what the model wrote; whatever it is, this does not raise.
        translation: t, in which spans are located.
        location: "first" or "successive"; see `CandidateParser`, which also counts what was dropped.
    """
    parsed = CandidateParser(translation, location).parse(text)
    return parsed if isinstance(parsed, Invalid) else parsed.annotation


class _Malformed(ValueError):
    """JSON that Python's decoder would let pass."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Of a key given twice the decoder keeps the last: an empty list could hide a full one.
    decoded = dict(pairs)
    if len(decoded) < len(pairs):
        raise _Malformed("a key given twice")
    return decoded


def _no_constant(name: str) -> NoReturn:
    raise _Malformed("not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _is_severity(severity: str) -> bool:
    return fold_severity(severity) is not None or severity.strip().lower() in _NO_PENALTY


def _decode(text: str) -> list[tuple[str, str, str, str]] | Invalid:
    """Span text, category, sub-category and severity of each error."""
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
    read: list[tuple[str, str, str, str]] = []
    for item in errors:
        if not isinstance(item, dict):
            return Invalid("an error that is no object")
        values: list[Any] = [item.get(key) for key in KEYS]
        if not all(isinstance(value, str) for value in values):
            missing = any(key not in item for key in KEYS)
            return Invalid("an error without " + "/".join(KEYS) if missing else "an error's field is no text")
        if not _is_severity(values[3]):  # else a major error in other words would be no error
            return Invalid("an error of unknown severity")
        read.append((values[0], values[1], values[2], values[3]))
    return read
