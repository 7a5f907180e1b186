"""Data warnings: pairs of source and translation that look like data errors. They are counted and do not change
scores."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.messages import first_of
from mbr_esd_metric.prompting.languages import FEWEST_LETTERS
from mbr_esd_metric.prompting.text import is_blank

_MARKS = ".,;:!?\"'()[]{}«»„“”‘’…-–—。、，！？"
#: Number of consecutive repetitions of a word that suggests a data error.
_REPEATED = 4

#: A pattern in every text that the item checks can find errors in.
_CHECKED = re.compile(r"[\d@<{%]|&lt;|://|www\.", re.IGNORECASE)
#: Category of a check that is a data warning -> the warning.
_OF_CHECKS = {"check/language": "in another language"} | {
    f"check/{kind.lower()}": f"with other {kind}s" for kind in ("number", "URL", "email", "tag", "placeholder")
}

_COPY = "equal to its source"

#: Letters in Latin and Cyrillic script, and Chinese characters.
_LETTERS, _CHINESE = re.compile(r"[0-9A-Za-zÀ-ɏЀ-ӿḀ-ỿ]"), re.compile("[㐀-鿿豈-﫿]")
#: The length ratio (in letters) of translation and source is rarely below this value, or that of source and
#: translation: for .7% of 34,526 error-free translations in 13 language pairs, 1.0% of 18,337 from or into Chinese.
#: Short texts differ more: buttons and messages often double in length.
_SHARE, _ENOUGH = 0.58, 30
#: Letters that a Chinese character counts as.
_PER_CHARACTER = 3.5


def is_worth_checking(source: str, translation: str, target_language: str | None) -> bool:
    """Whether the checks can find a data warning in this pair. Most pairs consist of plain words and need not be
    checked."""
    if target_language and len(translation) >= FEWEST_LETTERS:
        return True
    same = source.strip()[:1] == translation.strip()[:1]
    return same or any(_CHECKED.search(text) for text in (source, translation))


def data_warning(source: str, translation: str, errors: Sequence[ErrorSpan], source_is_key: bool = False) -> str | None:
    """The data warnings of a pair, separated by commas, such as "repeated twice, with other numbers"; None if there are
    none. `errors` are the errors that the checks found; `source_is_key`: whether the source is the key of a message
    instead of its text."""
    if is_blank(source):
        return "blank source"
    if is_blank(translation):
        return "blank translation"
    source, translation = source.strip(), translation.strip()
    failed = {one.category for one in errors}
    if source_is_key:
        return "a key in place of its source"
    if "check/copy" in failed:
        return _COPY
    found: list[str] = []
    words = _words(translation)
    if len({*words}) < len(words):
        before_words = _words(source)
        if _longest_run(words) >= _REPEATED > _longest_run(before_words):
            found.append("one word repeated")
        elif _doubled(translation, words) and not _doubled(source, before_words):
            found.append("said twice")
    before, after = _letters(source), _letters(translation)
    if before is not None and after is not None:
        if after < _SHARE * before and before >= _ENOUGH:
            found.append("much shorter than its source")
        if before < _SHARE * after and after - before >= _ENOUGH:
            found.append("much longer than its source")
    found += [warning for category, warning in _OF_CHECKS.items() if category in failed]
    return ", ".join(dict.fromkeys(found)) or None


def is_marked(warning: str | None, categories: Iterable[str | None]) -> bool:
    """Whether errors of these categories include all errors that the data warning reports."""
    kinds = set(warning.split(", ")) if warning else set()
    warned = {category for category, kind in (_OF_CHECKS | {"check/copy": _COPY}).items() if kind in kinds}
    return warned <= set(categories)


def warnings(data_warnings: Sequence[str | None], labels: Sequence[str], blank: str) -> str | None:
    """One line with the number of suspicious pairs of each kind, and their first labels; None if there are none."""
    pairs: dict[str, list[str]] = defaultdict(list)
    for kinds, label in zip(data_warnings, labels, strict=True):
        for kind in kinds.split(", ") if kinds else ():
            pairs[kind].append(label)
    if not pairs:
        return None
    line = "data warnings: " + "; ".join(f"{kind}: {len(of)} ({first_of(of)})" for kind, of in pairs.items())
    if "blank translation" in pairs:
        means = {"worst": "get the lowest score", "skip": "get no score", "perfect": "count as error-free"}
        line += f"; blank translations {means[blank]} (blank={blank})"
    return line


def _letters(text: str) -> float | None:
    """The number of letters of the text, where a Chinese character counts as several; None if over a tenth of the
    letters are in other scripts."""
    letters, chinese = len(_LETTERS.findall(text)), len(_CHINESE.findall(text))
    counted = letters + chinese >= 0.9 * sum(map(str.isalnum, text))
    return letters + _PER_CHARACTER * chinese if counted else None


def _words(text: str) -> list[str]:
    """The words without marks; of text without spaces, the characters."""
    words = text.casefold().split()
    if len(words) == 1:
        return [character for character in words[0] if character.isalnum()]
    return [stripped for word in words if (stripped := word.strip(_MARKS))]


def _doubled(text: str, words: Sequence[str]) -> bool:
    """Whether the text of these `_words` consists of two equal halves, with at least four words (eight characters
    without spaces)."""
    half = len(words) // 2
    return len(words) >= (8 if len(text.split()) == 1 else 4) and words[:half] == words[half:]


def _longest_run(words: Sequence[str]) -> int:
    """The largest number of consecutive repetitions of a word."""
    return max((len(list(run)) for _, run in groupby(words)), default=0)
