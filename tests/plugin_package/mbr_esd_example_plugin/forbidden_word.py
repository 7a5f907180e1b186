"""A check for a word that a company never writes."""

from __future__ import annotations

from collections.abc import Iterator

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.core.annotation import ErrorSpan


class ForbiddenWord(Check):
    """`check/forbidden-word` (major): "utilize", which this company never writes."""

    name = "example-forbidden-word"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        at = translation.casefold().find("utilize")
        if at >= 0:
            yield error(self.name, at, at + len("utilize"))
