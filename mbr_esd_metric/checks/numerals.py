"""Numbers in digits of any script, with a following scale (million, 万), as fractions, and as Roman numerals.

The value of a number depends on the language: 1.500 is 1500 or 1.5, and a billion is 10^9 or 10^12. All possible values
are considered, unless the language is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

_VULGAR = {
    "½": Fraction(1, 2), "⅓": Fraction(1, 3), "⅔": Fraction(2, 3), "¼": Fraction(1, 4), "¾": Fraction(3, 4),
    "⅛": Fraction(1, 8), "⅜": Fraction(3, 8), "⅝": Fraction(5, 8), "⅞": Fraction(7, 8),
}  # fmt: skip
#: Digits with separators: decimal marks, thousands separators, and those of dates, times and ratios.
_NUMBER = re.compile(
    r"(?P<whole>\d{1,3}) (?P<top>\d{1,2})/(?P<bottom>[1-9]\d?)(?![\d/])"
    r"|(?P<digits>\d{1,40}(?:[.,'’٫٬．，·:/]\d{1,40}|(?<!\d\d\d\d)[\u00a0\u202f\u2009 ]\d{3}(?!\d)){0,9})"
    r"(?P<part>[½⅓⅔¼¾⅛⅜⅝⅞])?"
    r"|(?P<vulgar>[½⅓⅔¼¾⅛⅜⅝⅞])"
)
#: The start of a number, which is faster to find than the number.
_FIRST = re.compile(r"[\d½⅓⅔¼¾⅛⅜⅝⅞]")
_MARKS = str.maketrans("．٫·，٬’\u00a0\u202f\u2009", "...,,'   ")
#: Languages with a decimal point, in which a comma before three digits separates thousands.
_POINT = frozenset(("en", "zh", "ja", "ko", "th", "he"))
#: Scales of Chinese, Japanese and Korean: factors of the preceding number.
_EAST = {
    "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12,
    "백": 100, "천": 1000, "만": 10**4, "억": 10**8, "조": 10**12,
}  # fmt: skip
_EASTERN = re.compile(f" ?[余多几幾来來數数]?([{''.join(_EAST)}]+)(?! ?[分])")
#: Scales of other languages: possible values, and written forms.
_WESTERN: dict[tuple[int, ...], str] = {
    (100,): "hundred|hundert|सौ",
    (1000,): (
        r"thousand|tausend|tsd\b|tys(?:\.|i\w+)|tis(?:[.íiu]\w*|oč\w*)|тыс\w*|тис\w*|хил\w*|хиљ\w*|mille\b|mila\b|mil\b|mii\b"
        r"|tusen\b|tusind|duizend|duisend|tuhat\w*|ezer|bin\b|ribu|nghìn|ngàn|elfu|mijë|ming\b|libo"
        r"|þúsund|tūkst\w*|ألف|آلاف|אלף|אלפים|هزار|พัน|हज़?ार|হাজার|දහස්?"
    ),
    (10**5,): "lakh|लाख|ලක්ෂ",
    (10**6,): (
        r"mill?i[oóò]n\w*|millones|milh[ãõo]\w*|mil[jy][oó]\w*|milio\w*|милл?ион\w*|мільйон\w*|mio\b|mln\b|млн\b|milj\b|millió\w*"
        r"|milljón\w*|juta|triệu|مليون|ملايين|מיליון|میلیون|ล้าน|මිලියන|ملین"
    ),
    (10**7,): "crore|करोड़?",
    (10**9,): (
        r"mill?i[aá]rd\w*|mil[iy]j?ar\w*|miljard\w*|миллиард\w*|мільярд\w*|милијард\w*|милиард\w*|mrd\b|mld\b|млрд\b|bn\b"
        r"|مليار\w*|מיליארד|میلیارد|tỷ|tỉ|bilh[ãõo]\w*|බිලියන|अरब|अर्ब"
    ),
    (10**12,): (
        r"billionen|billi?[oó]n(?:es|er|i)\b|billón|bilion\w*|biljo\w*|bili[ãõ]\w*|трилл?ион\w*|трлн\b|tn\b|trilh[ãõo]\w*"
        r"|trilyon"
    ),
    (10**9, 10**12): "billions?|билл?ион\\w*",
    (10**12, 10**18): "trill?i[oó]n\\w*",
    (12,): "dozen|dutzend|douzaine|docena|dozzin|дюжин",
    (1000, 1): "k\\b",
    (10**6, 1): "m\\b",
    (10**9, 1): "b\\b",
    (10**12, 1): "t\\b",
}
_SCALE = re.compile(
    r"[\s\u00a0\u202f-]{0,2}"
    + f"(?=[{''.join(sorted({word[0] for words in _WESTERN.values() for word in words.split('|')}))}])"  # is faster
    + f"(?:{'|'.join(f'({words})' for words in _WESTERN.values())})",
    re.IGNORECASE,
)
_FACTORS = tuple(_WESTERN)
#: A range whose scale applies to both numbers: 3 to 5 million.
_TOGETHER = 8
#: Tenths in Chinese and Japanese: of the discounted price, and of the total.
_DISCOUNT, _TENTHS = re.compile(" ?折"), re.compile(" ?(?:成(?!都|员|員|功|立|年)|割(?!る))")
_BLANKS = " \u00a0\u202f-\t\n"
_ROMAN = re.compile(r"(?<![\w.])(?:X?(?:I{2,3}|I[VX]|VI{0,3})|XI{0,3}|XXI{0,3})(?![\w'’-]|\.\w)")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10}
#: The maximum number of numbers per text.
MANY = 200


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text.

    Attributes:
        start, end: the span of its digits.
        after: the end of the following scale.
        values: its possible values (1.500 is 1500 or 1.5); empty for times, ratios and most dates.
        parts: its groups of digits, if it may be a date, a time or similar.
        digits: all digits, in ASCII.
        scaled: whether a scale follows.
        roman: whether it is a Roman numeral.
    """

    start: int
    end: int
    after: int
    values: frozenset[Fraction]
    parts: frozenset[int]
    digits: str
    scaled: bool = False
    roman: bool = False


@lru_cache(maxsize=8)
def numbers(text: str, languages: tuple[str, ...] = ()) -> tuple[Number, ...]:
    """The first `MANY` numbers of a text and one more, in order; `languages` are the possible languages of the text."""
    point, english = {*languages} <= _POINT and bool(languages), languages == ("en",)
    found: list[Number] = []
    at = 0
    while len(found) <= MANY and (first := _FIRST.search(text, at)) and (match := _NUMBER.match(text, first.start())):
        plain = _read(text, match, point=point)
        number = _scaled(text, plain, english=english)
        if number.scaled and found and not found[-1].scaled and number.start - found[-1].end <= _TOGETHER:
            factors = {scaled / value for scaled in number.values for value in plain.values if value}
            shared = {value * factor for value in found[-1].values for factor in factors}
            found[-1] = replace(found[-1], values=found[-1].values | shared)
        found.append(number)
        at = max(number.after, match.end())
    return tuple(found)


def _read(text: str, match: re.Match[str], *, point: bool) -> Number:
    """A number without its scale."""
    start, end = match.span()
    groups = re.findall(r"\d+", match[0])
    digits = "".join(str(int(digit)) for group in groups for digit in group)
    if match["whole"]:
        value = int(match["whole"]) + Fraction(int(match["top"]), int(match["bottom"]))
        return Number(start, end, end, frozenset((value,)), frozenset(map(int, groups)), digits)
    if match["vulgar"]:
        return Number(start, end, end, frozenset((_VULGAR[match["vulgar"]],)), frozenset(), digits)
    marks = re.findall(r"\D", match["digits"].translate(_MARKS))
    values = _values(groups, marks, point=point)
    if match["part"]:
        values = frozenset(one + _VULGAR[match["part"]] for one in values)
    if text[max(start - 1, 0) : start] in (".", ",") and not text[max(start - 2, 0) : start - 1].isalnum():
        values |= {Fraction(f"0.{digits}")}  # as in .5
    if _DISCOUNT.match(text, end):
        values |= {100 - (10 * one if one < 10 else one) for one in values}
    if _TENTHS.match(text, end):
        values |= {10 * one for one in values}
    return Number(start, end, end, values, _parts(groups, marks, values), digits)


def _values(groups: Sequence[str], marks: Sequence[str], *, point: bool) -> frozenset[Fraction]:
    """The possible values of groups of digits with separators; with a decimal point, commas separate thousands."""
    values: set[Fraction] = set()
    first, *rest = map(len, groups)
    one_mark, plain = len({*marks}) == 1, not {*marks} & {*":/"}
    # In India, all groups except the last have two digits.
    thousands = one_mark and plain and first <= 3 and rest[-1] == 3 and {*rest[:-1]} <= {2, 3}
    if not rest or thousands:
        values.add(Fraction(int("".join(groups))))
    decimal = plain and rest and marks[-1] in ".," and marks[-1] not in marks[:-1] and {*rest[:-1]} <= {2, 3}
    if decimal and not (point and thousands and marks[-1] == "," and groups[0] != "0"):
        values.add(Fraction(int("".join(groups)), 10 ** len(groups[-1])))
    if marks == ["/"] and int(groups[1]):
        values.add(Fraction(int(groups[0]), int(groups[1])))
    return frozenset(values)


def _parts(groups: Sequence[str], marks: Sequence[str], values: frozenset[Fraction]) -> frozenset[int]:
    """The groups of digits if each may be a number, unless it is a decimal that cannot be a date or a time."""
    if len(groups) == 2 and marks[0] in ".,'" and values:
        first, second = map(int, groups)
        time = first < 25 and len(groups[1]) == 2 and second < 60
        date = 0 < first < 32 and 0 < second < 13 and len(groups[1]) < 3 and marks[0] == "."
        if not (time or date):
            return frozenset()
    return frozenset(map(int, groups))


def _scaled(text: str, number: Number, *, english: bool) -> Number:
    """The number with the following scale, and with the numbers after a Chinese scale (8万4千)."""
    pieces: list[tuple[Fraction, str]] = []
    values, end = number.values, number.end
    while (
        not number.scaled and len(values) == 1 and len(pieces) < 4 and (match := _EASTERN.match(text, end)) is not None
    ):
        pieces.append((next(iter(values)), match[1]))
        end = match.end()
        following = _NUMBER.match(text, end)
        if following is None or not following["digits"] or following.end() - end > 4:
            break
        values, end = frozenset((Fraction(int(re.sub(r"\D", "", following[0]))),)), following.end()
    else:
        if pieces:
            pieces.append((next(iter(values)), ""))
    if pieces:
        return replace(number, after=end, values=frozenset((_eastern(pieces),)), parts=frozenset(), scaled=True)
    western = _SCALE.match(text, number.after)
    if western is None or (number.scaled and not western[0].strip(_BLANKS)[1:]):
        return number
    factors = _FACTORS[(western.lastindex or 1) - 1]
    if factors[0] > 10**6 and 1 in factors and text[max(number.start - 1, 0)] not in "$€£":
        return number  # a letter that is a scale after a currency only: $2B
    if english and len(factors) > 1 and min(factors) > 1:
        factors = factors[:1]
    values = frozenset(value * factor for value in number.values for factor in factors)
    parts = number.parts if 1 in factors else frozenset[int]()
    found = replace(number, after=western.end(), values=values, parts=parts, scaled=1 not in factors)
    return found if number.scaled or not found.scaled else _scaled(text, found, english=english)  # thousand million


def _eastern(pieces: Sequence[tuple[Fraction, str]]) -> Fraction:
    """The value of numbers with Chinese scales: 3千5百万 is 35,000,000."""
    total = section = Fraction(0)
    for value, scales in pieces:
        part = value
        for scale in scales:
            factor = _EAST[scale]
            if factor < 10**4:
                part *= factor
            elif part or section:
                total += (section + part) * factor
                section = part = Fraction(0)
            else:
                total *= factor
        section += part
    return total + section


def roman_numerals(text: str) -> list[Number]:
    """The Roman numerals from II to XXIII in a text."""
    found = []
    for match in _ROMAN.finditer(text):
        if len(match[0]) > 1:
            digits = [_ROMAN_DIGITS[one] for one in match[0]]
            value = sum(-a if a < b else a for a, b in zip(digits, [*digits[1:], 0], strict=True))
            found.append(
                Number(*match.span(), match.end(), frozenset((Fraction(value),)), frozenset((value,)), "", roman=True)
            )
    return found
