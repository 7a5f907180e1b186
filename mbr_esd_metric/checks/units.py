"""Units and currencies that the translation confuses with others: 10 minutes and "zehn Stunden", $20 and "20 Euro".

A quantity is a number, in digits or words, with its unit. The names of units are from CLDR. A conversion changes the
number as well, so a different unit is an error if the number is the same, or if the quantities differ in size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.lexicons import (
    CASES,
    LONGEST,
    TOKEN,
    UNSPACED,
    Lexicon,
    Name,
    fold,
    lexicon,
    locale_data,
    names_of,
    other_beginnings,
)
from mbr_esd_metric.checks.names import languages_of
from mbr_esd_metric.checks.number_words import numbers_in_words
from mbr_esd_metric.checks.numerals import numbers
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan

#: Dimension of CLDR -> unit -> its size in the base of the dimension.
_SIZES: dict[str, dict[str, float]] = {
    "duration": {
        "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_629_746,
        "year": 31_556_952, "decade": 315_569_520, "century": 3_155_695_200,
    },
    "length": {
        "millimeter": 0.001, "centimeter": 0.01, "meter": 1, "kilometer": 1000, "inch": 0.0254, "foot": 0.3048,
        "yard": 0.9144, "mile": 1609.344,
    },
    "mass": {
        "milligram": 0.001, "gram": 1, "kilogram": 1000, "tonne": 1e6, "ton": 907_185, "ounce": 28.35, "pound": 453.6,
    },
    "volume": {"milliliter": 0.001, "centiliter": 0.01, "deciliter": 0.1, "liter": 1, "gallon": 3.785},
    "area": {
        "square-meter": 1, "square-kilometer": 1e6, "square-centimeter": 1e-4, "square-mile": 2_589_988,
        "square-foot": 0.0929, "hectare": 1e4, "acre": 4047,
    },
    "speed": {"meter-per-second": 1, "kilometer-per-hour": 0.2778, "mile-per-hour": 0.44704},
    "digital": {"kilobyte": 1e3, "megabyte": 1e6, "gigabyte": 1e9, "terabyte": 1e12},
    "power": {"watt": 1, "kilowatt": 1e3, "megawatt": 1e6, "gigawatt": 1e9},
    "heat": {"celsius": 1.8, "fahrenheit": 1},  # "temperature" in CLDR, whose names are not used
}  # fmt: skip
_SIZE = {unit: (dimension, size) for dimension, units in _SIZES.items() for unit, size in units.items()}
#: Units of one letter, which are ambiguous: letter -> units.
_LETTERS = {
    "m": ("meter", "minute", "month"), **dict.fromkeys("gг", ("gram",)), **dict.fromkeys("lLл", ("liter",)),
    **dict.fromkeys("hч", ("hour",)), **dict.fromkeys("tт", ("ton", "tonne")), "м": ("meter",), "s": ("second", "year"),
    "W": ("watt",),
}  # fmt: skip
#: A unit of one letter directly after a number, without a rate (5 mg/ml is 5 g/l), or a scale of temperature.
_LETTER = re.compile(
    r"(?:[ \u00a0\u202f]?(?P<letter>[mgгlLлhчtтмsW])(?![\dA-Za-zÀ-ɏЀ-ӿ'’/²³^·]| ?(?:per|pro|par|por|a|на)\b))"
    r"|\s?(?:[°º˚] ?|[^\W\d]{3,8}\.? )?(?:(?P<celsius>[CС℃](?![A-Za-z])|(?i:cels\w*|цельс\w*)|[摄攝]氏|섭씨)"
    r"|(?P<fahrenheit>[F℉](?![A-Za-z])|(?i:fahrenh\w*|фаренг\w*)|[华華]氏|화씨))"
)
#: Units whose sizes differ by less than this ratio are used interchangeably: yards and metres, tons.
_NEAR = 1.2
#: The largest difference of equal quantities, of which one is rounded: relative, and in degrees Fahrenheit.
_EXACT, _DEGREES = 0.05, 2
#: Quantities whose sizes differ by more than this ratio are not conversions of each other.
_ROUNDED = 1.6
#: Currencies, whose first two letters are the code of their territory, except for the euro.
_CURRENCIES = frozenset(
    re.findall(
        r"\w+",
        """
        USD CAD AUD NZD HKD SGD TWD GBP EGP EUR JPY CNY RUB BYN CHF DKK NOK SEK ISK PLN HUF CZK INR PKR LKR BRL MXN ARS
        CLP COP PHP KRW TRY ZAR ILS UAH THB IDR VND RON BGN
        """,
    )
)
_DOLLARS = frozenset(("USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP", "BRL"))
#: Currency signs, before or after a number.
_SIGNS = {
    "$": _DOLLARS,
    "£": frozenset(("GBP", "EGP")),
    **dict.fromkeys("¥￥", frozenset(("JPY", "CNY"))),
    **{sign: frozenset((code,)) for sign, code in {"€": "EUR", "₽": "RUB", "₹": "INR", "₩": "KRW", "₺": "TRY"}.items()},
    **{sign: frozenset((code,)) for sign, code in {"₴": "UAH", "₪": "ILS", "฿": "THB"}.items()},
}
_SIGN = re.compile(f"[{''.join(_SIGNS)}]")
#: Further locales of a language with different names.
_LOCALES = {"en": ("en_GB",), "pt": ("pt_PT",), "zh": ("zh_Hant",)}
#: Names missing from CLDR: language -> unit -> names.
_SYNONYMS: dict[str, dict[str, str]] = {
    "en": {"kilogram": "kilo kilos", "hour": "hrs", "second": "sec secs", "USD": "bucks", "GBP": "quid"},
    "de": {"kilogram": "Kilo", "day": "Tages", "hour": "Std", "minute": "Min"},
    "es": {"kilogram": "kilo kilos"},
    "fr": {"kilogram": "kilo kilos", "year": "année années", "day": "journée journées"},
    "ru": {"year": "лет", "kilogram": "кило", "day": "суток", "pound": "фунтов"},
    "ja": {
        "month": "ヶ月 カ月 ヵ月 ケ月 箇月", "week": "週", "meter": "メーター", "kilometer": "キロ", "kilogram": "キロ",
        "USD": "ドル",
    },
    "zh": {
        "month": "个月 個月 月", "week": "周 星期 个星期 礼拜", "hour": "小时 小時 个小时 钟头",
        "minute": "分 分钟 分鐘", "year": "年", "day": "天 日", "meter": "米 公尺", "kilometer": "千米 公里",
        "kilogram": "公斤 千克", "mile": "英里 哩", "inch": "英寸 寸",
        "foot": "英尺 尺", "pound": "磅", "gram": "克 公克", "second": "秒 秒钟", "JPY": "日元 日圆",
        "USD": "美元 美金 元", "GBP": "英镑", "EUR": "欧元", "CNY": "元 人民币 块",
    },
}  # fmt: skip
#: Names of units that have other meanings after a number.
_NOT_UNITS = frozenset(re.findall(r"\w+", "in a c no us up t an au m g l h s d w y e mo ha ca st de la il"))
_NEW = re.compile("ne[uw]|nouv|nuev|нов|now[yei]")
#: The text that may separate a number from its unit.
_GAP = re.compile(r"[\s\u00a0\u202f-]{0,2}[个個]?(?:(?:de|di|of) |d['’])?")


class Units(Check):
    """`check/unit`, `check/currency` (major): a unit that is not in the source, after a number that the source has with
    a unit that the translation lacks, or in a quantity whose size differs from that in the source."""

    name = "units"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors on units in the translation."""
        if max(len(source), len(translation)) > LONGEST:
            return
        source, translation = without_templates(source), without_templates(translation)
        before, units = _with_letters(source, languages_of(source, context.source_language))
        if not before:
            return
        after, others = _with_letters(translation, languages_of(translation, context.target_language))
        lost = [one for one in before if not any(agree(one.unit, unit) for unit in others)]
        new = [two for two in after if not any(agree(two.unit, unit) for unit in units)]
        invented = [two for two in new if not any(_equal(one, two) for one in lost)]
        wrong = {two.unit for one, two in product(lost, invented) if _confused(one, two)}
        sure = [[one for one in side if one.sure] for side in (lost, new)]
        if len(sure[0]) == len(sure[1]) == 1 and _far(sure[0][0], sure[1][0]):
            wrong.add(sure[1][0].unit)
        for unit in sorted(wrong, key=lambda one: one.start):
            yield error(unit.kind, unit.start, unit.end)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit: its start, and its possible values."""

    start: int
    values: frozenset[Fraction]
    unit: Name

    @property
    def sure(self) -> bool:
        """Whether the unit is unambiguous."""
        return self.unit.sure


def quantities(text: str, languages: Sequence[str]) -> tuple[list[Quantity], list[Name]]:
    """The quantities of a text in one of several possible languages, and all of its units."""
    found = [(one.start, one.after, one.values) for one in numbers(text)]
    for language in languages[:1]:
        words = numbers_in_words(text, language)
        found += [(one.start, one.end, frozenset({Fraction(one.value)} if one.value else ())) for one in words]
    if not found:
        return [], []
    units = _units_in(text, languages)
    starts = {one.start: one for one in units}
    signs = (one for one in units if _SIGN.fullmatch(text, one.start, one.end) or text[one.start : one.end].isupper())
    ends = {one.end: one for one in signs}
    quantities = []
    for start, end, values in found:
        gap = _GAP.match(text, end)
        unit = (gap and (starts.get(gap.end()) or starts.get(end))) or ends.get(start) or ends.get(start - 1)
        if unit is not None:
            quantities.append(Quantity(start, values, unit))
    return quantities, units


def _with_letters(text: str, languages: Sequence[str]) -> tuple[list[Quantity], list[Name]]:
    """The quantities of a text whose unit is unambiguous, those whose unit is a letter or a scale of temperature, and
    all units."""
    found, units = quantities(text, languages)
    found = [one for one in found if one.sure]
    taken = {one.start for one in found}
    for one in numbers(text):
        match = _LETTER.match(text, one.end) if one.start not in taken else None
        if match is not None and match.lastgroup is not None:
            keys = _LETTERS.get(match[match.lastgroup], (match.lastgroup,))
            name = Name(*match.span(match.lastgroup), "unit", frozenset(keys), False)
            found.append(Quantity(one.start, one.values, name))
            units.append(name)
    return found, units


def _confused(one: Quantity, two: Quantity) -> bool:
    """Whether two quantities have the same number with different units. Ambiguous units must be of one dimension."""
    return bool(one.values & two.values) and bool(
        (one.sure and two.sure) or {name for name, _ in _sizes(one)} & {name for name, _ in _sizes(two)} - {""}
    )


def _equal(one: Quantity, two: Quantity) -> bool:
    """Whether two quantities with different units may be equal: 2 GB and 2.000 MB, 5 miles and 8 km."""
    for (dimension, size), (its, another) in product(_sizes(one), _sizes(two)):
        for a, b in product(one.values, two.values):
            x, y = float(a) * size, float(b) * another
            if dimension == its == "heat":  # either may be below zero
                equal = min(abs(abs(x - y) - 32), abs(x + y - 32)) <= _DEGREES
            else:
                equal = dimension == its != "" and math.isclose(x, y, rel_tol=_EXACT)
            if equal:
                return True
    return False


def _sizes(one: Quantity) -> list[tuple[str, float]]:
    """The dimension and size of each unit that a quantity may have."""
    return [_SIZE.get(key, ("", 0.0)) for key in one.unit.keys]


def _far(one: Quantity, two: Quantity) -> bool:
    """Whether two quantities of a dimension differ by more than the rounding of a conversion. Durations are excluded,
    because they are counted in many ways."""
    if len(one.values) != 1 or len(two.values) != 1 or len(one.unit.keys) != 1 or len(two.unit.keys) != 1:
        return False
    (dimension, size), (its, another) = *_sizes(one), *_sizes(two)
    sizes = sorted((float(min(one.values)) * size, float(min(two.values)) * another))
    return dimension == its not in ("", "duration") and sizes[1] > _ROUNDED * sizes[0] > 0


def agree(one: Name, two: Name) -> bool:
    """Whether two units may be the same, or one a part of the other (mile and mile per hour)."""
    return any(_same(a, b) for a, b in product(one.keys, two.keys))


@lru_cache(maxsize=4096)
def _same(one: str, two: str) -> bool:
    if {*one.split("-")} <= {*two.split("-")} or {*one.split("-")} >= {*two.split("-")}:
        return True
    (dimension, size), (other, its) = _SIZE.get(one, ("", 0)), _SIZE.get(two, ("", 0))
    return dimension == other != "" and max(size, its) < _NEAR * min(size, its)


def _units_in(text: str, languages: Sequence[str]) -> list[Name]:
    """The units and currencies in a text, each position once."""
    letters = re.sub(r"\d", " ", text)
    found: dict[tuple[int, int], Name] = {}
    for at, language in enumerate(languages):
        words = _lexicon(language)
        for name in names_of(letters, words, exact=at > 0) if words else ():
            place = (name.start, name.end)
            if (other := found.get(place)) is not None:
                name = Name(*place, other.kind, name.keys | other.keys, name.sure or other.sure)
            found[place] = name
    for match in _SIGN.finditer(text):
        found[match.span()] = Name(*match.span(), "currency", _SIGNS[match[0]], True)
    return list(found.values())


@lru_cache(maxsize=64)
def _lexicon(language: str) -> Lexicon | None:
    """The units and currencies of a language."""
    names = lexicon(language)
    if names is None:
        return None
    forms: dict[str, set[str]] = {}
    for locale in (names.language, *_LOCALES.get(language, ())):
        data = locale_data(locale, ("unit_patterns", "currency_names", "currency_names_plural", "currency_symbols"))
        for unit, (dimension, _) in _SIZE.items():
            for width in data["unit_patterns"].get(f"{dimension}-{unit}", {}).values():
                for form, pattern in width.items():
                    before, _, after = pattern.partition("{0}")
                    if form != "per" and not before.strip():
                        forms.setdefault(after.strip().lower(), set()).add(unit)
        for code in _CURRENCIES:
            texts = [data["currency_names"].get(code, ""), *data["currency_names_plural"].get(code, {}).values()]
            symbol = data["currency_symbols"].get(code, "")
            texts += [symbol] * symbol.isalpha()
            for word in {code, *texts, *(one for text in texts for one in _heads(text, code[:2], names))}:
                forms.setdefault(word.lower(), set()).add(code)
    for unit, synonyms in ({"mile-per-hour": "mph"} | _SYNONYMS.get(language, {})).items():
        for form in synonyms.split():
            forms.setdefault(form.lower(), set()).add(unit)
    found = Lexicon(f"units of {language}")
    endings = 3 if language in CASES else 0 if language == "en" else 2
    for form, keys in forms.items():
        if form and form not in _NOT_UNITS:
            kind = "unit" if keys & _SIZE.keys() else "currency"
            shortest = 1 if UNSPACED.search(form) else 2
            found.add(form, kind, frozenset(keys), endings=endings, shortest=shortest)
    return found


def _heads(text: str, territory: str, names: Lexicon) -> Iterator[str]:
    """The words of a currency's name that may refer to it: all except "new" and the name of its territory."""
    places = names.texts.get(("territory", territory), set())
    if UNSPACED.match(text):
        yield from (text.removeprefix(place).strip() for place in places)
    beginnings = {place[:3] for place in (*places, *other_beginnings(territory))}
    for word in TOKEN.findall(text):
        folded = fold(word)
        adjective = folded[:3] in beginnings or _NEW.match(folded) or (names.language == "en" and word[0].isupper())
        if len(word) > 2 and not adjective:
            yield word
