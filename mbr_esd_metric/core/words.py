"""Word boundaries in a text, and occurrences of whole words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from unicodedata import category

#: A character of a script without spaces: Thai to Burmese, Khmer, kana and ideographs.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U0003ffff]"
)


def in_word(character: str) -> bool:
    """Whether a character continues the preceding word: a letter, digit, combining mark or underscore of a script with
    spaces."""
    joins = character.isalnum() or category(character).startswith("M") or character == "_"
    return joins and UNSPACED.match(character) is None


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` starts and ends at word boundaries. Apostrophes and hyphens end a word; in scripts
    without spaces, each character with its combining marks is a word."""
    return not (_is_inside(text, start) or _is_inside(text, end))


def _is_inside(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    return category(text[at]).startswith("M") or (in_word(text[at]) and in_word(text[at - 1]))


def is_ambiguous(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` is inside a word, or also occurs elsewhere as whole words."""
    if not is_whole(text, start, end):
        return True
    return len([*islice(places(text, text[start:end]), 2)]) > 1


def places(text: str, words: str, after: int = 0, whole: bool = True) -> Iterator[int]:
    """The start offsets, from `after` on, of a non-empty string in a text; with `whole`, only of whole words."""
    start = text.find(words, after)
    while start >= 0:
        if not whole or is_whole(text, start, start + len(words)):
            yield start
        start = text.find(words, start + 1)
