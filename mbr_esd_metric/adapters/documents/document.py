"""Units of translators' files, their errors, and descriptions of errors shared by all formats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.messages import printable


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """A segment of a translator's file, and its location. Units are equal if their segments are.

    Attributes:
        segment: texts without markup and surrounding white space. `label` is the id of the unit, unique in the file;
            `document` the part of the file that contains it, such as an XLIFF group, or ""; the languages in `known`
            are those specified in the file.
        key: the name of the unit in the file, which need not be unique; "" if the id is only a number.
        line: the first line of the unit in the file, from 1: in XML that of the translation, in PO that of the message,
            in a key-value file that of the entry.
    """

    segment: Segment
    key: str = field(default="", compare=False)
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of units to read from a file.

    Attributes:
        every: include units that the file marks as not ready: new, fuzzy, not to be translated.
        lp: the language pair, for a file with several.
        columns: for a table, the names of the source and target columns.
    """

    every: bool = False
    lp: str | None = None
    columns: tuple[str, str] | None = None


#: All ready units, in all languages.
READY = Selection()


class MissingKey(NamedTuple):
    """A unit with a source, but without a translation.

    Attributes:
        key: its id in the file.
        line: the line in the translation, from 1: that of the unit, or of the key after which it belongs.
        source_line: the line in the source file; 0 if the translation has the key.
        problem: "missing" if only the source file has the key, otherwise "empty".
        source: its source text if the id may be only a number, for comparing versions of a file; otherwise "".
    """

    key: str
    line: int
    source_line: int = 0
    problem: str = "empty"
    source: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """Equal in two versions of a file."""
        return self.source or self.key, self.problem


class Names(Counter[str]):
    """Makes names of units unique."""

    def unique(self, name: str) -> str:
        """The name, with a number appended if an earlier unit has the same."""
        free = name
        while self[free]:
            self[name] += 1
            free = f"{name} ({self[name]})"
        self[free] += 1
        return free


@dataclass(frozen=True, slots=True)
class Checked:
    """The errors of a unit, and its score, which not every format can store."""

    annotation: Annotation
    score: float


@dataclass(frozen=True, slots=True)
class Document:
    """The translated units of a file.

    Attributes:
        mark: writes the file atomically with the errors of each unit; units with None are unchanged.
        empty: ids of the skipped units without source or translation.
        unready: unit -> the reason why the file marks it as not ready, such as 'state="new"'.
        others: unit -> another reason why this run skips it.
        notes: notes for the user about the file.
        missing: the units and keys without a translation.
        obsolete: for a pair of key-value files, the keys that the source file lacks.
        source_path: the source file of such a pair.
        is_markable: whether errors can be written in this format.
        was_untranslated: whether the older version of the file had no translation either.
    """

    path: Path
    units: tuple[TranslationUnit, ...]
    mark: Callable[[Sequence[Checked | None], Path], None] = field(compare=False)
    empty: tuple[str, ...] = ()
    unready: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[MissingKey, ...] = ()
    obsolete: tuple[str, ...] = ()
    source_path: Path | None = None
    is_markable: bool = True
    was_untranslated: bool = False

    @property
    def is_untranslated(self) -> bool:
        """Whether no unit has a translation, although the source has texts, and this is new."""
        known = self.was_untranslated or self.others
        return bool(self.missing) and not known and not any(one.segment.translation for one in self.units)

    def only(self, chosen: Sequence[bool], why: str) -> Document:
        """The document with some of its units; `mark` does not change the others."""

        def mark(checked: Sequence[Checked | None], output: Path) -> None:
            of_chosen = iter(checked)
            self.mark([next(of_chosen) if one else None for one in chosen], output)

        others = {unit.segment.label: why for unit, one in zip(self.units, chosen, strict=True) if not one}
        return replace(self, units=tuple(compress(self.units, chosen)), mark=mark, others={**self.others, **others})


#: Pattern of a message key: words joined by punctuation or in camel case, without spaces.
_KEY = re.compile(r"(?=.*[a-zA-Z])(?=\S*[\w][._:/-]\w|\S*[a-z][A-Z])[A-Za-z0-9]+(?:[._:/-][A-Za-z0-9]+)*", re.ASCII)


def with_key_warnings(document: Document) -> Document:
    """The document with key-like sources marked, if most sources look like keys: then the source texts are in another
    file, and translations cannot be evaluated."""
    segments = [unit.segment for unit in document.units]
    are_keys = [
        bool(_KEY.fullmatch(one.source)) and one.source != one.translation and not _KEY.fullmatch(one.translation)
        for one in segments
    ]
    if 2 * sum(are_keys) <= len(are_keys):
        return document
    units = []
    for unit, source_is_key in zip(document.units, are_keys, strict=True):
        known = replace(unit.segment.known, source_is_key=source_is_key)
        units.append(replace(unit, segment=replace(unit.segment, known=known)))
    note = "most sources are keys; -s SOURCE -t TRANSLATION reads them with the file that has the texts"
    return replace(document, units=tuple(units), notes=(*document.notes, note))


#: A word in a category -> ITS 2.0 type of localisation quality issue (W3C 2013, section 8.17 and appendix C).
_ISSUES = {
    **{word: word for word in ("mistranslation", "terminology", "omission", "addition", "untranslated")},
    "inconsist": "inconsistency",
    "spelling": "misspelling",
    "punctuation": "typographical",
    "encoding": "characters",
    "locale": "locale-specific-content",
    **{word: word for word in ("grammar", "register", "style")},
    "awkward": "style",
    "non-translation": "non-conformance",
    "accuracy": "mistranslation",
    "fluency": "grammar",
    "number": "numbers",
    "repetition": "duplication",
    "placeholder": "markup",
    "check/tag": "markup",
    "check/language": "untranslated",
    "copy": "untranslated",
}


def issue_type(span: ErrorSpan) -> str:
    """The ITS type of an error; "other" if its category matches none."""
    category = (span.category or "").lower()
    if span.side == "source" and not category.startswith("check/"):
        return "omission"
    return next((issue for word, issue in _ISSUES.items() if word in category), "other")


def issue_comment(span: ErrorSpan, words: str) -> str:
    """A readable one-line comment: severity, category, text, and the correction with its reason."""
    kind = ", ".join(filter(None, (span.severity, span.category)))
    confidence = "" if span.confidence is None else f", confidence {span.confidence:.2f}"
    correction = "" if span.correction is None else f' -> "{span.correction}"'
    reason = f" ({span.reason})" if span.reason else ""
    return printable(f'{kind}{confidence}: {span.lost}"{words}"{correction}{reason}')
