"""What the checks find in a pair, as a test writes it."""

from __future__ import annotations

from mbr_esd_metric.checks.check import UNKNOWN, Context, errors_of


def found(source: str, translation: str, context: Context = UNKNOWN) -> list[tuple[str, str]]:
    """The kind of each error and its words; those of the source in brackets."""
    errors = []
    for one in errors_of(source, translation, context):
        words = (translation if one.side == "translation" else source)[one.start : one.end]
        kind = (one.category or "").removeprefix("check/")
        errors.append((kind, words if one.side == "translation" else f"[{words}]"))
    return errors
