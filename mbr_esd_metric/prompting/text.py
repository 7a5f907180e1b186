"""The characters and words of a text: what is blank, where a text may be cut, the search for words that a model did not
copy exactly, and the grammar of a text's pieces.

A model often writes plain blanks, straight quotation marks and hyphens, another normal form, or no soft hyphens. So
words that do not stand in a text as they are written are searched in the *folded* text: in normal form C, with each run
of white space as one blank, quotation marks straight, all dashes as hyphens, without soft hyphens and other format
characters. Letter case is never folded. What is found has exact offsets into the text itself.

A span that is not in the translation is dropped when spans are located, and with it the model's evidence. With
`grounded=true` the grammar admits only pieces of the translation. They begin and end at word boundaries; in scripts
without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) a character is a word.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from unicodedata import category, combining, normalize

#: Characters without a picture that Unicode counts as letters, marks or symbols: fillers and variation selectors.
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_STRAIGHT = str.maketrans(
    dict.fromkeys("«»„“”‟″〝〞〟＂❝❞", '"')
    | dict.fromkeys("‘’‚‛′‹›ʼʹ`´＇❛❜", "'")
    | dict.fromkeys("‐‑‒–—―−﹘﹣－", "-")
)
#: A character of a script that writes no spaces: Thai to Burmese, Khmer, kana and ideographs.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U0003ffff]"
)
_SPACED_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
#: Only what means something in a regular expression is escaped: some backends refuse an escaped space or hyphen.
_METACHARACTERS = re.compile(r"[\\.^$|()\[\]{}*+?]")
#: Characters that no answer can hold: control characters and halves of surrogate pairs.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


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

    def find(self, words: str, after: int = 0) -> tuple[int, int] | None:
        """The place in the original of the first occurrence that does not begin before `after`; None if there is none.
        A letter is never found without its accents."""
        plain = words.isascii() and "  " not in words and words.isprintable() and "`" not in words
        folded = (words if plain else FoldedText(words).text).strip()
        if is_blank(folded):
            return None
        at = self.text.find(folded, bisect_left(self._starts, after))
        while at >= 0:
            end = at + len(folded)
            if self._is_boundary(at) and self._is_boundary(end):
                return self._starts[at], self._ends[end - 1]
            at = self.text.find(folded, at + 1)
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


def word_count(text: str) -> int:
    """Words: runs of letters and digits; in scripts without spaces two characters.

    >>> word_count("Don't panic, it's 42!"), word_count("你好，世界")
    (4, 2)
    """
    unspaced = len(UNSPACED.findall(text))
    return len(_SPACED_WORD.findall(UNSPACED.sub(" ", text) if unspaced else text)) + unspaced // 2


def pieces(text: str) -> list[str]:
    """The text cut where a span may begin or end: words, punctuation marks and white space; joined they are the text. A
    word is a run of letters, digits and combining marks, with single apostrophes and hyphens inside; in a script that
    writes no spaces, one character with its combining marks."""
    cut: list[str] = []
    position = 0
    while position < len(text):
        end = position + 1
        if text[position].isspace():
            while end < len(text) and text[end].isspace():
                end += 1
        elif _in_word(text[position]):
            while end < len(text) and (_in_word(text[end]) or _links(text, end)):
                end += 1
        while end < len(text) and combining(text[end]):
            end += 1
        cut.append(text[position:end])
        position = end
    return cut


def _in_word(character: str) -> bool:
    """Whether a character continues the word before it."""
    joins = character.isalnum() or category(character).startswith("M") or character == "_"
    return joins and UNSPACED.match(character) is None


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


def escaped(text: str) -> str:
    """The regular expression that matches `text` and nothing else."""
    return _METACHARACTERS.sub(r"\\\g<0>", text)
