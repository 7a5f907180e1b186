"""The errors of a translation that need no model: the base class of the checks, what they know besides the two texts,
and their catalog.

A check that may be wrong about a good translation says nothing. With the option `checks` of a decision the errors join
its annotation, and its score loses their points. Other packages offer checks by entry points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from mbr_esd_metric.core.annotation import ErrorSpan, Severity, Side
from mbr_esd_metric.plugins import Catalog


@dataclass(frozen=True, slots=True)
class Context:
    """What a check knows besides the source and the translation.

    Attributes:
        source_language, target_language: codes such as "de" or "pt-BR"; None where a language is not known.
        numbers: those that a plural form stands for, as far as 1,000; None of a text that is no plural form.
    """

    source_language: str | None = None
    target_language: str | None = None
    numbers: frozenset[int] | None = None

    @property
    def one_number(self) -> bool:
        """Whether the text is the plural form of a single number, and so may leave out this number."""
        return self.numbers is not None and len(self.numbers) == 1


#: Nothing is known.
UNKNOWN = Context()


class Check(ABC):
    """One kind of error that needs no model. A check has no state: its errors depend only on the arguments."""

    #: The name of the check, under which its class is found.
    name: ClassVar[str]

    @abstractmethod
    def errors(self, source: str, translation: str, context: Context) -> Iterable[ErrorSpan]:
        """The errors of this kind, each with the category `check/...` and the confidence 1, as `error` makes them. What
        is lost is a span of the source."""


def error(kind: str, start: int, end: int, severity: Severity = "major", side: Side = "translation") -> ErrorSpan:
    """An error span of the category `check/KIND`."""
    return ErrorSpan(start, end, severity, f"check/{kind}", 1.0, side)


_NAMES = ("addresses", "copies", "names", "numbers", "repetition", "tags", "templates", "units")
#: Entry points of other packages: ``mbr_esd_metric.checks``.
CHECKS = Catalog("check", "checks", __name__, Check, {name: name for name in _NAMES})  # type: ignore[type-abstract]


@cache
def _checks() -> tuple[Check, ...]:
    return tuple(check() for check in CHECKS.all().values())


def errors_of(source: str, translation: str, context: Context = UNKNOWN) -> tuple[ErrorSpan, ...]:
    """The errors that the checks find, in the order of their places, those of the source last. An error over the whole
    translation, such as a copy of the source, stands alone."""
    found = [one for check in _checks() for one in check.errors(source, translation, context)]
    end = len(translation.rstrip())
    start = len(translation) - len(translation.lstrip())
    whole = [one for one in found if one.side == "translation" and (one.start, one.end) == (start, end)]
    return tuple(whole[:1] or sorted(found, key=lambda one: one.key))
