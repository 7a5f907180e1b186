"""Templates: placeholders that a program fills, which a translation lost or invented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from mbr_esd_metric.checks.check import Check, Context
from mbr_esd_metric.checks.items import Item, blanked, differences
from mbr_esd_metric.checks.tags import without_tags
from mbr_esd_metric.core.annotation import ErrorSpan

_PLACEHOLDER = re.compile(
    r"\$?\{\{?\s*[\w.:-]*\s*\}?\}|\{\w+(?=\s*,\s*(?:plural|select|number|date|time)\b)|%\([\w.]+\)[a-z]|%\{\w+\}"
    r"|(?<![\d%])%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:ll?|h)?[sdiufxXgc@](?![^\W_])"
)
_POSITION = re.compile(r"(?<=%)\d+\$")


class Templates(Check):
    """`check/placeholder` (major): one that is invented, in the translation; one that is lost, in the source, unless
    another one stands for it."""

    name = "templates"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The placeholders that differ; they may have another order."""
        before, after = _placeholders(without_tags(source)), _placeholders(without_tags(translation))
        yield from differences("placeholder", before, after)


@lru_cache(maxsize=4)
def without_templates(text: str) -> str:
    """The text with zero characters in the place of its placeholders, tags and addresses."""
    text = without_tags(text)
    return blanked(text, _placeholders(text))


def _placeholders(text: str) -> list[Item]:
    return [Item(*match.span(), _POSITION.sub("", "".join(match[0].split()))) for match in _PLACEHOLDER.finditer(text)]
