"""Copies: the source in the place of its translation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.prompting.pieces import UNSPACED

_WORD = re.compile(r"[^\W\d_]+")


class Copies(Check):
    """`check/copy` (major): the source in the place of the translation, up to case, blanks and marks. Names and titles
    may stay as they are."""

    name = "copies"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """One error over the whole translation."""
        if _copied(without_templates(source), without_templates(translation)):
            yield error("copy", len(translation) - len(translation.lstrip()), len(translation.rstrip()))


def _copied(source: str, translation: str) -> bool:
    """Whether a translation is its source, up to case, blanks and marks; names and titles alone may be."""
    words = _WORD.findall(source)
    if [one.casefold() for one in words] != [one.casefold() for one in _WORD.findall(translation)]:
        return False
    plain = sum(one == one.lower() for one in words)
    return (plain >= 3 and 2 * plain > len(words)) or len(UNSPACED.findall(source)) >= 8
