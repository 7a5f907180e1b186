"""Addresses: links and e-mail addresses that the translation omits or adds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from urllib.parse import unquote

from mbr_esd_metric.checks.check import Check, Context
from mbr_esd_metric.checks.items import Item, blanked, differences
from mbr_esd_metric.core.annotation import ErrorSpan

#: Characters of an address: signs and Latin letters. Letters of another script after it belong to the next word.
_URL = re.compile(r"(?:https?://|(?<![\w.@/-])www\.)[\w.~:/?#\[\]@!$&'()*+,;=%À-ɏ-]{1,2000}", re.IGNORECASE)
_LATIN = re.compile(r"[!#-;=?-_a-z~À-ɏḀ-ỿ]+", re.IGNORECASE)
_URL_END = ".,;:!?)]'*_~"
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9.+_-])[A-Za-z0-9.+_-]{1,64}@[A-Za-z0-9-]{1,64}(?:\.[A-Za-z0-9-]{1,64}){1,9}(?<![.-])"
)
#: Inflectional endings after a name.
_ENDING = re.compile(r"[-:][^\W\d_]{1,6}")
#: Codes of languages and countries in a host or a path.
_LOCALE = re.compile(r"[a-z]{2}(?:[-_][a-z]{2,4})?")
_DOMAINS = {"com", "org", "net", "info", "int", "eu", "co"}


class Addresses(Check):
    """`check/url` and `check/email` (major): an added address, marked in the translation; an omitted one, marked in the
    source unless an added one replaces it. Localised addresses are accepted: another path on the same host, the host
    of another country, or another mailbox name that consists of words."""

    name = "addresses"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors in addresses."""
        if not any(sign in text for sign in ("://", "www.", "@", "WWW.") for text in (source, translation)):
            return
        before, after = _urls(source), _urls(translation)
        known = {one.kept for one in before}
        after = [_without_ending(one, known) for one in after]
        yield from _errors("url", before, after, source, translation)
        yield from _errors("email", _emails(source), _emails(translation), source, translation)


@lru_cache(maxsize=8)
def without_addresses(text: str) -> str:
    """The text with its addresses replaced by zero characters."""
    if "@" not in text and "://" not in text and "www." not in text.casefold():
        return text
    return blanked(text, [(one.start, one.end) for one in (*_urls(text), *_emails(text))])


def _errors(
    kind: str, before: Sequence[Item], after: Sequence[Item], source: str, translation: str
) -> Iterator[ErrorSpan]:
    """The addresses that are in one text only, each once, except for localised ones and those that occur in the other
    text without being recognised as an address there."""
    first, second = ({one.kept: one for one in reversed(side)} for side in (before, after))
    lost = [one for kept, one in first.items() if kept not in second and kept not in translation.lower()][::-1]
    invented = [one for kept, one in second.items() if kept not in first and kept not in source.lower()][::-1]
    if not before:  # the name of a site as its host
        invented = [one for one in invented if kind == "email" or "/" in one.kept or "://" in translation]
    localised = _localised_mailbox if kind == "email" else _localised_url
    for one in [*lost]:
        other = next((two for two in invented if localised(one.kept, two.kept)), None)
        if other is not None:
            lost.remove(one)
            invented.remove(other)
    yield from differences(kind, lost, invented)


def _urls(text: str) -> list[Item]:
    found = []
    for match in _URL.finditer(text):
        latin = _LATIN.match(match[0])
        url = (latin[0] if latin else match[0]).rstrip(_URL_END)
        found.append(Item(match.start(), match.start() + len(url), _plain_url(url)))
    return found


def _plain_url(url: str) -> str:
    """The form of a link for comparison: without the scheme, and with unescaped characters."""
    kept = unquote(url.replace("&amp;", "&")).lower()
    return kept.removeprefix("http://").removeprefix("https://").removeprefix("www.").rstrip("/")


def _without_ending(one: Item, known: set[str]) -> Item:
    """The link without an inflectional ending (`example.org:iin`), if the source has this link."""
    for kept in known:
        if one.kept.startswith(kept) and _ENDING.fullmatch(one.kept, len(kept)):
            return Item(one.start, one.end - (len(one.kept) - len(kept)), kept)
    return one


def _emails(text: str) -> list[Item]:
    if "@" not in text:
        return []
    without = blanked(text, [(one.start, one.end) for one in _urls(text)])
    return [Item(*match.span(), match[0].lower()) for match in _EMAIL.finditer(without)]


def _localised_url(one: str, other: str) -> bool:
    """Whether one link may be the localised form of the other: with another code of a language or country in the host
    or the path, after which the path may differ, or with other words in the path on the same host."""
    (host, *path), (other_host, *other_path) = (re.split("[/?#&]", url) for url in (one, other))
    if host != other_host:
        return _same_site(host, other_host)
    first, second = ([segment.partition("=")[2] or segment for segment in side] for side in (path, other_path))
    if any(_LOCALE.fullmatch(segment) for segment in {*first} ^ {*second}):
        return True
    changed = [pair for pair in zip_longest(first, second, fillvalue="") if pair[0] != pair[1]]
    slip = any(Counter(one) == Counter(two) for one, two in changed)
    return not slip and all(_words(one) for pair in changed for one in pair)


def _same_site(host: str, other: str) -> bool:
    """Whether two hosts differ only in language and country codes."""
    first, second = (
        [part for part in one.split(".") if not (_LOCALE.fullmatch(part) or part in _DOMAINS)] for one in (host, other)
    )
    return bool(first) and first == second


def _words(segment: str) -> bool:
    """Whether a part of a path consists of words."""
    words = re.split(r"[-_.+]", segment)
    return not segment or (all(map(str.isalpha, words)) and max(map(len, words)) > 2)


def _localised_mailbox(one: str, other: str) -> bool:
    """Whether an e-mail address may be the localised form of another: with another word, or another country."""
    (name, _, host), (other_name, _, other_host) = one.partition("@"), other.partition("@")
    if host != other_host:
        return name == other_name and _same_site(host, other_host)
    return _words(name) and _words(other_name) and Counter(name) != Counter(other_name)
