"""Errors planted in clean translations, so that a model learns to look at the source.

Annotated errors are few, and most of them are matters of taste; a wrong number or a lost negation is rare. Here one
error of a known kind is put into a translation that a rater found good. The rules are simple string edits; they know
German, English and Russian words where they need any.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from spoilt import Pair

from mbr_esd_metric.core.annotation import Severity

_WORD = re.compile(r"[^\W\d_]{2,}")
_NEGATIONS = {"de": ("nicht", "nie", "niemals"), "en": ("not", "never"), "ru": ("не", "никогда")}
#: Words that deny by themselves, and what stands there without it.
_DENYING = {
    "de": (("kein", "ein"), ("keine", "eine"), ("keinen", "einen"), ("keinem", "einem"), ("keiner", "einer")),
    "en": (("cannot", "can"),),
}
#: English "isn't", "doesn't" ...: what goes.
_SHORT_NOT = re.compile(r"(?<=\w)n['’]t\b")
_AUXILIARIES = {
    "en": {"is", "are", "was", "were", "will", "can", "has", "have", "could", "should", "would", "must"},
    "de": {"ist", "sind", "war", "waren", "wird", "werden", "wurde", "wurden"}
    | {"hat", "haben", "kann", "können", "muss"},
}
#: Words that take each other's place where grammar goes wrong.
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
#: Shortest word that is replaced by another, and fewest words that a replacement is drawn from.
_LONG, _ENOUGH = 5, 10


class PlantedError(NamedTuple):
    """A translation with an error at ``[start, end)``, of a kind of `PLANTED_KINDS`."""

    text: str
    start: int
    end: int
    severity: Severity
    kind: str = ""


class _Word(NamedTuple):
    start: int
    end: int
    text: str


class Planter:
    """Plants errors with words from these translations.

    Args:
        clean: translations without an error.
    """

    def __init__(self, clean: Iterable[Pair]) -> None:
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

    def plant(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """The translation with one error of a kind that suits it, drawn by `rng`; None if none does."""
        # The greatest of u^(1/weight), u uniform in [0, 1), is each with a probability in proportion to its weight.
        for kind in sorted(PLANTED_KINDS, key=lambda kind: -(rng.random() ** (1 / _KIND_WEIGHTS.get(kind, 1.0)))):
            edit = PLANTED_KINDS[kind](self, item, rng)
            if edit is not None and edit.text != item.translation and 0 <= edit.start < edit.end <= len(edit.text):
                return edit._replace(kind=kind)
        return None

    def number(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """Another digit in a number."""
        numbers = list(re.finditer(r"\d+", item.translation))
        if not numbers:
            return None
        number = rng.choice(numbers)
        at = rng.randrange(number.start(), number.end())
        digit = rng.choice([d for d in "123456789" if d != item.translation[at]])
        edit = _replaced(item.translation, _Word(at, at + 1, ""), digit)
        return PlantedError(edit.text, number.start(), number.end(), "major")

    def negation(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """A negation less, marked at the word before it, or where the word that denies stood; or one more, after an
        auxiliary."""
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

    def name(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """Another name for one that stands in the source as well."""
        source_words, names = set(_WORD.findall(item.source)), self._names.get(_language(item), [])
        options = [
            w
            for w in _words(item.translation)[1:]
            if w.text in source_words and w.text[0].isupper() and len(w.text) > 3
        ]
        if not options or len(names) < _ENOUGH:
            return None
        return _replaced(item.translation, rng.choice(options), rng.choice(names))

    def sense(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """Another word with the same last letters."""
        options = [word for word in _words(item.translation) if len(word.text) >= _LONG]
        if not options:
            return None
        word = rng.choice(options)
        others = self._by_ending.get(_ending(_language(item), word.text), [])
        return _replaced(item.translation, word, rng.choice(others)) if len(others) >= _ENOUGH else None

    def untranslated(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """A word of the source in the place of another."""
        options = [word for word in _words(item.translation) if len(word.text) >= _LONG]
        foreign = [
            w for w in _WORD.findall(item.source) if len(w) >= _LONG and w.islower() and w not in item.translation
        ]
        return _replaced(item.translation, rng.choice(options), rng.choice(foreign)) if options and foreign else None

    def omission(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """Two to four words less, marked at the word before them."""
        words, count = _words(item.translation), rng.randint(2, 4)
        if len(words) < count + 4:
            return None
        first = rng.randrange(1, len(words) - count)
        text = item.translation[: words[first].start] + item.translation[words[first + count].start :]
        return PlantedError(text, words[first - 1].start, words[first - 1].end, "major")

    def addition(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """One to four words of another translation more."""
        words, count = _words(item.translation), rng.randint(1, 4)
        other = rng.choice(self._by_language.get(_language(item), [""]))
        more = _words(other)
        if len(words) < 3 or len(more) < count + 2:
            return None
        first = rng.randrange(len(more) - count)
        return _inserted(
            item.translation, rng.choice(words[:-1]), other[more[first].start : more[first + count - 1].end]
        )

    def order(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """Two neighbours in the wrong order."""
        words = _words(item.translation)
        pairs = [(a, b) for a, b in pairwise(words[1:]) if item.translation[a.end : b.start] == " "]
        if not pairs:
            return None
        first, second = rng.choice(pairs)
        both = _Word(first.start, second.end, "")
        return _replaced(item.translation, both, f"{second.text} {first.text}", "minor")

    def form(self, item: Pair, rng: random.Random) -> PlantedError | None:
        """A wrong form of a function word."""
        groups = _FORMS.get(_language(item), ())
        options = [(word, group) for word in _words(item.translation) for group in groups if word.text.lower() in group]
        if not options:
            return None
        word, group = rng.choice(options)
        other = rng.choice([form for form in group if form != word.text.lower()])
        return _replaced(item.translation, word, other.capitalize() if word.text[0].isupper() else other, "minor")


#: Kind of error -> the rule that plants it.
PLANTED_KINDS: dict[str, Callable[[Planter, Pair, random.Random], PlantedError | None]] = {
    name: getattr(Planter, name)
    for name in ("number", "negation", "name", "sense", "untranslated", "omission", "addition", "order", "form")
}

#: How often a kind is tried first, where that is not 1: a small model finds what is missing last.
_KIND_WEIGHTS = {"omission": 3.0, "negation": 4.0, "number": 1.5}


def _language(item: Pair) -> str:
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
