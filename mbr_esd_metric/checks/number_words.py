"""Numbers in words, such as "two" and "zwanzig", from CLDR's rules as provided by number-parser.

A single word that unambiguously is a number is *sure*, and so are tens with a unit ("twenty-five").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import product

from mbr_esd_metric.checks.lexicons import TOKEN

#: The supported languages, with number words that number-parser lacks.
_MORE: dict[str, dict[int, str]] = {
    "bs": {}, "ca": {}, "el": {}, "en": {}, "es": {}, "hr": {}, "is": {}, "mk": {}, "nb": {},
    "pt": {}, "sr": {}, "uk": {2: "двоє", 3: "троє", 4: "четверо", 5: "пʼятеро"},
    "cs": {20: "dvacet dvaceti", 30: "třicet třiceti", 40: "čtyřicet čtyřiceti"},
    "da": {20: "tyve", 30: "tredive", 40: "fyrre", 50: "halvtreds", 60: "tres", 70: "halvfjerds", 80: "firs"},
    "de": {
        **{n: f"{stem}zehn" for n, stem in ((13, "drei"), (14, "vier"), (15, "fünf"), (18, "acht"), (19, "neun"))},
        **{10 * n: f"{stem}zig" for n, stem in ((4, "vier"), (5, "fünf"), (6, "sech"), (7, "sieb"), (8, "acht"))},
        2: "zweien zweier zwo", 3: "dreier dreien", 20: "zwanzig", 30: "dreißig dreissig", 90: "neunzig",
    },
    "fi": {}, "hu": {},
    "it": {
        20: "venti", 30: "trenta", 40: "quaranta", 50: "cinquanta", 60: "sessanta", 70: "settanta", 80: "ottanta",
        90: "novanta",
    },
    "fr": {20: "vingts", 60: "soixante", 100: "cents"},
    "nl": {
        20: "twintig", 30: "dertig", 40: "veertig", 50: "vijftig", 60: "zestig", 70: "zeventig", 80: "tachtig",
        90: "negentig",
    },
    "pl": {
        2: "dwojgiem dwoje", 3: "troje trojgiem", 20: "dwadzieścia dwudziestu", 30: "trzydzieści trzydziestu",
        40: "czterdzieści czterdziestu", 50: "pięćdziesiąt pięćdziesięciu", 60: "sześćdziesiąt sześćdziesięciu",
        70: "siedemdziesiąt siedemdziesięciu", 80: "osiemdziesiąt osiemdziesięciu", 90: "dziewięćdziesiąt",
    },
    "ru": {2: "двое двоих", 3: "трое троих", 4: "четверо четверых", 5: "пятеро пятерых", 6: "шестеро", 7: "семеро"},
    "sk": {50: "päťdesiat", 60: "šesťdesiat", 70: "sedemdesiat", 80: "osemdesiat", 90: "deväťdesiat"}, "sv": {},
}  # fmt: skip
#: Ambiguous words.
_UNSURE = {
    "da": "to fire",
    "es": "once",
    "fi": "kuusi",
    "fr": "neuf",
    "hu": "hat hét",
    "it": "sei",
    "nl": "acht elf",
    "pt": "sete",
    "sv": "sex fyra",
}
#: The connector between a unit and tens in one word; languages with tens before the unit in one word.
_BETWEEN, _JOINED = {"de": "und", "nl": "en", "da": "og"}, frozenset(("it", "nb", "sk", "sv"))
#: Connectors between tens and a unit.
_AND = frozenset(("and", "und", "y", "e", "et", "i", "och", "og", "и"))
#: Within words: п'ять.
_APOSTROPHES = {ord("'"): "\u02bc", ord("’"): "\u02bc"}
#: Numbers that a unit may follow, and the smallest numbers that others may precede.
_TENS, _HUNDRED = range(20, 100, 10), 100

#: Chinese and Japanese numerals before a counter.
_NUMERALS = re.compile(
    "(?<![第几幾数數一二两兩三四五六七八九十百千万萬亿億零〇初\\d])([一二两兩三四五六七八九十]{1,3})"
    "(?=[个個只隻名位匹頭头枚冊册台辆輛軒歳岁次回件杯家间間张張条條座套双雙棵]|人(?!参)|つ|本(?!当|來|来|地|人|身|国|國)"
    "|年(?!代|前|级|級|度|生)|天(?!下)|小时|小時|時間|分(?:钟|鐘|間)|か月|ヶ月|カ月|週間|周|星期|日間)"
)
_DIGITS = {one: at for at, one in enumerate("〇一二三四五六七八九")} | {"两": 2, "兩": 2}


@dataclass(frozen=True, slots=True)
class NumberWord:
    """A number in words with its position; the value is None if it is not sure."""

    start: int
    end: int
    value: int | None


@lru_cache(maxsize=64)
def number_words(language: str) -> Mapping[str, int]:
    """The folded number words of a language; empty if unknown."""
    language = {"no": "nb"}.get(language, language)
    if language not in _MORE:
        return {}
    data = import_module(f"number_parser.data.{language}").info
    found: dict[str, int] = {}
    for part in ("UNIT_NUMBERS", "DIRECT_NUMBERS", "TENS", "HUNDREDS", "BIG_POWERS_OF_TEN"):
        for word, value in data[part].items():
            # Polish tens stand among its units there.
            if not (language == "pl" and value < 10 and re.search("(?<=.)dzie|^dzies", word)):
                found[word.casefold().translate(_APOSTROPHES)] = value
    for value, words in _MORE[language].items():
        found.update(dict.fromkeys(map(str.casefold, words.split()), value))
    units = {word: value for word, value in found.items() if 0 < value < 10}
    tens = {word: value for word, value in found.items() if value in _TENS}
    for (unit, one), (ten, other) in product(units.items(), tens.items()):
        if language in _BETWEEN:
            found[f"{unit}{_BETWEEN[language]}{ten}"] = one + other
        elif language in _JOINED:
            elided = ten[:-1] if language == "it" and unit[0] in "uo" else ten
            found[elided + unit] = found[elided + unit.replace("tre", "tré")] = one + other
    return found


@lru_cache(maxsize=8)
def numbers_in_words(text: str, language: str) -> tuple[NumberWord, ...]:
    """The numbers in words in a text of a language, in order; "one" and "zero" only within other numbers."""
    if language in ("ja", "zh"):
        found = (match for match in _NUMERALS.finditer(text) if match[1] != "一")
        return tuple(NumberWord(*match.span(1), _numeral(match[1])) for match in found)
    words = number_words(language)
    if language == "uk":
        text = text.translate(_APOSTROPHES)
    return tuple(_spaced(text, words, frozenset(_UNSURE.get(language, "").split()))) if words else ()


def _spaced(text: str, words: Mapping[str, int], unsure: frozenset[str]) -> Iterator[NumberWord]:
    """Numbers in words separated by spaces or hyphens."""
    run: list[tuple[int, int, int, str]] = []
    for match in TOKEN.finditer(text):
        token = match[0] if match[0].isascii() and match[0].islower() else match[0].casefold()
        value = words.get(token)
        joined = bool(run) and not text[run[-1][1] : match.start()].strip(" -\u00a0\u2010\u2011")
        if value is None and joined and token in _AND and (run[-1][2] in _TENS or run[-1][2] >= _HUNDRED):
            run[-1] = (run[-1][0], match.end(), *run[-1][2:])
            continue
        if run and (value is None or not joined):
            # An ordinal after tens: twenty-first.
            ordinal = value is None and run[-1][2] in _TENS and text[run[-1][1] : match.start()] == "-"
            yield from _number([*run, run[-1]] if ordinal else run, unsure)
            run = []
        if value is not None:
            run.append((*match.span(), value, token))
    yield from _number(run, unsure)


def _number(run: list[tuple[int, int, int, str]], unsure: frozenset[str]) -> Iterator[NumberWord]:
    """The value of several consecutive words."""
    values = [one[2] for one in run]
    if not run or (len(run) == 1 and values[0] < 2):
        return
    value: int | None = None
    if len(run) == 1 and values[0] < _HUNDRED and run[0][3] not in unsure:
        value = values[0]
    elif len(run) == 2 and values[0] in _TENS and 0 < values[1] < 10:
        value = sum(values)
    yield NumberWord(run[0][0], run[-1][1], value)


def _numeral(text: str) -> int | None:
    """The value of a Chinese numeral below 100; None for approximate ones, such as 三四 (three or four)."""
    tens, mark, units = text.rpartition("十")
    if len(tens) > 1 or len(units) > 1:
        return None
    return (_DIGITS.get(tens, 1) if mark else 0) * 10 + _DIGITS.get(units, 0)
