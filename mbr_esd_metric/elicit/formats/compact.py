r"""`format=compact`: ``none``, or ``major <wrong words> minor <other words>``; a fifth of the tokens of JSON.

Inside the angle brackets a backslash stands before ``<``, ``>`` and itself, and ``\n``, ``\r``, ``\t`` are as in JSON.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import cast

from mbr_esd_metric.core.annotation import Annotation, Severity
from mbr_esd_metric.elicit.formats.base import AnswerFormat, AnswerParser
from mbr_esd_metric.elicit.formats.located import PlainParser, located, places
from mbr_esd_metric.elicit.grounded import grounded_spans
from mbr_esd_metric.elicit.parse import Invalid, Parsed, Said

NONE = "none"
_V1 = """\
You check translations as a professional MQM annotator. Mark the errors in the translation below.
Answer in one line. Without errors, answer: none
Otherwise write each error as its severity and, in angle brackets, the wrong words, copied exactly from the \
translation: major <wrong words> minor <other wrong words>
major: hard to understand or wrong in meaning. minor: noticed, but does not hinder.

Source in {source_lang}:
{source}

Translation in {target_lang}:
{translation}"""

#: What stands for a character inside the brackets; other control characters cannot be written.
_ESCAPES = {"\\": "\\\\", "<": r"\<", ">": r"\>", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_PLAIN = {written: character for character, written in _ESCAPES.items()}
_CHARACTERS = r"([^<>\\\x00-\x1f\x7f]|\\[\\<>nrt])"
_ERROR = re.compile(r"(major|minor) <((?:" + _CHARACTERS[1:-1] + r")+)>")
_ESCAPE = re.compile(r"\\[\\<>nrt]")


class CompactFormat(AnswerFormat):
    """One line: ``none``, or the errors, each a severity and its text in angle brackets, with a blank between them."""

    name = "compact"
    templates = MappingProxyType({"v1": _V1})

    def grammar(self, translation: str, grounded: bool = False) -> str:
        spans: str | None = _CHARACTERS + "+"
        if grounded:
            spans = grounded_spans(translation, written)
        if spans is None:
            return NONE
        error = "(major|minor) <" + spans + ">"
        return f"({NONE}|{error}( {error})*)"

    def parser(self, translation: str, location: str = "first") -> AnswerParser:
        return CompactParser(translation, location)

    def answer(self, annotation: Annotation, translation: str) -> tuple[str, int]:
        """The errors in the order of the text; each can be said where its text is first found at its own place."""
        errors = []
        annotation = Annotation(annotation)
        for span in annotation:
            text = translation[span.start : span.end]
            inside = written(text)
            if inside is not None and translation.find(text) == span.start:
                errors.append(f"{span.severity} <{inside}>")
        return " ".join(errors) or NONE, len(annotation) - len(errors)


class CompactParser(PlainParser):
    """Reads compact answers; white space around the whole answer is let pass, nothing else."""

    def read(self, text: str) -> Parsed | Invalid:
        answer = text.strip(" \n")
        if answer == NONE:
            return Parsed(Annotation())
        errors = _errors(answer)
        if isinstance(errors, Invalid):
            return errors
        found = [error for error, _ in errors]
        return located(found, self.translation, self.location) if found else Invalid("an empty answer")

    def said(self, text: str) -> Said:
        before, errors = len(text) - len(text.lstrip(" \n")), _errors(text.strip(" \n"))
        if isinstance(errors, Invalid):
            return {}
        found: Said = {}
        spans = places((error for error, _ in errors), self.translation, self.location)
        for span, (_, (start, end)) in zip(spans, errors, strict=True):
            if span is not None:
                found.setdefault(span.key, ((before + start, before + end),))
        return found


def _errors(answer: str) -> list[tuple[tuple[Severity, str], tuple[int, int]]] | Invalid:
    """Severity and words of each error, and where it stands, with the blank before it."""
    errors: list[tuple[tuple[Severity, str], tuple[int, int]]] = []
    at = 0
    while at < len(answer):
        start = at
        if errors and answer[at] == " ":
            at += 1
        elif errors:
            return Invalid("no blank between two errors")
        found = _ERROR.match(answer, at)
        if found is None:
            return Invalid("neither none nor a list of errors")
        at = found.end()
        error = (cast("Severity", found[1]), _ESCAPE.sub(lambda m: _PLAIN[m[0]], found[2]))
        errors.append((error, (start, at)))
    return errors


def written(text: str) -> str | None:
    """`text` as it stands inside the brackets; None if it cannot."""
    inside = "".join(_ESCAPES.get(character, character) for character in text)
    return None if any(ord(c) < 0x20 or c == "\x7f" or 0xD800 <= ord(c) <= 0xDFFF for c in inside) else inside
