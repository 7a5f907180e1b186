"""The CLDR names of weekdays, months, and territories with their languages.

A name has one or several keys: "Dollar" is used in several territories, "Polish" belongs to Poland only. Two names
agree if they have a key in common. A name is *sure* if it is unambiguous; other names only indicate a possible mention.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

#: The maximum length of texts that are searched for names and units.
LONGEST = 20_000
#: A token, delimited by whitespace and punctuation.
TOKEN = re.compile(
    r"[^\s\0-/:-@\[-`{-\xa9\xab-\xb1\xb4\xb6-\xb9\xbb\xbf\u2000-\u206f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20।؟،؛]+"
)
#: A letter of a script without spaces between words.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
#: A letter of Korean, which attaches particles to words, and has spaces before words.
_HANGUL = re.compile("[\uac00-\ud7af]")
#: A letter of a script with upper and lower case.
_CASED = re.compile("[A-Za-zÀ-ɏͰ-ϿЀ-ԯḀ-ỿ\u0530-\u058f]")
#: Punctuation after which a sentence may start, where capital letters are not informative.
_ENDS = frozenset(".!?:;…\n\"“„«‹‘'([•|>-–—。")

#: One-letter words that are attached to the next word: and, in, to, the, from and similar ones.
_PREFIX = re.compile("[ובלכמהש]{1,2}|[وفبلك]{1,2}")
#: Languages with noun cases, in which names have several endings.
CASES = frozenset(
    re.findall(
        r"\w+",
        """
        bs cs de el et fi hr hu is ka kk ky la lt lv mk mn pl ru sk sl sr tr tt uk uz az hy
        """,
    )
)
#: The length of the longest time of day that German appends to a weekday: "nachmittags".
_COMPOUND = 11
#: Languages in which the name of May has three letters and is unambiguous.
_SHORT_MONTHS = frozenset(("da", "de", "fr", "nb", "nl", "sv"))
#: Letters that an ending may replace.
_ENDING = re.compile("(?:[аеиоуыэюяёйьіїєaeiouyąęěåäöőηαςο]{1,2})$")
#: Further locales of a language with different names.
_REGIONS = {
    "ar": ("ar_SY", "ar_DZ", "ar_MA", "ar_TN"),
    "de": ("de_AT",),
    "pt": ("pt_PT",),
    "sr": ("sr_Latn",),
    "zh": ("zh_Hant", "zh_Hant_HK"),
}
#: Names that are also common words, in lower case.
_UNSURE = {
    language: frozenset(words.split())
    for language, words in {
        "en": "may march polish turkey chad jordan georgia jersey guinea man mali niger lao thai",
        "es": "chile cuba marte mali",
        "fr": "inde mars mali niger",
        "it": "cuba cina mali",
        "ko": "가나 가봉 괌 기니 말리 수단 오만 이란 인도 차드 토고 통가 피지",
        "pl": "czad środek środka środki środku",
        "ru": "того чад мали среди среде средой перу",
        "zh": "海地 馬里 马里 也門 也门 多哥",
        "uk": "того чад середи перу",
    }.items()
}
#: Contexts in which "March" and "May" are months.
_SPRING = re.compile(
    r"(?:\b(?:in|of|since|until|till|by|early|late|mid|last|next|every|\d{1,2}(?:st|nd|rd|th)?)[ -]|\b(?=\w{3,5} \d))"
    r"(March|May)\b(?! (?:be|have|not|also|for)\b)"
)
_SPRING_KEYS = {"March": "3", "May": "5"}
#: Abbreviated territories, in capitals.
_ACRONYM = re.compile(
    r"(?<![\w.-])(?:(?P<GB>UK|U\.K\.)|(?P<US>USA|U\.S\.(?:A\.)?|США|EE\. ?UU\."
    r"|(?:(?<=the )US|US(?= [a-z]|-|['’]s))(?![ -][Dd]ollar)))(?!\w)"
)
#: The day of a month, and a day or a year.
_DAY, _DAY_OR_YEAR = re.compile(r"[0-3]?\d(?:st|nd|rd|th)?"), re.compile(r"[0-3]?\d(?:st|nd|rd|th)?|(?:19|20)\d\d")
#: A month written with its number, and other calendars that number their months.
_NUMBERED_MONTH = re.compile(r"(?<![\d.．/])(1[0-2]|[1-9])[ 　]?[月월](?!間|间|期|龄|齢)")
_LUNAR = re.compile("[农農阴陰]历|[农農阴陰]曆|旧暦|正月")
#: Names missing from CLDR, by class and language: key -> forms.
_SYNONYMS: dict[tuple[str, str], dict[str, str]] = {
    ("weekday", "de"): {"5": "Sonnabend"},
    ("weekday", "zh"): {
        "6": "星期天 周天 週天 礼拜天 礼拜日 禮拜天",
        **{str(n): f"礼拜{c} 禮拜{c}" for n, c in enumerate("一二三四五六")},
    },
}
#: Prefixes of words that refer to a territory without its CLDR name.
_ALSO = {
    key: tuple(words.split())
    for key, words in {
        "US": "us usa u.s amer америк сша ее.уу eua abd vs statunit estadoun etat staat 美 米 미 امريك",
        "GB": "uk brit grossbrit bret bryt велик engl angl ingl ingel анг брит scot schott welsh wales buyuk vk 英 영 "
        "بريطان انجل",
        "NL": "holl holan голл голан oland dutch 荷 네덜 오란다",
        "CN": "chin kin cin kit кита sino 中 华 華 중",
        "RU": "рф russ rus ros rosj росс русс sov сов 俄 露 러 소",
        "KR": "kore core корей 韩 韓 朝 한 조선",
        "KP": "kore core корей 朝 한 조선",
        "CZ": "tche tsche chec cech czec cesk чех 捷",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a text: its position, its class, its keys, and whether it is sure."""

    start: int
    end: int
    kind: str
    keys: frozenset[str]
    sure: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A written form of a name: its folded tokens, and their possible endings and prefixes."""

    tokens: tuple[str, ...]
    kind: str
    keys: frozenset[str]
    sure: bool
    capital: bool
    endings: int


@dataclass(slots=True)
class Lexicon:
    """The names of one language. `forms` are indexed by the first token; `stems` are single-token names with other
    endings; `characters` are names in scripts without spaces, indexed by the first character."""

    language: str
    forms: dict[str, list[Form]] = field(default_factory=dict)
    stems: dict[str, list[Form]] = field(default_factory=dict)
    characters: dict[str, list[tuple[str, Form]]] = field(default_factory=dict)
    #: Folded abbreviation of weekdays and months -> the classes and keys that it has.
    short: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    #: (class, key) -> the folded names.
    texts: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    _found: dict[str, tuple[Form, ...]] = field(default_factory=dict)

    @property
    def _unsure(self) -> frozenset[str]:
        return _UNSURE.get(self.language, frozenset())

    def add(
        self,
        text: str,
        kind: str,
        keys: frozenset[str],
        *,
        sure: bool = True,
        capital: bool = False,
        endings: int = 0,
        shortest: int = 4,
    ) -> None:
        """Add a name, which is not sure if it has fewer than `shortest` letters."""
        tokens = tuple(fold(one) for one in TOKEN.findall(text))
        if not tokens:
            return
        for key in keys:
            self.texts[kind, key].add(fold(text))
        if UNSPACED.search(text):
            form = Form(tokens, kind, keys, sure and text not in self._unsure, False, 0)
            if len(text) > 1 or shortest == 1:
                self.characters.setdefault(text[0], []).append((text, form))
            return
        sure = sure and len("".join(tokens)) >= shortest and not {*tokens} <= self._unsure
        form = Form(tokens, kind, keys, sure, capital, endings)
        self.forms.setdefault(tokens[0], []).append(form)
        if len(tokens) == 1 and endings:
            stem = _ENDING.sub("", tokens[0])
            self.stems.setdefault(stem if len(stem) >= 4 else tokens[0], []).append(form)

    def first(self, token: str) -> tuple[Form, ...]:
        """The forms that may start with a folded token: exact matches, or else those with another ending."""
        found = self._found.get(token)
        if found is None:
            forms = self.forms.get(token, ())
            if not forms and len(token) >= 4:
                for end in range(len(token), 3, -1):
                    forms = [
                        one
                        for one in self.stems.get(token[:end], ())
                        if -2 < len(token) - len(one.tokens[0]) <= one.endings and token not in self._unsure
                    ]
                    if forms:
                        break
            if not forms and (prefix := _PREFIX.match(token)):
                forms = [one for end in (1, 2) if end <= len(prefix[0]) for one in self.forms.get(token[end:], ())]
            found = tuple(sorted(forms, key=lambda one: -len(one.tokens)))
            if len(self._found) > 50_000:
                self._found.clear()
            self._found[token] = found
        return found


def other_beginnings(key: str) -> tuple[str, ...]:
    """The prefixes of words that refer to a territory without its CLDR name."""
    return _ALSO.get(key, ())


def fold(text: str) -> str:
    """The text in lower case, without the accents of Latin, Greek and Arabic letters."""
    text = text.casefold()
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    if "\u0400" <= max(text) <= "\u052f" or max(text) >= "\u0900":
        return text
    return "".join(one for one in unicodedata.normalize("NFD", text) if not unicodedata.combining(one))


@lru_cache(maxsize=64)
def lexicon(language: str) -> Lexicon | None:
    """The names of a language (a code without a region); None if CLDR has none."""
    from babel.localedata import exists

    language = {"no": "nb", "tl": "fil", "he": "he", "iw": "he"}.get(language, language)
    if not exists(language):
        return None
    found = Lexicon(language)
    for name in (language, *_REGIONS.get(language, ())):
        _add_names(found, locale_data(name, ("days", "months", "territories", "languages")))
    for (kind, of), synonyms in _SYNONYMS.items():
        if of == language:
            for key, forms in synonyms.items():
                for form in forms.split():
                    found.add(form, kind, frozenset({key}), sure=True, capital=False, endings=1)
    return found


def locale_data(locale: str, parts: Sequence[str]) -> Mapping[str, Any]:
    """Parts of the CLDR data of a locale, as copies: Babel caches lookups in the data of parent locales, and so changes
    those of other locales."""
    from babel.localedata import LocaleDataDict, load

    data = load(locale)
    found: Mapping[str, Any] = LocaleDataDict({part: _copied(data[part]) for part in parts})
    return found


def _copied(data: Any) -> Any:
    """A copy of nested dictionaries (faster than `deepcopy`); strings and aliases are shared."""
    if isinstance(data, dict):
        return {key: _copied(one) for key, one in data.items()}
    return tuple(map(_copied, data)) if isinstance(data, tuple) else data


def _add_names(found: Lexicon, locale: Mapping[str, Any]) -> None:
    language = found.language
    cases = language in CASES
    for kind, part in (("weekday", "days"), ("month", "months")):
        for context in locale[part].values():
            for key, text in context["wide"].items():
                capital = language == "en"
                sure = not any(character.isdigit() for character in text)
                endings = _COMPOUND if language == "de" and kind == "weekday" else 3 if cases else 1
                shortest = 3 if kind == "month" and language in _SHORT_MONTHS else 4
                found.add(
                    text, kind, frozenset({str(key)}), sure=sure, capital=capital, endings=endings, shortest=shortest
                )
            for key, text in context["abbreviated"].items():
                short = fold(text).rstrip(".")
                found.texts[kind, str(key)].add(short)
                found.short[short].add((kind, str(key)))
                if UNSPACED.search(text) and len(text) > 1 and not any(one.isdigit() for one in text):
                    found.add(text, kind, frozenset({str(key)}), sure=True, capital=False, endings=0)
    territories = {
        code: text for code, text in locale["territories"].items() if len(code) == 2 and code not in _NO_PLACES
    }
    for code, text in territories.items():
        plain = re.fullmatch(r"[^\W\d_]+(?:[ '’-][^\W\d_]+){0,3}|[^()\d]{2,8}", text) is not None
        # German declines adjectives: in den Vereinigten Staaten.
        declined = [re.sub("e[rs]?(?= )", end, text) for end in ("e", "en", "er") if language == "de"]
        for form in dict.fromkeys((text, *declined)):
            found.add(form, "territory", frozenset({code}), sure=plain, capital=True, endings=3 if cases else 0)
    for code, text in locale["languages"].items():
        if code in _LANGUAGES:
            endings = 0 if language == "en" else 3
            found.add(text, "territory", frozenset({code}), sure=True, capital=language == "en", endings=endings)


#: CLDR codes that are not territories.
_NO_PLACES = frozenset({"EU", "EZ", "UN", "XA", "XB", "ZZ", "QO", "IM", "AC", "CQ", "TA"})


#: The languages whose names are detected. They are also words for things from a country.
_LANGUAGES = frozenset(
    re.findall(
        r"\w+",
        """
        ar bg bn ca cs da de el en es et fa fi fr ga he hi hr hu hy id is it ja ka kk ko la lt lv mk mn ms nb ne
        nl no pl pt ro ru sk sl sq sr sv sw th tr uk ur vi yi zh
        """,
    )
)


@lru_cache(maxsize=512)
def meanings(key: str) -> frozenset[str]:
    """The further keys of a name: for a language, the territories where it is an official language."""
    if key not in _LANGUAGES:
        return frozenset({key})
    from babel.core import get_global
    from babel.languages import get_official_languages

    found = {key}
    for territory in get_global("territory_languages"):
        if key in {one.split("_")[0] for one in get_official_languages(territory, de_facto=True)}:
            found.add(territory)
    return frozenset(found)


def agree(one: Name, other: Name) -> bool:
    """Whether two names of a class may refer to the same thing, or to a territory and its language."""
    if one.keys & other.keys:
        return True
    if one.kind != "territory":
        return False
    return any(meanings(key) & other.keys for key in one.keys) or any(meanings(key) & one.keys for key in other.keys)


def names_in(text: str, languages: Iterable[str]) -> list[Name]:
    """The names in a text in one of several possible languages, each position once, with the keys in all languages.
    Names with other endings are sure only in the first, most probable language."""
    lexicons = [one for language in languages if (one := lexicon(language)) is not None]
    found: dict[tuple[int, int, str], Name] = {}
    for match in _ACRONYM.finditer(text):
        place = (*match.span(), "territory")
        found[place] = Name(*place, frozenset((match.lastgroup or "",)), True)
    for at, one in enumerate(lexicons):
        for name in names_of(text, one, exact=at > 0):
            place = (name.start, name.end, name.kind)
            if (other := found.get(place)) is not None:
                name = Name(*place, name.keys | other.keys, name.sure or other.sure)
            found[place] = name
    return sorted(found.values(), key=lambda one: (one.start, -one.end))


def names_of(text: str, words: Lexicon, *, exact: bool) -> Iterator[Name]:
    """The names of a lexicon in a text. With `exact`, names with other endings are not sure."""
    if words.language == "en":
        for match in _SPRING.finditer(text):
            yield Name(match.end() - len(match[1]), match.end(), "month", frozenset({_SPRING_KEYS[match[1]]}), True)
    if words.language in ("ja", "ko", "zh") and not _LUNAR.search(text):
        for match in _NUMBERED_MONTH.finditer(text):
            yield Name(*match.span(), "month", frozenset({str(int(match[1]))}), True)
    if words.characters:
        yield from _unspaced_names(text, words)
    if not words.forms:
        return
    places, tokens = _tokens(text)
    if not words.short.keys().isdisjoint(tokens):
        yield from _short_names(tokens, places, words)
    past = 0
    for at, token in enumerate(tokens):
        forms = words.first(token)
        if not forms or at < past:
            continue
        length = 0
        for form in forms:
            size = len(form.tokens)
            if length and size < length:
                break
            if size > 1 and tuple(tokens[at : at + size]) != form.tokens:
                continue
            start, end = places[at][0], places[at + size - 1][1]
            sure = form.sure and not (exact and form.tokens[0] != token)
            if form.capital and _CASED.match(text, start):
                if not text[start].isupper():
                    continue
                sure = sure and (len(form.tokens[0]) >= 6 or not begins(text, start))
            length, past = size, at + size
            yield Name(start, end, form.kind, form.keys, sure)


def _short_names(tokens: Sequence[str], places: Sequence[tuple[int, int]], words: Lexicon) -> Iterator[Name]:
    """The abbreviated months next to a day or a year, and the abbreviated weekdays before a day and a month."""
    for at, token in enumerate(tokens):
        meant = words.short.get(token, ())
        keys = dict(meant)
        if not keys or len(keys) < len(meant):  # none, or several of a class
            continue
        following = tokens[at + 1 : at + 3]
        dated = any(map(_DAY.fullmatch, following)) and any(_is_month(one, words) for one in following)
        kind = "weekday" if dated and "weekday" in keys else "month"
        near = dated or any(map(_DAY_OR_YEAR.fullmatch, (*tokens[max(at - 1, 0) : at], *following[:1])))
        if near and (dated or "weekday" not in keys):
            yield Name(*places[at], kind, frozenset((keys[kind],)), True)


def _is_month(token: str, words: Lexicon) -> bool:
    """Whether a folded token is a month or its abbreviation."""
    return any(kind == "month" for kind, _ in words.short.get(token, ())) or any(
        one.kind == "month" for one in words.forms.get(token, ())
    )


@lru_cache(maxsize=8)
def _tokens(text: str) -> tuple[list[tuple[int, int]], list[str]]:
    """The positions of the tokens of a text, and the folded tokens."""
    places = [match.span() for match in TOKEN.finditer(text)]
    if text.isascii():
        return places, TOKEN.findall(text.lower())
    return places, [fold(text[start:end]) for start, end in places]


def begins(text: str, start: int) -> bool:
    """Whether a sentence may start at this position."""
    before = text[max(start - 4, 0) : start]
    return (not before.strip() and start < 4) or (before.rstrip(" \u00a0\t")[-1:] or ".") in _ENDS


def _unspaced_names(text: str, words: Lexicon) -> Iterator[Name]:
    past = 0
    for at, character in enumerate(text):
        if at < past or character not in words.characters:
            continue
        if at and _HANGUL.match(character) and _HANGUL.match(text, at - 1):
            continue
        matching = [(form, one) for form, one in words.characters[character] if text.startswith(form, at)]
        if matching:
            longest = max(len(form) for form, _ in matching)
            for form, one in matching:
                if len(form) == longest:
                    yield Name(at, at + longest, one.kind, one.keys, one.sure)
            past = at + longest
