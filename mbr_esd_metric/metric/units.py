"""The units that a model judges at once: a segment, or each sentence of a paragraph with the text around it.

A model marks fewer errors the longer its text is, and a sum of penalties has no scale for long ones. So a paragraph is
judged sentence by sentence; the model reads all of it first ("focus sentence prompting", arXiv 2505.01761). A sentence
comes with the sentences of the source that it translates, which is all that a model without room for context reads.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.checks.check import errors_of, is_whole
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import Decision, ScoredPart
from mbr_esd_metric.core.segment import PartContext, Passage, Segment
from mbr_esd_metric.errors import OptionError, no_effect_error
from mbr_esd_metric.generation.engine import Refused
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting import sentences
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import lp_of
from mbr_esd_metric.prompting.pieces import word_count
from mbr_esd_metric.prompting.sentences import Part
from mbr_esd_metric.prompting.text import is_blank

#: With `unit=auto`, segments of more words than these are divided.
LONG = 60
#: The most words of one passage of a prompt, and of the text that it shows before that.
_PASSAGE = 400


@dataclass(frozen=True)
class Units:
    """The units of a run: the texts about which a model is asked one by one, and for each segment its parts, as many as
    it has units. A segment that is not divided is its own unit and has no parts."""

    units: Sequence[Segment]
    parts: Sequence[Sequence[Part]]

    def joined(self, outcomes: Sequence[Decision | Refused]) -> list[Decision | Refused]:
        """One outcome for each segment, from those of its units; refused if one of them is."""
        left, joined = iter(outcomes), list[Decision | Refused]()
        for parts in self.parts:
            of_segment = [next(left) for _ in parts or (None,)]
            refused = next((one for one in of_segment if isinstance(one, Refused)), None)
            joined.append(refused or join_parts([one for one in of_segment if isinstance(one, Decision)], parts))
        return joined

    def certain_errors(self, certain: Sequence[Sequence[ErrorSpan]]) -> list[Sequence[ErrorSpan]]:
        """The errors that need no model of each unit, from those of the segments: of a sentence those that begin in it,
        or the one over it all where the sentence, or the whole translation, is a copy or in another language."""
        left, errors = iter(self.units), list[Sequence[ErrorSpan]]()
        for parts, of_segment in zip(self.parts, certain, strict=True):
            units = [next(left) for _ in parts or (None,)]
            if parts:
                errors += [_of_part(number, parts, unit, of_segment) for number, unit in enumerate(units)]
            else:
                errors.append(of_segment)
        return errors


def _of_part(number: int, parts: Sequence[Part], unit: Segment, certain: Sequence[ErrorSpan]) -> Sequence[ErrorSpan]:
    """The errors of one of a segment's parts, with offsets into it."""
    part, last = parts[number], parts[-1]
    for one in certain:
        if (one.side, one.start) == ("translation", parts[0].start) and one.end >= last.end:
            return (replace(one, start=0, end=part.end - part.start),)
    whole = [one for one in errors_of(unit.source, unit.translation, unit.known) if is_whole(one, unit.translation)]
    return whole or [
        replace(one, start=one.start - start, end=one.end - start)
        for one in certain
        for start in (part.start if one.side == "translation" else part.source_start,)
        if _part_of(one, parts) == number
    ]


def _part_of(error: ErrorSpan, parts: Sequence[Part]) -> int:
    """The number of the part in which an error begins, or of the one before it."""
    starts = [part.start if error.side == "translation" else part.source_start for part in parts]
    return max(bisect_right(starts, error.start) - 1, 0)


def join_parts(decisions: Sequence[Decision], parts: Sequence[Part]) -> Decision:
    """The decision for a segment whose sentences were decided one by one, with offsets into their parts; a single one
    is returned as it is. Spans move to their places in the segment; score, MQM score and expected utility are means
    over the sentences (docs/evidence/long-texts.md compares four scores), with the standard deviation of a mean of
    independent scores; counts are sums, and it is unsure if a sentence is. No candidate is the answer, so there is no
    index and no list of utilities."""
    if len(decisions) == 1:
        return decisions[0]
    k = len(parts)
    spans: list[ErrorSpan] = []
    for decision, part in zip(decisions, parts, strict=True):
        for span in decision.annotation:
            shift = part.start if span.side == "translation" else part.source_start
            spans.append(replace(span, start=span.start + shift, end=span.end + shift))
    deviations = [one.mqm_sd for one in decisions if one.mqm_sd is not None]
    counts = ("valid", "distinct", "invalid", "dropped", "unplaced", "inexact", "located", "unmarked", "malformed")
    return Decision(
        index=None,
        annotation=Annotation(spans),
        score=sum(one.score for one in decisions) / k,
        mqm=sum(one.mqm for one in decisions) / k,
        expected_utilities=(),
        expected_utility=sum(one.expected_utility for one in decisions) / k,
        reasons=dict(sum((Counter(one.reasons) for one in decisions), Counter[str]())),
        unsure=any(one.unsure for one in decisions),
        mqm_sd=math.sqrt(sum(sd * sd for sd in deviations)) / k if len(deviations) == k else None,
        parts=tuple(ScoredPart(part.start, part.end, one.score) for one, part in zip(decisions, parts, strict=True)),
        **{name: sum(getattr(one, name) for one in decisions) for name in counts},
    )


def units_of(card: ModelCard, segments: Sequence[Segment]) -> Units:
    """The units of these segments, by the options `unit` and `context` of the card. Stored candidates have whole
    segments. `OptionError` for `context=document` without documents, or with a format whose model reads the two texts
    alone."""
    no_context, of_documents = bool(get_format(card.decision.format).engine), card.context == "document"
    if of_documents and no_context:
        raise no_effect_error(
            "context=document", f"format={card.decision.format}, which reads a sentence and its source"
        )
    if of_documents and segments and not any(segment.document for segment in segments):
        raise OptionError("context=document needs document boundaries: add --documents FILE, or 'doc' in each sample")
    if card.candidates is not None or (card.unit == "segment" and not of_documents):
        return Units(segments, [()] * len(segments))
    units: list[Segment] = []
    parts: list[Sequence[Part]] = []
    documents: dict[tuple[str, str], list[Passage]] = {}
    for segment in segments:
        divided, source, translation = _parts(card, segment), segment.source, segment.translation
        texts = [(source[p.source_start : p.source_end], translation[p.start : p.end]) for p in divided]
        texts = texts or [(source, translation)]
        before: list[Passage] = []
        if of_documents and segment.document:
            before = documents.setdefault((segment.system, segment.document), before)
        contexts: Sequence[PartContext | None] = [None] * len(texts)
        if not no_context and not is_blank(translation) and (divided or of_documents):
            shown = _contexts(texts, before)
            contexts = shown if divided or before[:-1] else contexts
        parts.append(divided)
        known = (
            replace(segment.known, numbers=None, source_codes=(), translation_codes=()) if divided else segment.known
        )
        for number, (text, context) in enumerate(zip(texts, contexts, strict=True), 1):
            label = f"{segment.label}, sentence {number}" if divided else segment.label
            units.append(Segment(*text, label, segment.system, segment.document, context, known))
    return Units(units, parts)


def _parts(card: ModelCard, segment: Segment) -> Sequence[Part]:
    """The sentences of a segment; an empty sequence if it is not divided."""
    # A word has a character at least, or a half where a script writes no spaces.
    short = len(segment.translation) <= LONG or word_count(segment.translation) <= LONG
    if card.unit == "segment" or (card.unit == "auto" and short):
        return ()
    divided = sentences.parts(segment.source, segment.translation, card.lp or lp_of(segment))
    return divided if len(divided) > 1 else ()


def _contexts(texts: Sequence[tuple[str, str]], before: list[Passage]) -> list[PartContext]:
    """The context of each part: its passage, and the earlier ones in `before`, which grows."""
    contexts: list[PartContext] = []
    for passage in _passages(texts):
        if sum(map(_words, before)) > _PASSAGE:  # so that the parts of one document have few different beginnings
            del before[:-1]
        first = 1 + sum(len(one.sources) for one in before)
        before.append(passage)
        contexts += [PartContext(tuple(before), first + number) for number in range(len(passage.sources))]
    return contexts


def _passages(texts: Sequence[tuple[str, str]]) -> list[Passage]:
    """The passages of a segment, of at most `_PASSAGE` words or one longer sentence."""
    passages: list[Passage] = []
    words = 0
    for source, translation in texts:
        one = Passage((source,), (translation,))
        more = _words(one)
        if passages and words + more <= _PASSAGE:
            last = passages.pop()
            one, more = Passage(last.sources + one.sources, last.translations + one.translations), words + more
        passages.append(one)
        words = more
    return passages


def _words(passage: Passage) -> int:
    return max(sum(map(word_count, side)) for side in (passage.sources, passage.translations))
