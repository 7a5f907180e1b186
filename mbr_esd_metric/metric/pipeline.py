"""Segments in, decisions out: prompt -> store -> engine -> store -> parse -> decide.

Identical (source, translation) pairs are sampled once. Each part that an engine yields is committed to the store at
once. So a run that was killed goes on where it stopped, and a run with all candidates in the store loads no model.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.decoding.blank import blank_decision, is_blank
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus, decide_segment, read_annotations, read_case
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError
from mbr_esd_metric.files.join import Place, occurrences
from mbr_esd_metric.files.recalibration_file import read_recalibration
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Request, Sample, Sampling
from mbr_esd_metric.generation.registry import engine_class
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.adaptive import check_stops_early, rounds, settled
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.engine_choice import choose_engine
from mbr_esd_metric.metric.pooled import Origins, members, origins, with_models
from mbr_esd_metric.metric.sampler import Sampler, missing
from mbr_esd_metric.metric.shots import NO_SHOTS, Shots
from mbr_esd_metric.metric.signature import signature
from mbr_esd_metric.metric.summary import Summary, summary

#: The most segments whose expected scores are computed for a piece of advice.
_LOOK = 500


@dataclass(frozen=True, slots=True)
class Segment:
    """A source, its translation, how messages name the two, and the system, which tells stored candidates apart."""

    source: str
    translation: str
    label: str
    system: str = ""


@dataclass(frozen=True)
class Plan:
    """What a run has to do, known before any model is loaded.

    Attributes:
        engine: the engine's name.
        sampling: how candidates are drawn.
        requests: one a distinct pair with a translation, or a segment where the engine does not share candidates; each
            asks for all N samples, with `n=auto` the most there may be.
        keys: for each segment the key of its request, or None if the translation is blank.
    """

    engine: str
    sampling: Sampling
    requests: Mapping[str, Request]
    keys: Sequence[str | None] = field(repr=False)


def plan(card: ModelCard, segments: Sequence[Segment]) -> Plan:
    """Choose the engine and fold identical segments; loads no model.

    Raises:
        OptionError, EngineError: no engine fits the card on this machine; says what does.
    """
    engine = choose_engine(card)
    if card.adaptive:
        check_stops_early(card.decision)
    answers, sampling = get_format(card.decision.format), card.sampling
    prompt = answers.prompt(card.prompt)
    cls = engine_class(engine)
    if answers.surprisals and not cls.walks and cls.stored:
        raise OptionError(
            f"format={answers.name} tells the model how surprising each word is, which engine={engine} cannot; "
            "use engine=transformers, or format=json or compact"
        )
    options = card.engine_options(engine)
    _check_abilities(card, cls, options)
    shots = NO_SHOTS if card.shots is None else Shots.read(card.shots, answers, card.nearest)
    identity = cls.identity(options)
    requests: dict[str, Request] = {}
    keys: list[str | None] = []
    by_pair: dict[tuple[str, str, str, int], str] = {}
    numbers = occurrences(Place(segment.system, segment.source, segment.translation) for segment in segments)
    for segment, occurrence in zip(segments, numbers, strict=True):
        if not segment.translation.strip():
            keys.append(None)
            continue
        texts = (segment.source, segment.translation)
        pair = (*texts, "", 0) if cls.shared else (*texts, segment.system, occurrence)
        if pair not in by_pair:
            text = prompt.render(*texts, card.lp)
            grammar = answers.grammar(segment.translation, card.grounded, segment.source)
            turns = (*prompt.turns, *shots.turns(prompt, segment.source, card.lp))
            key = _key(identity, sampling, text, grammar, answers.name, turns)
            if not cls.shared:
                key = f"{key} {occurrence} {segment.system}"
            by_pair[pair] = key
            requests[key] = Request(
                key,
                text,
                grammar,
                card.samples,
                label=segment.label,
                source=segment.source,
                translation=segment.translation,
                system=segment.system,
                occurrence=occurrence,
                walk=answers.walk(prompt, *texts, card.lp),
                schema=answers.schema,
                form=answers.grammar(segment.translation, source=segment.source)
                if card.grounded and answers.schema
                else "",
                token_logprobs=card.samples == 1 and not card.others,
                turns=turns,
            )
        keys.append(by_pair[pair])
    walks = not cls.stored or all(request.walk is not None for request in requests.values())
    if card.decision.score not in ("chosen", "expected", "given") and card.role != "hypotheses" and not walks:
        raise OptionError(
            f"score={card.decision.score} needs the probability of every mark, which {card.name} with "
            f"format={answers.name} does not have; take score=expected, or format=marked on engine=transformers"
        )
    return Plan(engine, sampling, requests, keys)


def _check_abilities(card: ModelCard, cls: type[Engine], options: EngineOptions) -> None:
    """See that the engine can do what the card asks for.

    Raises:
        OptionError: it cannot; the message names the options and says what to do.
    """
    decision = card.decision
    answers = get_format(decision.format)
    if decision.decided_by.needs_logprobs or decision.weights == "model":
        needing = f"decision={decision.rule} with weights={decision.weights}"
        if reason := cls.lacks(options, logprobs=True, grammar=False):
            raise OptionError(f"{needing}: {reason}")
    if card.grounded or not (answers.schema or answers.free):
        needing = "grounded=true" if card.grounded else f"format={answers.name}"
        if reason := cls.lacks(options, logprobs=False, grammar=True):
            raise OptionError(f"{needing}: {reason}")


@dataclass(frozen=True, slots=True)
class Annotated:
    """What a run returns.

    Attributes:
        decisions: one for each segment, in order.
        signature: of how they came about.
        origins: of models joined by ``+``, for each segment the models that have each span; else empty.
        summary: what was lost, and what helps.
    """

    decisions: Sequence[Decision]
    signature: str
    origins: Sequence[Origins] = ()
    summary: Summary = field(default_factory=Summary)


def annotate(card: ModelCard, segments: Sequence[Segment], *, progress: bool = False) -> Annotated:
    """Sample what the store lacks, then decide.

    Args:
        card: model, sampling and decision rule.
        segments: what to annotate; for a blank translation the model is not asked; see `decoding.blank`.
        progress: show a bar on standard error.

    Raises:
        EngineError, StoreError: what was sampled before stays in the store.
        NoValidCandidateError: after everything is sampled, with the labels of segments that have no valid candidate.
    """
    card, *_ = cards = members(card)
    if not segments:
        return Annotated([], signature([(one, one.engine) for one in cards]))
    learnt = None if card.calibration is None else read_recalibration(card.calibration)
    plans = [plan(one, segments) for one in cards]
    with ExitStack() as stores:
        drawn = _drawn(cards, plans, stores, progress)
        if card.samples == 1 and not card.others:
            _say_without_tokens(card, drawn[0])
        decisions, found = _decide(cards, segments, drawn)
        told = summary(card, plans[0].engine, decisions, lambda: _expected(cards, segments, drawn))
        if learnt is not None:
            decisions = [replace(one, annotation=learnt.annotation(one.annotation)) for one in decisions]
        signed = signature([(c, p.engine) for c, p in zip(cards, plans, strict=True)])
        return Annotated(decisions, signed, found, told)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What a model of a pool has sampled: its plan, its store, how many candidates of each request count, its name
    where there are several, what its candidates are, and how they are read where not as the pool's first model's."""

    plan: Plan
    store: CandidateStore
    counts: Mapping[str, int]
    model: str | None
    role: str
    reads: DecisionOptions | None

    def samples(self, number: int) -> list[Sample] | None:
        """Those of the segment with this number; None if the translation is blank."""
        key = self.plan.keys[number]
        return None if key is None else [one for one in self.store.get(key, self.counts[key]) if one is not None]

    def candidates(self, number: int, segment: Segment) -> list[Candidate]:
        """The same for a decision on the segment; none if its translation is blank."""
        found = [one.candidate(self.model) for one in self.samples(number) or []]
        if self.reads is None:
            return found
        read = read_annotations(found, segment.translation, self.reads, segment.source)
        return [
            replace(c, annotation=a) if isinstance(a, Annotation) else replace(c, truncated=True)
            for c, a in zip(found, read, strict=True)
        ]


def _drawn(cards: Sequence[ModelCard], plans: Sequence[Plan], stores: ExitStack, progress: bool) -> list[_Drawn]:
    """What each model has sampled, now or before; `stores` closes the stores."""
    drawn: list[_Drawn] = []
    for card, todo in zip(cards, plans, strict=True):
        store = stores.enter_context(CandidateStore.open(card.store, keep=engine_class(todo.engine).stored))
        reads = card.decision if card.decision.format != cards[0].decision.format else None
        name = card.title if len({one.title for one in cards}) > 1 else None
        drawn.append(_Drawn(todo, store, _sample(card, todo, store, progress), name, card.role, reads))
    return drawn


def sample(
    card: ModelCard, segments: Sequence[Segment], *, progress: bool = False
) -> Iterator[tuple[Segment, Sequence[Sample], Sequence[str | None]]]:
    """Sample what the store lacks; then each segment with its candidates, in order, and the name of each candidate's
    model: None where there is one model.

    Args:
        card: model and sampling; its decision rule plays no part, but that `greedy` decodes one candidate at
            temperature 0, and that `n=auto` is for a rule that tells when more would change nothing.
        segments: what to sample; a blank translation gets N times the answer without an error.
        progress: show a bar on standard error.

    Raises:
        EngineError, StoreError: what was sampled before stays in the store.
    """
    card, *_ = cards = members(card)
    if any(one.role != "both" or one.decision.format != card.decision.format for one in cards):
        raise OptionError("a file of candidates does not say roles or several formats; sample each model by itself")
    if not segments:
        return
    with ExitStack() as stores:
        drawn = _drawn(cards, [plan(one, segments) for one in cards], stores, progress)
        for number, segment in enumerate(segments):
            found: list[Sample] = []
            models: list[str | None] = []
            for card, part in zip(cards, drawn, strict=True):
                own = part.samples(number)
                if own is None:
                    own = [Sample(_nothing(card, segment.translation), 0.0, 0)] * card.samples
                found += own
                models += [part.model] * len(own)
            yield segment, found, models


@dataclass(frozen=True, slots=True)
class Timing:
    """How fast a model samples here.

    Attributes:
        first: seconds until the first segment had its candidates, with the loading of the model.
        segments, candidates, seconds: sampled after that together, and how long it took.
    """

    first: float
    segments: int
    candidates: int
    seconds: float


def timed(card: ModelCard, segments: Sequence[Segment], trial: int) -> Timing | None:
    """Sample some segments, spread over all that lack candidates, and measure; they are kept.

    Args:
        card: one model.
        segments: of a run.
        trial: how many segments to sample, two or more: one until the model is at work, and the others to measure.

    Returns:
        None if fewer than two segments lack candidates.

    Raises:
        EngineError, OptionError, StoreError: as `annotate`.
    """
    todo = plan(card, segments)
    with (
        CandidateStore.open(card.store) as store,
        Sampler(card, todo.engine, todo.sampling, store, different=len(todo.requests)) as sampler,
    ):
        lacking = [one for one in todo.requests.values() if None in store.get(one.key, one.n)]
        count = min(trial, len(lacking))
        if count < 2:
            return None
        picked = [lacking[i * len(lacking) // count] for i in range(count)]
        drawn = sum(part.n for one in picked[1:] for part in missing(one, store.get(one.key, one.n)))
        marks = [time.monotonic()]
        for some in (picked[:1], picked[1:]):
            sampler.draw(some)
            marks.append(time.monotonic())
    return Timing(marks[1] - marks[0], count - 1, drawn, marks[2] - marks[1])


def _nothing(card: ModelCard, translation: str) -> str:
    """The answer that says that there is no error."""
    return get_format(card.decision.format).answer(EMPTY, translation)[0]


def _key(
    identity: Mapping[str, str],
    sampling: Sampling,
    prompt: str,
    grammar: str,
    answers: str,
    turns: tuple[tuple[str, str], ...],
) -> str:
    """What can change a candidate, and nothing else; N and the index are not in it, so that more can be added."""
    content = [dict(identity), sampling.keyed, prompt, grammar]
    if answers != "json":  # which had no name when the first candidates were stored
        content.append(answers)
    if turns:
        content.append(turns)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _sample(card: ModelCard, todo: Plan, store: CandidateStore, progress: bool) -> Mapping[str, int]:
    """Sample what the store lacks; returns how many candidates each request's decision is to see.

    With `n=auto` all segments go through a round together, and those whose decision is settled leave. What the store
    holds beyond that is not looked at, so that a run that is repeated comes to the same decisions.
    """
    open_requests, drawn = dict(todo.requests), {}
    with Sampler(card, todo.engine, todo.sampling, store, different=len(todo.requests), progress=progress) as sampler:
        for n in rounds(card.samples) if card.adaptive else (card.samples,):
            sampler.draw([replace(request, n=n) for request in open_requests.values()])
            for key, request in list(open_requests.items()):
                if n == card.samples or settled(
                    _of(store, key, n), request.translation, card.decision, source=_left_out_of(request.source, [card])
                ):
                    drawn[key] = n
                    del open_requests[key]
    return drawn


def _say_without_tokens(card: ModelCard, drawn: _Drawn) -> None:
    """Say once which single answers have a confidence of 1 because nobody knows better."""
    requests = drawn.plan.requests
    samples = [sample for key in requests for sample in drawn.store.get(key, 1) if sample is not None]
    unknown = sum(sample.token_logprobs is None for sample in samples)
    if unknown:
        cls = engine_class(drawn.plan.engine)
        options = card.engine_options(drawn.plan.engine, fetch=False)
        never = not cls.stored or cls.lacks(options, logprobs=True, grammar=False)
        why, fix = ("which where they come from does not give", "") if never else (
            "as they were stored before these were kept", ". To sample anew: store=PATH of a new store"
        )  # fmt: skip
        print(
            f"note: {unknown} of {len(samples)} answers come without their tokens' log-probabilities, {why}; the "
            f"confidence of their spans is 1{fix}",
            file=sys.stderr,
        )


def _left_out_of(source: str, cards: Sequence[ModelCard]) -> str | None:
    """The source if a model says what is left out of it, so that annotations are compared over both texts."""
    return source if any(card.decision.both_sides() for card in cards) else None


def _of(store: CandidateStore, key: str, n: int) -> list[Candidate]:
    return [one.candidate() for one in store.get(key, n) if one is not None]


def _expected(cards: Sequence[ModelCard], segments: Sequence[Segment], drawn: Sequence[_Drawn]) -> list[float]:
    """The expected scores of the first segments with a translation, in MQM, over the candidates that are there."""
    found: list[float] = []
    for number, segment in enumerate(segments):
        if len(found) == _LOOK:
            break
        if not segment.translation.strip():
            continue
        given = [c for one in drawn if one.role != "hypotheses" for c in one.candidates(number, segment)]
        options, source = cards[0].decision, _left_out_of(segment.source, cards)
        with suppress(NoValidCandidateError):
            case, _ = read_case(given, segment.translation, options, source=source)
            found.append(case.score("expected", options.scored_by)[0])
    return found


def _decide(
    cards: Sequence[ModelCard], segments: Sequence[Segment], drawn: Sequence[_Drawn]
) -> tuple[list[Decision], list[Origins]]:
    """One decision for each segment; and where several models are pooled, which of them have each of its spans."""
    card = cards[0]

    def candidates(number: int, without: str = "") -> list[Candidate]:
        segment = segments[number]
        found = [c for one in drawn if one.role != without for c in one.candidates(number, segment)]
        # Nothing can be marked in a blank translation.
        return found or [Candidate(_nothing(card, segment.translation), logprob=0.0)]

    def hypotheses(number: int) -> list[Candidate]:
        return candidates(number, without="supports")

    def supports(number: int) -> list[Candidate]:
        return candidates(number, without="hypotheses")

    apart = any(one.role != "both" for one in drawn)
    sources = [_left_out_of(segment.source, cards) for segment in segments]

    def with_origins(decisions: list[Decision]) -> tuple[list[Decision], list[Origins]]:
        if all(one.model is None for one in drawn):
            return decisions, []
        pairs = enumerate(zip(decisions, segments, strict=True))
        found = [origins(d, candidates(i), s.translation, card.decision, sources[i]) for i, (d, s) in pairs]
        return [with_models(d, which) for d, which in zip(decisions, found, strict=True)], found

    settled_at_once = blank_decision(card.decision)
    blank = [card.decision.blank != "perfect" and is_blank(s.source, s.translation) for s in segments]
    if card.decision.whole_set:
        marked = [number for number, is_one in enumerate(blank) if not is_one]
        pairs = [(hypotheses(number), segments[number].translation) for number in marked]
        others = [supports(number) for number in marked] if apart else None
        try:
            labels = [segments[number].label for number in marked]
            texts = [s for number in marked if (s := sources[number]) is not None] or None
            chosen = iter(
                decide_corpus(pairs, card.decision, sources=texts, supports=others, labels=labels).decisions
                if pairs
                else ()
            )
        except NoValidCandidateError as error:
            raise NoValidCandidateError(f"{error}; {_fix(card)}") from None
        return with_origins([settled_at_once if is_one else next(chosen) for is_one in blank])

    decisions: dict[str | None, Decision] = {}
    failed: list[str] = []
    keys = drawn[0].plan.keys
    for number, (segment, key, is_one) in enumerate(zip(segments, keys, blank, strict=True)):
        if is_one or key in decisions:
            continue
        try:
            decisions[key] = decide_segment(
                hypotheses(number),
                segment.translation,
                card.decision,
                source=sources[number],
                supports=supports(number) if apart else None,
            )
        except NoValidCandidateError:
            failed.append(segment.label)
        except InputError as error:
            raise InputError(f"{segment.label}: {error}") from None
    if failed:
        raise NoValidCandidateError(
            f"none of the {card.samples} candidates is valid for {_listing(failed)}; {_fix(card)}"
        )
    found = zip(keys, blank, strict=True)
    return with_origins([settled_at_once if is_one else decisions[key] for key, is_one in found])


def _fix(card: ModelCard) -> str:
    shorter = ", ask for shorter ones (format=compact)" if card.decision.format == "json" else ""
    return (
        f"what was sampled is stored: ask for more (n={4 * card.samples}), allow longer answers "
        f"(max_tokens={2 * card.max_tokens}){shorter}, or count malformed candidates as no error (invalid=empty)"
    )


def _listing(labels: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
