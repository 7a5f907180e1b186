"""HTML and XML tags that the translation omits or adds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mbr_esd_metric.checks.addresses import without_addresses
from mbr_esd_metric.checks.check import Check, Context
from mbr_esd_metric.checks.items import Item, blanked, differences
from mbr_esd_metric.checks.messageformat import messages
from mbr_esd_metric.core.annotation import ErrorSpan

#: A tag or a similar text, also written with entities.
_TAG = re.compile(
    r"(?:<|&lt;)(?P<close>/?)(?P<name>[a-z0-9][\w:.-]{0,60})"
    r"(?P<attributes>(?:\s{1,9}[\w:@.-]{1,60}(?:\s{0,9}=\s{0,9}(?:\"[^\"<>]*\"|'[^'<>]*'|&quot;[^<>]*?&quot;))?){0,20})"
    r"\s{0,9}(?P<empty>/?)(?:>|&gt;)",
    re.IGNORECASE,
)
#: HTML element names that are not words, so that a single tag is certainly a tag.
_HTML = frozenset(
    re.findall(
        r"\w+",
        """
        a abbr b bdi bdo blockquote br colgroup dd del dfn div dl dt em figcaption h1 h2 h3 h4 h5 h6 hr i iframe img ins
        kbd li ol p rp rt ruby s span strike strong sub sup svg tbody td tfoot th thead tr tt u ul wbr
        """,
    )
)
_SAME = {"b": "strong", "i": "em", "s": "del", "strike": "del"}


class Tags(Check):
    """`check/tag` (major): an added tag, marked in the translation; an omitted one, marked in the source unless an
    added one replaces it. Attributes may differ, and equivalent tags such as `<b>` and `<strong>` are equal. Words in
    angle brackets that are not tags, such as `<Enter>`, are ignored."""

    name = "tags"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors in tags."""
        if not any(sign in text for sign in ("<", "&lt;") for text in (source, translation)):
            return
        before, after = _tags(without_addresses(source)), _tags(without_addresses(translation))
        names = {one.kept for one in before if one.certain} | {one.kept for one in after if one.certain}
        branches = bool(messages(source) or messages(translation))
        first, second = (_items(side, names, branches) for side in (before, after))
        yield from differences("tag", first, second)


@dataclass(frozen=True, slots=True)
class _Tag:
    """A tag with its position, its name without attributes, and whether it is certainly a tag."""

    start: int
    end: int
    kept: str
    certain: bool


@lru_cache(maxsize=8)
def without_tags(text: str) -> str:
    """The text with its tags and addresses replaced by zero characters."""
    text = without_addresses(text)
    return blanked(text, [(one.start, one.end) for one in _tags(text) if one.certain])


def _tags(text: str) -> list[_Tag]:
    if "<" not in text and "&lt;" not in text:
        return []
    found = list(_TAG.finditer(text))
    names = [match["name"].lower() for match in found]
    closed = {name for match, name in zip(found, names, strict=True) if match["close"]}
    opened = {name for match, name in zip(found, names, strict=True) if not match["close"]}
    tags = []
    for match, name in zip(found, names, strict=True):
        certain = name in _HTML or name in closed & opened or match["empty"] or "=" in match["attributes"]
        if certain or not match["attributes"]:
            kept = match["close"] + _SAME.get(name, name)
            tags.append(_Tag(*match.span(), kept, bool(certain)))
    return tags


def _items(tags: Sequence[_Tag], names: set[str], branches: bool) -> list[Item]:
    """The tags to compare: those that are certain in either text, with line breaks and tags in the branches of a
    message counted once."""
    found: list[Item] = []
    seen: set[str] = set()
    for one in tags:
        if one.kept in names and not ((branches or one.kept == "br") and one.kept in seen):
            seen.add(one.kept)
            found.append(Item(one.start, one.end, one.kept))
    return found
