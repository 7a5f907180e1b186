"""Texts in XML, and marks inserted without changing any other byte.

The standard library's parser (expat) provides each text and its byte offsets in the file. Writing a tree back, as lxml
does, would change entities, quotes, line ends and white space inside tags. Marks enclose words, and never cross a tag.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias
from xml.parsers import expat

from mbr_esd_metric.adapters.documents.document import Checked, Document, MissingKey, Names, TranslationUnit
from mbr_esd_metric.core.annotation import SIDES, ErrorSpan
from mbr_esd_metric.core.segment import Context, InlineCode, Segment
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import read_bytes, whole_file

#: Prefix of our marks' ids; marks of an earlier run are removed.
MARK = "mbr-esd-"
#: Inline elements that represent content, those that represent one half of a tag pair, and pairs.
_ALONE, _PAIR = frozenset({"x", "ph"}), frozenset({"g", "pc"})
_HALF = frozenset({"bpt", "ept", "it", "ut", "bx", "ex", "sc", "ec"})
_OPENING, _CLOSING = frozenset({"bpt", "bx", "sc"}), frozenset({"ept", "ex", "ec"})
#: Attribute values that denote a line break, and line breaks in the original format.
_BREAK_NAME = re.compile(r"(?:^|[:_-])(?:lb|pb|br|line[_-]?break)(?:$|_)", re.IGNORECASE)
_BREAK = re.compile(
    r"\s*(?:(?:</?(?:\w+:)?(?:br|hr|p|div|h[1-6]|[uo]l|li|table|t[rdh]|lb)\b[^>]*>"
    r"|(?:\\r)?\\n|\{?\\(?:line|par)\b\s*\}?)\s*)+",
    re.IGNORECASE,
)
#: Tags inside a word: the text on both sides is one word.
_IN_WORD = re.compile(r"</?(?:a|abbr|b|bdi|big|code|em|font|i|mark|s|small|span|strong|sub|sup|u|wbr)\b", re.IGNORECASE)
#: A placeholder code, and a special character of memoQ.
_PLACEHOLDER = re.compile(r"[%$#@{][^\\<>]*")
_CHARACTER = re.compile(r"""<mq:ch val=(["'])(.+?)\1\s*/>""", re.DOTALL)
#: A tracked deletion of Trados: deleted text.
_DELETED = re.compile("x-sdl-(?:feedback-)?deleted")
#: Reasons of units that need no translation.
_FIXED = ("translate=", "locked=")
#: Maximum nesting depth: closing an element takes time proportional to the depth.
_DEEPEST = 200
_ITS = "http://www.w3.org/2005/11/its"


@dataclass(slots=True)
class Element:
    """An open element: its name and attributes without prefixes (`xml:lang` becomes "lang"; unprefixed attributes take
    precedence), its prefix with the colon, its first byte and its line. If its text is read, the index of its first
    event after the start tag; if it is a code, its text, and its offset in the surrounding text."""

    name: str
    prefix: str
    attributes: Mapping[str, str]
    start: int
    line: int = 0
    first: int = 0
    text: str = ""
    place: int = 0

    @property
    def is_mark(self) -> bool:
        """Whether it is one of our own earlier marks."""
        ids = (self.attributes.get(name, "") for name in ("id", "mid", "x"))
        return self.name in ("mrk", "hi") and any(one.startswith(MARK) for one in ids)

    @property
    def is_unread(self) -> bool:
        """Whether its content is not part of the translation's text."""
        deleted = self.name == "mrk" and bool(_DELETED.fullmatch(self.attributes.get("mtype", "")))
        return deleted or self.name in _ALONE | _HALF

    def shown(self, codes: Mapping[str, str]) -> str | None:
        """The representation of a code in the text: a line end, a placeholder, "" inside a word; None if unknown.
        `codes` has more information on some codes."""
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

    def code(self, shown: str | None, start: int, end: int) -> InlineCode:
        """The code for comparisons, with its offsets in the text, where it is represented by `shown`."""
        text = shown or self.text
        name = self.attributes.get("id") or self.attributes.get("x") or text
        return InlineCode(start, end, name, text or name, self.name in _ALONE)

    @property
    def partner(self) -> str:
        """The common identifier of the two halves of a pair."""
        return next(filter(None, map(self.attributes.get, ("i", "rid", "startRef", "id"))), "")


class Event(NamedTuple):
    """A parser event at a byte offset, up to the next event: a start or end tag with its element, or characters ("" for
    a comment). `whole` characters (CDATA or an entity) cannot be split."""

    start: int
    value: Element | str
    begins: bool = False
    whole: bool = False


class _Piece(NamedTuple):
    """Bytes of the file, the end of their characters in the text, and whether they must not be split by a mark."""

    start: int
    stop: int
    last: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Content:
    """The content of an element: its line, its bytes from `start` to `stop`, the prefix of its name, its `whole` text
    without markup in pieces, the bytes of the tags of our own earlier marks, whether there is text besides codes, and
    the inline codes."""

    line: int
    start: int
    stop: int
    prefix: str
    whole: str
    pieces: tuple[_Piece, ...]
    our_marks: tuple[tuple[int, int], ...]
    has_words: bool
    codes: tuple[InlineCode, ...]

    @classmethod
    def of(cls, element: Element, events: Sequence[Event], stop: int, codes: Mapping[str, str]) -> Content:
        """The content of an element with these events up to the byte `stop`. Inline codes with a representation, such
        as a placeholder, become text; a space is inserted if two words would be joined across another code."""
        starts = [*(event.start for event in events), stop]
        pieces, our_marks, inline = list[_Piece](), list[tuple[int, int]](), list[InlineCode]()
        halves: dict[str, int] = {}
        opened, characters = list[Element](), list[str]()
        gap: tuple[int, int] | None = None
        has_words, unread = False, 0

        def add(start: int, stop: int, text: str, whole: bool = True) -> None:
            characters.append(text)
            pieces.append(_Piece(start, stop, (pieces[-1].last if pieces else 0) + len(text), whole))

        for (_, value, begins, whole), (start, end) in zip(events, pairwise(starts), strict=True):
            if isinstance(value, Element):
                if value.is_mark and start < end:
                    our_marks.append((start, end))
                unread += value.is_unread if begins else -value.is_unread
                if begins:
                    value.text, value.place = "", pieces[-1].last if pieces else 0
                    opened.append(value)
                    continue
                opened.pop()
                if value.name in _ALONE | _HALF | _PAIR and not unread:
                    shown = value.shown(codes)
                    if shown:
                        add(value.start, end, shown)
                    if value.name in _OPENING:
                        halves[value.partner] = len(inline)
                    here = pieces[-1].last if pieces else 0
                    inline.append(value.code(shown, value.place, here))
                    if value.name in _CLOSING and value.partner in halves:  # both get the offsets between them
                        other = halves.pop(value.partner)
                        inline[other] = replace(inline[other], end=value.place)
                        inline[-1] = replace(inline[-1], start=inline[other].start, end=value.place)
                    joins = shown is None and bool(characters) and characters[-1][-1].isalnum()
                    gap = (value.start, end) if joins else None
            elif unread:
                opened[-1].text += value
            elif value:
                if gap is not None and value[0].isalnum():
                    add(*gap, " ")
                gap = None
                add(start, end, value, whole)
                has_words = has_words or not value.isspace()
        whole_text = "".join(characters)
        place = (element.line, starts[0], stop, element.prefix)
        return cls(*place, whole_text, tuple(pieces), tuple(our_marks), has_words, tuple(inline))

    @property
    def text(self) -> str:
        """The stripped text, which spans refer to."""
        return self.whole.strip()

    @property
    def inline_codes(self) -> tuple[InlineCode, ...]:
        """The inline codes with their offsets in `text`."""
        shift, end = len(self.whole) - len(self.whole.lstrip()), len(self.text)

        def moved(place: int) -> int:
            return min(max(place - shift, 0), end)

        return tuple(replace(one, start=moved(one.start), end=moved(one.end)) for one in self.codes)

    def edits(
        self, spans: Sequence[ErrorSpan], mark: Callable[[str, ErrorSpan], str], encoding: str
    ) -> list[tuple[int, int, str]]:
        """(start, stop, text) of each replacement of bytes in the file, in order: earlier marks are removed, and each
        span is enclosed in marks, split at markup and other spans. `mark` returns the element name and attributes for a
        text and span."""
        runs: list[tuple[int, int, list[ErrorSpan]]] = []
        for start, stop, first, last in self._parts({at for span in spans for at in (span.start, span.end)}, encoding):
            cover = [span for span in spans if span.start < last and first < span.end]
            if runs and runs[-1][1:] == (start, cover):
                start = runs.pop()[0]
            runs.append((start, stop, cover))
        edits = [(*place, "") for place in self.our_marks]
        for start, stop, cover in filter(lambda run: run[2], runs):
            marks = [mark(self.text, span) for span in cover]
            edits.append((start, start, "".join(f"<{self.prefix}{one}>" for one in marks)))
            edits.append((stop, stop, "".join(f"</{self.prefix}{one.partition(' ')[0]}>" for one in reversed(marks))))
        return sorted(edits, key=lambda edit: edit[:2])

    def _parts(self, cuts: set[int], encoding: str) -> Iterator[tuple[int, int, int, int]]:
        """The bytes and characters of each piece, split at `cuts` where allowed."""
        shift, first = len(self.whole) - len(self.whole.lstrip()), 0
        for piece in self.pieces:
            inner = [] if piece.whole else sorted(cut + shift for cut in cuts if first < cut + shift < piece.last)
            places = (piece.start + len(self.whole[first:cut].encode(encoding)) for cut in inner)
            bytes_, characters = (piece.start, *places, piece.stop), (first, *inner, piece.last)
            for (start, stop), (one, other) in zip(pairwise(bytes_), pairwise(characters), strict=True):
                yield start, stop, one - shift, other - shift
            first = piece.last


#: Returns the content of a closed element, given code representations by id from elsewhere in the file.
Closing: TypeAlias = Callable[[Mapping[str, str]], Content]


class XmlUnit(NamedTuple):
    """A unit's name, texts, languages, the part of the file that contains it, and the reason why it is not ready, if
    any."""

    id: str
    source: Content | None
    target: Content | None
    languages: tuple[str, str]
    document: str = ""
    unready: str | None = None


class XmlFile(NamedTuple):
    """A well-formed XML file and its root element, whose attributes keep their prefixes."""

    path: Path
    data: bytes
    encoding: str
    root: Element


def read_xml(
    path: Path,
    texts: Collection[str],
    closed: Callable[[list[Element], Closing], None],
    unit: Callable[[list[Element]], str],
) -> XmlFile:
    """Read the elements `texts` of a file with their content. Whenever an element is closed, `closed` is called with
    the open elements, outermost first, and a function that returns the content if it was read; `unit` returns the name
    of the open unit for messages, or "".

    Raises:
        InputError: not well-formed (with line and unit); or the file defines entities, is nested too deeply, or has an
            unknown encoding.
    """
    parser = expat.ParserCreate()
    stack: list[Element] = []
    roots: list[Element] = []
    events: list[Event] = []
    cdata: list[str] = []
    data = read_bytes(path)
    utf_16 = {"utf-16-le": (codecs.BOM_UTF16_LE, b"<\0"), "utf-16-be": (codecs.BOM_UTF16_BE, b"\0<")}
    # Otherwise UTF-8, unless the file declares another encoding.
    encoding = next((name for name, starts in utf_16.items() if data.startswith(starts)), "utf-8")

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(stack) == _DEEPEST:
            raise InputError(f"{path}, line {parser.CurrentLineNumber}: more than {_DEEPEST} nested elements")
        named = sorted(attributes.items(), key=lambda attribute: ":" not in attribute[0])
        local, start = name.rpartition(":")[2], parser.CurrentByteIndex
        prefix = name.removesuffix(local)
        if not roots:
            roots.append(Element(local, prefix, attributes, start))
        plain = {key.rpartition(":")[2]: value for key, value in named}
        stack.append(Element(local, prefix, plain, start, parser.CurrentLineNumber))
        if events or local in texts:
            events.append(Event(start, stack[-1], True))
            stack[-1].first = len(events)

    def end(_: str) -> None:
        element, stop = stack[-1], parser.CurrentByteIndex
        closed(stack, lambda codes: Content.of(element, events[element.first :], stop, codes))
        if events and events[0].value is element:
            events.clear()
        elif events:
            events.append(Event(stop, element))
        stack.pop()

    def characters(text: str, whole: bool = False) -> None:
        if events:
            events.append(Event(parser.CurrentByteIndex, text, whole=whole))

    def cdata_begins() -> None:
        characters("", whole=True)
        parser.CharacterDataHandler = cdata.append

    def cdata_ends() -> None:
        if events:
            events[-1] = events[-1]._replace(value="".join(cdata))
        cdata.clear()
        parser.CharacterDataHandler = characters

    def declared(version: str, name: str | None, standalone: int) -> None:
        nonlocal encoding
        if name is not None and not encoding.lower().startswith("utf-16"):
            if rb"\x41".decode(name) != r"\x41":  # text for the parser, but markup here
                raise LookupError(f"unknown encoding: {name}")
            encoding = name

    def entity(*_: object) -> None:
        raise InputError(f"{path}: the file defines its own entities; replace them with their text")

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartCdataSectionHandler = cdata_begins
    parser.EndCdataSectionHandler = cdata_ends
    parser.SkippedEntityHandler = lambda name, _: characters(f"&{name};", whole=True)
    parser.DefaultHandler = lambda _: characters("")
    parser.XmlDeclHandler = declared
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        name = unit(stack)
        where = f"{path}, line {error.lineno}" + (f", unit {name}" if name else "")
        why = expat.ErrorString(error.code)
        raise InputError(f"{where}: not well-formed XML ({why}); fix the file") from None
    except (LookupError, ValueError) as error:
        raise InputError(f"{path}: {error}; save the file as UTF-8") from None
    return XmlFile(path, data, encoding, roots[0])


#: (Id, text, span) -> name and attributes of the mark.
Mark: TypeAlias = Callable[[str, str, ErrorSpan], str]


def document_of(
    xml: XmlFile, units: Iterable[XmlUnit], mark: Mark, *, every: bool = True, first: tuple[int, str] | None = None
) -> Document:
    """The document of a file and its units, in order; only ready ones if not `every`. `first` is a position before all
    units, and the text to insert there if a unit has an error."""
    judged: list[TranslationUnit] = []
    contents: list[tuple[Content, Content]] = []
    empty: list[str] = []
    unready: dict[str, str] = {}
    missing: list[MissingKey] = []
    names = Names()
    for number, (id_, source, target, languages, document, why) in enumerate(units, 1):
        name = names.unique(id_ or str(number))
        if source is None or target is None or not source.has_words or not target.has_words:
            empty.append(name)
            if source is not None and source.has_words and not (why or "").startswith(_FIXED):
                missing.append(MissingKey(name, (target or source).line, source=f"{id_}|{source.text}"))
        elif why is not None and not every:
            unready[name] = why
        else:
            codes = source.inline_codes, target.inline_codes
            known = Context(languages[0] or None, languages[1] or None, None, *codes)
            segment = Segment(source.text, target.text, name, document=document, known=known)
            judged.append(TranslationUnit(segment, id_, target.line))
            contents.append((source, target))

    def write(checked: Sequence[Checked | None], output: Path) -> None:
        """Write a file with marks, replacing older ones; all other bytes are unchanged."""
        text = xml.data.decode(xml.encoding, "replace") if None in checked else ""
        numbers = count(max(map(int, re.findall(rf"{MARK}(\d+)", text)), default=0) + 1)
        sides = [
            (content, [span for span in one.annotation if span.side == side])
            for pair, one in zip(contents, checked, strict=True)
            if one is not None
            for content, side in zip(pair, SIDES[::-1], strict=True)
        ]
        edits = [(first[0], *first)] if first is not None and any(spans for _, spans in sides) else []
        for content, spans in sorted(sides, key=lambda one: one[0].start):
            edits += content.edits(spans, lambda text, span: mark(f"{MARK}{next(numbers)}", text, span), xml.encoding)
        at = 0
        with whole_file(output) as out:
            for start, stop, text in edits:
                out.write(xml.data[at:start])
                out.write(text.encode(xml.encoding, "xmlcharrefreplace"))
                at = stop
            out.write(xml.data[at:])

    return Document(xml.path, tuple(judged), write, tuple(empty), unready, missing=tuple(missing))


def declaration(xml: XmlFile) -> tuple[str, tuple[int, str] | None]:
    """The prefix for ITS, and the missing declarations of the root element with their position."""
    attributes = xml.root.attributes
    prefix = next((name[6:] for name, value in attributes.items() if value == _ITS and name.startswith("xmlns:")), None)
    more = ""
    if prefix is None:
        prefix = "its" if "xmlns:its" not in attributes else "mbr-esd-its"
        more = f' xmlns:{prefix}="{_ITS}"'
    if f"{prefix}:version" not in attributes:
        more += f' {prefix}:version="2.0"'
    behind = xml.root.start + len(f"<{xml.root.prefix}{xml.root.name}".encode(xml.encoding))
    return prefix, (behind, more) if more else None
