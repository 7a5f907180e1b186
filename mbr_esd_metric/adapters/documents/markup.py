"""Texts in XML, and marks put into it without touching another byte.

A parser of the standard library (expat) says where each text begins and ends in the file, as bytes, which `content`
reads. Writing a tree back, as lxml does, would change entities, quotes, line ends and white space inside of tags.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias
from xml.parsers import expat

from mbr_esd_metric.adapters.documents.content import MARK, Content
from mbr_esd_metric.adapters.documents.document import Checked, Document, Names, TranslationUnit
from mbr_esd_metric.core.annotation import SIDES, ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import open_binary, whole_file

#: The most elements inside one another. What closes an element looks at all that are open.
_DEEPEST = 200


class Place(NamedTuple):
    """The content of an element: its bytes in the file, the prefix of the element's name ("xlf:" or ""), and what the
    file says of codes in it, by their ids."""

    start: int
    stop: int
    prefix: str
    codes: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class XmlUnit:
    """A unit: its name, its texts' places, its languages, the part of the file that it stands in, and why it is not to
    be judged, if so."""

    id: str
    source: Place | None
    target: Place | None
    languages: tuple[str, str]
    document: str = ""
    unready: str | None = None


@dataclass(slots=True)
class Element:
    """An element that is open.

    Attributes:
        name: without its namespace.
        prefix: of its name, with the colon.
        attributes: without theirs, but `xml:lang`, which is "lang"; of two that are equal then, the plain one.
        content: the first byte behind its start tag; None until it is known.
    """

    name: str
    prefix: str
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

    def content(self, place: Place) -> Content:
        """The content of an element."""
        return Content.of(self.data[place.start : place.stop].decode(self.encoding), place.codes)


ITS = "http://www.w3.org/2005/11/its"
#: What the parser puts between the address, the local name and the prefix of a name; no character of XML.
_BETWEEN = "\x01"


def _local(name: str) -> tuple[str, str]:
    """The local name, and its prefix with the colon or ""."""
    parts = name.split(_BETWEEN)
    return parts[:2][-1], f"{parts[2]}:" if len(parts) > 2 else ""


def read_xml(
    path: Path, closed: Callable[[list[Element], Place], None], unit: Callable[[list[Element]], str]
) -> XmlFile:
    """Read a file, and call `closed` with the open elements, outermost first, whenever the last of them ends.

    Args:
        closed: also gets the place of the element's content.
        unit: the name in messages of the unit that is open; "" if none is.

    Raises:
        InputError: names the line and the unit of a fault of well-formedness; also for a file that defines entities of
            its own, has elements too deep inside one another, or is in an unknown encoding.
    """
    parser = expat.ParserCreate(namespace_separator=_BETWEEN)
    parser.namespace_prefixes = True
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
            versioned = any(key.startswith(f"{ITS}{_BETWEEN}version") for key in attributes)
            root.append(XmlFile(data, at, encoding, namespaces, versioned))
        named = sorted(attributes.items(), key=lambda attribute: -attribute[0].count(_BETWEEN))
        stack.append(Element(*_local(name), {_local(key)[0]: value for key, value in named}))

    def end(_: str) -> None:
        content_begins()
        element = stack[-1]
        closed(stack, Place(element.content or 0, parser.CurrentByteIndex, element.prefix))
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


#: From an element's prefix, the numbers of pieces to come, a text and its span: the tags round a piece of the span.
Tags: TypeAlias = Callable[[str, Iterator[int], str, ErrorSpan], tuple[str, str]]


def document_of(
    path: Path,
    xml: XmlFile,
    units: Iterable[XmlUnit],
    tags: Tags,
    *,
    every: bool = True,
    first: tuple[int, str] | None = None,
) -> Document:
    """The document of a file and its units, in their order.

    Args:
        every: also units that are not ready.
        first: a place before all units, and text to insert there where a unit has an error.
    """
    judged: list[TranslationUnit] = []
    places: list[tuple[Place, Place]] = []
    empty: list[str] = []
    unready: dict[str, str] = {}
    names = Names()
    for number, unit in enumerate(units, 1):
        name = names.unique(unit.id or str(number))
        if unit.source is None or unit.target is None:
            empty.append(name)
            continue
        source, target = xml.content(unit.source), xml.content(unit.target)
        if not source.has_words or not target.has_words:
            empty.append(name)
        elif unit.unready is not None and not every:
            unready[name] = unit.unready
        else:
            texts = (name, source.text, target.text, unit.languages, unit.document, source.differs(target), unit.id)
            judged.append(TranslationUnit(*texts))
            places.append((unit.source, unit.target))
    return Document(path, tuple(judged), partial(_mark, xml, places, tags, first), tuple(empty), unready)


def _mark(
    xml: XmlFile,
    pairs: Sequence[tuple[Place, Place]],
    tags: Tags,
    first: tuple[int, str] | None,
    checked: Sequence[Checked | None],
    output: Path,
) -> None:
    """Write a file with marks in place of older ones, and every other byte as it is."""
    text = xml.data.decode(xml.encoding, "replace") if None in checked else ""
    kept = max(map(int, re.findall(rf"{MARK}(\d+)", text)), default=0)
    at, numbers = 0, count(kept + 1)
    with whole_file(output) as out:

        def replace(start: int, end: int, text: str) -> None:
            nonlocal at
            out.write(xml.data[at:start])
            out.write(text.encode(xml.encoding, "xmlcharrefreplace"))
            at = end

        if first is not None and any(one is not None and one.annotation for one in checked):
            replace(first[0], first[0], first[1])
        judged = ((pair, one.annotation) for pair, one in zip(pairs, checked, strict=True) if one is not None)
        sides = (
            (place, annotation, side)
            for pair, annotation in judged
            for place, side in zip(pair, SIDES[::-1], strict=True)
        )
        for place, annotation, side in sorted(sides, key=lambda placed: placed[0].start):
            content = xml.content(place)
            spans = [span for span in annotation if span.side == side]
            if spans or content.our_marks:
                replace(
                    place.start, place.stop, content.marked(spans, partial(tags, place.prefix, numbers, content.text))
                )
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
