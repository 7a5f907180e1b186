"""Where the candidates of a run come from: a model with a store, or a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import logger
from mbr_esd_metric.generation.engine import Engine, Refused, Request
from mbr_esd_metric.generation.store import CandidateStore, store_path
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.engines import choose_engine
from mbr_esd_metric.metric.requests import Pair, Segment, build_requests, pair_of


class CandidateSource(Protocol):
    """Where candidates come from."""

    @property
    def card(self) -> ModelCard:
        """The card with what the user's leaves open: the answer format of the file, or the model of the server."""

    @property
    def engine(self) -> Engine | None:
        """The engine that samples; None where candidates are stored in a file."""

    def collect(
        self, segments: Sequence[Segment], progress: bool
    ) -> Iterator[tuple[list[int], list[Candidate] | Refused]]:
        """The numbers of segments that share candidates, and the candidates, or why there will never be any. Segments
        without a translation have none."""


def candidate_source(card: ModelCard) -> CandidateSource:
    """The source that a card names; `EngineError` or `OptionError` if no engine fits it on this machine, or the file is
    missing."""
    if card.candidates is None:
        return Sampled(card)
    from mbr_esd_metric.metric.candidates_file import FromFile

    return FromFile(card)


class Sampled:
    """Candidates of a model, sampled where the store lacks them."""

    def __init__(self, card: ModelCard) -> None:
        self.engine = choose_engine(card)
        self._card = card if card.model else replace(card, model=self.engine.model)

    @property
    def card(self) -> ModelCard:
        if self._card.temperature is not None:
            return self._card
        return replace(self._card, temperature=self.engine.default_temperature)

    def collect(
        self, segments: Sequence[Segment], progress: bool
    ) -> Iterator[tuple[list[int], list[Candidate] | Refused]]:
        requests: Mapping[Pair, Request] = build_requests(self.card, self.engine.identity, segments)
        counts = dict.fromkeys(requests, self.card.samples)
        refused: Mapping[str, Refused] = {}
        with CandidateStore(store_path(self.card.store)) as store:
            if self.card.adaptive or any(len(store.stored(one.key, one.n)) < one.n for one in requests.values()):
                from mbr_esd_metric.metric.sampler import fill_store

                requests, counts, refused = fill_store(self.engine, lambda: self.card, segments, store, progress)
            self._warn_of_other_servers(store, requests.values())
            numbers: dict[Pair, list[int]] = {pair: [] for pair in requests}
            for number, segment in enumerate(segments):
                if (pair := pair_of(segment)) in numbers:
                    numbers[pair].append(number)
            for pair, shared in numbers.items():
                key, n = requests[pair].key, counts[pair]
                yield shared, refused.get(key) or [one for one in store.get(key, n) if one is not None]

    def _warn_of_other_servers(self, store: CandidateStore, requests: Iterable[Request]) -> None:
        """Warn where stored candidates of this model came from other servers than the run's, which may serve another
        model of the same name."""
        named = self.engine.servers
        known = store.servers(self.engine.digest) if named else []
        if known and not {*named} <= {*known} and any(store.stored(one.key, one.n) for one in requests):
            logger.warning(
                f"candidates of {self.card.title} in {store.path} came from {', '.join(known)}, and "
                f"this run asks {', '.join(named)}: if that is another model, keep them apart with store=PATH, or "
                "serve it under another name and give it as model=NAME"
            )
