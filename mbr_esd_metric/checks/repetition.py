"""Repetition: a word twice in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.prompting.pieces import UNSPACED

#: A word and the same once more: in a translation, and, more widely, in a source that may have a reason for it.
_REPEATED = re.compile(r"(?<![\w'’-])([^\W\d_]+) +(\1)(?![\w'’-])", re.IGNORECASE)
_REPEATED_SOURCE = re.compile(r"(?<!\w)(\S{2,40})[\s,-]{1,3}\1(?!\w)|([\u3040-\u9fff]{2,4})\2", re.IGNORECASE)
#: Words that stand twice in a row in good sentences.
_DOUBLES = "das dat dem den der die had hun ihr je nous que se sich sie si that vous was ze się".split()  # noqa: SIM905


class Repetition(Check):
    """`check/repetition` (minor): a word twice in a row, where the source repeats none."""

    name = "repetition"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The second of two equal words."""
        if _REPEATED_SOURCE.search(without_templates(source)):
            return
        for match in _REPEATED.finditer(without_templates(translation)):
            word = match[2]
            if word.lower() not in _DOUBLES and (len(word) > 1 or word.islower()) and not UNSPACED.search(word):
                yield error("repetition", *match.span(2), "minor")
