"""TMX, with errors as highlighted words (`hi`, the one element that the format has for it)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Document, issue_type
from mbr_esd_metric.adapters.documents.markup import (
    Closing,
    Content,
    Element,
    XmlUnit,
    document_of,
    read_xml,
)
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.prompting.languages import language_code

#: A language and its text.
_Variant = tuple[str, Content]


def read_tmx(path: Path, pair: tuple[str, str] | None = None) -> Document:
    """The translation units of a TMX file, none of which says that it is not ready.

    Args:
        path: the file.
        pair: the languages of source and target; by default the source language is the one that the unit says, or else
            the header, and the target language the only other one.

    Raises:
        InputError: no text in the source language, without a pair several target languages, or no unit in the pair's.
    """
    units: list[XmlUnit] = []
    variants: list[_Variant] = []
    found: dict[str, None] = {}
    spoken: dict[str, None] = {}
    source_language, several = "", False

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
    return document_of(path, xml, units, _mark)


def _code(language: str) -> str:
    return language and language_code(language)


def _nearest(variants: Sequence[_Variant], language: str) -> _Variant | None:
    """The first text in a language, in the same region if there is one; None if none is in it."""
    near = [one for one in variants if one[0] and _code(one[0]) == _code(language)]
    exact = (one for one in near if one[0].lower().replace("_", "-") == language.lower().replace("_", "-"))
    return next(exact, next(iter(near), None))


def _mark(id_: str, _: str, span: ErrorSpan) -> str:
    return f'hi x="{id_}" type="{issue_type(span)} ({span.severity})"'
