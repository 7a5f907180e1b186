"""Tags of HTML and XML that a translation lost or invented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from mbr_esd_metric.checks.addresses import without_addresses
from mbr_esd_metric.checks.check import Check, Context
from mbr_esd_metric.checks.items import Item, blanked, differences
from mbr_esd_metric.core.annotation import ErrorSpan

_TAG = re.compile(r"</?[a-z0-9][\w:.-]*(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*/?>", re.IGNORECASE)
_NAME = re.compile(r"</?[\w:.-]+")


class Tags(Check):
    """`check/tag` (major): a tag that is invented, in the translation; one that is lost, in the source, unless another
    one stands for it. Attributes may differ."""

    name = "tags"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The tags that differ."""
        if "<" in source or "<" in translation:
            yield from differences("tag", _tags(without_addresses(source)), _tags(without_addresses(translation)))


@lru_cache(maxsize=4)
def without_tags(text: str) -> str:
    """The text with zero characters in the place of its tags and addresses."""
    text = without_addresses(text)
    return blanked(text, _tags(text)) if "<" in text else text


def _tags(text: str) -> list[Item]:
    return [Item(*match.span(), name[0].lower()) for match in _TAG.finditer(text) if (name := _NAME.match(match[0]))]
