"""Texts in XML, and marks put into it without touching another byte.

A parser of the standard library (expat) says what each text is and where it begins and ends in the file, as bytes.
Writing a tree back, as lxml does, would change entities, quotes, line ends and white space inside of tags.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias
from xml.parsers import expat

from mbr_esd_metric.adapters.documents.content import MARK, Content, Element, Event
from mbr_esd_metric.adapters.documents.document import Checked, Document, Names, TranslationUnit
from mbr_esd_metric.core.annotation import SIDES, ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import open_binary, whole_file

#: The most elements inside one another. What closes an element looks at all that are open.
_DEEPEST = 200
_ITS = "http://www.w3.org/2005/11/its"

#: From what the file says of codes elsewhere, by their ids: the content of the element that ends.
Closing: TypeAlias = Callable[[Mapping[str, str]], Content]


class XmlUnit(NamedTuple):
    """A unit: its name, its texts, its languages, the part of the file that it stands in, and why it is not to be
    judged, if so."""

    id: str
    source: Content | None
    target: Content | None
    languages: tuple[str, str]
    document: str = ""
    unready: str | None = None


class XmlFile(NamedTuple):
    """A file of well-formed XML, and its root element, whose attributes have their prefixes."""

    data: bytes
    encoding: str
    root: Element


def read_xml(
    path: Path,
    texts: Collection[str],
    closed: Callable[[list[Element], Closing], None],
    unit: Callable[[list[Element]], str],
) -> XmlFile:
    """Read a file, and call `closed` with the open elements, outermost first, whenever the last of them ends.

    Args:
        texts: names of the elements that are read, with all in them.
        closed: also gets what makes the content of the element, if it is read.
        unit: the name in messages of the unit that is open; "" if none is.

    Raises:
        InputError: names the line and the unit of a fault of well-formedness; also for a file that defines entities of
            its own, has elements too deep inside one another, or is in an unknown encoding.
    """
    parser = expat.ParserCreate()
    stack: list[Element] = []
    roots: list[Element] = []
    events: list[Event] = []
    with open_binary(path) as file:
        data = file.read()
    utf_16 = {"utf-16-le": (codecs.BOM_UTF16_LE, b"<\0"), "utf-16-be": (codecs.BOM_UTF16_BE, b"\0<")}
    # Else UTF-8, until the file declares another one.
    encoding = next((name for name, starts in utf_16.items() if data.startswith(starts)), "utf-8")

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(stack) == _DEEPEST:
            raise InputError(
                f"{path}, line {parser.CurrentLineNumber}: more than {_DEEPEST} elements inside one another"
            )
        named = sorted(attributes.items(), key=lambda attribute: ":" not in attribute[0])
        local, start = name.rpartition(":")[2], parser.CurrentByteIndex
        prefix = name.removesuffix(local)
        if not roots:
            roots.append(Element(local, prefix, attributes, start))
        stack.append(Element(local, prefix, {key.rpartition(":")[2]: value for key, value in named}, start))
        if events or local in texts:
            events.append(Event(start, stack[-1], True))
            stack[-1].first = len(events)

    def end(_: str) -> None:
        element, stop = stack[-1], parser.CurrentByteIndex
        closed(stack, lambda codes: Content.of(events[element.first :], stop, element.prefix, codes))
        if events and events[0].value is element:
            events.clear()
        elif events:
            events.append(Event(stop, element))
        stack.pop()

    def characters(text: str, whole: bool = False) -> None:
        if events:
            events.append(Event(parser.CurrentByteIndex, text, whole=whole))

    def more_characters(text: str) -> None:
        if events:
            events[-1] = events[-1]._replace(value=f"{events[-1].value}{text}")

    def cdata_begins() -> None:
        characters("", whole=True)
        parser.CharacterDataHandler = more_characters

    def cdata_ends() -> None:
        parser.CharacterDataHandler = characters

    def declared(version: str, name: str | None, standalone: int) -> None:
        nonlocal encoding
        if name is not None and not encoding.lower().startswith("utf-16"):
            if rb"\x41".decode(name) != r"\x41":  # text for the parser would be markup here
                raise LookupError(f"unknown encoding: {name}")
            encoding = name

    def entity(*_: object) -> None:
        raise InputError(f"{path}: the file defines entities of its own; write their texts into it")

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
    return XmlFile(data, encoding, roots[0])


#: From an element's prefix, the numbers of runs to come, a text and its span: the tags round a run of the span.
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
    contents: list[tuple[Content, Content]] = []
    empty: list[str] = []
    unready: dict[str, str] = {}
    names = Names()
    for number, (id_, source, target, languages, document, why) in enumerate(units, 1):
        name = names.unique(id_ or str(number))
        if source is None or target is None or not source.has_words or not target.has_words:
            empty.append(name)
        elif why is not None and not every:
            unready[name] = why
        else:
            texts = (name, source.text, target.text, languages, document, source.differs(target), id_)
            judged.append(TranslationUnit(*texts))
            contents.append((source, target))
    return Document(path, tuple(judged), partial(_mark, xml, contents, tags, first), tuple(empty), unready)


def _mark(
    xml: XmlFile,
    contents: Sequence[tuple[Content, Content]],
    tags: Tags,
    first: tuple[int, str] | None,
    checked: Sequence[Checked | None],
    output: Path,
) -> None:
    """Write a file with marks in place of older ones, and every other byte as it is."""
    text = xml.data.decode(xml.encoding, "replace") if None in checked else ""
    kept = max(map(int, re.findall(rf"{MARK}(\d+)", text)), default=0)
    numbers = count(kept + 1)
    sides = [
        (content, [span for span in one.annotation if span.side == side])
        for pair, one in zip(contents, checked, strict=True)
        if one is not None
        for content, side in zip(pair, SIDES[::-1], strict=True)
    ]
    edits = [(first[0], *first)] if first is not None and any(spans for _, spans in sides) else []
    for content, spans in sorted(sides, key=lambda one: one[0].start):
        edits += content.edits(spans, partial(tags, content.prefix, numbers, content.text), xml.encoding)
    at = 0
    with whole_file(output) as out:
        for start, stop, text in edits:
            out.write(xml.data[at:start])
            out.write(text.encode(xml.encoding, "xmlcharrefreplace"))
            at = stop
        out.write(xml.data[at:])


def declaration(xml: XmlFile) -> tuple[str, tuple[int, str] | None]:
    """The prefix for ITS, and the declaration that the root element lacks with its place."""
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
