"""What a model judges at once: a segment, or each sentence of a paragraph, with the text around it in the prompt.

A model marks fewer errors the longer its text is, and a sum of penalties has no scale for long ones. So a paragraph is
judged sentence by sentence; the model reads all of it first ("focus sentence prompting", arXiv 2505.01761). A sentence
comes with the sentences of the source that it translates, which is all that a model without room for context reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.decoding.joining import join_parts
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import Context, Passage
from mbr_esd_metric.elicit.sentences import Part, parts, word_count
from mbr_esd_metric.errors import OptionError, useless
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.plan import Segment

#: With `unit=auto`, segments of more words than these are divided.
LONG = 60
#: The most words of one passage of a prompt, and of what it shows before that.
_PASSAGE = 400


@dataclass(frozen=True)
class Units:
    """The units of a run.

    Attributes:
        units: what a model is asked about, one by one; a segment that is not divided is its own unit.
        parts: of each segment, as many as it has units.
    """

    units: Sequence[Segment]
    parts: Sequence[Sequence[Part]]

    def joined(self, decisions: Sequence[Decision]) -> list[Decision]:
        """One decision for each segment, of those for the units."""
        one_by_one = iter(decisions)
        return [join_parts([next(one_by_one) for _ in some], some) for some in self.parts]


def units_of(card: ModelCard, segments: Sequence[Segment]) -> Units:
    """The units of these segments, as `unit` and `context` of the card say.

    Stored candidates are of whole segments.

    Raises:
        OptionError: `context=document` without documents, or for a format whose model reads the two texts alone.
    """
    alone = bool(get_format(card.decision.format).engine)
    if card.context == "document":
        if alone:
            raise useless("context=document", f"format={card.decision.format}, which reads a sentence and its source")
        if segments and not any(segment.document for segment in segments):
            raise OptionError(
                "context=document needs to know the documents: give --documents FILE, or 'doc' in each sample"
            )
    stored = any(one.candidates is not None for one in (card, *card.others))
    if stored or (card.unit == "segment" and card.context == "segment"):
        return Units(segments, [_whole(segment) for segment in segments])
    units: list[Segment] = []
    found: list[Sequence[Part]] = []
    texts: dict[tuple[str, str], list[Passage]] = {}
    for segment in segments:
        found.append(some := _parts(card, segment))
        before: list[Passage] = []
        if card.context == "document" and segment.document:
            before = texts.setdefault((segment.system, segment.document), before)
        contexts: Sequence[Context | None] = [None] * len(some)
        if not alone and segment.translation.strip():
            given = _contexts(segment, some, before)
            contexts = given if len(some) > 1 or before[:-1] else contexts
        units += [_unit(segment, some, at, context) for at, context in enumerate(contexts)]
    return Units(units, found)


def divisible(segment: Segment, lp: str | None) -> bool:
    """Whether `unit=sentence` would divide a segment."""
    return len(parts(segment.source, segment.translation, lp)) > 1


def _parts(card: ModelCard, segment: Segment) -> Sequence[Part]:
    if card.unit == "sentence" or (card.unit == "auto" and word_count(segment.translation) > LONG):
        return parts(segment.source, segment.translation, card.lp)
    return _whole(segment)


def _whole(segment: Segment) -> Sequence[Part]:
    return (Part(0, len(segment.translation), 0, len(segment.source)),)


def _contexts(segment: Segment, some: Sequence[Part], before: list[Passage]) -> list[Context]:
    """What is read with each part: its passage, and those that stand before it in `before`, which grows.

    It begins anew when it is too long, so that what is read of one document has few different beginnings.
    """
    found: list[Context] = []
    for passage in _passages(segment, some):
        if sum(map(_words, before)) > _PASSAGE:
            del before[:-1]
        first = 1 + sum(len(one.sources) for one in before)
        before.append(passage)
        found += [Context(tuple(before), first + at) for at in range(len(passage.sources))]
    return found


def _passages(segment: Segment, some: Sequence[Part]) -> Iterator[Passage]:
    """A segment as passages of at most `_PASSAGE` words, or one sentence that has more."""
    texts = [
        (segment.source[part.source_start : part.source_end], segment.translation[part.start : part.end])
        for part in some
    ]
    taken: list[tuple[str, str]] = []
    words = 0
    for text in texts:
        more = max(map(word_count, text))
        if taken and words + more > _PASSAGE:
            yield Passage(*map(tuple, zip(*taken, strict=True)))
            taken, words = [], 0
        taken.append(text)
        words += more
    yield Passage(*map(tuple, zip(*taken, strict=True)))


def _words(passage: Passage) -> int:
    return max(sum(map(word_count, side)) for side in (passage.sources, passage.translations))


def _unit(segment: Segment, some: Sequence[Part], at: int, context: Context | None) -> Segment:
    if len(some) == 1 and context is None:
        return segment
    part = some[at]
    return Segment(
        segment.source[part.source_start : part.source_end],
        segment.translation[part.start : part.end],
        segment.label if len(some) == 1 else f"{segment.label}, sentence {at + 1}",
        segment.system,
        segment.document,
        context,
    )
