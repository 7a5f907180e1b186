"""The content of an XML element as a text, and marks put round words of it, never across a tag."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from mbr_esd_metric.core.annotation import ErrorSpan

#: Ids of our marks begin so; a file that has been marked before loses them first.
MARK = "mbr-esd-"
#: Inline elements that stand for something in the text, those that stand for one half of a pair of tags, and pairs.
_ALONE, _PAIR = frozenset({"x", "ph"}), frozenset({"g", "pc"})
_HALF = frozenset({"bpt", "ept", "it", "ut", "bx", "ex", "sc", "ec"})
#: What an attribute calls a line break, and how the original format writes one.
_BREAK_NAME = re.compile(r"(?:^|[:_-])(?:lb|pb|br|line[_-]?break)(?:$|_)", re.IGNORECASE)
_BREAK = re.compile(
    r"\s*(?:(?:</?(?:\w+:)?(?:br|hr|p|div|h[1-6]|[uo]l|li|table|t[rdh]|lb)\b[^>]*>"
    r"|(?:\\r)?\\n|\{?\\(?:line|par)\b\s*\}?)\s*)+",
    re.IGNORECASE,
)
#: Tags inside a word: what stands on both sides of them is one word.
_IN_WORD = re.compile(r"</?(?:a|abbr|b|bdi|big|code|em|font|i|mark|s|small|span|strong|sub|sup|u|wbr)\b", re.IGNORECASE)
#: A code that is a placeholder, and a special character of memoQ.
_PLACEHOLDER = re.compile(r"[%$#@{][^\\<>]*")
_CHARACTER = re.compile(r"""<mq:ch val=(["'])(.+?)\1\s*/>""", re.DOTALL)
#: A tracked deletion of Trados: text that is no longer there.
_DELETED = re.compile("x-sdl-(?:feedback-)?deleted")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(slots=True)
class Element:
    """An element that is open.

    Attributes:
        name: without its namespace.
        prefix: of its name, with the colon.
        attributes: without theirs, so `xml:lang` is "lang"; of two that are equal then, the plain one.
        start: its first byte.
        first: the number of its first event behind the start tag, if its text is read.
        text: its text, if it is a code.
    """

    name: str
    prefix: str
    attributes: Mapping[str, str]
    start: int
    first: int = 0
    text: str = ""

    @property
    def is_mark(self) -> bool:
        """Whether it is one of our own earlier marks."""
        ids = (self.attributes.get(name, "") for name in ("id", "mid", "x"))
        return self.name in ("mrk", "hi") and any(one.startswith(MARK) for one in ids)

    @property
    def is_unread(self) -> bool:
        """Whether what is in it is not the translation's text."""
        deleted = self.name == "mrk" and bool(_DELETED.fullmatch(self.attributes.get("mtype", "")))
        return deleted or self.name in _ALONE | _HALF

    def shown(self, codes: Mapping[str, str]) -> str | None:
        """What stands for a code in the text: a line end, a placeholder, "" between parts of a word; None if nobody
        says what it is. `codes` says more of some."""
        if self.name in _PAIR:
            return ""
        named = (self.attributes.get(name, "") for name in ("ctype", "type", "subType", "id"))
        if any(_BREAK_NAME.search(name) for name in named):
            return "\n"
        plain = next(filter(None, map(self.attributes.get, ("equiv-text", "disp", "equiv"))), "")
        text = plain or self.text or codes.get(self.attributes.get("dataRef") or self.attributes.get("id", ""), "")
        if character := _CHARACTER.fullmatch(text):
            text = character[2]
        if _BREAK.fullmatch(text) or (text.isspace() and "\n" in text):
            return "\n"
        if self.name not in _ALONE or _IN_WORD.match(text):
            return ""
        is_text = character or text.isspace() or (plain and plain[0] != "<") or _PLACEHOLDER.fullmatch(text)
        return text if is_text else None

    def code(self, shown: str | None) -> _Code:
        """The code as it is compared; `shown` stands for it in the text."""
        text = shown or self.text
        name = self.attributes.get("id") or self.attributes.get("x") or text
        return _Code(self.name in _ALONE, name, text or name)


class Event(NamedTuple):
    """What a parser finds in a text, from a byte to that of the next event: a start tag or an end tag with its element,
    or characters, "" of a comment. `whole` characters, of CDATA or an entity, are not divided."""

    start: int
    value: Element | str
    begins: bool = False
    whole: bool = False


class _Code(NamedTuple):
    """An inline code as it is compared: whether it stands alone, its id, and what it shows or holds."""

    alone: bool
    id: str
    text: str


class _Piece(NamedTuple):
    """Bytes of the file, the characters that they are, and whether a mark leaves these whole."""

    start: int
    stop: int
    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Content:
    """The content of an element: its text, and where each part of the text is in the file.

    Attributes:
        start, stop: its bytes.
        prefix: of the element's name.
        text: without markup and without white space round it.
        pieces: of the whole text, with that white space.
        our_marks: the bytes (start, stop) of tags of our own earlier marks.
        has_words: whether there is text besides codes.
        codes: inline codes, in order.
    """

    start: int
    stop: int
    prefix: str
    text: str
    pieces: tuple[_Piece, ...]
    our_marks: tuple[tuple[int, int], ...]
    has_words: bool
    codes: tuple[_Code, ...]

    @classmethod
    def of(cls, events: Sequence[Event], stop: int, prefix: str, codes: Mapping[str, str]) -> Content:
        """The content of these events up to the byte `stop`. Inline codes that show something, such as a placeholder,
        are text; between two words that would join across another one there is a blank."""
        pieces: list[_Piece] = []
        our_marks: list[tuple[int, int]] = []
        opened: list[Element] = []
        inline: list[_Code] = []
        gap: tuple[int, int] | None = None
        has_words, unread = False, 0
        starts = [*(event.start for event in events), stop]
        for (_, value, begins, whole), (start, end) in zip(events, pairwise(starts), strict=True):
            if isinstance(value, Element):
                if value.is_mark and start < end:
                    our_marks.append((start, end))
                unread += value.is_unread if begins else -value.is_unread
                if begins:
                    value.text = ""
                    opened.append(value)
                    continue
                opened.pop()
                if value.name in _ALONE | _HALF | _PAIR and not unread:
                    shown = value.shown(codes)
                    inline.append(value.code(shown))
                    if shown:
                        pieces.append(_Piece(value.start, end, shown, True))
                    joins = shown is None and bool(pieces) and pieces[-1].text[-1].isalnum()
                    gap = (value.start, end) if joins else None
            elif unread:
                opened[-1].text += value
            elif value:
                if gap is not None and value[0].isalnum():
                    pieces.append(_Piece(*gap, " ", True))
                gap = None
                pieces.append(_Piece(start, end, value, whole))
                has_words = has_words or not value.isspace()
        text = "".join(piece.text for piece in pieces).strip()
        return cls(starts[0], stop, prefix, text, tuple(pieces), tuple(our_marks), has_words, tuple(inline))

    def differs(self, other: Content) -> str | None:
        """The data warning of a source whose translation has other inline codes; None if they are the same. Codes are
        the same by their ids, or by what they show; tags may come more than once."""
        for alone, warning in ((True, "with other placeholders"), (False, "with other tags")):
            sides = [[code for code in one.codes if code.alone == alone] for one in (self, other)]
            ids, texts = ([Counter(code[at] for code in side) for side in sides] for at in (1, 2))
            if all(a != b if alone else set(a) != set(b) for a, b in (ids, texts)):
                return warning
        return None

    def edits(
        self, spans: Sequence[ErrorSpan], tags: Callable[[ErrorSpan], tuple[str, str]], encoding: str
    ) -> list[tuple[int, int, str]]:
        """(start, stop, text) of each part of the file's bytes that becomes another text, in their order: our earlier
        marks go, and each span has a mark round it, in as many runs as markup and other spans demand. `tags` gives the
        start and the end tag of each."""
        runs: list[tuple[int, int, list[ErrorSpan]]] = []
        for start, stop, first, last in self._parts({at for span in spans for at in (span.start, span.end)}, encoding):
            cover = [span for span in spans if span.start < last and first < span.end]
            if runs and runs[-1][1:] == (start, cover):
                start = runs.pop()[0]
            runs.append((start, stop, cover))
        edits = [(*mark, "") for mark in self.our_marks]
        for start, stop, cover in filter(lambda run: run[2], runs):
            pairs = [tags(span) for span in cover]
            edits.append((start, start, "".join(begin for begin, _ in pairs)))
            edits.append((stop, stop, "".join(end for _, end in reversed(pairs))))
        return sorted(edits, key=lambda edit: edit[:2])

    def _parts(self, cuts: set[int], encoding: str) -> Iterator[tuple[int, int, int, int]]:
        """The bytes and the characters of each piece, which is divided at `cuts` where it may be."""
        whole = "".join(piece.text for piece in self.pieces)
        first = len(whole.lstrip()) - len(whole)
        for piece in self.pieces:
            last = first + len(piece.text)
            inner = [] if piece.whole else sorted(cut for cut in cuts if first < cut < last)
            places = (piece.start + len(piece.text[: cut - first].encode(encoding)) for cut in inner)
            bytes_, characters = (piece.start, *places, piece.stop), (first, *inner, last)
            for (start, stop), (one, other) in zip(pairwise(bytes_), pairwise(characters), strict=True):
                yield start, stop, one, other
            first = last


def quoted(text: str) -> str:
    """A text as an attribute's value; characters that XML has not become another."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return f'"{_FORBIDDEN.sub(chr(0xFFFD), escaped)}"'
