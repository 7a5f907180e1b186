"""Items of a text that the translation must keep, such as addresses, tags and placeholders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from mbr_esd_metric.checks.check import error
from mbr_esd_metric.core.annotation import ErrorSpan

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Item:
    """An item at its position, with the key by which it is compared."""

    start: int
    end: int
    kept: str


def blanked(text: str, places: Iterable[tuple[int, int]]) -> str:
    """The text with these positions replaced by zero characters."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted(places):
        if end > at:
            pieces += [text[at:start], "\0" * (end - max(start, at))]
            at = end
    return "".join([*pieces, text[at:]]) if pieces else text


def missing(items: Sequence[_T], others: Sequence[_T], key: Callable[[_T], str]) -> list[_T]:
    """The items whose key occurs less often in the other text."""
    left, found = Counter(map(key, others)), []
    for one in items:
        left[key(one)] -= 1
        if left[key(one)] < 0:
            found.append(one)
    return found


def lost_or_invented(
    kind: str, lost: Sequence[tuple[int, int]], invented: Sequence[tuple[int, int]]
) -> Iterator[ErrorSpan]:
    """Errors for added items in the translation, and for omitted items in the source that no added item replaces."""
    for place in invented:
        yield error(kind, *place)
    for place in lost[len(invented) :]:
        yield error(kind, *place, side="source")


def differences(kind: str, before: Sequence[Item], after: Sequence[Item]) -> Iterator[ErrorSpan]:
    """The errors of `lost_or_invented` for items that differ between the texts."""
    lost, invented = (
        [(one.start, one.end) for one in missing(items, others, attrgetter("kept"))]
        for items, others in ((before, after), (after, before))
    )
    return lost_or_invented(kind, lost, invented)
