"""Synthetic errors in clean translations, from which a model learns to compare the translation with the source.

Human-annotated errors are few, and mostly stylistic; wrong numbers and lost negations are rare. Here, one error of a
known kind is inserted into a translation without annotated errors. The rules are simple string edits, with word lists
for German, English and Russian.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity
from mbr_esd_metric.distill.training_rows import HumanAnnotation

_WORD = re.compile(r"[^\W\d_]{2,}")
_NEGATIONS = {"de": ("nicht", "nie", "niemals"), "en": ("not", "never"), "ru": ("не", "никогда")}
#: Negations, and their replacements without negation.
_DENYING = {
    "de": (("kein", "ein"), ("keine", "eine"), ("keinen", "einen"), ("keinem", "einem"), ("keiner", "einer")),
    "en": (("cannot", "can"),),
}
#: The negation in English "isn't", "doesn't" ...
_SHORT_NOT = re.compile(r"(?<=\w)n['’]t\b")
_AUXILIARIES = {
    "en": {"is", "are", "was", "were", "will", "can", "has", "have", "could", "should", "would", "must"},
    "de": {"ist", "sind", "war", "waren", "wird", "werden", "wurde", "wurden"}
    | {"hat", "haben", "kann", "können", "muss"},
}
#: Words that are exchanged for grammatical errors.
_FORMS = {
    "de": (
        ("der", "die", "das", "den", "dem", "des"),
        ("ein", "eine", "einen", "einem", "einer"),
        ("ist", "sind"),
        ("hat", "haben"),
        ("war", "waren"),
        ("wird", "werden"),
        ("diese", "dieser", "diesen", "dieses"),
    ),
    "en": (("is", "are"), ("was", "were"), ("has", "have"), ("a", "an"), ("this", "these"), ("in", "on", "at")),
    "ru": (("он", "она", "они"), ("был", "была", "было", "были"), ("его", "её", "их"), ("этот", "эта", "это", "эти")),
}
#: The minimum length of replaced words, and the minimum number of candidates for a replacement.
_LONG, _ENOUGH = 5, 10


class PlantedError(NamedTuple):
    """A translation with an error at ``[start, end)``."""

    text: str
    start: int
    end: int
    severity: Severity


class _Word(NamedTuple):
    start: int
    end: int
    text: str


class Planter:
    """Inserts errors, with words from the given translations.

    Args:
        clean: annotations without errors.
    """

    def __init__(self, clean: Iterable[HumanAnnotation]) -> None:
        self._by_language: dict[str, list[str]] = {}
        self._by_ending: dict[tuple[str, bool, str], list[str]] = {}
        self._names: dict[str, list[str]] = {}
        for item in clean:
            language, source_words = _language(item), set(_WORD.findall(item.source))
            self._by_language.setdefault(language, []).append(item.translation)
            for number, word in enumerate(_words(item.translation)):
                if len(word.text) >= _LONG:
                    self._by_ending.setdefault(_ending(language, word.text), []).append(word.text)
                if number and word.text[0].isupper() and word.text in source_words and len(word.text) >= _LONG - 1:
                    self._names.setdefault(language, []).append(word.text)

    def plant(self, item: HumanAnnotation, rng: random.Random) -> HumanAnnotation | None:
        """`item` with one error of an applicable kind, drawn by `rng`; None if no kind is applicable."""
        # An item has the maximum of u^(1/weight), u uniform in [0, 1), with probability proportional to its weight.
        for kind in sorted(PLANTED_KINDS, key=lambda kind: -(rng.random() ** (1 / _KIND_WEIGHTS.get(kind, 1.0)))):
            edit = PLANTED_KINDS[kind](self, item, rng)
            if edit is not None and edit.text != item.translation and 0 <= edit.start < edit.end <= len(edit.text):
                span = ErrorSpan(edit.start, edit.end, edit.severity, f"planted/{kind}")
                return HumanAnnotation(item.source, edit.text, item.lp, Annotation([span]))
        return None

    def number(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Replace a digit of a number."""
        numbers = list(re.finditer(r"\d+", item.translation))
        if not numbers:
            return None
        number = rng.choice(numbers)
        at = rng.randrange(number.start(), number.end())
        digit = rng.choice([d for d in "123456789" if d != item.translation[at]])
        edit = _replaced(item.translation, _Word(at, at + 1, ""), digit)
        return PlantedError(edit.text, number.start(), number.end(), "major")

    def negation(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Remove a negation, marked at the word before it or at its replacement; or add one after an auxiliary."""
        text, language = item.translation, _language(item)
        words = _words(text)
        less: list[PlantedError] = []
        for i, word in enumerate(words):
            if i and word.text.lower() in _NEGATIONS.get(language, ()):
                without = text[: word.start].rstrip(" ") + text[word.end :]
                less.append(PlantedError(without, words[i - 1].start, words[i - 1].end, "major"))
            for denying, plain in _DENYING.get(language, ()):
                if word.text.lower() == denying:
                    less.append(_replaced(text, word, plain.capitalize() if word.text[0].isupper() else plain))
        for match in _SHORT_NOT.finditer(text) if language == "en" else ():
            start = max(text.rfind(" ", 0, match.start()), text.rfind("\n", 0, match.start())) + 1
            less.append(PlantedError(text[: match.start()] + text[match.end() :], start, match.start(), "major"))
        if less:
            return rng.choice(less)
        places = [word for word in words if word.text.lower() in _AUXILIARIES.get(language, ())]
        return _inserted(text, rng.choice(places), _NEGATIONS[language][0]) if places else None

    def name(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Replace a name that is also in the source."""
        source_words, names = set(_WORD.findall(item.source)), self._names.get(_language(item), [])
        options = [
            w
            for w in _words(item.translation)[1:]
            if w.text in source_words and w.text[0].isupper() and len(w.text) > 3
        ]
        if not options or len(names) < _ENOUGH:
            return None
        return _replaced(item.translation, rng.choice(options), rng.choice(names))

    def sense(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Replace a word by another one with the same last letters."""
        options = [word for word in _words(item.translation) if len(word.text) >= _LONG]
        if not options:
            return None
        word = rng.choice(options)
        others = self._by_ending.get(_ending(_language(item), word.text), [])
        return _replaced(item.translation, word, rng.choice(others)) if len(others) >= _ENOUGH else None

    def untranslated(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Replace a word by a word of the source."""
        options = [word for word in _words(item.translation) if len(word.text) >= _LONG]
        foreign = [
            w for w in _WORD.findall(item.source) if len(w) >= _LONG and w.islower() and w not in item.translation
        ]
        return _replaced(item.translation, rng.choice(options), rng.choice(foreign)) if options and foreign else None

    def omission(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Delete two to four words, marked at the word before them."""
        words, count = _words(item.translation), rng.randint(2, 4)
        if len(words) < count + 4:
            return None
        first = rng.randrange(1, len(words) - count)
        text = item.translation[: words[first].start] + item.translation[words[first + count].start :]
        return PlantedError(text, words[first - 1].start, words[first - 1].end, "major")

    def addition(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Insert one to four words of another translation."""
        words, count = _words(item.translation), rng.randint(1, 4)
        other = rng.choice(self._by_language.get(_language(item), [""]))
        more = _words(other)
        if len(words) < 3 or len(more) < count + 2:
            return None
        first = rng.randrange(len(more) - count)
        return _inserted(
            item.translation, rng.choice(words[:-1]), other[more[first].start : more[first + count - 1].end]
        )

    def order(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Swap two adjacent words."""
        words = _words(item.translation)
        pairs = [(a, b) for a, b in pairwise(words[1:]) if item.translation[a.end : b.start] == " "]
        if not pairs:
            return None
        first, second = rng.choice(pairs)
        both = _Word(first.start, second.end, "")
        return _replaced(item.translation, both, f"{second.text} {first.text}", "minor")

    def form(self, item: HumanAnnotation, rng: random.Random) -> PlantedError | None:
        """Replace a function word by another form."""
        groups = _FORMS.get(_language(item), ())
        options = [(word, group) for word in _words(item.translation) for group in groups if word.text.lower() in group]
        if not options:
            return None
        word, group = rng.choice(options)
        other = rng.choice([form for form in group if form != word.text.lower()])
        return _replaced(item.translation, word, other.capitalize() if word.text[0].isupper() else other, "minor")


#: Kind of error -> its rule.
PLANTED_KINDS: dict[str, Callable[[Planter, HumanAnnotation, random.Random], PlantedError | None]] = {
    name: getattr(Planter, name)
    for name in ("number", "negation", "name", "sense", "untranslated", "omission", "addition", "order", "form")
}

#: Sampling weights other than 1: omissions are the hardest for a small model.
_KIND_WEIGHTS = {"omission": 3.0, "negation": 4.0, "number": 1.5}


def _language(item: HumanAnnotation) -> str:
    return item.lp.partition("-")[2].partition("_")[0]


def _words(text: str) -> list[_Word]:
    return [_Word(match.start(), match.end(), match[0]) for match in _WORD.finditer(text)]


def _ending(language: str, word: str) -> tuple[str, bool, str]:
    return language, word[0].isupper(), word[-2:]


def _replaced(text: str, word: _Word, new: str, severity: Severity = "major") -> PlantedError:
    return PlantedError(text[: word.start] + new + text[word.end :], word.start, word.start + len(new), severity)


def _inserted(text: str, after: _Word, new: str) -> PlantedError:
    return PlantedError(
        f"{text[: after.end]} {new}{text[after.end :]}", after.end + 1, after.end + 1 + len(new), "major"
    )
