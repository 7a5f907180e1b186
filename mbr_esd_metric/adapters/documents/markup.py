"""Texts in XML, and marks put into it without touching another byte.

A parser of the standard library (expat) says where each text begins and ends in the file, as bytes. The bytes between
are cut into characters and markup here, so that a mark goes round the words and never across a tag. Writing a tree
back, as lxml does, would change entities, quotes, line ends and white space inside of tags.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from xml.parsers import expat

from mbr_esd_metric.adapters.documents.document import Checked, Document, TranslationUnit
from mbr_esd_metric.core.annotation import SIDES, ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import open_binary, whole_file

#: Ids of our marks begin so; a file that has been marked before loses them first.
MARK = "mbr-esd-"
#: Inline elements that hold codes of the original format, not text.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
#: A tracked deletion of Trados: text that is no longer there.
_DELETED = re.compile(r"""\bmtype\s*=\s*["']x-sdl-deleted["']""")
#: The most elements inside one another. What closes an element looks at all that are open.
_DEEPEST = 200
_TOKEN = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>
    |<(?P<close>/)?(?P<name>[^\s/>]+)(?=[\s/>])(?P<attributes>(?:[^>"']|"[^"]*"|'[^']*')*?)(?P<empty>/)?>
    |&(?P<reference>[^;]+);|(?P<text>\r\n|[^<&])""",
    re.DOTALL | re.VERBOSE,
)

_OUR_MARK = re.compile(rf"""\b(?:id|mid|x)\s*=\s*["']{MARK}""")
_PREDEFINED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True)
class XmlUnit:
    """A unit: its name, its texts' bytes in the file, its languages, the part of the file that it stands in, and why it
    is not to be judged, if so."""

    id: str
    source: slice | None
    target: slice | None
    languages: tuple[str, str]
    document: str = ""
    unready: str | None = None


@dataclass(slots=True)
class Element:
    """An element that is open.

    Attributes:
        name: without its namespace.
        attributes: without theirs, but `xml:lang`, which is "lang".
        content: the first byte behind its start tag; None until it is known.
    """

    name: str
    attributes: Mapping[str, str]
    content: int | None = None


@dataclass(frozen=True, slots=True)
class XmlFile:
    """A file of well-formed XML.

    Attributes:
        start: the first byte of the root element.
        namespaces: prefix -> address, as the root declares them.
        versioned: whether the root has `its:version`.
    """

    data: bytes
    start: int
    encoding: str
    namespaces: Mapping[str, str]
    versioned: bool

    def content(self, place: slice) -> Content:
        """The content of an element."""
        return Content.of(self.data[place].decode(self.encoding))


ITS = "http://www.w3.org/2005/11/its"


def read_xml(
    path: Path, closed: Callable[[list[Element], slice], None], unit: Callable[[list[Element]], str]
) -> XmlFile:
    """Read a file, and call `closed` with the open elements, outermost first, whenever the last of them ends.

    Args:
        closed: also gets the bytes of the element's content.
        unit: the name in messages of the unit that is open; "" if none is.

    Raises:
        InputError: names the line and the unit of a fault of well-formedness; also for a file that defines entities of
            its own, has elements too deep inside one another, or is in an unknown encoding.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    stack: list[Element] = []
    root: list[XmlFile] = []
    namespaces: dict[str, str] = {}
    with open_binary(path) as file:
        data = file.read()
    utf_16 = {"utf-16-le": (codecs.BOM_UTF16_LE, b"<\0"), "utf-16-be": (codecs.BOM_UTF16_BE, b"\0<")}
    # Else UTF-8, until the file declares another one.
    encoding = next((name for name, starts in utf_16.items() if data.startswith(starts)), "utf-8")

    def content_begins(*_: object) -> None:
        if stack and stack[-1].content is None:
            stack[-1].content = parser.CurrentByteIndex

    def begin(name: str, attributes: dict[str, str]) -> None:
        content_begins()
        if len(stack) == _DEEPEST:
            raise InputError(
                f"{path}, line {parser.CurrentLineNumber}: more than {_DEEPEST} elements inside one another"
            )
        if not stack:
            at = parser.CurrentByteIndex
            root.append(XmlFile(data, at, encoding, namespaces, f"{ITS} version" in attributes))
        local = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        stack.append(Element(name.rpartition(" ")[2], local))

    def end(_: str) -> None:
        content_begins()
        closed(stack, slice(stack[-1].content, parser.CurrentByteIndex))
        stack.pop()

    def declared(version: str, name: str | None, standalone: int) -> None:
        nonlocal encoding
        if name is not None and not encoding.lower().startswith("utf-16"):
            if rb"\x41".decode(name) != r"\x41":  # text for the parser would be markup here
                raise LookupError(f"unknown encoding: {name}")
            encoding = name

    def entity(*_: object) -> None:
        raise InputError(f"{path}: the file defines entities of its own; write their texts into it")

    def namespace(prefix: str | None, address: str) -> None:
        if not stack:
            namespaces.setdefault(prefix or "", address)

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = content_begins
    parser.DefaultHandler = content_begins
    parser.XmlDeclHandler = declared
    parser.EntityDeclHandler = entity
    parser.StartNamespaceDeclHandler = namespace
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        name = unit(stack)
        where = f"{path}, line {error.lineno}" + (f", unit {name}" if name else "")
        why = expat.ErrorString(error.code)
        raise InputError(f"{where}: not well-formed XML ({why}); fix the file") from None
    except (LookupError, ValueError) as error:
        raise InputError(f"{path}: {error}; save the file as UTF-8") from None
    return root[0]


@dataclass(frozen=True, slots=True)
class _Atom:
    """A character or a CDATA section, which a mark leaves whole; with its characters of the text."""

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Content:
    """The content of an element: its raw XML, its text, and where each part of the text is.

    Attributes:
        text: without markup and without white space round it.
        shift: characters of white space before the text.
        atoms: of the whole text, with that white space; none if there is no markup.
        our_marks: (start, end) in `raw` of tags of our own earlier marks.
    """

    raw: str
    text: str
    shift: int
    atoms: tuple[_Atom, ...]
    our_marks: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, raw: str) -> Content:
        """Cut well-formed XML into text and markup."""
        if not set("<&\r") & set(raw):
            return cls(raw, raw.strip(), len(raw) - len(raw.lstrip()), (), ())
        characters: list[str] = []
        atoms: list[_Atom] = []
        our_marks: list[tuple[int, int]] = []
        opened: list[tuple[bool, bool]] = []
        length = at = 0
        while (token := _TOKEN.match(raw, at)) is not None:
            at = token.end()
            text = token["text"] or token["cdata"]
            if token["name"] is not None:
                name = token["name"].rpartition(":")[2]
                if token["close"]:
                    mark = opened.pop()[1]
                else:
                    mark = name in ("mrk", "hi") and bool(_OUR_MARK.search(token["attributes"]))
                    if not token["empty"]:
                        unread = name in _CODES or (name == "mrk" and bool(_DELETED.search(token["attributes"])))
                        opened.append((unread, mark))
                if mark:
                    our_marks.append(token.span())
                continue
            if token["reference"] is not None:
                text = _referred(token["reference"])
            if not text or any(unread for unread, _ in opened):
                continue
            text = "\n" if text == "\r\n" else text
            atoms.append(_Atom(*token.span(), length, length + len(text)))
            characters.append(text)
            length += len(text)
        joined = "".join(characters)
        return cls(raw, joined.strip(), len(joined) - len(joined.lstrip()), tuple(atoms), tuple(our_marks))

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


def _referred(name: str) -> str:
    """The character of a reference; an entity of a DTD outside the file stays as it is written."""
    if name.startswith("#"):
        return chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))
    return _PREDEFINED.get(name, f"&{name};")


def document_of(
    path: Path,
    xml: XmlFile,
    units: Iterable[XmlUnit],
    tags: Callable[[Iterator[int], str, ErrorSpan], tuple[str, str]],
    *,
    every: bool = True,
    first: tuple[int, str] | None = None,
) -> Document:
    """The document of a file and its units, in their order.

    Args:
        tags: the start and the end tag of a piece of a span of a text, from the numbers of pieces to come.
        every: also units that are not ready.
        first: a place before all units, and text to insert there where a unit has an error.
    """
    judged: list[TranslationUnit] = []
    places: list[tuple[slice, slice]] = []
    empty: list[str] = []
    unready: dict[str, str] = {}
    for unit in units:
        source, target = ("" if place is None else xml.content(place).text for place in (unit.source, unit.target))
        if unit.source is None or unit.target is None or not source or not target:
            empty.append(unit.id)
        elif unit.unready is not None and not every:
            unready[unit.id] = unit.unready
        else:
            judged.append(TranslationUnit(unit.id, source, target, unit.languages, unit.document))
            places.append((unit.source, unit.target))
    return Document(path, tuple(judged), partial(_mark, xml, places, tags, first), tuple(empty), unready)


def _mark(
    xml: XmlFile,
    pairs: Sequence[tuple[slice, slice]],
    tags: Callable[[Iterator[int], str, ErrorSpan], tuple[str, str]],
    first: tuple[int, str] | None,
    checked: Sequence[Checked | None],
    output: Path,
) -> None:
    """Write a file with marks in place of older ones, and every other byte as it is."""
    at, numbers = 0, count(1)
    with whole_file(output) as out:

        def replace(start: int, end: int, text: str) -> None:
            nonlocal at
            out.write(xml.data[at:start])
            out.write(text.encode(xml.encoding, "xmlcharrefreplace"))
            at = end

        if first is not None and any(one.annotation for one in checked):
            replace(first[0], first[0], first[1])
        for pair, one in zip(pairs, checked, strict=True):
            sides = zip(pair, SIDES[::-1], strict=True)
            for place, side in sorted(sides, key=lambda placed: placed[0].start):
                content = xml.content(place)
                spans = [span for span in one.annotation if span.side == side]
                if spans or content.our_marks:
                    replace(place.start, place.stop, content.marked(spans, partial(tags, numbers, content.text)))
        out.write(xml.data[at:])


def declaration(xml: XmlFile) -> tuple[str, tuple[int, str] | None]:
    """The prefix for ITS, and the declaration that the root element lacks with its place."""
    prefix = next((name for name, address in xml.namespaces.items() if address == ITS and name), None)
    more = ""
    if prefix is None:
        prefix = "its" if "its" not in xml.namespaces else "mbr-esd-its"
        more = f' xmlns:{prefix}="{ITS}"'
    if not xml.versioned:
        more += f' {prefix}:version="2.0"'
    if not more:
        return prefix, None
    name = re.match(r"<[^\s/>]+", xml.data[xml.start : xml.start + 1000].decode(xml.encoding, "replace"))
    assert name is not None
    return prefix, (xml.start + len(name[0].encode(xml.encoding)), more)


def quoted(text: str) -> str:
    """A text as an attribute's value."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return '"' + re.sub(r"[\t\n\r]", " ", re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", escaped)) + '"'
