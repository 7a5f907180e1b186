"""Grounded spans (`grounded=true`): a grammar that admits as error span only a piece of the translation.

A span that is not in the translation is dropped when spans are located, and with it the model's evidence. Here the
model cannot write one: from the first token on, only what goes on as a substring of the translation is admissible.
Pieces begin and end at word boundaries; in scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) a
character is a word. It is a regular expression like the free grammar, so every engine takes it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from mbr_esd_metric.elicit.grammar import output_grammar

#: Blocks of the scripts that write no spaces: Thai, Lao, Burmese, Khmer; kana, Bopomofo, CJK ideographs and their
#: extensions.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3040, 0x312F),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x3FFFF),
)
#: Only what means something in a regular expression is escaped: some backends refuse an escaped space or hyphen.
_METACHARACTERS = re.compile(r"[\\.^$|()\[\]{}*+?]")
#: What `json.dumps` writes in its short form; other control characters have none and cannot be in a span.
_ESCAPES = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def grounded_grammar(translation: str) -> str:
    """The output grammar of `format=json` whose error spans are pieces of this translation.

    Args:
        translation: t. Where it has no word at all (white space only), the only answer is that there is no error.
    """
    return output_grammar(grounded_spans(translation, in_json))


def grounded_spans(translation: str, written: Callable[[str], str | None]) -> str | None:
    """A regular expression of the pieces of this translation that a span may be; None if it has no word.

    Args:
        translation: t.
        written: how the format writes a text, before it is escaped for the expression; None if it cannot.
    """
    passages: list[str] = []
    words: list[str] = []
    gaps: list[str] = []
    for piece in [*pieces(translation), None]:
        plain = None if piece is None else written(piece)
        if plain is None:
            if words:
                passages.append(_substrings(words, gaps))
            words, gaps = [], []
        elif piece is not None and piece.isspace():
            if words:
                gaps[-1] = escaped(plain)
        else:
            words.append(escaped(plain))
            gaps.append("")
    if not passages:
        return None
    return passages[0] if len(passages) == 1 else f"({'|'.join(passages)})"


def pieces(translation: str) -> list[str]:
    """The translation cut where a span may begin or end: words, punctuation marks and white space; joined they are t.

    A word is a run of letters, digits and combining marks, with single apostrophes and hyphens inside; in a script that
    writes no spaces, one character with its combining marks.
    """
    found: list[str] = []
    position = 0
    while position < len(translation):
        end = position + 1
        first = translation[position]
        if first.isspace():
            while end < len(translation) and translation[end].isspace():
                end += 1
        elif _joins(first) and not _unspaced(first):
            while end < len(translation) and (
                (_joins(translation[end]) and not _unspaced(translation[end])) or _links(translation, end)
            ):
                end += 1
        while end < len(translation) and unicodedata.combining(translation[end]):
            end += 1
        found.append(translation[position:end])
        position = end
    return found


def _joins(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M") or character == "_"


def _links(text: str, at: int) -> bool:
    """Whether an apostrophe or hyphen stands between two letters or digits."""
    return (
        text[at] in "'’-‐‑"
        and text[at - 1].isalnum()
        and at + 1 < len(text)
        and text[at + 1].isalnum()
        and not _unspaced(text[at + 1])
    )


def _unspaced(character: str) -> bool:
    code = ord(character)
    return any(low <= code <= high for low, high in _UNSPACED)


def _substrings(words: Sequence[str], gaps: Sequence[str]) -> str:
    """A regular expression of every run of consecutive words, with the gaps between them as they are.

    A run lies in the left half, or in the right half, or is a suffix of the left with a prefix of the right. Prefixes
    and suffixes are halved in the same way, so that for n words the length is O(n log^2 n) and the nesting O(log n);
    one alternative for each of the n^2 / 2 runs would be too long, and one optional group for each word too deep.
    """

    def text(low: int, high: int) -> str:
        return "".join(words[i] + (gaps[i] if i + 1 < high else "") for i in range(low, high))

    def prefixes(low: int, high: int) -> str:
        if high - low == 1:
            return words[low]
        middle = (low + high) // 2
        return f"({prefixes(low, middle)}|{text(low, middle)}{gaps[middle - 1]}{prefixes(middle, high)})"

    def suffixes(low: int, high: int) -> str:
        if high - low == 1:
            return words[low]
        middle = (low + high) // 2
        return f"({suffixes(middle, high)}|{suffixes(low, middle)}{gaps[middle - 1]}{text(middle, high)})"

    def runs(low: int, high: int) -> str:
        if high - low == 1:
            return words[low]
        middle = (low + high) // 2
        across = suffixes(low, middle) + gaps[middle - 1] + prefixes(middle, high)
        return f"{runs(low, middle)}|{runs(middle, high)}|{across}"

    return f"({runs(0, len(words))})"


def in_json(text: str) -> str | None:
    """`text` inside a JSON string; None if the free grammar cannot write it."""
    written = "".join(_ESCAPES.get(character, character) for character in text)
    return None if any(ord(c) < 0x20 or c == "\x7f" or 0xD800 <= ord(c) <= 0xDFFF for c in written) else written


def escaped(text: str) -> str:
    """The regular expression that matches `text` and nothing else."""
    return _METACHARACTERS.sub(r"\\\g<0>", text)
