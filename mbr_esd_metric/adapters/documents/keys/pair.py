"""Pairs of key-value files: a source file and its translation, joined by key into one document."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import (
    READY,
    Checked,
    Document,
    MissingKey,
    Names,
    Selection,
    TranslationUnit,
    issue_comment,
)
from mbr_esd_metric.adapters.documents.keys.apple_file import read_catalog
from mbr_esd_metric.adapters.documents.keys.entries import Entry, Reader, StringFile
from mbr_esd_metric.adapters.documents.keys.file_language import language_of
from mbr_esd_metric.adapters.documents.po import with_placeholders_of
from mbr_esd_metric.core.segment import Context, Segment
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.prompting.languages import language_of_texts

#: A plural form at the end of a key: of i18next, of Rails, or in brackets as written by the readers.
_FORM = re.compile(
    r"(?P<stem>.+)(?:[._](?P<name>zero|one|two|few|many|other)|\[(?P<form>zero|one|two|few|many|other|\d+)\])"
)
#: Minimum share of subtitles with the same times as the source; below it, they are paired by number.
_SAME_TIMES = 0.5


def read_pair(source: Path, target: Path, reader: Reader, selection: Selection = READY) -> Document:
    """The document of a source file and its translation. Keys in only one of them are listed, but not paired. A plural
    form of the translation is paired with the same form of the source, or else with its general form. Languages are
    determined by the files or their names; otherwise, the source language is identified from its texts.
    """
    return _document(_read(source, reader), _read(target, reader), selection.every)


def read_catalog_pair(path: Path, selection: Selection = READY) -> Document:
    """The document of an Apple string catalogue, which contains all languages; `lp` selects one."""
    return _document(*read_catalog(path, selection.lp), selection.every)


def _read(path: Path, reader: Reader) -> StringFile:
    file = reader(path)
    return file if file.language else replace(file, language=language_of(path))


def _document(source: StringFile, target: StringFile, every: bool) -> Document:
    source_language = source.language or language_of_texts(one.text for one in source.entries)
    by_number = _by_number(source.entries, target.entries)
    sources, targets = (_by_key(one.entries, by_number) for one in (source, target))
    counted = _stems(sources) | _stems(targets)
    forms: dict[str, dict[str, Entry]] = defaultdict(dict)
    for key, entry in sources.items():
        stem, form = _form(key, counted)
        forms[stem][form] = entry
    units, entries, empty, obsolete, unready = list[TranslationUnit](), list[Entry](), list[str](), list[str](), {}
    untranslated: dict[str, int] = {}
    for key, entry in targets.items():
        stem, form = _form(key, counted)
        of_stem = forms.get(stem)
        if of_stem is None:
            obsolete.append(key)
            continue
        of_source = of_stem.get(form) or of_stem.get("other") or next(iter(of_stem.values()))
        why = of_source.unready or entry.unready
        if not of_source.text.strip() or not entry.text.strip():
            empty.append(key)
            if of_source.text.strip() and why is None:
                untranslated[key] = entry.line
        elif why is not None and not every:
            unready[key] = why
        else:
            numbers = _numbers(target.language, form)
            known = Context(source_language or None, target.language or None, numbers)
            text = of_source.text.strip()
            if numbers and 1 in numbers and "other" in of_stem:  # as in Slavic languages, where "one" includes 21
                text = with_placeholders_of(entry.text, text, of_stem["other"].text.strip(), known)
            units.append(TranslationUnit(Segment(text, entry.text.strip(), key, known=known), key, entry.line))
            entries.append(entry)
    segments = [unit.segment for unit in units]
    missing = _missing(sources, targets, counted, untranslated)

    def mark(checked: Sequence[Checked | None], output: Path) -> None:
        comments = {
            entry: [issue_comment(span, span.text_in(segment.source, segment.translation)) for span in one.annotation]
            for segment, entry, one in zip(segments, entries, checked, strict=True)
            if one is not None and one.annotation
        }
        judged = (entry for entry, one in zip(entries, checked, strict=True) if one is not None)
        target.write(comments, judged, output)

    def unmarkable(checked: Sequence[Checked | None], output: Path) -> None:
        raise InputError(f"{output}: {target.path.suffix} does not support comments")

    has_comments = target.comment is not None
    return Document(
        target.path, tuple(units), mark if has_comments else unmarkable, tuple(empty), unready,
        missing=missing, obsolete=tuple(obsolete), source_path=source.path, is_markable=has_comments,
    )  # fmt: skip


def _by_number(sources: Sequence[Entry], targets: Sequence[Entry]) -> bool:
    """Whether subtitles are paired by number, because their times differ."""
    times, others = ({one.key for one in entries if one.number} for entries in (sources, targets))
    return len(times & others) < _SAME_TIMES * min(len(times), len(others))


def _by_key(entries: Sequence[Entry], by_number: bool) -> dict[str, Entry]:
    names = Names()
    return {names.unique(one.number if by_number else one.key): one for one in entries}


def _stems(keys: Mapping[str, Entry]) -> set[str]:
    """The keys with plural forms, which include the general form."""
    matches = (_FORM.fullmatch(key) for key in keys)
    return {one["stem"] for one in matches if one is not None and "other" in (one["name"], one["form"])}


def _form(key: str, counted: set[str]) -> tuple[str, str]:
    """The key without its plural form, and the form, or ""."""
    match = _FORM.fullmatch(key)
    if match is None or match["stem"] not in counted:
        return key, ""
    return match["stem"], match["name"] or match["form"]


@cache
def _numbers(language: str, form: str) -> frozenset[int] | None:
    """The numbers up to 1,000 that a plural form of a language is used for, by CLDR, or else by the form's name. None
    if it is not a plural form, or only a number."""
    from babel import Locale, UnknownLocaleError

    named = {"zero": frozenset({0}), "one": frozenset({1}), "two": frozenset({2})}.get(form)
    if form.isdecimal() or not form:
        return None
    try:
        rule = Locale.parse(language, sep="-").plural_form
    except (UnknownLocaleError, ValueError):
        return named
    return frozenset(number for number in range(1001) if rule(number) == form) or named


def _missing(
    sources: Mapping[str, Entry], targets: Mapping[str, Entry], counted: set[str], untranslated: Mapping[str, int]
) -> tuple[MissingKey, ...]:
    """The keys that are missing or empty in a translation; for plural forms, only the general form, which every
    language has. Each has its own line, or that of the preceding key."""
    found, line = [], 1
    has = {(_form(key, counted)) for key in targets}
    for key, entry in sources.items():
        stem, form = _form(key, counted)
        if key in targets:
            line = targets[key].line
        if entry.unready is None and entry.text.strip() and form in ("", "other") and (stem, form) not in has:
            found.append(MissingKey(key, line, entry.line, "missing"))
    found += [MissingKey(key, at) for key, at in untranslated.items()]
    return tuple(found)
