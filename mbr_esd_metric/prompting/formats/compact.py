r"""`format=compact`: ``none``, or ``major <wrong words> minor <other words>``; a fifth of the tokens of JSON.

Inside the angle brackets a backslash stands before ``<``, ``>`` and itself, and ``\n``, ``\r``, ``\t`` are as in JSON.

`format=compact-omissions` also lists omissions, ``omitted major <words of the source>``.
"""

from __future__ import annotations

import re
from typing import cast

from mbr_esd_metric.core.annotation import EMPTY, Annotation, Severity, Side
from mbr_esd_metric.prompting.formats import AnswerFormat, spans_by_text
from mbr_esd_metric.prompting.parse import AnswerParser, Invalid, Parsed, Written
from mbr_esd_metric.prompting.pieces import grounded_spans, writable

NONE = "none"
#: The most errors of an answer: without a limit a model that repeats one goes on until it is cut. People's annotations
#: in WMT22's quality estimation have at most 11.
MOST = 12
#: Escapes inside the brackets; other control characters cannot be written.
_ESCAPES = {"\\": "\\\\", "<": r"\<", ">": r"\>", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_PLAIN = {written: character for character, written in _ESCAPES.items()}
_CHARACTERS = r"[^<>\\\x00-\x1f\x7f]|\\[\\<>nrt]"
_ANY_WORDS = f"({_CHARACTERS})+"
_SPAN = f"(major|minor) <((?:{_CHARACTERS})+)>"
_OMITTED = "omitted "
#: By whether an answer says what is left out: an error.
_ERROR = {False: re.compile("()" + _SPAN), True: re.compile(f"({_OMITTED})?{_SPAN}")}
_ESCAPE = re.compile(r"\\[\\<>nrt]")


class CompactParser(AnswerParser):
    """The reader of compact answers. Blanks and line ends around an answer are allowed."""

    def read(self, text: str) -> Parsed | Invalid:
        answer = text.strip(" \n")
        if answer == NONE:
            return Parsed(EMPTY)
        before = len(text) - len(text.lstrip(" \n"))
        errors: list[Written] = []
        at = 0
        while at < len(answer):
            start = at
            if errors and answer[at] != " ":
                return Invalid("missing space between two errors")
            match = _ERROR[self.source is not None].match(answer, at + bool(errors))
            if match is None:
                return Invalid("neither none nor a list of errors")
            at = match.end()
            side: Side = "source" if match[1] else "translation"
            words = _ESCAPE.sub(lambda m: _PLAIN[m[0]], match[3])
            # The blank before an error says that there is another one.
            errors.append(Written(cast("Severity", match[2]), words, (side,), said=((before + start, before + at),)))
        return self.located(errors) if errors else Invalid("an empty answer")


class CompactFormat(AnswerFormat):
    """One line: ``none``, or the errors, each a severity and its text in angle brackets, with a blank between them."""

    name = "compact"
    reader = CompactParser

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        texts = {"": translation, _OMITTED: source} if self.both_sides else {"": translation}
        words = {before: grounded_spans(text, _ESCAPES) if grounded else _ANY_WORDS for before, text in texts.items()}
        errors = [f"{before}(major|minor) <{some}>" for before, some in words.items() if some is not None]
        if not errors:
            return NONE
        error = errors[0] if len(errors) == 1 else f"({'|'.join(errors)})"
        return f"({NONE}|{error}( {error}){{0,{MOST - 1}}})"

    def usual_tokens(self, translation: str) -> int:
        return 16  # a quarter of JSON's, as 13 to 51 on TED en-de in Gemma's tokens

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """At most `MOST` errors in the order of the text, without those whose words also stand earlier in it."""
        errors: list[str] = []
        annotation = Annotation(annotation if self.both_sides else annotation.on("translation"))
        for span, text in spans_by_text(annotation, translation, source):
            inside = writable(text, _ESCAPES)
            if len(errors) < MOST and inside is not None:
                errors.append(f"{_OMITTED if span.side == 'source' else ''}{span.severity} <{inside}>")
        return " ".join(errors) or NONE, len(annotation) - len(errors)


class CompactOmissionsFormat(CompactFormat):
    """The compact answer, and what the translation leaves out: ``omitted``, then the same as other errors."""

    name = "compact-omissions"
    both_sides = True
