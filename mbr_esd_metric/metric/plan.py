"""The plan of a run, known before any model is loaded: models, engine, and one request for each distinct pair.

Models that are joined are one decision: their candidates are pooled as supports and as hypotheses, weighted equally by
model. Several settings of one language model are one model whose candidates all weigh the same, so that a share of them
can be drawn at another temperature. Each model samples by itself, under its own keys in the store, so that a pool costs
nothing where its models have been run. Whether supports of several families make better decisions has not been measured
here; the paper names metric bias and better hypothesis sets as future work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mbr_esd_metric.elicit.answer_format import AnswerFormat
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import Context, Prompt
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.files.join import SegmentKey, occurrences
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Request, Sampling, engine_class
from mbr_esd_metric.generation.engines.replay import ReplayEngine
from mbr_esd_metric.metric.adaptive import check_stops_early
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.engine_choice import choose_engine
from mbr_esd_metric.metric.shots import NO_SHOTS, Shots


@dataclass(frozen=True, slots=True)
class Segment:
    """A source, its translation, how messages name the two, and the system, which tells stored candidates apart; the
    document that it belongs to, if that is known; and of a part of a text what the model reads around it."""

    source: str
    translation: str
    label: str
    system: str = ""
    document: str = ""
    context: Context | None = None


@dataclass(frozen=True)
class Plan:
    """What a run has to do, known before any model is loaded.

    Attributes:
        card: the model.
        engine, options: the engine's name, and how it is made.
        answers, prompt: the answer format, and the prompt in its words.
        requests: one a distinct pair with a translation, or a segment where the engine does not share candidates; each
            asks for all N samples, with `n=auto` the most there may be.
        keys: for each segment the key of its request, or None if the translation is blank.
    """

    card: ModelCard
    engine: str
    options: EngineOptions
    answers: AnswerFormat
    prompt: Prompt
    requests: Mapping[str, Request]
    keys: Sequence[str | None] = field(repr=False)

    @property
    def engine_class(self) -> type[Engine]:
        """The engine."""
        return engine_class(self.engine)

    @property
    def sampling(self) -> Sampling:
        """How candidates are drawn."""
        return self.card.sampling


def members(card: ModelCard) -> list[ModelCard]:
    """The cards that are pooled; one where nothing is. A card with a file of candidates has the format of the file; one
    that leaves its model to the server has the model that is served there.

    Raises:
        InputError: such a file is malformed.
        EngineError: the server does not answer, or serves several models.
    """
    return [_member(one) for one in (card, *card.others)]


def _member(card: ModelCard) -> ModelCard:
    if card.candidates is not None:
        form = ReplayEngine.format(card.engine_options("replay"))
        return card if form is None else replace(card, decision=replace(card.decision, format=form))
    return card if card.model else replace(card, model=card.engine_options(choose_engine(card)).model)


def plan(card: ModelCard, segments: Sequence[Segment]) -> Plan:
    """Choose the engine and fold identical segments; loads no model, and without segments fetches none.

    Raises:
        OptionError, EngineError: no engine fits the card on this machine, or its file of candidates is not there; says
            what helps.
    """
    engine = choose_engine(card)
    if card.adaptive:
        check_stops_early(card.decision)
    answers, cls = get_format(card.decision.format), engine_class(engine)
    prompt = answers.prompt(card.prompt)
    if cls.stored and (answers.engine or cls.only_format) and engine != answers.engine:
        needed = f"engine={answers.engine}, or another format" if answers.engine else f"format={cls.only_format}"
        raise OptionError(f"engine={engine} does not answer in format={answers.name}; take {needed}")
    options = card.engine_options(engine, fetch=bool(segments))
    if not cls.stored and (problem := cls.problem(options)):
        raise EngineError(problem)
    _check_abilities(card, answers, cls, options)
    shots = NO_SHOTS if card.shots is None else Shots.read(card.shots, answers, card.nearest)
    identity = cls.identity(options)
    requests: dict[str, Request] = {}
    keys: list[str | None] = []
    by_pair: dict[tuple[str, str, Context | None, str, int], str] = {}
    numbers = occurrences(SegmentKey(segment.system, segment.source, segment.translation) for segment in segments)
    for segment, occurrence in zip(segments, numbers, strict=True):
        if not segment.translation.strip():
            keys.append(None)
            continue
        texts = (segment.source, segment.translation)
        pair = (*texts, segment.context, *(("", 0) if cls.shared else (segment.system, occurrence)))
        if pair not in by_pair:
            text = prompt.render(*texts, card.lp, segment.context)
            # All parts of a text get the same examples, so that their prompts begin alike.
            whole = segment.source if segment.context is None else segment.context.source
            grammar = answers.grammar(segment.translation, card.grounded, segment.source)
            turns = (*prompt.turns, *shots.turns(prompt, whole, card.lp))
            key = _key(identity, card.sampling, text, grammar, answers.name, turns)
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
    if card.decision.score == "conditional" and not walks:
        raise OptionError(
            f"score={card.decision.score} needs the probability of every tag, which {card.name} with "
            f"format={answers.name} does not have; take score=expected, or format=marked on engine=transformers"
        )
    return Plan(card, engine, options, answers, prompt, requests, keys)


def _check_abilities(card: ModelCard, answers: AnswerFormat, cls: type[Engine], options: EngineOptions) -> None:
    """See that the engine can do what the card asks for.

    Raises:
        OptionError: it cannot; the message names the options and says what to do.
    """
    decision = card.decision
    if decision.decided_by.needs_logprobs or decision.weights == "model":
        needing = f"rule={decision.rule} with weights={decision.weights}"
        if reason := cls.lacks(options, logprobs=True, grammar=False):
            raise OptionError(f"{needing}: {reason}")
    if card.grounded or not (answers.schema or answers.free):
        needing = "grounded=true" if card.grounded else f"format={answers.name}"
        if reason := cls.lacks(options, logprobs=False, grammar=True):
            raise OptionError(f"{needing}: {reason}")


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
