"""An answer format: the wrong words in square brackets, one error after the other; `fine` without errors."""

from __future__ import annotations

import re
from types import MappingProxyType

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.prompting.formats import AnswerFormat
from mbr_esd_metric.prompting.parse import Invalid, Parsed, PlainParser, Written

_ERROR = re.compile(r"\[([^\[\]]+)\]")


class Parser(PlainParser):
    """Reads what `Bracketed` asks for."""

    def read(self, text: str) -> Parsed | Invalid:
        if text != "fine" and not re.fullmatch(f"({_ERROR.pattern})+", text):
            return Invalid("no words in brackets")
        return self.located([(Written("major", error[1]), error.span()) for error in _ERROR.finditer(text)])


class Bracketed(AnswerFormat):
    """Every error is major."""

    name = "bracketed"
    templates = MappingProxyType({"v1": "{source}\n{translation}\nWrong words in brackets, or: fine"})
    reader = Parser

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        return f"(fine|({_ERROR.pattern})+)"

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        return "".join(f"[{translation[span.start : span.end]}]" for span in annotation) or "fine", 0
