"""An answer format, `bracketed`: ``fine``, or the errors one after the other, ``major[wrong words]minor[others]``."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import cast

from mbr_esd_metric.core.annotation import Annotation, Severity
from mbr_esd_metric.prompting.formats import AnswerFormat, spans_by_text
from mbr_esd_metric.prompting.parse import AnswerParser, Invalid, Parsed, Written
from mbr_esd_metric.prompting.pieces import grounded_spans, writable

#: Characters that stand escaped in brackets; control characters cannot be written.
ESCAPES = {"\\": r"\\", "[": r"\[", "]": r"\]", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
PLAIN = {written: character for character, written in ESCAPES.items()}
WORDS = r"([^\[\]\\\x00-\x1f\x7f]|\\[\[\]\\nrt])+"
ERROR = re.compile(rf"(major|minor)\[({WORDS})\]")


class BracketedParser(AnswerParser):
    """Reads what `Bracketed` asks for."""

    def read(self, text: str) -> Parsed | Invalid:
        if text != "fine" and not re.fullmatch(f"({ERROR.pattern})+", text):
            return Invalid("no words in brackets")
        errors = []
        for error in ERROR.finditer(text):
            words = re.sub(r"\\.", lambda escape: PLAIN[escape[0]], error[2])
            errors.append(Written(cast("Severity", error[1]), words, said=(error.span(),)))
        return self.located(errors)


class Bracketed(AnswerFormat):
    """The wrong words in brackets, behind their severity."""

    name = "bracketed"
    templates = MappingProxyType({"v1": "{source}\n{translation}\nMark errors: major[words]minor[words], or: fine"})
    reader = BracketedParser

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        words = grounded_spans(translation, ESCAPES) if grounded else WORDS
        return "fine" if words is None else rf"(fine|((major|minor)\[{words}\]){{1,12}})"

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        errors = annotation.on("translation")
        said = [(span.severity, writable(words, ESCAPES)) for span, words in spans_by_text(errors, translation, source)]
        written = [f"{severity}[{words}]" for severity, words in said if words is not None][:12]
        return "".join(written) or "fine", len(errors) - len(written)
