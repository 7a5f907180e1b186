"""The characters of a text: what is blank, and the search for words that a model did not copy exactly.

Words that do not occur verbatim in a text are searched in the *folded* text: in normal form C, with each
run of white space as one blank, quotation marks straight, all dashes as hyphens, without soft hyphens and other format
characters. Letter case is never folded. What is found has exact offsets into the text itself.
"""

from __future__ import annotations

from bisect import bisect_left
from unicodedata import category, combining, normalize

from mbr_esd_metric.core.words import places

#: Characters without a picture that Unicode counts as letters, marks or symbols: fillers and variation selectors.
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_STRAIGHT = str.maketrans(
    dict.fromkeys("«»„“”‟″〝〞〟＂❝❞", '"')
    | dict.fromkeys("‘’‚‛′‹›ʼʹ`´＇❛❜", "'")
    | dict.fromkeys("‐‑‒–—―−﹘﹣－", "-")
)


def is_blank(text: str) -> bool:
    """Whether a text has no visible character: nothing but white space, control and format characters, soft hyphens,
    and others of no width."""
    return all(one.isspace() or category(one) in ("Cc", "Cf") or one in _FILLERS for one in text)


def is_untranslated(source: str, translation: str) -> bool:
    """Whether the translation is blank and the source is not."""
    return is_blank(translation) and not is_blank(source)


class FoldedText:
    """A text, folded for search. `text` is the folded one; each of its characters comes from the characters
    ``[start, end)`` of the original."""

    def __init__(self, original: str) -> None:
        characters: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        end = 0
        for cluster in _clusters(original):
            start, end = end, end + len(cluster)
            if cluster.isspace():
                folded = " "
            elif category(cluster[0]) == "Cf" or cluster[0] in _FILLERS:
                continue
            else:
                folded = normalize("NFC", cluster).translate(_STRAIGHT)
            if folded == " " and characters[-1:] == [" "]:
                self._ends[-1] = end
                continue
            characters += folded
            self._starts += [start] * len(folded)
            self._ends += [end] * len(folded)
        self.text = "".join(characters)

    def find(self, words: str, after: int = 0, whole: bool = False) -> tuple[int, int] | None:
        """The place in the original of the first occurrence, perhaps as `whole` words, that does not begin before
        `after`; None if there is none. A letter is never found without its accents."""
        plain = words.isascii() and "  " not in words and words.isprintable() and "`" not in words
        folded = (words if plain else FoldedText(words).text).strip()
        if is_blank(folded):
            return None
        for at in places(self.text, folded, bisect_left(self._starts, after), whole):
            end = at + len(folded)
            if self._is_boundary(at) and self._is_boundary(end):
                return self._starts[at], self._ends[end - 1]
        return None

    def _is_boundary(self, at: int) -> bool:
        return not 0 < at < len(self._starts) or self._starts[at - 1] != self._starts[at]


def _clusters(text: str) -> list[str]:
    """The text cut where its normal form C can be cut: each character with the marks and letters that join it."""
    clusters: list[str] = []
    for character in text:
        if clusters and character >= "\u0300":  # no character below joins the one before it
            before = clusters[-1]
            if combining(character) or normalize("NFC", before + character) != normalize("NFC", before) + character:
                clusters[-1] += character
                continue
        clusters.append(character)
    return clusters
