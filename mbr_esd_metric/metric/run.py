"""One run: segments in, decisions out, with a summary of what was lost. Candidates come from a source, and each
distinct pair is decided once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mbr_esd_metric.checks.check import errors_of
from mbr_esd_metric.core.annotation import EMPTY, SIDES, ErrorSpan
from mbr_esd_metric.core.corrections import NOT_APPLIED, not_applied
from mbr_esd_metric.core.decision import FEW, UNSURE, Candidate, Decision, mostly_lost
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.decoding.segment import (
    CUT,
    FOUND_INEXACTLY,
    blank_decision,
    decide_segment,
    with_certain_errors,
)
from mbr_esd_metric.errors import NoValidCandidateError, first_of, labelled, logger, notes, number_of
from mbr_esd_metric.generation.engine import NO_MODEL, Engine, Refused
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.data_warnings import is_worth_checking
from mbr_esd_metric.metric.signature import signature
from mbr_esd_metric.metric.sources import Collected, Sampled
from mbr_esd_metric.prompting.formats import AnswerFormat, get_format
from mbr_esd_metric.prompting.languages import language_pair, lp_of
from mbr_esd_metric.prompting.prompt import built_in
from mbr_esd_metric.prompting.text import is_blank

if TYPE_CHECKING:
    from mbr_esd_metric.decoding.decide import CorpusSegment
    from mbr_esd_metric.metric.candidate_file import FromFile

#: A source of candidates.
CandidateSource: TypeAlias = "Sampled | FromFile"
#: The summary of a run without a candidate.
NO_CANDIDATES = "no candidates: there is no translation to mark, or all are refused"
#: The decision for a segment that a server will never answer: it has no score.
_REFUSED = Decision(None, EMPTY, math.nan, math.nan, (), math.nan, 0, 0, 0)
#: That for a translation about which no model is asked: one candidate, without an error.
_UNMARKED = Decision(0, EMPTY, 1.0, 0.0, (1.0,), 1.0, valid=1, distinct=1, invalid=0, unmarked=1)


@dataclass(frozen=True, slots=True)
class Annotated:
    """The result of a run.

    Attributes:
        decisions: one for each segment, in order.
        answers: the format of the candidates.
        signature: None without segments.
        summary: the counts of what was lost in a line; "" if nothing was.
        advice: a line for each thing that makes the scores say little, with the options that help.
        refused: number of a segment -> why its server will never answer it; its score is NaN.
        certain: the errors of each segment that the checks find; with the option `checks` the decisions have them, and
            without it they are for data warnings.
    """

    decisions: Sequence[Decision]
    answers: AnswerFormat
    signature: Signature | None = None
    summary: str = NO_CANDIDATES
    advice: Sequence[str] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    certain: Sequence[Sequence[ErrorSpan]] = ()


def candidate_source(card: ModelCard, *, keep: bool = False) -> CandidateSource:
    """The source that a card names, which may `keep` its engine loaded; `EngineError` or `OptionError` if no engine
    fits it on this machine, or the file is missing."""
    if card.candidates is None:
        return Sampled(card, keep=keep)
    from mbr_esd_metric.metric.candidate_file import FromFile

    return FromFile(card)


def annotate(
    card: ModelCard, segments: Sequence[Segment], *, progress: bool = False, source: CandidateSource | None = None
) -> Annotated:
    """Sample what the store lacks, then decide; `progress` shows a bar on standard error. The source is the card's.

    Raises:
        EngineError, StoreError: what was sampled before stays in the store.
        NoValidCandidateError: after everything is sampled, with the labels of segments that have no valid candidate.
    """
    if not segments:
        return Annotated([], get_format(card.decision.format))
    recalibration = None
    if card.calibration:
        from mbr_esd_metric.files.records import read_recalibration

        recalibration = read_recalibration(card.calibration)
    with notes(progress):
        source = source or candidate_source(card)
        card = source.card
        if card.lp:
            pair = language_pair(card.lp)
            segments = [replace(one, known=one.known.with_languages(*pair)) for one in segments]
        certain = _certain_errors(card, segments)
        if card.unit == "segment" and card.context == "segment":
            outcomes = _with_certain(card, _decide(source, segments, progress), certain)
        else:
            from mbr_esd_metric.metric.units import units_of

            units = units_of(card, segments)
            outcomes = _decide(source, units.units, progress)
            outcomes = units.joined(_with_certain(card, outcomes, units.certain_errors(certain)))
        refused = {number: one.reason for number, one in enumerate(outcomes) if isinstance(one, Refused)}
        if refused:
            _warn_of_refused([(segments[at].label, reason) for at, reason in refused.items()], "without a score")
        decisions = [_REFUSED if isinstance(one, Refused) else one for one in outcomes]
        if recalibration is not None:
            decisions = [replace(one, annotation=recalibration.annotation(one.annotation)) for one in decisions]
        line, advice = summary(card, source.engine, segments, decisions)
        if line:
            logger.info(line)
        for one in advice:
            logger.warning(one)
    answers = get_format(card.decision.format)
    if card.lp is None and card.names_languages:  # each prompt has those of its segment
        card = replace(card, lp="+".join(sorted({*filter(None, map(lp_of, segments))})) or None)
    return Annotated(decisions, answers, signature(card, source.engine), line, advice, refused, certain)


def _certain_errors(card: ModelCard, segments: Sequence[Segment]) -> list[Sequence[ErrorSpan]]:
    """The errors of each segment that the checks find; without the option `checks` those that are data warnings."""
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
    """The outcomes with the errors that need no model, where the card has `checks=true`. A decision without a candidate
    is of a blank translation, and stays as it is."""
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
    """The signature that a run of the card will have. No weights are loaded or fetched."""
    source = candidate_source(card)
    return signature(source.card, source.engine)


def _decide(source: CandidateSource, segments: Sequence[Segment], progress: bool) -> list[Decision | Refused]:
    """The decision of each segment, or why it has none."""
    card = source.card
    if source.engine is not None and source.engine.name == NO_MODEL:  # there is nothing to choose, or to store
        source.engine.load()
        return [blank_decision(one.source, one.translation, card.decision) or _UNMARKED for one in segments]
    options = replace(card.decision, checks="false")  # of whole segments, after this
    choose: Callable[..., Decision | CorpusSegment] = decide_segment
    if options.whole_set:
        from mbr_esd_metric.decoding.decide import corpus_segment, decide_together

        choose = corpus_segment
    outcomes: dict[int, Decision | CorpusSegment | Refused] = {}
    failed: dict[str, str] = {}
    emptied: list[tuple[str, str]] = []
    single = unexplained = 0
    for numbers, candidates in candidates_of(source, segments, progress):
        segment = segments[numbers[0]]
        outcome: Decision | CorpusSegment | Refused | None = None
        if isinstance(candidates, Refused):
            if options.invalid == "empty":
                emptied += [(segments[number].label, candidates.reason) for number in numbers]
            else:
                outcome = candidates
            candidates = [_clean_candidate(card, segment)]
        elif is_blank(segment.translation):
            outcome, candidates = blank_decision(segment.source, segment.translation, options), candidates[:1]
        elif card.samples == 1:
            single += len(candidates)
            unexplained += sum(one.token_logprobs is None for one in candidates)
        try:
            with labelled(segment.label):
                outcome = outcome or choose(candidates, segment.translation, options, source=segment.source)
            outcomes |= dict.fromkeys(numbers, outcome)
        except NoValidCandidateError as error:
            failed[segment.label] = str(error)
    if failed:
        why = next(iter(failed.values())).partition(" is valid")[2]
        shorter = ", ask for shorter ones (format=compact)" if options.format == "json" else ""
        every = f"none of the {card.samples} candidates" if card.samples > 1 else "no candidate"
        raise NoValidCandidateError(
            f"{every} is valid for {first_of([*failed])}{why}; what was sampled is "
            f"stored: ask for more (n={4 * card.samples}), allow longer answers (max_tokens={2 * card.max_tokens})"
            f"{shorter}, or count malformed candidates as no error (invalid=empty)"
        )
    if emptied:
        _warn_of_refused(emptied, "counted as without an error (invalid=empty)")
    if unexplained:
        logger.warning(
            f"{unexplained} of {single} answers come without their tokens' log-probabilities; the confidence of "
            "their spans is 1"
        )
    ordered: list[Any] = [outcomes[number] for number in range(len(segments))]
    labels = [segment.label for segment in segments]
    return decide_together([*zip(labels, ordered, strict=True)])[0] if options.whole_set else ordered


def _warn_of_refused(named: Sequence[tuple[str, str]], fate: str) -> None:
    """Warn of segments that a server refuses for good, given with its words, and say what becomes of them."""
    count = number_of(len(named), "segment")
    logger.warning(f"{count} {fate}, as the server will not answer: {refusals(named)}")


def refusals(named: Iterable[tuple[str, str]]) -> str:
    """The reasons of refusals, given as label of the segment and reason: each once, the most frequent first, with the
    segments that it is of."""
    labels: dict[str, list[str]] = {}
    for label, reason in named:
        labels.setdefault(reason, []).append(label)
    ordered = sorted(labels, key=lambda reason: -len(labels[reason]))
    return first_of([f"{reason} ({first_of(labels[reason])})" for reason in ordered], 3, "; ")


def candidates_of(source: CandidateSource, segments: Sequence[Segment], progress: bool) -> Collected:
    """The candidates of all segments; of a blank translation the answer without an error."""
    for number, one in enumerate(segments):
        if is_blank(one.translation):
            yield [number], [_clean_candidate(source.card, one)] * source.card.samples
    yield from source.collect(segments, progress)


def _clean_candidate(card: ModelCard, segment: Segment) -> Candidate:
    """The answer without an error."""
    return Candidate(get_format(card.decision.format).answer(EMPTY, segment.translation)[0], logprob=0.0)


def summary(
    card: ModelCard, engine: Engine | None, segments: Sequence[Segment], decisions: Sequence[Decision]
) -> tuple[str, list[str]]:
    """The line and the advice of `Annotated`, of a run with an engine; each segment has one decision."""
    names = ("valid", "invalid", "located", "dropped", "unplaced", "inexact", "unmarked", "malformed")
    total = {name: sum(getattr(one, name) for one in decisions) for name in names}
    total["cut"] = sum(one.reasons.get(CUT, 0) for one in decisions)
    candidates = total["valid"] + total["invalid"]
    advice = []
    if card.needs_prompt and card.prompt in built_in("json"):
        advice.append(
            f"{card.name} is asked with our prompt, and was trained on its authors': make theirs a file, as "
            "docs/models.md shows, and give prompt=FILE"
        )
    advice += _losses(card, engine, total)
    if unmeasured := card.unmeasured([card.lp] if card.lp else {*filter(None, map(lp_of, segments))}):
        advice.append(unmeasured)
    if unsure := [segment.label for segment, one in zip(segments, decisions, strict=True) if one.unsure]:
        advice.append(
            f"{number_of(len(unsure), 'segment')} {UNSURE} ({first_of(unsure)}): an answer without an error is rarely "
            "malformed, so the scores may be too high"
        )
    advice += _equal_scores(card, decisions, candidates, total["unmarked"])
    if not candidates:
        return NO_CANDIDATES, advice
    source = f" or the source (of omissions: {total['unplaced']})" if card.decision.both_sides() else ""
    lost = {"cut at max_tokens": total["cut"], "could not be read": total["invalid"] - total["cut"]}
    unfound = {f"not found in the translation{source}": total["dropped"], FOUND_INEXACTLY: total["inexact"]}
    unfound |= {"malformed": total["malformed"]}
    parts = [
        _counted(candidates, "candidate", lost),
        _counted(total["located"] + total["dropped"] + total["malformed"], "error span", unfound),
    ]
    if left := sum(not_applied(one.annotation) for one in decisions):
        parts.append(f"{number_of(left, 'correction')} {NOT_APPLIED}")
    lowest = [s for s, one in zip(segments, decisions, strict=True) if one.valid and one.score <= 0]
    if lowest:  # further errors changed nothing
        judged = number_of(sum(one.valid > 0 for one in decisions), "segment")
        parts.append(f"{len(lowest)} of {judged} reached the lowest score")
    if lowest and card.unit != "sentence" and engine is not None:
        from mbr_esd_metric.prompting import sentences

        if any(len(sentences.parts(one.source, one.translation, card.lp or lp_of(one))) > 1 for one in lowest):
            parts.append("unit=sentence")
    return "; ".join(filter(None, parts)), advice


def _counted(whole: int, what: str, counts: Mapping[str, int]) -> str:
    """The counts, of so many in all, that are not 0; "" if none is."""
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return shown and f"of {number_of(whole, what)} {shown}"


def _losses(card: ModelCard, engine: Engine | None, total: Mapping[str, int]) -> list[str]:
    """Advice where most candidates or spans are lost; the counts are in the line."""
    takes_grammar = engine is None or not engine.missing_capability(logprobs=False, grammar=True)
    anew = "sample candidates" if engine is None else "draw new ones"
    cooler = ["temperature=1"] if card.sampling.temperature > 1 and engine is not None else []
    advice, candidates = [], total["valid"] + total["invalid"]
    if candidates >= FEW and 2 * total["cut"] > candidates:
        shorter = ["format=compact"] if card.decision.format == "json" else []
        fixes = [f"max_tokens={2 * card.max_tokens}", *shorter, *cooler]
        advice.append(f"most candidates were cut at max_tokens: {anew} with {' or '.join(fixes)}")
    elif candidates >= FEW and 2 * total["invalid"] > candidates:
        fixes = [] if takes_grammar else ["on a server that holds answers to a grammar (vLLM, llama.cpp)"]
        fixes += [f"with {one}" for one in cooler]
        fix = " or ".join(fixes) or "with another model, as this one does not keep to the format"
        advice.append(f"most candidates are cut or could not be read: {anew} {fix}")
    if mostly_lost(candidates, total["located"], total["dropped"]):
        where = "" if takes_grammar else ", on a server that takes a grammar (vLLM, SGLang, llama.cpp)"
        fix = f"with grounded=true{where}, which allows only pieces of the translation"
        if engine is not None and card.grounded:
            fix = "on a server that holds answers to the grammar of grounded=true"
        advice.append(
            f"most error spans that candidates marked are not in the translation, and were dropped: {anew} {fix}"
        )
    return advice


def _equal_scores(card: ModelCard, decisions: Sequence[Decision], candidates: int, unmarked: int) -> list[str]:
    """Advice where all segments have the same score; `unmarked` of the candidates say that there is no error."""
    judged = [one for one in decisions if one.valid]
    if len(judged) < 2 or len({one.score for one in judged}) > 1 or math.isnan(judged[0].score):
        return []
    if card.engine == NO_MODEL:
        return []
    empty = number_of(sum(not one.annotation for one in judged), "decision")
    line = (
        f"all {len(judged)} segments have the score {judged[0].score:.4f}: {empty} without an error span, and "
        f"{unmarked} of {candidates} candidates say that there is no error"
    )
    means = [one.located / one.valid for one in judged]
    if card.samples == 1:
        line += "; several candidates tell more than one: rule=mbr&n=16&temperature=1&score=expected"
    elif card.decision.score == "chosen" and max(means) > min(means):
        line += (
            f"; score=expected takes the mean over the candidates, which mark {min(means):.2f} to {max(means):.2f} "
            "error spans a segment, with nothing sampled anew"
        )
    elif unmarked == candidates:
        line += "; this model finds nothing here: take a larger one"
    return [line]
