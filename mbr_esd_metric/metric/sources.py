"""Where the candidates of a run come from: a model with a store, or a file; and the engine that samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import EngineError, MbrEsdError, OptionError, logger
from mbr_esd_metric.generation.engine import AUTOMATIC, ENGINES, Engine, Refused, Request
from mbr_esd_metric.generation.store import CandidateStore, store_path
from mbr_esd_metric.metric.card import LOCAL_MODEL, ModelCard
from mbr_esd_metric.metric.requests import Pair, Segment, build_requests, pair_of
from mbr_esd_metric.prompting.formats import get_format


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


def choose_engine(card: ModelCard) -> Engine:
    """The card's engine, or with `engine=auto` the first that works: the one that the answer format names, else server,
    vllm, transformers; one that starts late (vLLM's CPU build with a small model) comes last.

    One that the card names, or a server that is named, is not asked whether it works, as a run whose candidates are all
    stored does not need it.

    Raises:
        OptionError: the engine cannot do what the card needs, or the rule cannot stop early.
        EngineError: none works; lists them all with a remedy.
    """
    engine = _chosen(card)
    decision, answers = card.decision, get_format(card.decision.format)
    if card.adaptive:
        from mbr_esd_metric.metric.adaptive import check_stops_early

        check_stops_early(decision)
    if other := _other_format(card, engine):
        raise OptionError(f"engine={engine.name}: {other}")
    logprobs = decision.rule_instance.needs_logprobs or decision.weights == "model"
    if logprobs and (reason := engine.missing_capability(logprobs=True, grammar=False)):
        raise OptionError(f"rule={decision.rule} with weights={decision.weights}: {reason}")
    grammar = card.grounded or not (answers.schema or answers.free)
    if grammar and (reason := engine.missing_capability(logprobs=False, grammar=True)):
        raise OptionError(f"{'grounded=true' if card.grounded else f'format={answers.name}'}: {reason}")
    return engine


def _chosen(card: ModelCard) -> Engine:
    options = card.engine_options
    if card.engine != "auto":
        return ENGINES.get(card.engine)(options)
    only = get_format(card.decision.format).engine
    if options.server and not only:
        return ENGINES.get("server")(options)
    problems: list[str] = []
    late = None
    for number, name in enumerate((only,) if only else AUTOMATIC, 1):
        engine = ENGINES.get(name)(options)
        problem = engine_problem(card, engine)
        if problem is None and not engine.starts_late:
            return engine
        late = late or (engine if problem is None else None)
        problems.append(f"[{number}] engine={name}: {problem}.")
    if late is not None:
        return late
    fix = "`mbr-esd models --check` shows what works on this machine."
    raise EngineError(f"{card.name} cannot run here. {' '.join(problems)} {fix}")


def engine_problems(card: ModelCard) -> dict[str, str | None]:
    """Each engine that could run the card -> the problem on this machine and its remedy; None if it can run. Those that
    `engine=auto` tries come first. What loads weights is left out for a model on a server of the user's."""
    engines = ENGINES.all()
    names = [*AUTOMATIC, *(name for name in engines if name not in AUTOMATIC)]
    made = [engines[name](card.engine_options) for name in names]
    return {
        engine.name: engine_problem(card, engine)
        for engine in made
        if _other_format(card, engine) is None and not (card.any_model and engine.loads_weights)
    }


def engine_problem(card: ModelCard, engine: Engine) -> str | None:
    """Why the engine cannot run the card on this machine, and what helps; None if it can."""
    if not engine.options.server and engine.name in ("server", "batch"):
        if card.any_model:
            return f"name your server: {card.name}?server=URL, with &model=NAME where it serves several"
        if engine.name == "server":
            name = f"'{card.name}?model={card.model}'" if card.name == LOCAL_MODEL else card.name
            return (
                f"start a server on a machine with GPUs (mbr-esd serve {name}), then here: "
                "export MBR_ESD_SERVER=http://HOST:8000/v1"
            )
    try:
        return engine.problem
    except MbrEsdError as error:
        return str(error)


def _other_format(card: ModelCard, engine: Engine) -> str | None:
    """Why an engine cannot answer in the card's format; None if it can."""
    only = get_format(card.decision.format).engine
    if not (only or engine.only_format) or engine.name == only:
        return None
    fix = f"engine={only}" if only else f"format={engine.only_format}"
    return f"it does not answer in format={card.decision.format}; take {fix}"
