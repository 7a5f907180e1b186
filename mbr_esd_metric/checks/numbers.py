"""Numbers: digits that the source does not have, where the source has some that the translation lacks.

Decimal marks and thousands of all languages are read. What a translator converts is no error: times of day, years of
two digits, centuries and decades, multiples (3500万 as 35 million), dates of another calendar, miles and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product, starmap

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan

#: Digits with what may stand between them: decimal marks, thousands, and the marks of dates, times and ratios.
_NUMBER = re.compile(r"\d{1,40}(?:[.,'’٫٬．，:/]\d{1,40}|[\u00a0\u202f\u2009 ]\d{3}(?!\d)){0,9}")
_MARKS = str.maketrans("．٫，٬’\u00a0\u202f\u2009", "..,,'   ")
#: What multiplies the number before it.
_MULTIPLIED = re.compile(
    r"[\s-]{0,2}[余多几幾来來數数]?(?:[百千万萬亿億兆成백천만억조]|hundred|thousand|tausend|mil(?!e|it|la|li[glm])|bil|tril|dozen"
    r"|mrd|mio|mld|mln|тыс|мил|млн|млрд|трил|трлн|lakh|crore|सय|हजार|लाख|करोड|अर्ब|මිලිය|බිලිය|දහ|ලක්ෂ|tuhat|tis(?!s)|tys"
    r"|ألف|مليون|مليار|(?:k|m|bn|tn)\b)",
    re.IGNORECASE,
)
#: A million after the number before it: two texts that both say it have the same number before it.
_MILLION = re.compile(
    r"[\s-]{0,2}(?:mil(?:l?i?[oó]|h[oõã]|[jy]o|ij[ou]n)|миллио|мільйо|(?:mio|mln|млн)\b|مليون|百万)", re.IGNORECASE
)
#: Units that translators convert.
_IMPERIAL = re.compile(
    r"[\s-]{0,2}(?:\w{1,20}\W{1,2})?(?:(?:square|cubic|sq|fluid)\W{1,2})?(?:mi|miles?|mph|ft|feet|foot|yds?|yards?|inch(?:es)?"
    r"|acres?|lbs?|pounds?|oz|ounces?|gallons?|°\s?F|℉|英[里尺寸亩畝]|磅|盎司|Meilen?|Fuß|Zoll|Pfund|миль|миля|мили|фут\w{0,3}"
    r"|дюйм\w{0,3}|фунт\w{0,3})(?!\w)",
    re.IGNORECASE,
)
#: Signs of another calendar, and the years between it and ours.
_CALENDAR = re.compile(r"गते|साल|वि\.? ?सं|พ\.ศ|民國|民国|令和|平成|昭和|هـ")
_YEARS = {56, 57, 543, 621, 622}
#: The most numbers of a text that are compared.
_MANY = 200


class Numbers(Check):
    """`check/number` (major): a number that the source does not have, where the source has one that the translation
    lacks."""

    name = "numbers"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The invented numbers of the translation."""
        source, translation = without_templates(source), without_templates(translation)
        if _NUMBER.search(source) and _NUMBER.search(translation):
            for one in _invented_numbers(source, translation):
                yield error("number", one.start, one.end)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text: its place, what it may mean (1.500 is 1500 or 1.5; nothing of a time, a ratio or most dates),
    its groups of digits, and all digits in ASCII. Whether a word such as "million" follows, that very word, more digits
    after such a word (8万4千), and a unit that translators convert."""

    start: int
    end: int
    values: frozenset[Fraction]
    parts: frozenset[int]
    digits: str
    multiplied: bool
    million: bool
    mixed: bool
    imperial: bool


def numbers(text: str) -> list[Number]:
    """The first `_MANY` numbers of a text and one more, in digits of any script, in order."""
    found = []
    for match in islice(_NUMBER.finditer(text), _MANY + 1):
        start, end = match.span()
        groups, marks = re.findall(r"\d+", match[0]), re.findall(r"\D", match[0].translate(_MARKS))
        digits = "".join(str(int(digit)) for group in groups for digit in group)
        multiplied, million = _MULTIPLIED.match(text, end), _MILLION.match(text, end) is not None
        imperial = _IMPERIAL.match(text, end) is not None
        mixed = multiplied is not None and text[multiplied.end() : multiplied.end() + 2].lstrip()[:1].isdigit()
        values, parts = _values(groups, marks), frozenset(map(int, groups))
        if text[max(start - 1, 0) : start] in (".", ",") and not text[max(start - 2, 0) : start - 1].isalnum():
            values |= {Fraction(f"0.{digits}")}  # as in .5
        found.append(Number(start, end, values, parts, digits, multiplied is not None, million, mixed, imperial))
    return found


def _values(groups: Sequence[str], marks: Sequence[str]) -> frozenset[Fraction]:
    """What groups of digits with marks between them may mean, in any language."""
    values: set[Fraction] = set()
    first, *rest = map(len, groups)
    one_mark, plain = len({*marks}) == 1, not {*marks} & {*":/"}
    # In India all groups but the last have two digits.
    if not rest or (one_mark and plain and first <= 3 and rest[-1] == 3 and {*rest[:-1]} <= {2, 3}):
        values.add(Fraction("".join(groups)))
    if rest and plain and marks[-1] in ".," and marks[-1] not in marks[:-1] and {*rest[:-1]} <= {2, 3}:
        values.add(Fraction(f"{''.join(groups[:-1])}.{groups[-1]}"))
    if marks == ["/"] and int(groups[1]):
        values.add(Fraction(int(groups[0]), int(groups[1])))
    return frozenset(values)


def _invented_numbers(source: str, translation: str) -> list[Number]:
    """The numbers of the translation that the source lacks, where it has others that the translation lacks; none where
    one may be converted to another."""
    before, after = numbers(source), numbers(translation)
    if max(len(before), len(after)) > _MANY:
        return []
    if ("月" in source) != ("月" in translation):  # months are names elsewhere
        before = [one for one in before if source[one.end : one.end + 2].strip()[:1] != "月"]
        after = [one for one in after if translation[one.end : one.end + 2].strip()[:1] != "月"]
    scaled = any(one.multiplied for one in before + after)
    lost = [one for one in before if not _explained(one, after, scaled)]
    invented = [one for one in after if not _explained(one, before, scaled)]
    units = {one.imperial for one in lost} != {one.imperial for one in invented}
    calendar = _CALENDAR.search(source + translation) or _YEARS & {
        abs(a - b) for one, other in product(lost, invented) for a, b in product(one.parts, other.parts) if b > 99
    }
    unsure = units or calendar or any(one.mixed for one in before + after)
    if len(invented) > len(lost):  # some of them may be words in the source
        invented = [one for one in invented if max(one.parts) > 12]
    return [] if unsure or not lost else invented


def _explained(one: Number, others: Sequence[Number], scaled: bool) -> bool:
    """Whether other numbers say the same, or what it may be converted to."""
    return one.parts <= {part for other in others for part in other.parts} or any(
        one.values & other.values
        or (one.digits == other.digits and not (one.values and other.values))
        or (scaled and one.digits.strip("0") == other.digits.strip("0") and not (one.million and other.million))
        or any(starmap(_converted, product(one.parts, other.parts)))
        for other in others
    )


def _converted(a: int, b: int) -> bool:
    """Whether two numbers may be one time of day, year or century."""
    low, high = sorted((a, b))
    hour = high - low == 12 and high <= 24
    year = 10 <= low < 100 and 1000 <= high <= 2100
    return hour or (year and ((high - low) % 100 == 0 or (high % 100 == 0 and high // 100 + 1 == low)))
