"""XLIFF 1.2 and 2.x, with errors as localisation quality issues of ITS 2.0; and TMX, with errors as highlighted words.

In XLIFF, a mark is an `mrk` of the type in the mappings of ITS to XLIFF ("x-its" in 1.2, "its:generic" in 2.x), with
type, severity and comment; in TMX, it is a `hi`, the only suitable element. Omissions are marked in the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.sax.saxutils import quoteattr

from mbr_esd_metric.adapters.documents.document import READY, Document, Selection, issue_comment, issue_type
from mbr_esd_metric.adapters.documents.markup import (
    Closing,
    Content,
    Element,
    XmlUnit,
    declaration,
    document_of,
    read_xml,
)
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.messages import number_of
from mbr_esd_metric.prompting.languages import language_code, language_pair

#: A language and its text.
_Variant = tuple[str, Content]
_UNITS = ("trans-unit", "segment")
#: Attribute -> element -> values, in lower case, of texts that are not translations or must not be changed, in XLIFF
#: itself, memoQ, Phrase and Trados. Texts without a state are ready.
_UNREADY: dict[str, dict[str, tuple[str, ...]]] = {
    "state": {"target": ("new", "needs-translation"), "segment": ("initial",)},
    "status": dict.fromkeys(_UNITS, ("notstarted", "rejected")),
    "locked": dict.fromkeys((*_UNITS, "seg"), ("true", "locked", "yes", "1")),
    "conf": {"seg": ("", "unspecified", "rejectedtranslation", "rejectedsignoff")},
}


def read_xliff(path: Path, selection: Selection = READY) -> Document:
    """The units of an XLIFF file. Each segment is a unit: in 2.x, segments; in 1.2 (Trados, Okapi), each `mrk` of type
    "seg" in the target with the source `mrk` of the same `mid`.

    Skipped unless `selection.every`: units with ``translate="no"``, new or to be translated, in their initial state,
    not started, rejected or locked, and units with a second target, of which the first is read.
    """
    units: list[XmlUnit] = []
    texts: dict[str, Content] = {}
    segments: dict[str, dict[str, Content]] = {}
    problems: list[str] = []
    conditions: dict[str, str] = {}
    codes: dict[str, str] = {}
    v2 = False

    def closed(stack: list[Element], content: Closing) -> None:
        nonlocal v2
        element, names = stack[-1], [element.name for element in stack]
        unit = next((at for at, name in enumerate(names) if name in _UNITS), len(names))
        if len(stack) == 1:
            version = element.attributes.get("version", "")
            if names[0] != "xliff" or not version.startswith(("1.", "2.")):
                raise InputError(f"{path}: the root element is {names[0]} of version {version!r}; give XLIFF 1 or 2")
            v2 = version.startswith("2.")
        elif names[-2] in ("originalData", "tag"):
            key = element if names[-2] == "originalData" else stack[-2]
            codes[key.attributes.get("id", "")] = content({}).text
        elif names[-1] in ("source", "target") and len(names) == unit + 2:
            if names[-1] in texts and names[-1] == "target":
                problems.append("a second target")
            texts.setdefault(names[-1], content(codes))
            problems.extend(_problems(element))
        elif names[-1] == "mrk" and element.attributes.get("mtype") == "seg" and len(names) > unit + 2:
            segments.setdefault(names[unit + 1], {}).setdefault(element.attributes.get("mid", ""), content(codes))
        elif names[-2:] == ["seg-defs", "seg"]:
            conditions[element.attributes.get("id", "")] = next(iter(_problems(element)), "")
        elif names[-1] in _UNITS:
            translate = [one.attributes["translate"] for one in stack if "translate" in one.attributes]
            untranslated = ['translate="no"'] if translate[-1:] == ["no"] else []
            reasons = [*untranslated, *problems, *_problems(element)]
            target = texts.get("target")
            sources, targets = segments.get("seg-source") or segments.get("source"), segments.get("target", {})
            pairs = {"": (texts.get("source"), target)}
            if sources and (targets or target is None or target.start == target.stop):
                pairs = {f"/{mid}": (sources.get(mid), targets.get(mid)) for mid in {**sources, **targets}}
            for segment, pair in pairs.items():
                first = next((one for one in (*reasons, conditions.get(segment[1:])) if one), None)
                document = _named(stack, "file", "group")
                units.append(XmlUnit(_id(stack) + segment, *pair, _languages(stack), document, first))
            texts.clear()
            segments.clear()
            problems.clear()
        if names[-1] in ("unit", "file"):
            codes.clear()
            conditions.clear()

    xml = read_xml(path, ("source", "target", "seg-source", "originalData", "tag"), closed, _id)
    prefix, first = declaration(xml)
    return document_of(xml, units, partial(_issue, prefix, v2), every=selection.every, first=first)


def _problems(element: Element) -> list[str]:
    """The reason why an element is not ready, or None."""
    return [
        f'{name}="{value}"' if value else f"no {name}"
        for name, elements in _UNREADY.items()
        if (value := element.attributes.get(name, "")).lower() in elements.get(element.name, ())
    ]


def _id(stack: Sequence[Element]) -> str:
    """The unit's id, including those of its file (if any) and segment; "" outside units."""
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


def _issue(prefix: str, v2: bool, id_: str, text: str, span: ErrorSpan) -> str:
    severity = 100 if span.severity == "major" else 20  # out of 100, proportional to MQM's penalties of 5 and 1
    name = f'id="{id_}" type="its:generic"' if v2 else f'mid="{id_}" mtype="x-its"'
    return (
        f'mrk {name} {prefix}:locQualityIssueType="{issue_type(span)}" {prefix}:locQualityIssueSeverity="{severity}" '
        f"{prefix}:locQualityIssueComment={quoteattr(issue_comment(span, text[span.start : span.end]))}"
    )


def read_tmx(path: Path, selection: Selection = READY) -> Document:
    """The translation units of a TMX file; all are ready.

    Args:
        path: the file.
        selection: `lp` has the source and target languages; by default, the source language is specified by the unit or
            else the header, and the target language is the only other one.

    Raises:
        InputError: no text in the source language, several target languages without `lp`, or no unit in the language
            pair.
    """
    pair = None if selection.lp is None else language_pair(selection.lp)
    units: list[XmlUnit] = []
    variants: list[_Variant] = []
    found: dict[str, None] = {}
    spoken: dict[str, None] = {}
    source_language, several = "", False
    repeated: dict[str, str] = {}

    def name(stack: Sequence[Element]) -> str:
        unit = next((element for element in stack if element.name == "tu"), None)
        return "" if unit is None else unit.attributes.get("tuid") or str(len(units) + 1)

    def closed(stack: list[Element], content: Closing) -> None:
        nonlocal source_language, several
        names = [element.name for element in stack]
        if names[-2:] == ["tuv", "seg"]:
            variants.append((stack[-2].attributes.get("lang", ""), content({})))
            spoken[variants[-1][0] or "none"] = None
        elif names[-1] == "tu":
            language = pair[0] if pair else stack[-1].attributes.get("srclang") or source_language
            source = _nearest(variants, language) if language not in ("", "*all*") else next(iter(variants), None)
            if source is None and pair is None and len(variants) > 1:
                raise InputError(
                    f"{path}, unit {name(stack)}: no text in the source language {language}, but "
                    f"{', '.join(language or 'none' for language, _ in variants)}; fix srclang"
                )
            rest = [one for one in variants if one is not source]
            other = [one for one in rest if source is None or _code(one[0]) != _code(source[0])] or rest
            targets = other if pair is None else [one for one in (_nearest(rest, pair[1]),) if one is not None]
            found.update(dict.fromkeys(language for language, _ in targets))
            several |= len({language for language, _ in targets}) > 1
            one, two = source or ("", None), targets[0] if targets else ("", None)
            for taken in filter(None, (source, *targets[:1])):
                alike = [language for language, _ in variants if _code(language) == _code(taken[0])]
                if len(alike) > 1:
                    repeated.setdefault(name(stack), f"{taken[0] or 'no language'} of {', '.join(alike)}")
            units.append(XmlUnit(stack[-1].attributes.get("tuid", ""), one[1], two[1], (one[0], two[0])))
            variants.clear()
        elif names[-1] == "header":
            source_language = stack[-1].attributes.get("srclang", "")
        elif len(stack) == 1 and names[0] != "tmx":
            raise InputError(f"{path}: the root element is {names[0]}; give TMX")

    xml = read_xml(path, ("seg",), closed, name)
    if pair is None and (several or len({_code(language) for language in found}) > 1):
        example = f"{_code(units[0].languages[0]) or 'en'}-{next(iter(found))}"
        raise InputError(f"{path}: translations into {', '.join(found)}; choose a language, such as --lp {example}")
    if pair is not None and units and not any(one.source and one.target for one in units):
        raise InputError(f"{path}: no unit in {' and '.join(pair)}; the file's languages are {', '.join(spoken)}")
    document = document_of(xml, units, _highlight)
    if not repeated:
        return document
    unit, taken_of = next(iter(repeated.items()))
    many = f"{number_of(len(repeated), 'unit')} with several texts in one language, of which one is read"
    return replace(document, notes=(*document.notes, f"{many}, such as unit {unit}: the first in {taken_of}"))


def _code(language: str) -> str:
    return language and language_code(language)


def _nearest(variants: Sequence[_Variant], language: str) -> _Variant | None:
    """The first text in a language, preferably of the same region; None if there is none."""
    near = [one for one in variants if one[0] and _code(one[0]) == _code(language)]
    exact = (one for one in near if one[0].lower().replace("_", "-") == language.lower().replace("_", "-"))
    return next(exact, next(iter(near), None))


def _highlight(id_: str, _: str, span: ErrorSpan) -> str:
    return f'hi x="{id_}" type="{issue_type(span)} ({span.severity})"'
