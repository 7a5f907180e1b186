"""TMX, with errors as highlighted words (`hi`, the one element that the format has for it)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mbr_esd_metric.adapters.documents.content import MARK, quoted
from mbr_esd_metric.adapters.documents.document import Document, issue_type
from mbr_esd_metric.adapters.documents.markup import Element, Place, XmlUnit, document_of, read_xml
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.errors import InputError

#: A language and the bytes of its text.
_Variant = tuple[str, Place]


def read_tmx(path: Path, every: bool = False) -> Document:
    """The translation units of a TMX file: the text in the source language that the unit says, or else the header, and
    the first one in another language. No unit says that it is not ready."""
    units: list[XmlUnit] = []
    variants: list[_Variant] = []
    source_language = ""

    def name(stack: Sequence[Element]) -> str:
        unit = next((element for element in stack if element.name == "tu"), None)
        return "" if unit is None else unit.attributes.get("tuid") or str(len(units) + 1)

    def closed(stack: list[Element], place: Place) -> None:
        nonlocal source_language
        names = [element.name for element in stack]
        if names[-2:] == ["tuv", "seg"]:
            variants.append((stack[-2].attributes.get("lang", ""), place))
        elif names[-1] == "tu":
            language = stack[-1].attributes.get("srclang") or source_language
            both = [*_source_and_target(variants, language, f"{path}, unit {name(stack)}"), ("", None), ("", None)]
            units.append(XmlUnit(name(stack), both[0][1], both[1][1], (both[0][0], both[1][0])))
            variants.clear()
        elif names[-1] == "header":
            source_language = stack[-1].attributes.get("srclang", "")
        elif len(stack) == 1 and names[0] != "tmx":
            raise InputError(f"{path}: the root element is {names[0]}; give TMX")

    xml = read_xml(path, closed, name)
    return document_of(path, xml, units, _tags)


def _source_and_target(variants: Sequence[_Variant], source_language: str, where: str) -> list[_Variant]:
    """The text in the source language, which need not name its region, and the first one in another language."""

    def base(language: str) -> str:
        return re.split("[-_]", language.lower())[0]

    if len(variants) < 2:
        return list(variants)
    source = variants[0]
    if source_language not in ("", "*all*"):
        near = [one for one in variants if base(one[0]) == base(source_language)]
        if not near:
            languages = ", ".join(language or "none" for language, _ in variants)
            raise InputError(f"{where}: no text in the source language {source_language}, but {languages}; fix srclang")
        source = next((one for one in near if one[0].lower() == source_language.lower()), near[0])
    rest = [one for one in variants if one is not source]
    return [source, next((one for one in rest if base(one[0]) != base(source[0])), rest[0])]


def _tags(parent: str, numbers: Iterator[int], _: str, span: ErrorSpan) -> tuple[str, str]:
    return (
        f'<{parent}hi x="{MARK}{next(numbers)}" type={quoted(f"{issue_type(span)} ({span.severity})")}>',
        f"</{parent}hi>",
    )
