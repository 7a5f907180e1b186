"""Weekdays, months and territories that the translation confuses with others of the same class.

The rule for all classes: if the source has a name that the translation lacks, and the translation has another name of
the same class that the source lacks, this other name is an error. The names are from CLDR.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.items import blanked
from mbr_esd_metric.checks.lexicons import (
    LONGEST,
    TOKEN,
    Name,
    agree,
    begins,
    fold,
    lexicon,
    meanings,
    names_in,
    other_beginnings,
)
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.prompting.languages import language_code, likely_languages

#: The night before a day is also the night after the previous day.
_NIGHT = re.compile(
    r"night|n[ao]ch?t|nuit|noche|noite|noapt|noc|ноч|ніч|ноќ|naktis|yö|öö|éj|gece|夜|晚|밤|晩|ليل|רات|लिल|रात",
    re.IGNORECASE,
)

#: A character that may abbreviate a territory whose name starts with it.
_HAN = re.compile("[\u3400-\u9fff]")


class Names(Check):
    """`check/weekday`, `check/month`, `check/territory` (major): a name that is not in the source, if the source
    has a name of the same class that the translation lacks."""

    name = "names"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors on added names in the translation."""
        if max(len(source), len(translation)) > LONGEST:
            return
        first = languages_of(source, context.source_language)
        before = names_in(source, first)
        if not any(one.sure for one in before):
            return
        second = languages_of(translation, context.target_language)
        after = names_in(translation, second)
        for one in invented(before, after, source, translation, (first, second)):
            yield error(one.kind, one.start, one.end)


def languages_of(text: str, language: str | None) -> tuple[str, ...]:
    """The language code of a text if it is known, otherwise the codes of its possible languages."""
    return likely_languages(text) if language is None else (language_code(language),)


def invented(
    before: Sequence[Name],
    after: Sequence[Name],
    source: str,
    translation: str,
    languages: tuple[Sequence[str], Sequence[str]],
) -> Iterator[Name]:
    """The names in a translation that the source lacks, at most as many as there are names of the class in the source
    that the translation lacks."""
    for kind in sorted({one.kind for one in before if one.sure} & {one.kind for one in after if one.sure}):
        here, there = [one for one in before if one.kind == kind], [one for one in after if one.kind == kind]
        lost = _missing(here, there, source, translation, languages[1])
        if not lost:
            continue
        new = _missing(there, here, translation, source, languages[0])
        if not new or len({one.keys for one in new}) > len({one.keys for one in lost}):
            continue
        if kind == "weekday" and _NIGHT.search(source + translation):
            continue
        yield from new


def _missing(
    names: Sequence[Name],
    others: Sequence[Name],
    written: str,
    text: str,
    languages: Sequence[str],
) -> list[Name]:
    """The sure names of a text that are missing from another text with the given names and possible languages."""
    folded, known = text.casefold(), {other.keys: other for other in others}.values()
    shown: dict[frozenset[str], bool] = {}
    found = []
    for one in names:
        if not one.sure or written[one.start : one.end].casefold() in folded:
            continue
        if one.keys not in shown:
            present = any(agree(one, other) for other in known)
            shown[one.keys] = present or _shown(one, others, text, languages)
        if not shown[one.keys]:
            found.append(one)
    return found


def _shown(name: Name, others: Sequence[Name], text: str, languages: Iterable[str]) -> bool:
    """Whether a text may mention what a name refers to, by a word with the same prefix, an abbreviation, or the number
    of a month."""
    if name.kind == "month" and any(int(one) == int(key) for one in re.findall(r"\d+", text) for key in name.keys):
        return True
    taken = [(one.start, one.end) for one in others if one.sure]
    tokens = []
    for match in TOKEN.finditer(text):
        if not any(start <= match.start() < end for start, end in taken):
            # Two letters are an abbreviation if followed by a point, or capitalised within a sentence.
            short = len(match[0]) < 3 and text[match.end() : match.end() + 1] != "."
            if not (short and (match[0].islower() or begins(text, match.start()))):
                tokens.append(fold(match[0]))
    whole, rest = fold(text), blanked(text, taken)
    for key in frozenset().union(*map(meanings, name.keys)):
        beginnings = other_beginnings(key)
        if any(token.startswith(beginnings) for token in tokens) or any(
            len(one) == 1 and one in whole for one in beginnings
        ):
            return True
        for words in filter(None, map(lexicon, languages)):
            forms = words.texts.get((name.kind, key), ())
            if any(_like(token, form) for form in forms for token in tokens):
                return True
            if any(len(form) > 3 and form in whole for form in forms):
                return True
            if name.kind == "territory" and any(_HAN.match(form) and form[0] in rest for form in forms):
                return True
    return False


def _like(token: str, form: str) -> bool:
    """Whether a word may be an abbreviation, a derivation or a compound of a name."""
    first = form.split()[0]
    if len(token) <= 4 and first.startswith(token):
        return True
    shared = next(
        (at for at, (a, b) in enumerate(zip(token, first, strict=False)) if a != b), min(len(token), len(first))
    )
    return shared >= 4 or (shared == 3 and len(first) <= 6 and len(token) <= 8)
