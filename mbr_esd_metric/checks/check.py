"""Errors that can be detected without a model: the base class of the checks, their context, and their catalog.

Checks report an error only if it is certain. With the option `checks`, these errors are added to the annotation of a
decision, and their penalties to its score. Other packages can add checks by entry points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from typing import ClassVar

from mbr_esd_metric.core.annotation import ErrorSpan, Severity, Side
from mbr_esd_metric.core.segment import UNKNOWN, Context, InlineCode
from mbr_esd_metric.plugins import Catalog

__all__ = ["CHECKS", "UNKNOWN", "Check", "Context", "InlineCode", "error", "errors_of", "is_whole", "whole_error"]


class Check(ABC):
    """One kind of error that can be detected without a model. Checks are stateless."""

    #: The name of the check in the catalog.
    name: ClassVar[str]

    @abstractmethod
    def errors(self, source: str, translation: str, context: Context) -> Iterable[ErrorSpan]:
        """The errors of this kind, created by `error`, with the category `check/...` and confidence 1. Omissions are
        spans of the source."""


def error(kind: str, start: int, end: int, severity: Severity = "major", side: Side = "translation") -> ErrorSpan:
    """An error span with the category `check/KIND`."""
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
#: The checks in this folder and in the entry points ``mbr_esd_metric.checks`` of other packages.
CHECKS = Catalog("check", "checks", __name__, Check, {name: name for name in _NAMES})  # type: ignore[type-abstract]


@cache
def _checks() -> tuple[Check, ...]:
    return tuple(check() for check in CHECKS.all().values())


def errors_of(source: str, translation: str, context: Context = UNKNOWN) -> tuple[ErrorSpan, ...]:
    """The errors found by the checks, in the order of their positions, those in the source last. An error over the
    whole translation, such as a copy of the source, replaces all others, and errors of different checks do not
    overlap."""
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
    """Whether an error covers the whole translation."""
    return error.side == "translation" and (error.start, error.end) == _without_blanks(translation)


def whole_error(kind: str, translation: str) -> ErrorSpan:
    """An error span over the whole translation, without surrounding whitespace."""
    return error(kind, *_without_blanks(translation))


def _without_blanks(text: str) -> tuple[int, int]:
    """The start and end of a text without surrounding whitespace."""
    return len(text) - len(text.lstrip()), len(text.rstrip())
