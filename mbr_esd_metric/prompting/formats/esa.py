"""`format=esa`: the errors of `compact-omissions`, and in a second line a score from 0 to 100: ``score 71``."""

from __future__ import annotations

import re
from dataclasses import replace

from mbr_esd_metric.core.annotation import Annotation, mqm_score
from mbr_esd_metric.prompting.formats.compact import CompactOmissionsFormat, CompactParser
from mbr_esd_metric.prompting.parse import Invalid, Parsed

_SCORE = re.compile(r"score (100|[1-9]?[0-9])")


class EsaParser(CompactParser):
    """The reader of a line of errors and a line with the score; an answer needs both."""

    def read(self, text: str) -> Parsed | Invalid:
        errors, _, score = text.rstrip(" \n").rpartition("\n")
        number = _SCORE.fullmatch(score)
        if number is None:
            return Invalid("no line with a score")
        return replace(super().read(errors), self_reported_score=int(number[1]) / 4 - 25)


class EsaFormat(CompactOmissionsFormat):
    """Errors in one line, and a score from 0 to 100 in the next."""

    name = "esa"
    reader = EsaParser

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        return super().grammar(translation, grounded, source) + r"\n" + _SCORE.pattern

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """The errors, and as score the rest of 100: a minor one takes 4, a major one 20 (MQM's 1 and 5 of 25)."""
        errors, lost = super().answer(annotation, translation, source)
        return f"{errors}\nscore {round(100 + 4 * mqm_score(annotation))}", lost
