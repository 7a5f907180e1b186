"""Segments in, decisions out: prompt -> store -> engine -> store -> parse -> decide.

Identical (source, translation) pairs are sampled once. Each part that an engine yields is committed to the store at
once. So a run that was killed goes on where it stopped, and a run with all candidates in the store loads no model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.decoding.blank import blank_decision
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus, decide_segment, decision_problem, read_annotations
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, first_of
from mbr_esd_metric.files.recalibration_file import read_recalibration
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.adaptive import rounds, settled
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.plan import Plan, Segment, plan
from mbr_esd_metric.metric.pooled import Origins, members, origins, with_models
from mbr_esd_metric.metric.sampler import Sampler, missing
from mbr_esd_metric.metric.signature import signature
from mbr_esd_metric.metric.summary import Summary, summary
from mbr_esd_metric.metric.units import units_of

#: The most segments whose expected scores are computed for a piece of advice.
_LOOK = 500


@dataclass(frozen=True, slots=True)
class Annotated:
    """What a run returns.

    Attributes:
        decisions: one for each segment, in order.
        signature: of how they came about; "" where there are none.
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
        return Annotated([], "")
    learnt = None if card.calibration is None else read_recalibration(card.calibration)
    divided = units_of(card, segments)
    plans = [plan(one, divided.units) for one in cards]
    with ExitStack() as stores:
        pool = _Pool(divided.units, _drawn(plans, stores, progress))
        if card.samples == 1 and not card.others:
            _say_without_tokens(pool.drawn[0])
        decisions, found = pool.with_origins(pool.decisions())
        found, decisions = divided.joined_origins(decisions, found), divided.joined(decisions)
        told = summary(card, plans[0].engine, segments, decisions, pool.expected_scores)
        if learnt is not None:
            decisions = [replace(one, annotation=learnt.annotation(one.annotation)) for one in decisions]
        return Annotated(decisions, signature(plans), found, told)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What a model of a pool has sampled: its plan, its store, how many candidates of each request count, its name
    where there are several, and how its candidates are read where not as the pool's first model's."""

    plan: Plan
    store: CandidateStore
    counts: Mapping[str, int]
    model: str | None
    reads: DecisionOptions | None

    def samples(self, number: int) -> list[Candidate] | None:
        """Those of the segment with this number; None if the translation is blank."""
        key = self.plan.keys[number]
        return None if key is None else [one for one in self.store.get(key, self.counts[key]) if one is not None]

    def candidates(self, number: int, segment: Segment) -> list[Candidate]:
        """The same for a decision on the segment; none if its translation is blank."""
        found = self.samples(number) or []
        if self.model is not None:
            found = [replace(one, model=self.model) for one in found]
        if self.reads is None:
            return found
        read = read_annotations(found, segment.translation, self.reads, segment.source)
        return [
            replace(c, annotation=a) if isinstance(a, Annotation) else replace(c, truncated=True)
            for c, a in zip(found, read, strict=True)
        ]


def _drawn(plans: Sequence[Plan], stores: ExitStack, progress: bool) -> list[_Drawn]:
    """What each model has sampled, now or before; `stores` closes the stores."""
    drawn: list[_Drawn] = []
    several = len({todo.card.title for todo in plans}) > 1
    for todo in plans:
        store = stores.enter_context(CandidateStore.open(todo.card.store, keep=todo.engine_class.stored))
        reads = todo.card.decision if todo.answers.name != plans[0].answers.name else None
        drawn.append(_Drawn(todo, store, _sample(todo, store, progress), todo.card.title if several else None, reads))
    return drawn


def sample(
    card: ModelCard, segments: Sequence[Segment], *, progress: bool = False
) -> Iterator[tuple[Segment, Sequence[Candidate], Sequence[str | None]]]:
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
    if any(one.decision.format != card.decision.format for one in cards):
        raise OptionError("a file of candidates does not say several formats; sample each model by itself")
    if not segments:
        return
    with ExitStack() as stores:
        drawn = _drawn([plan(one, segments) for one in cards], stores, progress)
        for number, segment in enumerate(segments):
            found: list[Candidate] = []
            models: list[str | None] = []
            for part in drawn:
                own = part.samples(number)
                if own is None:
                    own = [
                        Candidate(_nothing(part.plan.card, segment.translation), logprob=0.0, tokens=0)
                    ] * part.plan.card.samples
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
    todo = plan(card, units_of(card, segments).units)
    with CandidateStore.open(card.store) as store, Sampler(todo, store) as sampler:
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


def _sample(todo: Plan, store: CandidateStore, progress: bool) -> Mapping[str, int]:
    """Sample what the store lacks; returns how many candidates each request's decision is to see.

    With `n=auto` all segments go through a round together, and those whose decision is settled leave. What the store
    holds beyond that is not looked at, so that a run that is repeated comes to the same decisions.
    """
    card, open_requests, drawn = todo.card, dict(todo.requests), {}
    with Sampler(todo, store, progress=progress) as sampler:
        for n in rounds(card.samples) if card.adaptive else (card.samples,):
            sampler.draw([replace(request, n=n) for request in open_requests.values()])
            for key, request in list(open_requests.items()):
                candidates = (one for one in store.get(key, n) if one is not None)
                source = _left_out_of(request.source, [card])
                if n == card.samples or settled(list(candidates), request.translation, card.decision, source=source):
                    drawn[key] = n
                    del open_requests[key]
    return drawn


def _say_without_tokens(drawn: _Drawn) -> None:
    """Say once which single answers have a confidence of 1 because nobody knows better."""
    requests = drawn.plan.requests
    samples = [sample for key in requests for sample in drawn.store.get(key, 1) if sample is not None]
    unknown = sum(sample.token_logprobs is None for sample in samples)
    if unknown:
        cls = drawn.plan.engine_class
        never = not cls.stored or cls.lacks(drawn.plan.options, logprobs=True, grammar=False)
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


class _Pool:
    """The models of a run, and the decisions on their candidates.

    Args:
        segments: of the run.
        drawn: what each model has sampled; the first says how is decided.
    """

    def __init__(self, segments: Sequence[Segment], drawn: Sequence[_Drawn]) -> None:
        self.drawn = drawn
        cards = [one.plan.card for one in drawn]
        self._segments, self._card, self._options = segments, cards[0], cards[0].decision
        self._sources = [_left_out_of(segment.source, cards) for segment in segments]

    def decisions(self) -> list[Decision]:
        """One for each segment.

        Raises:
            NoValidCandidateError: with the labels of segments that have no valid candidate.
        """
        blank = [blank_decision(one.source, one.translation, self._options) for one in self._segments]
        decide = self._over_all if self._options.whole_set else self._one_by_one
        chosen = iter(decide([number for number, one in enumerate(blank) if one is None]))
        return [one or next(chosen) for one in blank]

    def _over_all(self, numbers: Sequence[int]) -> Sequence[Decision]:
        """By a rule that looks at the whole test set."""
        if not numbers:
            return ()
        try:
            return decide_corpus(
                [(self._candidates(number), self._segments[number].translation) for number in numbers],
                self._options,
                sources=[s for number in numbers if (s := self._sources[number]) is not None] or None,
                labels=[self._segments[number].label for number in numbers],
            ).decisions
        except NoValidCandidateError as error:
            raise NoValidCandidateError(f"{error}; {_fix(self._card)}") from None

    def _one_by_one(self, numbers: Sequence[int]) -> Sequence[Decision]:
        """Segment by segment; identical ones are decided once."""
        found: dict[str | None, Decision] = {}
        failed: list[str] = []
        keys = self.drawn[0].plan.keys
        for number in numbers:
            key, segment = keys[number], self._segments[number]
            if key in found:
                continue
            try:
                found[key] = decide_segment(
                    self._candidates(number), segment.translation, self._options, source=self._sources[number]
                )
            except NoValidCandidateError:
                failed.append(segment.label)
            except InputError as error:
                raise InputError(f"{segment.label}: {error}") from None
        if failed:
            raise NoValidCandidateError(
                f"none of the {self._card.samples} candidates is valid for {first_of(failed)}; {_fix(self._card)}"
            )
        return [found[keys[number]] for number in numbers]

    def with_origins(self, decisions: list[Decision]) -> tuple[list[Decision], list[Origins]]:
        """Where several models are pooled, which of them have each span; else none."""
        if all(one.model is None for one in self.drawn):
            return decisions, []
        found = [
            origins(decision, self._candidates(number), segment.translation, self._options, self._sources[number])
            for number, (decision, segment) in enumerate(zip(decisions, self._segments, strict=True))
        ]
        return [with_models(decision, which) for decision, which in zip(decisions, found, strict=True)], found

    def expected_scores(self) -> list[float]:
        """Of the first segments with a translation, in MQM, over the candidates that are there."""
        found: list[float] = []
        for number, segment in enumerate(self._segments):
            if len(found) == _LOOK:
                break
            if not segment.translation.strip():
                continue
            with suppress(NoValidCandidateError):
                given = self._candidates(number)
                problem, _ = decision_problem(given, segment.translation, self._options, source=self._sources[number])
                found.append(problem.score("expected", self._options.mqm)[0])
        return found

    def _candidates(self, number: int) -> list[Candidate]:
        segment = self._segments[number]
        found = [c for one in self.drawn for c in one.candidates(number, segment)]
        # Nothing can be marked in a blank translation.
        return found or [Candidate(_nothing(self._card, segment.translation), logprob=0.0)]


def _fix(card: ModelCard) -> str:
    shorter = ", ask for shorter ones (format=compact)" if card.decision.format == "json" else ""
    return (
        f"what was sampled is stored: ask for more (n={4 * card.samples}), allow longer answers "
        f"(max_tokens={2 * card.max_tokens}){shorter}, or count malformed candidates as no error (invalid=empty)"
    )
