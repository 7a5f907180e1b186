"""XLIFF 1.2 and 2.x, with errors as localisation quality issues of ITS 2.0.

A mark is an `mrk` of the type that the mappings of ITS to XLIFF name ("x-its" in 1.2, "its:generic" in 2.x), with type,
severity and comment. What a translation leaves out is marked in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Document, issue_comment, issue_type
from mbr_esd_metric.adapters.documents.markup import MARK, Element, XmlUnit, declaration, document_of, quoted, read_xml
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.errors import InputError

#: States of a target (1.2) that say that it is not a translation, and of a segment (2.x). One without a state is taken.
_UNREADY = {"target": ("new", "needs-translation"), "segment": ("initial",)}


def read_xliff(path: Path, every: bool = False) -> Document:
    """The units of an XLIFF file; segments of 2.x are units of their own.

    Left out unless `every`: units with ``translate="no"``, targets new or to be translated, segments in their initial
    state, and units with a second target, of which the first is read.
    """
    units: list[XmlUnit] = []
    places: dict[str, slice] = {}
    problems: list[str] = []
    v2 = False

    def closed(stack: list[Element], place: slice) -> None:
        nonlocal v2
        names = [element.name for element in stack]
        if len(stack) == 1:
            version = stack[0].attributes.get("version", "")
            if names[0] != "xliff" or not version.startswith(("1.", "2.")):
                raise InputError(f"{path}: the root element is {names[0]} of version {version!r}; give XLIFF 1 or 2")
            v2 = version.startswith("2.")
        elif names[-1] in ("source", "target") and names[-2] in ("trans-unit", "segment"):
            if names[-1] in places and names[-1] == "target":
                problems.append("a second target")
            places.setdefault(names[-1], place)
            problems.extend(_state(stack[-1]))
        elif names[-1] in ("trans-unit", "segment"):
            if "source" in places:
                translate = [element.attributes["translate"] for element in stack if "translate" in element.attributes]
                untranslated = ['translate="no"'] if translate[-1:] == ["no"] else []
                reasons = [*untranslated, *problems, *_state(stack[-1]), None]
                target, document = places.get("target"), _named(stack, "file", "group")
                units.append(XmlUnit(_id(stack), places["source"], target, _languages(stack), document, reasons[0]))
            places.clear()
            problems.clear()

    xml = read_xml(path, closed, _id)
    prefix, first = declaration(xml)
    return document_of(path, xml, units, partial(_tags, prefix, v2), every=every, first=first)


def _state(element: Element) -> list[str]:
    state = element.attributes.get("state", "")
    return [f'state="{state}"'] if state in _UNREADY.get(element.name, ()) else []


def _id(stack: Sequence[Element]) -> str:
    """The unit's id, with that of its file where there is one, and the segment's; "" outside all units."""
    if not any(element.name in ("trans-unit", "unit") for element in stack):
        return ""
    return _named(stack, "file", "trans-unit", "unit", "segment")


def _named(stack: Sequence[Element], *elements: str) -> str:
    names = [e.attributes.get("id") or e.attributes.get("original") or "" for e in stack if e.name in elements]
    return "/".join(name for name in names if name)


def _languages(stack: Sequence[Element]) -> tuple[str, str]:
    source = target = ""
    for element in stack:
        source = element.attributes.get("source-language") or element.attributes.get("srcLang") or source
        target = element.attributes.get("target-language") or element.attributes.get("trgLang") or target
    return source, target


def _tags(prefix: str, v2: bool, numbers: Iterator[int], text: str, span: ErrorSpan) -> tuple[str, str]:
    severity = 100 if span.severity == "major" else 20  # of 100, in proportion to MQM's penalties of 5 and 1
    name = f'id="{MARK}{next(numbers)}" type="its:generic"' if v2 else f'mid="{MARK}{next(numbers)}" mtype="x-its"'
    return (
        f'<mrk {name} {prefix}:locQualityIssueType="{issue_type(span)}" '
        f'{prefix}:locQualityIssueSeverity="{severity}" '
        f"{prefix}:locQualityIssueComment={quoted(issue_comment(span, text))}>",
        "</mrk>",
    )
