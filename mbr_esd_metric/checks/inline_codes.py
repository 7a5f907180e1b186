"""Inline codes: tags and placeholders of translation tools that a file has in addition to the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mbr_esd_metric.checks.check import Check, Context, InlineCode
from mbr_esd_metric.checks.items import lost_or_invented
from mbr_esd_metric.core.annotation import ErrorSpan

_WORD = re.compile(r"\S+")


class InlineCodes(Check):
    """`check/tag` (major): an added code of XLIFF or TMX, marked in the translation; an omitted one, marked in the
    source unless an added one replaces it. The span is the text of the code, or the word next to an empty code. Codes
    correspond if they have the same id or the same text; they may be in another order, and tags may be repeated."""

    name = "inline_codes"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors in inline codes."""
        if not context.has_codes:
            return
        for alone in (True, False):
            before, after = (
                [one for one in side if one.stands_alone == alone]
                for side in (context.source_codes, context.translation_codes)
            )
            by_id, by_text = (_differences(before, after, alone, of_text) for of_text in (False, True))
            lost, invented = min(by_id, by_text, key=lambda sides: sum(map(len, sides)))
            places = [_place(one, source) for one in lost], [_place(one, translation) for one in invented]
            yield from dict.fromkeys(lost_or_invented("tag", *places))


def _differences(
    before: Sequence[InlineCode], after: Sequence[InlineCode], counted: bool, of_text: bool
) -> tuple[list[InlineCode], list[InlineCode]]:
    """The codes that the translation lacks, and those that the source lacks, compared by text or by id. `counted` also
    reports codes that occur less often."""
    sides = []
    for side, other in ((before, after), (after, before)):
        left = Counter(one.text if of_text else one.id for one in other)
        lacking: dict[tuple[str, int], InlineCode] = {}
        for one in side:
            name = one.text if of_text else one.id
            left[name] -= counted or name not in left
            if left[name] < 0:
                lacking.setdefault((name, left[name] if counted else 0), one)
        sides.append([*lacking.values()])
    return sides[0], sides[1]


def _place(code: InlineCode, text: str) -> tuple[int, int]:
    """The text of a code; for an empty one, the nearest word, or the previous one of two."""
    inside = text[code.start : code.end]
    if inside.strip():
        start = code.start + len(inside) - len(inside.lstrip())
        return start, start + len(inside.strip())
    words = [match.span() for match in _WORD.finditer(text)]
    return min(words, key=lambda word: max(code.start - word[1], word[0] - code.start, 0), default=(0, len(text)))
