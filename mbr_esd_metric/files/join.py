"""The translation to which each record of a file belongs, for everything that joins files.

Files name their segments differently. So records are joined by source and translation, ignoring white space at the
end, and by system.

* A record with a system that the other side knows belongs to that system's translation only.
* A record without a system, or with one that the other side does not know (such as a file's name), belongs to every
  translation with its texts, unless a record names the translation's own system.
* If a system has the same pair of texts several times, the k-th pair gets the k-th record, and later pairs the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SegmentKey:
    """A translation: its system ("" if it has no name), source and translation."""

    system: str
    source: str
    translation: str

    @property
    def texts(self) -> tuple[str, str]:
        """Source and translation as they are compared."""
        return self.source.rstrip(), self.translation.rstrip()


class Join(Generic[_T]):
    """The records of one side, by translation."""

    def __init__(self, records: Iterable[tuple[SegmentKey, _T]], systems: Collection[str]) -> None:
        self._records: dict[tuple[str, str, str], list[_T]] = {}
        names = set(systems)
        for place, record in records:
            system = place.system if place.system in names else ""
            self._records.setdefault((system, *place.texts), []).append(record)

    def all_of(self, place: SegmentKey) -> Sequence[_T]:
        """All records that may belong to a translation, in order."""
        return self._records.get((place.system, *place.texts)) or self._records.get(("", *place.texts), [])

    def find(self, place: SegmentKey, occurrence: int = 0) -> _T | None:
        """The record of a translation, or None; of equal translations, `occurrence` of which come before it, the last
        one where there are fewer records."""
        records = self.all_of(place)
        return records[min(occurrence, len(records) - 1)] if records else None


def occurrences(places: Iterable[SegmentKey]) -> list[int]:
    """For each place, the number of places before it with the same system and texts."""
    seen: Counter[tuple[str, str, str]] = Counter()
    numbers = []
    for place in places:
        key = (place.system, *place.texts)
        numbers.append(seen[key])
        seen[key] += 1
    return numbers
