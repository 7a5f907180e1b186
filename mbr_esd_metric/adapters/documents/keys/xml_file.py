"""Android's ``strings.xml`` and .NET's ``.resx``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from mbr_esd_metric.adapters.documents.keys.entries import XML, Entry, Lines, StringFile
from mbr_esd_metric.adapters.documents.markup import Closing, Content, Element, XmlFile, read_xml
from mbr_esd_metric.errors import InputError

#: Android's special syntax: escapes, quotation marks that preserve white space, and white space.
_ANDROID = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)|(\")|(\s+)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t"}
#: A reference to another resource, which is not text.
_REFERENCE = re.compile(r"[@?][\w+:.]*\w/[\w.]+")

#: A comment, or a tag without a prefix.
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|(</?\w+(?:\s[^<>]*)?/?>)", re.DOTALL)

#: (Open elements, text of the last one) -> its key, and the reason why it is not ready.
_Read = Callable[[list[Element], str], "tuple[str, str | None] | None"]


def read_android(path: Path) -> StringFile:
    """The texts of an Android resource file: ``string``, and the items of ``plurals`` and ``string-array``, with their
    tags, except those of other vocabularies such as ``xliff:g``. Entries with ``translatable="false"`` are not
    ready."""
    items: dict[int, int] = {}

    def read(stack: list[Element], text: str) -> tuple[str, str | None] | None:
        element, parent = stack[-1], stack[-2] if len(stack) > 1 else stack[-1]
        if element.name == "string":
            key = element.attributes.get("name", "")
        elif parent.name == "plurals":
            key = f"{parent.attributes.get('name', '')}[{element.attributes.get('quantity', '')}]"
        elif parent.name in ("string-array", "array"):
            number = items.get(parent.start, 0)
            items[parent.start] = number + 1
            key = f"{parent.attributes.get('name', '')}[{number}]"
        else:
            return None
        if _REFERENCE.fullmatch(text):
            return None
        fixed = any(one.attributes.get("translatable") == "false" for one in stack)
        return key, 'translatable="false"' if fixed else None

    return _read(path, "resources", ("string", "item"), read)


def _with_tags(content: Content, xml: XmlFile) -> str:
    """The text with its tags as in the file; escapes and white space are resolved outside them."""
    parts, tags, at, first = list[str](), list[str](), content.start, 0
    for piece in (*content.pieces, None):
        gap = xml.data[at : content.stop if piece is None else piece.start].decode(xml.encoding, "replace")
        found = list(filter(None, _TAG.findall(gap)))
        tags += found
        parts += "\0" * len(found)
        if piece is not None:
            parts.append(content.whole[first : piece.last])
            at, first = piece.stop, piece.last
    rest = iter(tags)
    return re.sub("\0", lambda _: next(rest), android_text("".join(parts)))


def android_text(text: str) -> str:
    """A text as displayed by Android: with escapes and quotation marks resolved, and unquoted white space collapsed."""
    quoted = False

    def resolved(match: re.Match[str]) -> str:
        nonlocal quoted
        escape, quotes, blanks = match.groups()
        if escape:
            return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, escape)
        quoted ^= bool(quotes)
        return "" if quotes else blanks if quoted else " "

    return _ANDROID.sub(resolved, text.strip())


def read_resx(path: Path) -> StringFile:
    """The texts of a ``.resx`` file; data with a type or MIME type is not text."""

    def read(stack: list[Element], _: str) -> tuple[str, str | None] | None:
        data = stack[-2] if len(stack) > 1 else stack[-1]
        if data.name != "data" or {"type", "mimetype"} & set(data.attributes):
            return None
        return data.attributes.get("name", ""), None

    return _read(path, "root", ("value",), read)


def _read(path: Path, root: str, names: tuple[str, ...], read: _Read) -> StringFile:
    found: list[tuple[int, Content, tuple[str, str | None]]] = []

    def closed(stack: list[Element], content: Closing) -> None:
        if len(stack) == 1 and stack[0].name != root:
            raise InputError(f"{path}: the root element is {stack[0].name}; give a file whose root element is {root}")
        if stack[-1].name in names and (entry := read(stack, (inner := content({})).text)) is not None:
            found.append((stack[-1].start if root == "resources" else stack[-2].start, inner, entry))

    xml = read_xml(path, names, closed, lambda stack: next((one.attributes.get("name", "") for one in stack[1:]), ""))
    wide = xml.encoding.startswith("utf-16")  # the parser counts bytes; a line break may be two
    lines = Lines(xml.data.decode(xml.encoding, "replace") if wide else xml.data)
    entries = []
    for start, inner, (key, unready) in found:
        text = _with_tags(inner, xml) if root == "resources" else inner.whole
        line, column = lines.place(start // 2 if wide else start)
        entries.append(Entry(key, text, line, column, unready=unready))
    return StringFile(path, tuple(entries), "", XML, xml.encoding)
