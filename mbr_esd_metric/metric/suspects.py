"""Finds pairs of a source and a translation that look like mistakes in the data. They are counted; no score changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

#: A word that is repeated so often in a row suggests a mistake.
_REPEATED = 4

#: What can look wrong with a pair, in the order of the checks, and its plural for counts.
KINDS = {
    "blank translation": "blank translations",
    "blank source": "blank sources",
    "equal to its source": "translations equal to their source",
    "one word repeated": "translations with one word repeated",
}


def suspicion(source: str, translation: str) -> str | None:
    """One of `KINDS`, or None if the pair looks like a source and its translation."""
    source, translation = source.strip(), translation.strip()
    if not translation and source:
        return "blank translation"
    if not source:
        return "blank source"
    if source == translation and any(character.isalpha() for character in source):
        return "equal to its source"
    if _longest_run(translation) >= _REPEATED > _longest_run(source):
        return "one word repeated"
    return None


def counted(suspects: Sequence[str | None]) -> str | None:
    """One line for users with the number of such pairs of each kind; None if there are none."""
    counts = Counter(kind for kind in suspects if kind is not None)
    if not counts:
        return None
    return "pairs that look wrong: " + ", ".join(
        f"{counts[kind]} {kind if counts[kind] == 1 else several}" for kind, several in KINDS.items() if counts[kind]
    )


def _longest_run(text: str) -> int:
    """The most repetitions of one word in a row; in text without spaces, of one character."""
    words = text.casefold().split()
    if len(words) == 1:
        words = [character for character in words[0] if character.isalnum()]
    else:
        words = [stripped for word in words if (stripped := word.strip(_MARKS))]
    longest = run = 0
    last = None
    for word in words:
        run = run + 1 if word == last else 1
        last, longest = word, max(longest, run)
    return longest


_MARKS = ".,;:!?\"'()[]{}«»„“”‘’…-–—。、，！？"
