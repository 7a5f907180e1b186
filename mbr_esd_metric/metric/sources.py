"""The requests of a run, its engine, and its candidates, sampled unless they are stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TypeAlias

from mbr_esd_metric.core.decision import Candidates
from mbr_esd_metric.core.segment import PartContext, Segment
from mbr_esd_metric.errors import EngineError, MbrEsdError, OptionError
from mbr_esd_metric.generation.engine import AUTOMATIC, ENGINES, Engine, Refused, Request
from mbr_esd_metric.generation.store import CandidateStore, store_path
from mbr_esd_metric.log import logger
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, ModelCard
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import lp_of
from mbr_esd_metric.prompting.prompt import around
from mbr_esd_metric.prompting.text import is_blank

#: Source, translation, context and languages: segments with equal values share their candidates and decision.
Pair: TypeAlias = "tuple[str, str, PartContext | None, str | None]"
#: Items yielded by a candidate source; see `Sampled.collect`.
Collected: TypeAlias = "Iterator[tuple[list[int], Candidates | Refused]]"


def pair_of(segment: Segment) -> Pair:
    """Source, translation, context and languages."""
    return segment.source, segment.translation, segment.context, lp_of(segment)


def build_requests(card: ModelCard, identity: Mapping[str, str], segments: Sequence[Segment]) -> dict[Pair, Request]:
    """The request for all N samples of each distinct pair with a translation. Requests with the same prompt have the
    same key, and share candidates. The engine's `identity` is part of the keys."""
    answers = get_format(card.decision.format)
    prompt, shots = answers.prompt(card.prompt), None
    if card.shots is not None:
        from mbr_esd_metric.metric.shots import Shots

        shots = Shots(card.shots, answers)
    fixed = [dict(identity), asdict(card.sampling)]
    requests: dict[Pair, Request] = {}
    for segment in segments:
        source, translation, context, lp = pair = pair_of(segment)
        lp = card.lp or (lp if card.names_languages else None)
        if pair in requests or is_blank(translation):
            continue
        text = prompt.render(source, translation, lp)
        text = text if context is None else around(context, text, lp)
        # All parts of a text get the same examples, so that their prompts have a common prefix.
        whole = source if context is None else context.source
        grammar = answers.grammar(translation, card.grounded, source)
        turns = (*prompt.turns, *(shots.turns(prompt, whole, lp) if shots else ()))
        # Only what can change a candidate; neither N nor an index, so that candidates can be added later.
        content = [*fixed, text, grammar, answers.name, turns]
        requests[pair] = Request(
            key=hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest(),
            prompt=text,
            grammar=grammar,
            n=card.samples,
            label=segment.label,
            source=source,
            translation=translation,
            schema=answers.schema,
            form=answers.grammar(translation, source=source) if card.grounded and answers.schema else "",
            token_logprobs=card.samples == 1,
            turns=turns,
            lp=lp,
        )
    return requests


class Sampled:
    """Candidates of a model, from the store or else sampled by `engine`. With `keep`, an engine in this process stays
    loaded between calls of `collect`, until `close`.
    """

    def __init__(self, card: ModelCard, *, keep: bool = False) -> None:
        self.engine = choose_engine(card)
        self.keeps = keep and self.engine.loads_weights
        self._card = card if card.model else replace(card, model=self.engine.model)

    @property
    def card(self) -> ModelCard:
        """The card, completed with the server's model and temperature if the user did not set them."""
        if self._card.temperature is not None:
            return self._card
        return replace(self._card, temperature=self.engine.default_temperature)

    def close(self) -> None:
        """Free the engine's resources."""
        self.engine.close()

    def collect(self, segments: Sequence[Segment], progress: bool) -> Collected:
        """Yield the indices of segments that share candidates, and the candidates or the rejection of the request.
        Segments without a translation are not included."""
        refused: Mapping[str, Refused] = {}
        with CandidateStore(store_path()) as store:
            requests: Mapping[Pair, Request] = self._requests(store, segments)
            if any(len(store.stored(one.key, one.n)) < one.n for one in requests.values()):
                from mbr_esd_metric.metric.sampler import Sampler

                with Sampler(self.engine, store, progress, keep=self.keeps) as sampler:
                    again = partial(self._requests, store, segments)
                    requests = sampler.fill(self.card, requests, again)
                refused = sampler.refused
            numbers: dict[Pair, list[int]] = {pair: [] for pair in requests}
            for number, segment in enumerate(segments):
                if (pair := pair_of(segment)) in numbers:
                    numbers[pair].append(number)
            for pair, shared in numbers.items():
                key = requests[pair].key
                candidates = [one for one in store.get(key, requests[pair].n) if one is not None]
                withheld = [one.withheld for one in candidates if one.withheld]
                if withheld and len(withheld) == len(candidates):
                    yield shared, Refused(key, withheld[0])
                else:
                    yield shared, refused.get(key) or candidates

    def _requests(self, store: CandidateStore, segments: Sequence[Segment]) -> dict[Pair, Request]:
        """`build_requests`, with a warning if the stored candidates of this model came from other servers than this run
        uses: a different model of the same name could be mixed in.
        """
        named = self.engine.servers
        known = store.servers(self.engine.digest) if named else []
        if known and not {*named} <= {*known}:
            logger.warning(
                f"candidates of {self.card.title} in {store.path} came from {', '.join(known)}, but this run uses "
                f"{', '.join(named)}: if that serves a different model, use a separate store (MBR_ESD_STORE=PATH), or "
                "serve it under another name and set model=NAME"
            )
        return build_requests(self.card, self.engine.identity, segments)


def choose_engine(card: ModelCard) -> Engine:
    """The card's engine, or with `engine=auto` the first that works: the engine of the answer format, otherwise server,
    vllm, transformers; an engine that starts slowly (vLLM's CPU build with a small model) comes last. An explicitly
    chosen engine is not tested, because a run whose candidates are all stored does not need it.

    Raises:
        OptionError: the engine cannot do what the card needs.
        EngineError: none works; lists each with a fix.
    """
    decision, answers = card.decision, get_format(card.decision.format)
    if decision.weights == "agreement":
        many = "`mbr-esd sample --model A --model B --model C -o FILE`, and set candidates=FILE"
        raise OptionError(
            f"weights=agreement needs several models, but this run has one; create a candidates file with {many}"
        )
    if card.engine == "auto" and not (card.engine_options.server and not answers.engine):
        engine = _first_that_works(card, (answers.engine,) if answers.engine else AUTOMATIC)
    else:
        engine = ENGINES.get("server" if card.engine == "auto" else card.engine)(card.engine_options)
    if other := card.format_problem(engine):
        raise OptionError(f"engine={engine.name}: {other}")
    logprobs = decision.rule_instance.needs_logprobs or decision.weights == "model"
    if logprobs and (reason := engine.missing_capability(logprobs=True, grammar=False)):
        raise OptionError(f"rule={decision.rule} with weights={decision.weights}: {reason}")
    grammar = card.grounded or not (answers.schema or answers.free)
    if grammar and (reason := engine.missing_capability(logprobs=False, grammar=True)):
        raise OptionError(f"{'grounded=true' if card.grounded else f'format={answers.name}'}: {reason}")
    return engine


def _first_that_works(card: ModelCard, names: Sequence[str]) -> Engine:
    """The first of these engines that works here; slow starters come last. Raises `EngineError` if none works."""
    problems: list[str] = []
    late = None
    for number, name in enumerate(names, 1):
        engine = ENGINES.get(name)(card.engine_options)
        problem = engine_problem(card, engine)
        if problem is None and not engine.starts_late:
            return engine
        late = late or (engine if problem is None else None)
        problems.append(f"[{number}] engine={name}: {problem}.")
    if late is not None:
        return late
    fix = "`mbr-esd models --check` shows what works on this machine."
    raise EngineError(f"{card.name} cannot run here. {' '.join(problems)} {fix}")


def engine_problem(card: ModelCard, engine: Engine) -> str | None:
    """The reason why the engine cannot run the card on this machine, with a fix; None if it can."""
    if not engine.options.server and engine.name in ("server", "batch"):
        if card.name == ANY_MODEL:
            return f"specify your server: {card.name}?server=URL, with &model=NAME if it serves several models"
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
