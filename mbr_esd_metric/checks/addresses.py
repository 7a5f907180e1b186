"""Addresses: links and mailboxes that a translation lost or invented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from mbr_esd_metric.checks.check import Check, Context
from mbr_esd_metric.checks.items import Item, blanked, differences
from mbr_esd_metric.core.annotation import ErrorSpan

_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'“”„«»，。；、）】」]+", re.IGNORECASE)
_URL_END = ".,;:!?)]…"
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")


class Addresses(Check):
    """`check/url` and `check/email` (major): an address that is invented, in the translation; one that is lost, in the
    source, unless another one stands for it."""

    name = "addresses"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The addresses that differ."""
        if "@" not in source + translation and not _URL.search(source) and not _URL.search(translation):
            return
        yield from differences("url", _urls(source), _urls(translation))
        yield from differences("email", _emails(source), _emails(translation))


@lru_cache(maxsize=4)
def without_addresses(text: str) -> str:
    """The text with zero characters in the place of its addresses."""
    if "@" not in text and not _URL.search(text):
        return text
    return blanked(text, [*_urls(text), *_emails(text)])


def _urls(text: str) -> list[Item]:
    found = []
    for match in _URL.finditer(text):
        url = match[0].rstrip(_URL_END)
        kept = url.lower().removeprefix("http://").removeprefix("https://").rstrip("/")
        found.append(Item(match.start(), match.start() + len(url), kept))
    return found


def _emails(text: str) -> list[Item]:
    without = blanked(text, _urls(text))
    return [Item(*match.span(), match[0]) for match in _EMAIL.finditer(without)]
