"""TMX, with errors as highlighted words (`hi`, the one element that the format has for it)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Document, Unit, issue_type
from mbr_esd_metric.adapters.documents.markup import (
    OURS,
    Change,
    Element,
    Place,
    Root,
    content,
    quoted,
    rewrite,
    walk,
)
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError

_Pair = tuple[Place, Place]


def read_tmx(path: Path) -> Document:
    """The translation units of a TMX file: the first two languages of each, the file's source language first.

    Raises:
        InputError: not well-formed, or no TMX.
    """
    found: list[tuple[str, list[tuple[str, Place]]]] = []
    variants: list[tuple[str, Place]] = []
    source_language = ""

    def closed(stack: list[Element], place: Place) -> None:
        nonlocal source_language
        names = [element.name for element in stack]
        if names[-2:] == ["tuv", "seg"]:
            language = stack[-2].attributes.get("lang", "")
            variants.append((language, place))
        elif names[-1] == "tu":
            found.append((stack[-1].attributes.get("tuid") or str(len(found) + 1), list(variants)))
            variants.clear()
        elif names[-1] == "header":
            source_language = stack[-1].attributes.get("srclang", "").lower()
        elif len(stack) == 1 and names[0] != "tmx":
            raise InputError(f"{path}: the root element is {names[0]}; give TMX")

    root = walk(path, closed)
    units: list[Unit] = []
    kept: list[_Pair] = []
    empty: list[str] = []
    with path.open("rb") as file:
        for name, both in found:
            both.sort(key=lambda one: one[0].lower() != source_language)
            texts = [content(file, place, root.encoding).text for _, place in both[:2]]
            if len(texts) < 2 or not all(texts):
                empty.append(name)
                continue
            units.append(Unit(name, texts[0], texts[1], (both[0][0], both[1][0])))
            kept.append((both[0][1], both[1][1]))
    return Document(path, tuple(units), partial(_mark, path, root, kept), tuple(empty))


def _mark(path: Path, root: Root, pairs: Sequence[_Pair], annotations: Sequence[Annotation], output: Path) -> None:
    changes: list[Change] = []
    numbers = count(1)
    with path.open("rb") as file:
        for places, annotation in zip(pairs, annotations, strict=True):
            for place, side in zip(places, ("source", "translation"), strict=True):
                there = content(file, place, root.encoding)
                spans = [span for span in annotation if span.side == side]
                if spans or there.ours:
                    changes.append(Change(place, there.marked(spans, partial(_tags, numbers))))
    rewrite(path, output, root.encoding, changes)


def _tags(numbers: count[int], span: ErrorSpan) -> tuple[str, str]:
    kind = quoted(f"{issue_type(span)} ({span.severity})")
    return f'<hi x="{OURS}{next(numbers)}" type={kind}>', "</hi>"
