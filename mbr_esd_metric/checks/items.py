"""Items of a text that a translation keeps as they are, such as addresses, tags and placeholders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mbr_esd_metric.checks.check import error
from mbr_esd_metric.core.annotation import ErrorSpan


@dataclass(frozen=True, slots=True)
class Item:
    """A place of a text, and what a translation keeps of it."""

    start: int
    end: int
    kept: str


def blanked(text: str, places: Iterable[tuple[int, int]]) -> str:
    """The text with zero characters in these places."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted(places):
        if end > at:
            pieces += [text[at:start], "\0" * (end - max(start, at))]
            at = end
    return "".join([*pieces, text[at:]]) if pieces else text


def missing(items: Sequence[Item], others: Sequence[Item]) -> list[Item]:
    """The items that the other text lacks, or has fewer times."""
    left, found = Counter(one.kept for one in others), []
    for one in items:
        left[one.kept] -= 1
        if left[one.kept] < 0:
            found.append(one)
    return found


def differences(kind: str, before: Sequence[Item], after: Sequence[Item]) -> Iterator[ErrorSpan]:
    """Errors for items of the translation that are invented, and for items of the source that are lost, unless an
    invented one replaces it."""
    lost, invented = missing(before, after), missing(after, before)
    for one in invented:
        yield error(kind, one.start, one.end)
    for one in lost[len(invented) :]:
        yield error(kind, one.start, one.end, side="source")
