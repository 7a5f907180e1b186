"""Units of annotation: a segment, or each sentence of a paragraph with the surrounding text.

Models mark fewer errors in longer texts, and sums of penalties are not comparable for long texts. Therefore a paragraph
is annotated sentence by sentence, with the whole paragraph as context ("focus sentence prompting", arXiv 2505.01761). A
sentence is paired with the source sentences that it translates; a model without context reads only these.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.checks.check import errors_of, is_whole
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, unit_score, weights_of
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
#: Maximum number of words of a passage in a prompt, and of the text shown before it.
_PASSAGE = 400


@dataclass(frozen=True)
class Units:
    """The units of a run: the texts that the model annotates, and for each segment its parts, one per unit. An
    undivided segment is a single unit without parts."""

    units: Sequence[Segment]
    parts: Sequence[Sequence[Part]]

    def joined(self, outcomes: Sequence[Decision | Refused], card: ModelCard) -> list[Decision | Refused]:
        """One outcome per segment, joined from its units by the card's option `join`; rejected if one of them is."""
        left, joined = iter(outcomes), list[Decision | Refused]()
        for parts in self.parts:
            of_segment = [next(left) for _ in parts or (None,)]
            refused = next((one for one in of_segment if isinstance(one, Refused)), None)
            decisions = [one for one in of_segment if isinstance(one, Decision)]
            joined.append(refused or join_parts(decisions, parts, card.decision.mqm, summed=card.join == "sum"))
        return joined

    def certain_errors(self, certain: Sequence[Sequence[ErrorSpan]]) -> list[Sequence[ErrorSpan]]:
        """The rule-based errors of each unit, from those of the segments: for a sentence, the errors that begin in it,
        or an error over the whole sentence if it, or the whole translation, is a copy or in another language."""
        left, errors = iter(self.units), list[Sequence[ErrorSpan]]()
        for parts, of_segment in zip(self.parts, certain, strict=True):
            units = [next(left) for _ in parts or (None,)]
            if parts:
                errors += [_of_part(number, parts, unit, of_segment) for number, unit in enumerate(units)]
            else:
                errors.append(of_segment)
        return errors


def _of_part(number: int, parts: Sequence[Part], unit: Segment, certain: Sequence[ErrorSpan]) -> Sequence[ErrorSpan]:
    """The errors of a part of a segment, with offsets into the part."""
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
    """The index of the part in which an error begins, or of the part before it."""
    starts = [part.start if error.side == "translation" else part.source_start for part in parts]
    return max(bisect_right(starts, error.start) - 1, 0)


def join_parts(
    decisions: Sequence[Decision], parts: Sequence[Part], mqm: str = "paper", *, summed: bool = False
) -> Decision:
    """The decision for a segment whose sentences were decided one by one, with offsets into their parts; a single
    decision is returned unchanged. Spans are moved to their positions in the segment; the expected utility is a mean
    over the sentences, and so is the MQM score with its standard deviation (of independent scores), or their sum, not
    below the floor of the weights `mqm` (docs/evidence/long-texts.md compares them); counts are sums. The segment is
    unsure if a sentence is. The result is not a candidate, so it has no index and no list of utilities."""
    if len(decisions) == 1:
        return decisions[0]
    k = len(parts)
    spans: list[ErrorSpan] = []
    for decision, part in zip(decisions, parts, strict=True):
        for span in decision.annotation:
            shift = part.start if span.side == "translation" else part.source_start
            spans.append(replace(span, start=span.start + shift, end=span.end + shift))
    deviations = [one.mqm_sd for one in decisions if one.mqm_sd is not None]
    over = 1 if summed else k
    points = max(math.fsum(one.mqm for one in decisions) / over, weights_of(mqm).floor)
    counts = ("valid", "distinct", "invalid", "dropped", "unplaced", "inexact", "located", "unmarked", "malformed")
    return Decision(
        index=None,
        annotation=Annotation(spans),
        score=unit_score(points, mqm),
        mqm=points,
        expected_utilities=(),
        expected_utility=sum(one.expected_utility for one in decisions) / k,
        reasons=dict(sum((Counter(one.reasons) for one in decisions), Counter[str]())),
        unsure=any(one.unsure for one in decisions),
        mqm_sd=math.sqrt(sum(sd * sd for sd in deviations)) / over if len(deviations) == k else None,
        parts=tuple(ScoredPart(part.start, part.end, one.score) for one, part in zip(decisions, parts, strict=True)),
        **{name: sum(getattr(one, name) for one in decisions) for name in counts},
    )


def units_of(card: ModelCard, segments: Sequence[Segment]) -> Units:
    """The units of these segments, by the card's options `unit` and `context`. Stored candidates are for whole
    segments. Raises `OptionError` for `context=document` without documents, or with a format whose model does not read
    context."""
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
    # A word has at least one character, or half a character in scripts without spaces.
    short = len(segment.translation) <= LONG or word_count(segment.translation) <= LONG
    if card.unit == "segment" or (card.unit == "auto" and short):
        return ()
    divided = sentences.parts(segment.source, segment.translation, card.lp or lp_of(segment))
    return divided if len(divided) > 1 else ()


def _contexts(texts: Sequence[tuple[str, str]], before: list[Passage]) -> list[PartContext]:
    """The context of each part: its passage, after the earlier passages in `before`, which is extended."""
    contexts: list[PartContext] = []
    for passage in _passages(texts):
        if sum(map(_words, before)) > _PASSAGE:  # so that prompts of a document share few distinct prefixes
            del before[:-1]
        first = 1 + sum(len(one.sources) for one in before)
        before.append(passage)
        contexts += [PartContext(tuple(before), first + number) for number in range(len(passage.sources))]
    return contexts


def _passages(texts: Sequence[tuple[str, str]]) -> list[Passage]:
    """The passages of a segment, each with at most `_PASSAGE` words or a single longer sentence."""
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
