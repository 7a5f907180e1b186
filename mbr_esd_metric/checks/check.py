"""The errors of a translation that need no model: the base class of the checks, what they know besides the two texts,
and their catalog.

A check that may be wrong about a good translation says nothing. With the option `checks` of a decision the errors join
its annotation, and its score loses their points. Other packages offer checks by entry points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from mbr_esd_metric.core.annotation import ErrorSpan, Severity, Side
from mbr_esd_metric.plugins import Catalog


@dataclass(frozen=True, slots=True)
class InlineCode:
    """A code that a translator's tool keeps out of the text, such as `<g id="1">` of XLIFF.

    Attributes:
        start, end: the place of the text inside it, or that it shows; empty where there is none.
        id: its name in the file.
        text: what it shows, or holds.
        stands_alone: whether it is no tag, such as `<x/>` and `<ph/>`.
    """

    start: int
    end: int
    id: str
    text: str
    stands_alone: bool


@dataclass(frozen=True, slots=True)
class Context:
    """What a check knows besides the source and the translation.

    Attributes:
        source_language, target_language: codes such as "de" or "pt-BR"; None where a language is not known.
        numbers: those that a plural form stands for, as far as 1,000; None of a text that is no plural form.
        source_codes, translation_codes: the inline codes of the two texts, which they do not show as tags.
        source_is_key: whether the source is the name of a message, whose text is in another file.
    """

    source_language: str | None = None
    target_language: str | None = None
    numbers: frozenset[int] | None = None
    source_codes: tuple[InlineCode, ...] = ()
    translation_codes: tuple[InlineCode, ...] = ()
    source_is_key: bool = False

    @property
    def has_codes(self) -> bool:
        """Whether a text has an inline code."""
        return bool(self.source_codes or self.translation_codes)

    def with_languages(self, source: str, target: str) -> Context:
        """The context with these languages where it has none."""
        if self.source_language is not None or self.target_language is not None:
            return self
        return replace(self, source_language=source, target_language=target)

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


_NAMES = (
    "addresses",
    "copies",
    "inline_codes",
    "language",
    "names",
    "numbers",
    "repetition",
    "tags",
    "templates",
    "units",
)
#: Entry points of other packages: ``mbr_esd_metric.checks``.
CHECKS = Catalog("check", "checks", __name__, Check, {name: name for name in _NAMES})  # type: ignore[type-abstract]


@cache
def _checks() -> tuple[Check, ...]:
    return tuple(check() for check in CHECKS.all().values())


def errors_of(source: str, translation: str, context: Context = UNKNOWN) -> tuple[ErrorSpan, ...]:
    """The errors that the checks find, in the order of their places, those of the source last. An error over the whole
    translation, such as a copy of the source, stands alone; and two checks do not mark the same characters."""
    found = [one for check in _checks() for one in check.errors(source, translation, context)]
    if len(found) < 2:
        return tuple(found)
    whole = next((one for one in found if is_whole(one, translation)), None)
    if whole is not None:
        return (whole,)
    kept: list[ErrorSpan] = []
    for one in sorted(found, key=lambda one: (one.key, one.category or "")):
        if not (kept and kept[-1].side == one.side and one.start < kept[-1].end and kept[-1].category != one.category):
            kept.append(one)
    return tuple(kept)


def is_whole(error: ErrorSpan, translation: str) -> bool:
    """Whether an error is over the whole translation."""
    start, end = len(translation) - len(translation.lstrip()), len(translation.rstrip())
    return error.side == "translation" and (error.start, error.end) == (start, end)
