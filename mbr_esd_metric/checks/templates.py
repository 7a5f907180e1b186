"""Templates: messages whose placeholders the translation omits, adds or confuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter

from mbr_esd_metric.checks.addresses import without_addresses
from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.items import blanked, lost_or_invented, missing
from mbr_esd_metric.checks.messageformat import Message, messages
from mbr_esd_metric.checks.placeholders import (
    Placeholder,
    brace_placeholders,
    conversions,
    date_parts,
    numbered,
    percent_placeholders,
)
from mbr_esd_metric.checks.tags import without_tags
from mbr_esd_metric.core.annotation import ErrorSpan

#: The types of placeholders that may show the number of a plural form.
_COUNTS = ("integer", "real")
_PERCENT = re.compile(r"%(\d+)")
_PRINTF = ("printf", "printf*", "python")
_SIGNS = re.compile("%+")


class Templates(Check):
    """`check/placeholder` (major): an argument that is added or has another type, marked in the translation; an omitted
    one, marked in the source unless an added one replaces it. Arguments may be reordered and, if they have a name or a
    number, repeated. Messages with branches are compared by their general form; a plural form for a single number may
    omit this number."""

    name = "templates"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors in arguments."""
        if not any(sign in text for sign in "%{" for text in (source, translation)):
            return
        source, translation = without_addresses(source), without_addresses(translation)
        dates = date_parts(source)
        if dates is not None:
            yield from _of_dates(dates, date_parts(translation), translation)
            return
        broken = _broken(messages(source), messages(translation))
        if broken is not None:
            yield broken
            return
        before, after = _placeholders(source), _placeholders(translation)
        lost, invented, retyped = _differences(before, after)
        if lost or invented:
            # Text that cannot be parsed may still contain the placeholder, and so may an inline code without text.
            here, there = (blanked(text, _places(side)) for text, side in ((source, before), (translation, after)))
            kept = {one.id for one in context.translation_codes}
            there += "".join(one.text for one in context.source_codes if one.id in kept)
            lost = [one for one in lost if not _stands_in(there, one, source)]
            invented = [one for one in invented if not _stands_in(here, one, translation)]
        if context.one_number and lost and not invented:
            counts = [one for one in lost if one.type in _COUNTS]
            named = any(one.type in _COUNTS for one in before)
            if counts or not named:
                lost.remove(counts[0] if counts else lost[0])
        for one in retyped:
            yield error("placeholder", one.start, one.end)
        signs = _single_signs(source, before, translation, after)
        yield from lost_or_invented("placeholder", _places(lost), _places(invented) + signs)


def _stands_in(rest: str, placeholder: Placeholder, text: str) -> bool:
    """Whether the rest of a text has the placeholder of another text, a conversion of its type before a letter, or a
    similar text, such as %20 for 20% in Turkish."""
    written = text[placeholder.start : placeholder.end]
    percent = _PERCENT.fullmatch(written)
    return (
        written in rest
        or (placeholder.type != "" and placeholder.type in conversions(rest))
        or (percent is not None and re.search(rf"(?<!\d){percent[1]}\s?%", rest) is not None)
    )


def _single_signs(
    source: str, before: Sequence[Placeholder], translation: str, after: Sequence[Placeholder]
) -> list[tuple[int, int]]:
    """The single percent signs in the translation of a printf format that writes each percent sign as two."""
    if not all(any(one.syntax in _PRINTF for one in side) for side in (before, after)):
        return []
    here, there = (
        [match.span() for match in _SIGNS.finditer(blanked(text, _places(side)))]
        for text, side in ((source, before), (translation, after))
    )
    if not here or any((end - start) % 2 for start, end in here):
        return []
    return [(start, end) for start, end in there if (end - start) % 2]


def _places(placeholders: Sequence[Placeholder]) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in placeholders]


@lru_cache(maxsize=8)
def without_templates(text: str) -> str:
    """The text with placeholders, tags and addresses replaced by zero characters, and messages with branches reduced to
    their general form."""
    text = without_tags(text)
    if "%" not in text and "{" not in text:
        return text
    text = _general(text)
    return blanked(text, _places(_placeholders(text)))


def _general(text: str) -> str:
    """The text with messages with branches reduced to the text of their general form."""
    return blanked(text, [place for one in messages(text) for place in one.hidden])


def _of_dates(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]] | None, translation: str
) -> Iterator[ErrorSpan]:
    """The errors on components of a date that only one of the two date formats shows."""
    if after is None:
        if "%" not in translation:
            yield error("placeholder", *next(iter(before.values())), side="source")
        return
    invented = {place for part, place in after.items() if part not in before}
    lost = {place for part, place in before.items() if part not in after}
    yield from lost_or_invented("placeholder", sorted(lost), sorted(invented))


def _broken(before: Sequence[Message], after: Sequence[Message]) -> ErrorSpan | None:
    """An error over the first message of the translation that has a syntax error, lacks the branch "other", or has a
    plural branch that does not exist or a select branch that the source lacks, if the source has none of these
    defects."""
    if not before or any(one.arguments is None or one.wrong for one in before):
        return None
    words: dict[str, frozenset[str]] = {}
    for one in before:
        for name, of_name in one.words.items():
            words[name] = words.get(name, frozenset()) | of_name
    complete = all(one.is_complete for one in before)
    for one in after:
        others = any(of_name - words.get(name, of_name) - {"other"} for name, of_name in one.words.items())
        if one.arguments is None or one.wrong or others or (complete and not one.is_complete):
            return error("placeholder", one.start, one.end)
    return None


@lru_cache(maxsize=8)
def _placeholders(text: str) -> tuple[Placeholder, ...]:
    """All placeholders of a text without addresses. The argument of a message with branches is a placeholder with its
    name; if its value is shown in the general form, there is a second one. Percent signs are read in this form."""
    inside = [one for message in messages(text) for one in message.arguments or ()]
    outside = blanked(text, [(one.start, one.end) for one in messages(text)])
    braces = numbered(list(brace_placeholders(outside)), 0)
    general = _general(text)
    return (
        *(one for one in percent_placeholders(text) if general[one.start] != "\0"),
        *braces,
        *(Placeholder(one.start, one.end, "braces", one.name) for one in inside),
        *(Placeholder(one.start, one.end, "shown", one.name) for one in inside if one.shown and one.general),
        *(Placeholder(one.start, one.end, "shown", one.argument) for one in braces),
    )


def _differences(
    before: Sequence[Placeholder], after: Sequence[Placeholder]
) -> tuple[list[Placeholder], list[Placeholder], list[Placeholder]]:
    """The omitted placeholders, the added ones, and the first one with another type."""
    lost: list[Placeholder] = []
    invented: list[Placeholder] = []
    retyped: list[Placeholder] = []
    printf = [[one for one in side if one.syntax.startswith("printf")] for side in (before, after)]
    if not any(one.argument for side in printf for one in side):
        lost, invented = _by_type(*printf)
        if not lost and not invented:
            retyped = [two for one, two in zip(*printf, strict=True) if one.type != two.type]
    elif not any(one.syntax == "printf*" for side in printf for one in side):
        first, second = (numbered(side, 1) for side in printf)
        lost, invented = _by_argument(first, second)
        types = {one.argument: one.type for one in first}
        retyped = [one for one in second if types.get(one.argument, one.type) != one.type]
    others = [[one for one in side if one.syntax not in ("shown", "printf", "printf*")] for side in (before, after)]
    more = _by_argument(*others)
    # A message with branches may depend on a number without showing it.
    kept = {one.argument for one in others[1]}
    first, second = ([one for one in side if one.syntax == "shown"] for side in (before, after))
    unseen = [one for one in _by_argument(first, second)[0] if one.argument in kept]
    return lost + more[0] + unseen, invented + more[1], retyped[:1]


def _by_argument(
    before: Sequence[Placeholder], after: Sequence[Placeholder]
) -> tuple[list[Placeholder], list[Placeholder]]:
    """The first placeholder of each argument that the other text lacks."""
    first, second = ({(one.syntax, one.argument): one for one in reversed(side)} for side in (before, after))
    return [one for key, one in first.items() if key not in second][::-1], [
        one for key, one in second.items() if key not in first
    ][::-1]


def _by_type(
    before: Sequence[Placeholder], after: Sequence[Placeholder]
) -> tuple[list[Placeholder], list[Placeholder]]:
    """The placeholders for the next argument whose type occurs less often in the other text."""
    key = attrgetter("type")
    return missing(before, after, key), missing(after, before, key)
