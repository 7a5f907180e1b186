"""The pieces of a text that a span may be, their grammar, and the number of words.

A span that is not in the translation is dropped when spans are located, and with it the model's evidence. With
`grounded=true` the grammar admits only pieces of the translation. They begin and end at word boundaries; in scripts
without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) a character is a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from unicodedata import combining

from mbr_esd_metric.core.words import UNSPACED, in_word

_SPACED_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
#: Only what means something in a regular expression is escaped: some backends refuse an escaped space or hyphen.
_METACHARACTERS = re.compile(r"[\\.^$|()\[\]{}*+?]")
#: Characters that no answer can hold: control characters and halves of surrogate pairs.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def pieces(text: str) -> list[str]:
    """The text cut where a span may begin or end: at words, punctuation marks and white space. A word is a run of
    letters, digits and combining marks, with single apostrophes and hyphens inside; in a script that writes no spaces,
    one character with its combining marks."""
    cut: list[str] = []
    position = 0
    while position < len(text):
        end = position + 1
        if text[position].isspace():
            while end < len(text) and text[end].isspace():
                end += 1
        elif in_word(text[position]):
            while end < len(text) and (in_word(text[end]) or _links(text, end)):
                end += 1
        while end < len(text) and combining(text[end]):
            end += 1
        cut.append(text[position:end])
        position = end
    return cut


def _links(text: str, at: int) -> bool:
    """Whether an apostrophe or hyphen stands between two letters or digits."""
    if text[at] not in "'’-‐‑" or at + 1 == len(text):
        return False
    return text[at - 1].isalnum() and text[at + 1].isalnum() and UNSPACED.match(text[at + 1]) is None


def writable(text: str, escapes: Mapping[str, str]) -> str | None:
    """The text as an answer writes it, some characters escaped; None if no answer can hold it."""
    written = "".join(escapes.get(character, character) for character in text)
    return None if _UNWRITABLE.search(written) else written


def grounded_spans(text: str, escapes: Mapping[str, str]) -> str | None:
    """A regular expression of the pieces of this text that a span may be; None if it has no word. `escapes` is how the
    format writes some characters, before they are escaped for the expression."""
    passages: list[str] = []
    words: list[str] = []
    gaps: list[str] = []
    for piece in [*pieces(text), "\0"]:
        written = writable(piece, escapes)
        if written is None:
            if words:
                passages.append(_substrings(words, gaps))
            words, gaps = [], []
        elif piece.isspace():
            if words:
                gaps[-1] = escaped(written)
        else:
            words.append(escaped(written))
            gaps.append("")
    if len(passages) > 1:
        return f"({'|'.join(passages)})"
    return passages[0] if passages else None


def _substrings(words: Sequence[str], gaps: Sequence[str]) -> str:
    """A regular expression of every run of consecutive words, with the gaps between them as they are.

    A run lies in the left half, or in the right half, or is a suffix of the left with a prefix of the right. Prefixes
    and suffixes are halved in the same way, so that for n words the length is O(n log^2 n) and the nesting O(log n).
    """

    def expressions(low: int, high: int) -> tuple[str, str, str, str]:
        """Of these words the whole text, its prefixes, its suffixes, and the alternatives of its runs."""
        if high - low == 1:
            return words[low], words[low], words[low], words[low]
        middle = (low + high) // 2
        gap = gaps[middle - 1]
        left, prefixes, suffixes, runs = expressions(low, middle)
        right, more_prefixes, more_suffixes, more_runs = expressions(middle, high)
        return (
            f"{left}{gap}{right}",
            f"({prefixes}|{left}{gap}{more_prefixes})",
            f"({more_suffixes}|{suffixes}{gap}{right})",
            f"{runs}|{more_runs}|{suffixes}{gap}{more_prefixes}",
        )

    return f"({expressions(0, len(words))[3]})"


def escaped(text: str) -> str:
    """The regular expression that matches `text` and nothing else."""
    return _METACHARACTERS.sub(r"\\\g<0>", text)


def word_count(text: str) -> int:
    """Words: runs of letters and digits; in scripts without spaces two characters.

    >>> word_count("Don't panic, it's 42!"), word_count("你好，世界")
    (4, 2)
    """
    unspaced = len(UNSPACED.findall(text))
    return len(_SPACED_WORD.findall(UNSPACED.sub(" ", text) if unspaced else text)) + unspaced // 2
