"""Segments in, decisions out: plan -> sampler -> store -> decoding.

Identical (source, translation) pairs are sampled once. Each part that an engine yields is committed to the store at
once. So a run that was killed goes on where it stopped, and a run with all candidates in the store loads no model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.decoding.segment import blank_decision, decide_corpus, decide_segment
from mbr_esd_metric.errors import NoValidCandidateError, OptionError, first_of, labelled
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.plan import Plan, Segment, plan, resolved
from mbr_esd_metric.metric.sampler import Sampler
from mbr_esd_metric.metric.signature import signature
from mbr_esd_metric.metric.summary import Summary, summary
from mbr_esd_metric.metric.units import units_of
from mbr_esd_metric.prompting.formats import get_format


@dataclass(frozen=True, slots=True)
class Annotated:
    """The result of a run: a decision for each segment, in order; their signature ("" without segments) and summary."""

    decisions: Sequence[Decision]
    signature: str
    summary: Summary = field(default_factory=Summary)


def annotate(card: ModelCard, segments: Sequence[Segment], *, progress: bool = False) -> Annotated:
    """Sample what the store lacks, then decide.

    Args:
        card: model, sampling and decision rule.
        segments: the texts; a blank translation needs no model (see `decoding.segment`).
        progress: show a bar on standard error.

    Raises:
        EngineError, StoreError: what was sampled before stays in the store.
        NoValidCandidateError: after everything is sampled, with the labels of segments that have no valid candidate.
    """
    card = resolved(card)
    if not segments:
        return Annotated([], "")
    recalibration = None
    if card.calibration:
        from mbr_esd_metric.files.records import read_recalibration

        recalibration = read_recalibration(card.calibration)
    units = units_of(card, segments)
    run = plan(card, units.units)
    with _sampled(run, progress) as sampled:
        decisions = units.joined(Decisions(units.units, sampled).all())
    counts = summary(card, run.engine, segments, decisions)
    if recalibration is not None:
        decisions = [replace(one, annotation=recalibration.annotation(one.annotation)) for one in decisions]
    return Annotated(decisions, signature(run), counts)


def sample(
    card: ModelCard, segments: Sequence[Segment], *, progress: bool = False
) -> Iterator[tuple[Segment, list[Candidate]]]:
    """Sample what the store lacks; then each segment with its candidates, in order. Each candidate names its answer
    format, where that is not JSON. A blank translation gets N times the answer without an error. The card's decision
    rule matters in two ways: `greedy` decodes one candidate at temperature 0, and `n=auto` needs a rule that can stop
    early. Progress and errors as of `annotate`."""
    card = resolved(card)
    if card.unit == "sentence" or card.context == "document":
        raise OptionError(
            "a file of candidates has whole segments; leave unit=sentence and context=document out, or score with them"
        )
    if not segments:
        return
    form = None if card.decision.format == "json" else card.decision.format
    with _sampled(plan(card, segments), progress) as sampled:
        for number, segment in enumerate(segments):
            candidates = sampled.candidates(number)
            if sampled.plan.keys[number] is None:
                candidates = [_clean_candidate(card, segment)] * card.samples
            yield segment, [replace(one, format=form) for one in candidates]


@dataclass(frozen=True, slots=True)
class SampledModel:
    """The plan of a run, the store with its candidates, and the number of them that count for each request."""

    plan: Plan
    store: CandidateStore
    counts: Mapping[str, int]

    def candidates(self, number: int) -> list[Candidate]:
        """The candidates of the segment with this number; none if the translation is blank."""
        key = self.plan.keys[number]
        return [] if key is None else [one for one in self.store.get(key, self.counts[key]) if one is not None]


@contextmanager
def _sampled(run: Plan, progress: bool) -> Iterator[SampledModel]:
    """The run with its candidates in the open store."""
    with CandidateStore.open(run.card.store, keep=run.engine_class.keeps_samples) as store:
        with Sampler(run, store, progress=progress) as sampler:
            counts = _counts(sampler, run, store)
        yield SampledModel(run, store, counts)


def _counts(sampler: Sampler, plan: Plan, store: CandidateStore) -> Mapping[str, int]:
    """Sample what the store lacks; the number of candidates of each request that count."""
    card, requests = plan.card, plan.requests
    if not card.adaptive:
        sampler.sample(list(requests.values()))
        return dict.fromkeys(requests, card.samples)
    from mbr_esd_metric.metric.adaptive import rounds, settled

    # All segments go through a round together, and those whose decision is settled leave. Further candidates in the
    # store do not count, so that a run that is repeated comes to the same decisions.
    counts: dict[str, int] = {}
    for n in rounds(card.samples):
        left = [request for key, request in requests.items() if key not in counts]
        sampler.sample([replace(request, n=n) for request in left])
        for request in left:
            candidates = [one for one in store.get(request.key, n) if one is not None]
            source = card.decision.source_of(request.source)
            if n == card.samples or settled(candidates, request.translation, card.decision, source=source):
                counts[request.key] = n
    return counts


class Decisions:
    """The decisions of a run over its candidates."""

    def __init__(self, segments: Sequence[Segment], sampled: SampledModel) -> None:
        self._segments, self._sampled, self._card = segments, sampled, sampled.plan.card
        #: Of single answers: how many there are, and how many come without their tokens' log-probabilities.
        self._single = self._without_logprobs = 0

    def all(self) -> list[Decision]:
        """One decision for each segment; errors as of `annotate`."""
        options = self._card.decision
        blank = [blank_decision(one.source, one.translation, options) for one in self._segments]
        decide = self._over_all if options.whole_set else self._one_by_one
        decided = iter(decide([number for number, one in enumerate(blank) if one is None]))
        decisions = [one or next(decided) for one in blank]
        if self._without_logprobs:
            print(
                f"note: {self._without_logprobs} of {self._single} answers come without their tokens' "
                "log-probabilities; the confidence of their spans is 1",
                file=sys.stderr,
            )
        return decisions

    def _over_all(self, numbers: Sequence[int]) -> Sequence[Decision]:
        """The decisions of a rule that looks at the whole test set."""
        segments = [self._segments[number] for number in numbers]
        try:
            return decide_corpus(
                ((self._candidates(number), one.translation) for number, one in zip(numbers, segments, strict=True)),
                self._card.decision,
                sources=[self._card.decision.source_of(one.source) for one in segments],
                labels=[one.label for one in segments],
            ).decisions
        except NoValidCandidateError as error:
            raise NoValidCandidateError(f"{error}; {_fix(self._card)}") from None

    def _one_by_one(self, numbers: Sequence[int]) -> Sequence[Decision]:
        """The decisions segment by segment; identical ones are decided once."""
        decisions: dict[str | None, Decision] = {}
        failed: list[str] = []
        keys = self._sampled.plan.keys
        for number in numbers:
            segment = self._segments[number]
            if keys[number] in decisions:
                continue
            source = self._card.decision.source_of(segment.source)
            try:
                with labelled(segment.label):
                    candidates = self._candidates(number)
                    decisions[keys[number]] = decide_segment(
                        candidates, segment.translation, self._card.decision, source=source
                    )
            except NoValidCandidateError:
                failed.append(segment.label)
        if failed:
            raise NoValidCandidateError(
                f"none of the {self._card.samples} candidates is valid for {first_of(failed)}; {_fix(self._card)}"
            )
        return [decisions[keys[number]] for number in numbers]

    def _candidates(self, number: int) -> list[Candidate]:
        """The candidates; for a blank translation an answer without an error."""
        candidates = self._sampled.candidates(number)
        if self._card.samples == 1:
            self._single += len(candidates)
            self._without_logprobs += sum(one.token_logprobs is None for one in candidates)
        return candidates or [_clean_candidate(self._card, self._segments[number])]


def _clean_candidate(card: ModelCard, segment: Segment) -> Candidate:
    """The answer without an error."""
    return Candidate(get_format(card.decision.format).answer(EMPTY, segment.translation)[0], logprob=0.0)


def _fix(card: ModelCard) -> str:
    shorter = ", ask for shorter ones (format=compact)" if card.decision.format == "json" else ""
    return (
        f"what was sampled is stored: ask for more (n={4 * card.samples}), allow longer answers "
        f"(max_tokens={2 * card.max_tokens}){shorter}, or count malformed candidates as no error (invalid=empty)"
    )
