"""Numbers, in digits and in words, that the translation confuses with others.

Decimal marks, thousands separators and scales of all languages are parsed, so that 35 million equals 3500万.
Conversions are accepted: times of day, two-digit years, centuries, decades, dates in other calendars, miles and similar
units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.lexicons import TOKEN, UNSPACED, Name, fold
from mbr_esd_metric.checks.names import languages_of
from mbr_esd_metric.checks.number_words import number_words, numbers_in_words
from mbr_esd_metric.checks.numerals import MANY, Number, numbers, roman_numerals
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.checks.units import Quantity, agree, quantities
from mbr_esd_metric.core.annotation import ErrorSpan

#: Marks of other calendars -> offset in years from the Gregorian calendar.
_CALENDAR = re.compile(r"गते|साल|वि\.? ?सं|พ\.ศ|民國|民国|令和|平成|昭和|هـ")
_YEARS = {56, 57, 543, 621, 622}
#: Words after and before an hour of the day, and after a duration in hours.
_CLOCK = re.compile(
    r"(?:\s?(?:[-–]|bis|to|and|und|until|till|à|a|до|y|et|e)\s?\d{1,2})?(?:[:.hч]\d\d|\s?(?:[ap]\.?\s?m\b|o['’]?\s?clock|uhr|h\b|heures?|horas?|ore\b|час|год\b|годин|時|时|點|点|시|hodin|godz"
    r"|óra|saat))",
    re.IGNORECASE,
)
_CLOCK_BEFORE = re.compile(
    r"(?:午後|下午|晚上|오후|午前|上午|오전|早上|凌晨|\bkl\.?|\bklo|\bat|\bum|\bà|\bàs|\blas|\bв|\bo) ?$"
)
_PASSING = re.compile(r"[\s-]?(?:hours?|hrs|Stunden?|stündig)\b")
_BEFORE_NOON = re.compile(r"(?:[:.]\d\d)?\s?a\.?\s?m\b", re.IGNORECASE)
#: Contexts of numbers that differ between countries: sizes, marks for inches and feet, half hours.
_LOCAL_AFTER = re.compile(r"\s?(?:['’′]\s?\d|[\"”″]|mpg\b|psi\b|GPA\b|折|l/100)")
_LOCAL_BEFORE = re.compile(
    r"(?:\bsizes?|größe|taille|pointure|talla|размера?|サイズ|尺码|\bgrade\b.{0,6}|\bnote|notenschnitt von"
    r"|\b(?:half|quarter|ten|five|twenty|minutes|viertel|zehn|fünf|zwanzig|minuten|kurz) (?:past|to|vor|nach)"
    r"|\bhal[bfv]|половин\w|fél|w?pół|/|['’′]\s?\d{0,2}) ?$",
    re.IGNORECASE,
)
_ZONE = re.compile(r"\b(?:UTC|GMT|[ECMP][SD]T|[ECMP]T|CES?T|MES?Z|BST|IST|JST|МСК)\b")
#: Floors, which are counted from 0 or from 1, and emergency numbers.
_FLOOR = re.compile(
    r"floor|stock\b|etage|étage|planta|piso|piano|этаж|поверх|piętr|pat[rř]|våning|楼|階|层|층", re.IGNORECASE
)
_EMERGENCY = frozenset(("911", "112", "110", "119", "120", "999", "000", "111", "118"))
_BARE = re.compile(r"[,.;:!?)]|$")
#: Characters after the numbers of dates and times in Chinese and Japanese, without and with years.
_DATE, _YEAR = re.compile("[日号时時分点點]"), frozenset(("year",))
#: Marks after a temperature, and words for a minus sign.
_DEGREES = re.compile(r"\s?(?:°|degrees?|[Gg]rad\b|degr[éè]s|grad[oi]s?|градус|stopni|stup|度|℃|℉|[FC]\b)")
_MINUS = re.compile(r"(?:^|[\s(])[-−–](?=\d)")
_BELOW = re.compile(
    r"[-−–—]|min|moins|menos|meno|мину|мін|frost|мороз|null|n[uo]ll|zero|zér|cero|нол|нул|[零负負]|マイナス|氷点|영하|below"
    r"|under|unter|bajo|sous|sotto|ниже|нижче",
    re.IGNORECASE,
)
#: Words before a version number; match results; scripts in which results may be written in reverse order.
_VERSION = re.compile(
    r"(?:\bv|version|версі?и[яиюй]|versión|versione|verze|wersj\w|バージョン|版本)\.?\s?$", re.IGNORECASE
)
_RESULT = re.compile(r"(?<![\d:.,/-])(\d{1,2})\s?[-–:]\s?(\d{1,2})(?![\d:./-]|\s?%)")
_RESULT_WORD = re.compile(r"\b(?:score|result)\W{1,3}(?=\d)", re.IGNORECASE)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
#: A letter of a script whose scales are all supported.
_READ = re.compile("[A-Za-zÀ-ɏḀ-ỿͰ-ϿЀ-ӿ\u3040-\u30ff\u3400-\u9fff가-힣]")
#: Words that express a number other than by its number word: prefixes of at least four letters, shorter words, and
#: Chinese and Japanese characters.
_RELATED = {
    2: "seco segu both pair coup doub twic twin half halv halb beid paar dopp zwot ambo entram bis втор оба обе обои "
    "пара пары паре пару двой двоя двух друг drug druh para obaj obie obě ande andr båda begg twee dubb kéts másod "
    "二 两 兩 双 雙 俩 対 半 両 もう ふた",
    3: "third thri trip trio tres tred troi terc terz tert trzec drit drei derd трет трёх трой drie 三 叁 みっ",
    4: "quart quat cuar cuat vier четв czwa czter čtvr čtyř fjär fjer fyra four fort 四 よっ",
    5: "fift quin cinq fünf vijf пято пяти п'ят pięt piąt páté five femt 五",
    6: "sixt sixi sext sest szós sześ шест шіст sjät sjet sech half 六 半",
    7: "sieb sept sett sépt seti седьм сьом sied siód week woch недел weke sema 七 周 週",
    8: "eigh acht octa otta octu huit oita вось восем ósm osmý åtto åtti 八",
    9: "nint nine neun neuv nono nove девя дев'я dziew devět devát nion 九",
    10: "tenth tens zehn dixi diza deci déci diec diez деся dzies dese jahrz decad décad tion 十",
    12: "doze dutz douz doce dozz дюж tuzi twel zwöl dodi двен tolv 十二 打",
    14: "fort week woch sett sema недел 周 週",
    15: "fort quin quar 半 刻",
}  # fmt: skip
_SHORT, _HUNDRED = 4, 100
_CHINESE, _CHINESE_SCALE = ("", *"一二三四五六七八九"), re.compile(r"(?<![\d百千万萬亿億余多几])[百千万萬亿億]")
#: Words for hours, halves and dozens, next to which a number may differ.
_HOURS = re.compile(
    r"\b(?:o['’]?clock|past|quarter|half|[ap]\.?m|uhr|halb\w*|viertel\w*|heures?|demie?|quart|las|media|cuarto|час\w*"
    r"|половин\w*|четверт\w*|dozens?|dutzend|tuzin\w*|дюжин\w*|douzaines?|docenas?|dozzin\w|tucet\w*|dussin|dusin|ore|mezzo|mezza|hora|horas|meia|kl|halv|kwart|godzin\w*|hodin\w*)\b|[点點時时시半]",
    re.IGNORECASE,
)


class Numbers(Check):
    """`check/number` (major): a number that is not in the source, if the source has a number that the translation
    lacks."""

    name = "numbers"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors on added numbers in the translation."""
        source, translation = without_templates(source), without_templates(translation)
        languages = languages_of(source, context.source_language)
        before, after = numbers(source, languages), numbers(translation)
        if max(len(before), len(after)) > MANY:
            return
        if after and (before or roman_numerals(source)):
            wrong = _signs(source, translation, before, after)
            found = _invented(_Side(source, before), _Side(translation, after), context)
            for one in wrong or found:
                yield error("number", one.start, one.end)
            if wrong or found:
                return
        word = _invented_word(source, translation, context)
        if word is not None:
            yield error("number", word.start, word.end)


@dataclass(frozen=True, slots=True)
class _Side:
    """A text and its numbers."""

    text: str
    numbers: Sequence[Number]

    def clock(self, one: Number) -> bool:
        """Whether a number is an hour of the day."""
        before = self.text[max(one.start - 4, 0) : one.start]
        hour = _CLOCK.match(self.text, one.end) or ":" in self.text[one.start : one.end] or _CLOCK_BEFORE.search(before)
        return bool(hour) and not _PASSING.match(self.text, one.end)

    def local(self, one: Number) -> bool:
        """Whether a number may differ between countries."""
        before = self.text[max(one.start - 12, 0) : one.start]
        return self.text[one.start : one.end] == "9/11" or bool(
            _LOCAL_AFTER.match(self.text, one.end) or _LOCAL_BEFORE.search(before)
        )


def _invented(source: _Side, translation: _Side, context: Context) -> list[Number]:
    """The numbers in the translation that the source lacks, if it has others that the translation lacks; empty if one
    may be a conversion of another."""
    before, after = [*source.numbers], [*translation.numbers]
    if ("月" in source.text) != ("月" in translation.text):  # other languages write months as names
        before = [one for one in before if source.text[one.end : one.end + 2].strip()[:1] != "月"]
        after = [one for one in after if translation.text[one.end : one.end + 2].strip()[:1] != "月"]
    if all(_explained(one, translation, _Side(source.text, before)) for one in after):
        return []
    first = _Side(source.text, [*before, *roman_numerals(source.text)])
    second = _Side(translation.text, [*after, *roman_numerals(translation.text)])
    lost = [one for one in first.numbers if not _explained(one, first, second)]
    invented = [one for one in after if not _explained(one, second, first)]
    if not lost or not invented or _CALENDAR.search(source.text + translation.text):
        return []
    pairs = [*product(lost, invented)]
    years = {abs(a - b) for one, two in pairs for a, b in product(one.parts, two.parts) if b > 99}
    zones = _ZONE.search(source.text) or _ZONE.search(translation.text)
    floors = _FLOOR.search(source.text) and any(
        abs(a - b) == 1 for one, two in pairs for a, b in product(one.parts, two.parts)
    )
    calls = any({one.digits, two.digits} <= _EMERGENCY for one, two in pairs)
    if years & _YEARS or zones or floors or calls or any(map(first.local, lost)) or any(map(second.local, invented)):
        return []
    lost, invented = _not_converted(lost, invented, first, second, context)
    languages = (
        languages_of(source.text, context.source_language),
        languages_of(translation.text, context.target_language),
    )
    lost = [one for one in lost if not _shown(one, translation.text, languages[1])]
    invented = [one for one in invented if not _shown(one, source.text, languages[0])]
    if len(invented) > len(lost):  # some of them may be written as words in the source
        invented = [one for one in invented if one.scaled or not one.parts or max(one.parts) > 12]
    return invented if lost else []


def _explained(one: Number, side: _Side, others: _Side) -> bool:
    """Whether the numbers of another text include the number, or a conversion of it."""
    if one.parts and one.parts <= {part for other in others.numbers for part in other.parts}:
        return True
    written = re.sub(r"\D", "", others.text) if len(one.digits) > 4 else ""
    return (bool(written) and one.digits in written) or any(
        one.values & other.values
        or (one.digits and one.digits == other.digits and not (one.values and other.values))
        or _unread(one, side, other, others)
        or any(_same_year(a, b) for a, b in product(one.parts - other.parts, other.parts - one.parts))
        or _same_hour(one, side, other, others)
        for other in others.numbers
    )


def _unread(one: Number, side: _Side, other: Number, others: _Side) -> bool:
    """Whether two numbers may be equal, because one of them may have an unsupported scale."""
    if one.scaled == other.scaled or one.digits.strip("0") != other.digits.strip("0"):
        return False
    plain, text = (other, others.text) if one.scaled else (one, side.text)
    following = text[plain.end : plain.end + 4].lstrip()
    unread = following[:1].isalpha() and not _READ.match(following)
    return unread or following[:2].lower() == "mi" or bool(re.search(r"mil\w+ $", text[: plain.start]))


def _same_year(a: int, b: int) -> bool:
    """Whether two numbers may be the same year, or a year and its century."""
    low, high = sorted((a, b))
    year = 10 <= low < 100 and 1000 <= high <= 2100
    return year and ((high - low) % 100 == 0 or (high % 100 == 0 and high // 100 + 1 == low))


def _same_hour(one: Number, side: _Side, other: Number, others: _Side) -> bool:
    """Whether two numbers may be the same time of day."""
    hours = any(abs(a - b) == 12 and max(a, b) <= 24 for a, b in product(one.parts, other.parts))
    if not hours or not (side.clock(one) or others.clock(other)):
        return False
    if _PASSING.match(side.text, one.end) or _PASSING.match(others.text, other.end):
        return False
    return not any(
        _BEFORE_NOON.match(where.text, number.end) and 12 not in number.parts
        for number, where in ((one, side), (other, others))
    )


def _not_converted(
    lost: list[Number], invented: list[Number], first: _Side, second: _Side, context: Context
) -> tuple[list[Number], list[Number]]:
    """The numbers that are not explained by a conversion of temperatures, of fractions to percentages, or of units. A
    number with a unit that the other text lacks may be any number with another unit there."""
    for one, two in product([*lost], [*invented]):
        if _DEGREES.match(first.text, one.end) and _DEGREES.match(second.text, two.end) and _same_heat(one, two):
            return [], []
    if _shares(second, invented) & _parts_of_whole(lost) or _shares(first, lost) & _parts_of_whole(invented):
        return [], []
    languages = languages_of(first.text, context.source_language), languages_of(second.text, context.target_language)
    (before, units), (after, others) = quantities(first.text, languages[0]), quantities(second.text, languages[1])
    counted = _units_by_start(first.text, before), _units_by_start(second.text, after)
    foreign = any(not _shared(unit, others) for one in lost if (unit := counted[0].get(one.start)))
    strange = {one for one in invented if (unit := counted[1].get(one.start)) and not _shared(unit, units)}
    if foreign or strange:  # a converted number is followed by a unit
        bare = [one for one in invented if one.start in counted[1] or _BARE.match(second.text, one.end)]
        invented = [one for one in bare if one not in strange]
    return lost, invented


def _shared(unit: Name, others: Sequence[Name]) -> bool:
    """Whether another text has a unit, or one with the same name."""
    return any(agree(unit, other) for other in others)


def _units_by_start(text: str, found: Sequence[Quantity]) -> dict[int, Name]:
    """Start of a number -> its unit; without dates and times of day."""
    return {
        one.start: one.unit
        for one in found
        if not (
            _DATE.fullmatch(text, one.unit.start, one.unit.end)
            or (one.unit.keys & _YEAR and min(one.values, default=0) > 999)
        )
    }


def _shares(side: _Side, numbers: Sequence[Number]) -> set[Fraction]:
    """The numbers followed by a percent sign."""
    return {value for one in numbers if "%" in side.text[one.end : one.end + 2] for value in one.values}


def _parts_of_whole(numbers: Sequence[Number]) -> set[Fraction]:
    """The percentages of fractions and of ratios (3 in 4 people)."""
    found = {100 * value for one in numbers for value in one.values}
    return found | {
        100 * a / b for one, two in product(numbers, numbers) for a, b in product(one.values, two.values) if b
    }


def _same_heat(one: Number, two: Number) -> bool:
    """Whether two temperatures are equal, one in Fahrenheit and one in Celsius."""
    return any(
        abs((hot - 32) * 5 / 9 - cold) <= max(Fraction(3), abs(cold) / 10)
        for a, b in product(one.values, two.values)
        for hot, cold in ((a, b), (b, a))
    )


def _signs(source: str, translation: str, before: Sequence[Number], after: Sequence[Number]) -> list[Number]:
    """Numbers with the same digits but another meaning: a temperature without its minus sign, a reversed match result,
    a version with its parts in another order."""
    cold = [_minus(source, one) for one in before], [_minus(translation, one) for one in after]
    if any(cold[0]) != any(cold[1]) and len(before) == len(after) == 1 and before[0].values & after[0].values:
        warm = translation if any(cold[0]) else source
        if _DEGREES.match(source, before[0].end) and not _BELOW.search(_DEGREES.sub("", warm)):
            return [after[0]]
    lowered = source.casefold()
    may_result = "score" in lowered or "result" in lowered
    if may_result and _RESULT_WORD.search(source) and not _RIGHT_TO_LEFT.search(source + translation):
        results = _RESULT.findall(source), _RESULT.findall(translation)
        if len(results[0]) == len(results[1]) == 1:
            (a, b), (c, d) = ([*map(int, one[0])] for one in results)
            if a == d != b == c:
                return [one for one in after if {*one.parts} & {c, d}][:1]
    versions = [
        [
            one
            for one in side
            if not one.values and "." in text[one.start : one.end] and _VERSION.search(text[: one.start])
        ]
        for text, side in ((source, before), (translation, after))
    ]
    here, there = ({one.digits for one in side} for side in versions)
    return [one for one in versions[1] if here - there and one.digits not in here]


def _minus(text: str, one: Number) -> bool:
    """Whether a number has a minus sign."""
    return _MINUS.match(text, max(one.start - 2, 0), one.start + 1) is not None or (
        one.start == 1 and _MINUS.match(text) is not None
    )


def _invented_word(source: str, translation: str, context: Context) -> Number | None:
    """The only number in the translation that the source lacks, if the source has exactly one number that the
    translation lacks, and one of the two is a word."""
    languages = languages_of(source, context.source_language)
    before = _with_words(source, numbers(source, languages), languages)
    if not before:
        return None
    after = numbers(translation)
    first, second = _Side(source, before), _Side(translation, after)
    lost = [one for one in before if not _explained(one, first, second)]
    if not lost or len(lost) > 2 or any(one.search(source + " " + translation) for one in (_HOURS, _CALENDAR)):
        return None
    others = languages_of(translation, context.target_language)
    second = _Side(translation, _with_words(translation, after, others))
    lost = [one for one in _unmatched(first, second) if not _shown(one, translation, others)]
    invented = [one for one in _unmatched(second, first) if not _shown(one, source, languages)]
    if len(lost) != 1 or len(invented) != 1 or (lost[0].digits and invented[0].digits):
        return None
    if first.local(lost[0]) or second.local(invented[0]):
        return None
    lost, invented = _not_converted(lost, invented, first, second, context)
    return invented[0] if lost and invented else None


def _unmatched(side: _Side, others: _Side) -> list[Number]:
    """The numbers of a text that the other text does not have, not even as part of another number (1,75 m as "one metre
    seventy-five")."""
    said = {*map(int, re.findall(r"\d+", others.text)), *(int(value) for one in others.numbers for value in one.values)}
    found = []
    for one in side.numbers:
        groups = {*map(int, re.findall(r"\d+", side.text[one.start : one.end]))} or {*map(int, one.values)}
        if not groups & said and not _explained(one, side, others):
            found.append(one)
    return found


def _with_words(text: str, digits: Sequence[Number], languages: Sequence[str]) -> list[Number]:
    """The numbers of a text in digits and words; empty if one of them cannot be parsed."""
    words = numbers_in_words(text, languages[0]) if languages else ()
    found = [*digits]
    for one in words:
        if one.value is None:
            return []
        found.append(
            Number(one.start, one.end, one.end, frozenset((Fraction(one.value),)), frozenset((one.value,)), "")
        )
    return found


def _shown(number: Number, text: str, languages: Sequence[str]) -> bool:
    """Whether a text may express a number in other words, such as an ordinal or "both", or in Chinese numerals."""
    tokens = [fold(one) for one in TOKEN.findall(text)]
    for value in number.values:
        if value >= _HUNDRED and value % _HUNDRED == 0 and _CHINESE_SCALE.search(text):
            return True
        known = _RELATED.get(int(value), "").split()
        if 10 < value < _HUNDRED and value.denominator == 1:
            tens, units = divmod(int(value), 10)
            known.append(f"{_CHINESE[tens]}十{_CHINESE[units]}".removeprefix("一"))
        for language in languages[:1]:
            known += [word for word, its in number_words(language).items() if its == value]
        beginnings = tuple({fold(one)[:_SHORT] for one in known if len(one) >= _SHORT})
        if any(token.startswith(beginnings) or token in known for token in tokens):
            return True
        if any(UNSPACED.match(one) and one in text for one in known):
            return True
    return False
