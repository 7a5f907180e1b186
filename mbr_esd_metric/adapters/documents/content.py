"""The content of an XML element as a text, and marks put round words of it.

The raw XML is cut into characters and markup, so that a mark goes round the words and never across a tag.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mbr_esd_metric.core.annotation import ErrorSpan

#: Ids of our marks begin so; a file that has been marked before loses them first.
MARK = "mbr-esd-"
#: Inline elements that stand for something in the text, those that stand for one half of a pair of tags, and pairs.
_ALONE, _PAIR = frozenset({"x", "ph"}), frozenset({"g", "pc"})
_HALF = frozenset({"bpt", "ept", "it", "ut", "bx", "ex", "sc", "ec"})
#: What an attribute calls a line break, and how the original format writes one.
_BREAK_NAME = re.compile(r"(?:^|[:_-])(?:lb|pb|br|line[_-]?break)(?:$|_)", re.IGNORECASE)
_BREAK = re.compile(r"</?(?:\w+:)?(?:br|p|div|li|tr|lb)\b[^>]*>|(?:\\r)?\\n|\\line", re.IGNORECASE)
#: Tags inside a word: what stands on both sides of them is one word.
_IN_WORD = re.compile(r"</?(?:a|abbr|b|bdi|big|code|em|font|i|mark|s|small|span|strong|sub|sup|u|wbr)\b", re.IGNORECASE)
#: A code that is a placeholder, and a special character of memoQ.
_PLACEHOLDER = re.compile(r"[%$#@{][^\\<>]*")
_CHARACTER = re.compile(r"""<mq:ch val=(["'])(.+?)\1\s*/>""", re.DOTALL)
#: A tracked deletion of Trados: text that is no longer there.
_DELETED = re.compile("x-sdl-(?:feedback-)?deleted")
_TOKEN = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>
    |<(?P<close>/)?(?P<name>[^\s/>]+)(?=[\s/>])(?P<attributes>(?:[^>"']|"[^"]*"|'[^']*')*?)(?P<empty>/)?>
    |&(?P<reference>[^;]+);|(?P<text>\r\n|[^<&])""",
    re.DOTALL | re.VERBOSE,
)

#: What stands behind the name of an attribute.
_VALUE = re.compile(r"""=\s*(?:"([^"]*)"|'([^']*)')""")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PREDEFINED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class _Atom(NamedTuple):
    """A character, a CDATA section or an inline code, which a mark leaves whole; with its characters of the text."""

    start: int
    end: int
    first: int
    last: int


class _Code(NamedTuple):
    """An inline code as it is compared: whether it stands alone, its id, and what it shows or holds."""

    alone: bool
    id: str
    text: str


@dataclass(slots=True)
class _Inline:
    """An open element in a text: where it begins, its name and attributes, and the text of a code."""

    start: int
    name: str
    attributes: Mapping[str, str]
    text: str = ""

    @classmethod
    def of(cls, token: re.Match[str]) -> _Inline:
        """The element of a start tag."""
        parts = _VALUE.split(token["attributes"])
        pairs = sorted(zip(parts[::3], parts[1::3], parts[2::3], strict=False), key=lambda pair: ":" not in pair[0])
        attributes = {name.rpartition(":")[2].strip(): _unescaped(one or other or "") for name, one, other in pairs}
        return cls(token.start(), token["name"].rpartition(":")[2], attributes)

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
        plain = next(
            (self.attributes[name] for name in ("equiv-text", "disp", "equiv") if self.attributes.get(name)), ""
        )
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


@dataclass(frozen=True, slots=True)
class Content:
    """The content of an element: its raw XML, its text, and where each part of the text is.

    Attributes:
        text: without markup and without white space round it.
        shift: characters of white space before the text.
        atoms: of the whole text, with that white space; none if there is no markup.
        our_marks: (start, end) in `raw` of tags of our own earlier marks.
        has_words: whether there is text besides codes.
        codes: inline codes, in order.
    """

    raw: str
    text: str
    shift: int
    atoms: tuple[_Atom, ...] = ()
    our_marks: tuple[tuple[int, int], ...] = ()
    has_words: bool = True
    codes: tuple[_Code, ...] = ()

    @classmethod
    def of(cls, raw: str, codes: Mapping[str, str] | None = None) -> Content:
        """Cut well-formed XML into text and markup. Inline codes that show something, such as a placeholder, are text;
        between two words that would join across another one there is a blank."""
        if not set("<&\r") & set(raw):
            return cls(raw, raw.strip(), len(raw) - len(raw.lstrip()), has_words=bool(raw.strip()))
        characters: list[str] = []
        atoms: list[_Atom] = []
        our_marks: list[tuple[int, int]] = []
        opened: list[_Inline] = []
        inline: list[_Code] = []
        gap: tuple[int, int] | None = None
        has_words = False

        def add(start: int, end: int, text: str) -> None:
            first = atoms[-1].last if atoms else 0
            atoms.append(_Atom(start, end, first, first + len(text)))
            characters.append(text)

        at = unread = 0
        while (token := _TOKEN.match(raw, at)) is not None:
            at = token.end()
            text = token["text"] or token["cdata"]
            if token["name"] is not None:
                if token["close"]:
                    element = opened.pop()
                    unread -= element.is_unread
                else:
                    element = _Inline.of(token)
                if element.is_mark:
                    our_marks.append(token.span())
                if not token["close"] and not token["empty"]:
                    opened.append(element)
                    unread += element.is_unread
                elif element.name in _ALONE | _HALF | _PAIR and not unread:
                    shown = element.shown(codes or {})
                    inline.append(element.code(shown))
                    if shown:
                        add(element.start, at, shown)
                    gap = (element.start, at) if shown is None and characters and characters[-1][-1].isalnum() else None
                continue
            if token["reference"] is not None:
                text = _referred(token["reference"])
            if not text:
                continue
            if unread:
                opened[-1].text += text
                continue
            if gap is not None and text[0].isalnum():
                add(*gap, " ")
            gap = None
            add(*token.span(), "\n" if text == "\r\n" else text)
            has_words = has_words or not text.isspace()
        joined = "".join(characters)
        shift = len(joined) - len(joined.lstrip())
        return cls(raw, joined.strip(), shift, tuple(atoms), tuple(our_marks), has_words, tuple(inline))

    def differs(self, other: Content) -> str | None:
        """The data warning of a source whose translation has other inline codes; None if they are the same. Codes are
        the same by their ids, or by what they show; tags may come more than once."""
        for alone, warning in ((True, "with other placeholders"), (False, "with other tags")):
            sides = [[code for code in one.codes if code.alone == alone] for one in (self, other)]
            ids, texts = ([Counter(code[at] for code in side) for side in sides] for at in (1, 2))
            if all(a != b if alone else set(a) != set(b) for a, b in (ids, texts)):
                return warning
        return None

    def marked(self, spans: Sequence[ErrorSpan], tags: Callable[[ErrorSpan], tuple[str, str]]) -> str:
        """The raw XML with a mark round each span, in as many pieces as markup and other spans demand; `tags` gives the
        start and the end tag of each."""
        inserted: dict[int, str] = {}
        atoms = self.atoms or [_Atom(at, at + 1, at, at + 1) for at in range(len(self.raw))]
        covers = [
            [s for s in spans if s.start + self.shift < atom.last and atom.first < s.end + self.shift] for atom in atoms
        ]
        for at, (atom, cover) in enumerate(zip(atoms, covers, strict=True)):
            before = at > 0 and atoms[at - 1].end == atom.start and covers[at - 1] == cover
            if not cover or before:
                continue
            end = atom.end
            for after, other in zip(atoms[at + 1 :], covers[at + 1 :], strict=True):
                if after.start != end or other != cover:
                    break
                end = after.end
            pairs = [tags(span) for span in cover]
            inserted[atom.start] = inserted.get(atom.start, "") + "".join(start for start, _ in pairs)
            inserted[end] = "".join(stop for _, stop in reversed(pairs)) + inserted.get(end, "")
        removed = dict(self.our_marks)
        parts, at = [], 0
        for cut in sorted({*inserted, *removed}):
            parts += [self.raw[at:cut], inserted.get(cut, "")]
            at = removed.get(cut, cut)
        return "".join([*parts, self.raw[at:]])


def _unescaped(value: str) -> str:
    """The value of an attribute."""
    return re.sub("&([^;]+);", lambda reference: _referred(reference[1]), value)


def _referred(name: str) -> str:
    """The character of a reference; an entity of a DTD outside the file stays as it is written."""
    if name.startswith("#"):
        return chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))
    return _PREDEFINED.get(name, f"&{name};")


def quoted(text: str) -> str:
    """A text as an attribute's value; characters that XML has not become another."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return f'"{_FORBIDDEN.sub(chr(0xFFFD), escaped)}"'
