"""One run: from segments to decisions, with a summary of lost candidates and spans. Candidates come from a source; each
distinct pair is decided once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from mbr_esd_metric.checks.check import errors_of
from mbr_esd_metric.core.annotation import EMPTY, SIDES, ErrorSpan
from mbr_esd_metric.core.corrections import corrected
from mbr_esd_metric.core.decision import Candidate, CandidateColumns, Decision
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.decoding.segment import (
    Case,
    blank_decision,
    decide_cases,
    with_certain_errors,
)
from mbr_esd_metric.errors import NoValidCandidateError
from mbr_esd_metric.files.judged import JudgedSegment
from mbr_esd_metric.generation.engine import NO_MODEL, Refused
from mbr_esd_metric.log import logger, notes
from mbr_esd_metric.messages import first_of, number_of
from mbr_esd_metric.metric.advice import NO_CANDIDATES, summary
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.data_warnings import data_warning, is_worth_checking
from mbr_esd_metric.metric.signature import model_title, signature
from mbr_esd_metric.metric.sources import Collected, Sampled
from mbr_esd_metric.prompting.formats import AnswerFormat, get_format
from mbr_esd_metric.prompting.languages import language_name, language_pair, lp_of
from mbr_esd_metric.prompting.text import is_blank

if TYPE_CHECKING:
    from mbr_esd_metric.metric.candidate_file import FromFile

#: A source of candidates.
CandidateSource: TypeAlias = "Sampled | FromFile"
#: The decision for a segment that a server rejected: it has no score.
_REFUSED = Decision(None, EMPTY, math.nan, math.nan, (), math.nan, 0, 0, 0)
#: The decision for a translation that needs no model: one candidate without errors.
_UNMARKED = Decision(0, EMPTY, 1.0, 0.0, (1.0,), 1.0, valid=1, distinct=1, invalid=0, unmarked=1)


@dataclass(frozen=True, slots=True)
class Annotated:
    """The result of a run.

    Attributes:
        decisions: one per segment, in order.
        judged: the segments with their decisions, as written to files.
        answers: the answer format of the candidates.
        signature: None without segments.
        summary: a line with the counts of lost candidates and spans; "" if there are none.
        advice: a line for each problem that makes the scores uninformative, with options that help.
    """

    decisions: Sequence[Decision]
    judged: Sequence[JudgedSegment]
    answers: AnswerFormat
    signature: Signature | None = None
    summary: str = NO_CANDIDATES
    advice: Sequence[str] = ()


def candidate_source(card: ModelCard, *, keep: bool = False) -> CandidateSource:
    """The candidate source of a card; with `keep`, its engine stays loaded. Raises `EngineError` or `OptionError` if no
    engine can run the card on this machine, or the file is missing."""
    if card.candidates is None:
        return Sampled(card, keep=keep)
    from mbr_esd_metric.metric.candidate_file import FromFile

    return FromFile(card)


def annotate(
    card: ModelCard, segments: Sequence[Segment], *, progress: bool = False, source: CandidateSource | None = None
) -> Annotated:
    """Sample missing candidates, then decide; `progress` shows a bar on standard error. `source` defaults to the
    card's.

    Raises:
        EngineError, StoreError: earlier samples stay in the store.
        NoValidCandidateError: after everything is sampled, with the labels of segments that have no valid candidate.
    """
    if not segments:
        return Annotated([], [], get_format(card.decision.format))
    recalibration = None
    if card.calibration:
        from mbr_esd_metric.files.records import read_recalibration

        recalibration = read_recalibration(card.calibration)
    with notes(progress):
        source = source or candidate_source(card)
        card = source.card
        if card.lp:
            pair = language_pair(card.lp)
            for code in pair:
                language_name(code)  # warns of an unknown code
            segments = [replace(one, known=one.known.with_languages(*pair)) for one in segments]
        certain = _certain_errors(card, segments)
        if card.unit == "segment" and card.context == "segment":
            outcomes = _with_certain(card, _decide(source, segments, progress), certain)
        else:
            from mbr_esd_metric.metric.units import units_of

            units = units_of(card, segments)
            outcomes = _decide(source, units.units, progress)
            outcomes = units.joined(_with_certain(card, outcomes, units.certain_errors(certain)), card)
        refused = [one.reason if isinstance(one, Refused) else None for one in outcomes]
        if any(refused):
            named = zip(segments, refused, strict=True)
            _warn_of_refused([(one.label, reason) for one, reason in named if reason], "without a score")
        decisions = [_REFUSED if isinstance(one, Refused) else one for one in outcomes]
        if recalibration is not None:
            decisions = [replace(one, annotation=recalibration.annotation(one.annotation)) for one in decisions]
        line, advice = summary(card, source.engine, segments, decisions)
        if line:
            logger.info(line)
        for one in advice:
            logger.warning(one)
    answers = get_format(card.decision.format)
    if card.lp is None and card.names_languages:  # each segment's prompt has its own languages
        card = replace(card, lp="+".join(sorted({*filter(None, map(lp_of, segments))})) or None)
    printed = signature(card, source.engine)
    settings = Settings(model_title(card, printed), printed)
    judged = [
        JudgedSegment.of_decision(
            segment,
            decision,
            settings=settings,
            data_warning=data_warning(segment.source, segment.translation, errors, segment.known.source_is_key),
            corrected=corrected(segment.translation, decision.annotation) if answers.corrections else None,
            marks_source=answers.both_sides,
            refused=reason,
        )
        for segment, decision, errors, reason in zip(segments, decisions, certain, refused, strict=True)
    ]
    return Annotated(decisions, judged, answers, printed, line, advice)


def _certain_errors(card: ModelCard, segments: Sequence[Segment]) -> list[Sequence[ErrorSpan]]:
    """The errors that the checks find in each segment; without `checks=true`, only those for data warnings."""
    every = card.decision.checks == "true"
    return [
        errors_of(one.source, one.translation, one.known)
        if every or one.known.has_codes or is_worth_checking(one.source, one.translation, one.known.target_language)
        else ()
        for one in segments
    ]


def _with_certain(
    card: ModelCard, outcomes: Sequence[Decision | Refused], certain: Sequence[Sequence[ErrorSpan]]
) -> list[Decision | Refused]:
    """The outcomes with rule-based errors added, if the card has `checks=true`. Decisions without candidates (blank
    translations) are unchanged."""
    if card.decision.checks != "true":
        return [*outcomes]
    sides = SIDES if get_format(card.decision.format).both_sides else ("translation",)
    return [
        with_certain_errors(outcome, [one for one in errors if one.side in sides], card.decision)
        if errors and isinstance(outcome, Decision) and outcome.valid
        else outcome
        for outcome, errors in zip(outcomes, certain, strict=True)
    ]


def signature_of(card: ModelCard) -> Signature:
    """The signature of a run of the card, without loading or downloading weights."""
    source = candidate_source(card)
    return signature(source.card, source.engine)


def _decide(source: CandidateSource, segments: Sequence[Segment], progress: bool) -> list[Decision | Refused]:
    """The decision of each segment, or the reason why it has none."""
    card = source.card
    if source.engine is not None and source.engine.name == NO_MODEL:  # nothing to choose or store
        source.engine.load()
        return [blank_decision(one.source, one.translation, card.decision) or _UNMARKED for one in segments]
    options = replace(card.decision, checks="false")  # of whole segments, after this
    groups: list[list[int]] = []
    failed: dict[str, str] = {}
    emptied: list[tuple[str, str]] = []
    single = unexplained = 0

    def cases() -> Iterator[Case[Decision | Refused]]:
        nonlocal single, unexplained
        for numbers, candidates in candidates_of(source, segments, progress):
            segment = segments[numbers[0]]
            known: Decision | Refused | None = None
            if isinstance(candidates, Refused):
                if options.invalid == "empty":
                    emptied.extend((segments[number].label, candidates.reason) for number in numbers)
                else:
                    known = candidates
                columns = CandidateColumns.of([_clean_candidate(card, segment)])
            else:
                columns = CandidateColumns.of(candidates)
                if is_blank(segment.translation):
                    columns = columns.first(1)
                    known = blank_decision(segment.source, segment.translation, options)
                elif card.samples == 1:
                    single += 1
                    unexplained += columns.token_logprobs is None
            # A rule for a whole test set counts equal segments separately.
            for group in [[number] for number in numbers] if options.whole_set else [numbers]:
                groups.append(group)
                label = segments[group[0]].label
                yield Case(label, columns, segment.translation, segment.source, known=known)

    def unread(label: str, error: NoValidCandidateError) -> Refused:
        failed[label] = str(error)
        return Refused("", "")

    outcomes: dict[int, Decision | Refused] = {}
    for at, outcome in enumerate(decide_cases(cases(), options, unread)):
        outcomes |= dict.fromkeys(groups[at], outcome)
    if failed:
        why = next(iter(failed.values())).partition(" is valid")[2]
        shorter = ", request shorter ones (format=compact)" if options.format == "json" else ""
        every = f"none of the {card.samples} candidates" if card.samples > 1 else "no candidate"
        raise NoValidCandidateError(
            f"{every} is valid for {first_of([*failed])}{why}; the samples are stored: request more "
            f"(n={4 * card.samples}), allow longer answers (max_tokens={2 * card.max_tokens})"
            f"{shorter}, or count malformed candidates as no error (invalid=empty)"
        )
    if emptied:
        _warn_of_refused(emptied, "counted as error-free (invalid=empty)")
    if unexplained:
        logger.warning(
            f"{unexplained} of {single} answers lack token log-probabilities; the confidence of their spans is 1"
        )
    return [outcomes[number] for number in range(len(segments))]


def _warn_of_refused(named: Sequence[tuple[str, str]], fate: str) -> None:
    """Warn of segments that a server rejected permanently, with its message and their treatment."""
    count = number_of(len(named), "segment")
    logger.warning(f"{count} {fate}, because the server rejected the request: {refusals(named)}")


def refusals(named: Iterable[tuple[str, str]]) -> str:
    """The distinct reasons of (label, reason) pairs, most frequent first, with their segments."""
    labels: dict[str, list[str]] = {}
    for label, reason in named:
        labels.setdefault(reason, []).append(label)
    ordered = sorted(labels, key=lambda reason: -len(labels[reason]))
    return first_of([f"{reason} ({first_of(labels[reason])})" for reason in ordered], 3, "; ")


def candidates_of(source: CandidateSource, segments: Sequence[Segment], progress: bool) -> Collected:
    """The candidates of all segments; for a blank translation, answers without errors."""
    for number, one in enumerate(segments):
        if is_blank(one.translation):
            yield [number], [_clean_candidate(source.card, one)] * source.card.samples
    yield from source.collect(segments, progress)


def _clean_candidate(card: ModelCard, segment: Segment) -> Candidate:
    """An answer without errors."""
    return Candidate(get_format(card.decision.format).answer(EMPTY, segment.translation)[0], logprob=0.0)
