"""TMX, with errors as highlighted words (`hi`, the one element that the format has for it)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Checked, Document, TranslationUnit, issue_type
from mbr_esd_metric.adapters.documents.markup import (
    OURS,
    ByteRange,
    Element,
    Root,
    UnitRanges,
    changes_of,
    content,
    quoted,
    rewrite,
    walk,
)
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.errors import InputError


def read_tmx(path: Path) -> Document:
    """The translation units of a TMX file: the first two languages of each, the file's source language first.

    Raises:
        InputError: not well-formed, or no TMX.
    """
    found: list[tuple[str, list[tuple[str, ByteRange]]]] = []
    variants: list[tuple[str, ByteRange]] = []
    source_language = ""

    def name(stack: Sequence[Element]) -> str:
        unit = next((element for element in stack if element.name == "tu"), None)
        return "" if unit is None else unit.attributes.get("tuid") or str(len(found) + 1)

    def closed(stack: list[Element], place: ByteRange) -> None:
        nonlocal source_language
        names = [element.name for element in stack]
        if names[-2:] == ["tuv", "seg"]:
            language = stack[-2].attributes.get("lang", "")
            variants.append((language, place))
        elif names[-1] == "tu":
            found.append((name(stack), list(variants)))
            variants.clear()
        elif names[-1] == "header":
            source_language = stack[-1].attributes.get("srclang", "").lower()
        elif len(stack) == 1 and names[0] != "tmx":
            raise InputError(f"{path}: the root element is {names[0]}; give TMX")

    root = walk(path, closed, name)
    units: list[TranslationUnit] = []
    kept: list[UnitRanges] = []
    empty: list[str] = []
    with path.open("rb") as file:
        for unit, both in found:
            both.sort(key=lambda one: one[0].lower() != source_language)
            texts = [content(file, place, root.encoding).text for _, place in both[:2]]
            if len(texts) < 2 or not all(texts):
                empty.append(unit)
                continue
            units.append(TranslationUnit(unit, texts[0], texts[1], (both[0][0], both[1][0])))
            kept.append((both[0][1], both[1][1]))
    return Document(path, tuple(units), partial(_mark, path, root, kept), tuple(empty))


def _mark(path: Path, root: Root, pairs: Sequence[UnitRanges], checked: Sequence[Checked], output: Path) -> None:
    rewrite(path, output, root.encoding, changes_of(path, root, pairs, checked, partial(_tags, count(1))))


def _tags(numbers: count[int], _: str, span: ErrorSpan) -> tuple[str, str]:
    kind = quoted(f"{issue_type(span)} ({span.severity})")
    return f'<hi x="{OURS}{next(numbers)}" type={kind}>', "</hi>"
