"""The plan of a run, known before any model is loaded: model, engine, and one request for each distinct pair."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from mbr_esd_metric.errors import EngineError, MbrEsdError, OptionError
from mbr_esd_metric.files.join import SegmentKey, occurrences
from mbr_esd_metric.generation.engine import ENGINES, Engine, EngineOptions, Request, engine_class
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting.formats import AnswerFormat, get_format
from mbr_esd_metric.prompting.prompt import Context, Prompt


@dataclass(frozen=True, slots=True)
class Segment:
    """A source and its translation.

    Attributes:
        label: the name in messages.
        system: it tells stored candidates of equal texts apart.
        document: its document, if that is known.
        context: the text around a part of a text, which the model reads.
    """

    source: str
    translation: str
    label: str
    system: str = ""
    document: str = ""
    context: Context | None = None


@dataclass(frozen=True)
class Plan:
    """The work of a run, known before any model is loaded.

    Attributes:
        engine, options: the engine's name, and how it is made.
        answers: the answer format.
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
        """The class of the engine."""
        return engine_class(self.engine)


def resolved(card: ModelCard) -> ModelCard:
    """The card with what it leaves open: the answer format of its file of candidates (`InputError` if that is
    malformed), or the model of its server (`EngineError` if that does not answer, or serves several)."""
    if card.candidates is not None:
        from mbr_esd_metric.generation.engines.replay import ReplayEngine

        form = ReplayEngine.format(card.engine_options("replay")) or card.decision.format
        return replace(card, decision=replace(card.decision, format=form))
    return card if card.model else replace(card, model=card.engine_options(choose_engine(card)).model)


def engine_problems(card: ModelCard) -> dict[str, str | None]:
    """Each engine that could run the card -> the problem on this machine and its remedy; None if it can run. Those that
    `engine=auto` tries come first. `replay` needs a file of candidates, and what loads weights is left out for a model
    on a server of the user's."""
    return {
        name: _problem(card, cls)
        for name, cls in _ranked(card).items()
        if (cls.keeps_samples or getattr(card, cls.card_field, True)) and not (card.any_model and cls.loads_weights)
    }


def choose_engine(card: ModelCard) -> str:
    """The card's engine, or with `engine=auto` the first that works: replay, server, vllm, transformers; one that
    starts late (vLLM's CPU build with a small model) comes last. One that the card names, or whose place it names, is
    not checked, as a run whose candidates are all stored does not need it. The `EngineError` where none works lists
    them all with a remedy."""
    if card.engine != "auto":
        return card.engine
    problems: list[str] = []
    late = None
    for name, cls in _ranked(card).items():
        if cls.rank is None:
            continue
        if cls.card_field and getattr(card, cls.card_field):
            return name
        problem = _problem(card, cls)
        if problem is None:
            if not cls.starts_late(card.engine_options(name, fetch=False)):
                return name
            late = late or name
        elif cls.keeps_samples:  # users who have candidates in a file know it; the others need not read about `replay`
            problems.append(f"[{len(problems) + 1}] engine={name}: {problem}.")
    if late is not None:
        return late
    fix = "`mbr-esd models --check` shows what works on this machine."
    raise EngineError(f"{card.name} cannot run here. {' '.join(problems)} {fix}")


def _ranked(card: ModelCard) -> dict[str, type[Engine]]:
    """The engines that answer in the card's format."""
    engines = (item for item in ENGINES.all().items() if _other_format(card, item[0]) is None)
    return dict(sorted(engines, key=lambda item: (item[1].rank is None, item[1].rank or 0)))


def _problem(card: ModelCard, cls: type[Engine]) -> str | None:
    if card.any_model and not card.servers and cls.keeps_samples:
        return f"name your server: {card.name}?server=URL, with &model=NAME where it serves several"
    if cls.card_field and not getattr(card, cls.card_field):
        return cls.how_to_set_field.format(card=card.name)
    try:
        return cls.problem(card.engine_options(cls.name, fetch=False))
    except MbrEsdError as error:
        return str(error)


def _other_format(card: ModelCard, engine: str) -> str | None:
    """Why an engine cannot answer in the card's format; None if it can."""
    only, cls = get_format(card.decision.format).engine, engine_class(engine)
    if not cls.keeps_samples or not (only or cls.only_format) or engine == only:
        return None
    fix = f"engine={only}" if only else f"format={cls.only_format}"
    return f"it does not answer in format={card.decision.format}; take {fix}"


def plan(card: ModelCard, segments: Sequence[Segment]) -> Plan:
    """Choose the engine and fold identical segments. No model is loaded, and without segments none is fetched.
    `OptionError` or `EngineError` if no engine fits the card on this machine, or its file of candidates is missing."""
    engine = choose_engine(card)
    if card.adaptive:
        from mbr_esd_metric.metric.adaptive import check_stops_early

        check_stops_early(card.decision)
    answers, cls = get_format(card.decision.format), engine_class(engine)
    prompt = answers.prompt(card.prompt)
    if other := _other_format(card, engine):
        raise OptionError(f"engine={engine}: {other}")
    options = card.engine_options(engine, fetch=bool(segments))
    if not cls.keeps_samples and (problem := cls.problem(options)):
        raise EngineError(problem)
    _check_abilities(card, answers, cls, options)
    shots = None
    if card.shots is not None:
        from mbr_esd_metric.metric.shots import Shots

        shots = Shots.read(card.shots, answers)
    identity = dict(cls.identity(options))
    requests: dict[str, Request] = {}
    keys: list[str | None] = []
    by_pair: dict[tuple[str, str, Context | None, str, int], str] = {}
    numbers = occurrences(SegmentKey(segment.system, segment.source, segment.translation) for segment in segments)
    for segment, occurrence in zip(segments, numbers, strict=True):
        if not segment.translation.strip():
            keys.append(None)
            continue
        texts = (segment.source, segment.translation)
        pair = (*texts, segment.context, *(("", 0) if cls.shares_equal_pairs else (segment.system, occurrence)))
        if pair not in by_pair:
            text = prompt.render(*texts, card.lp, segment.context)
            # All parts of a text get the same examples, so that their prompts begin alike.
            whole = segment.source if segment.context is None else segment.context.source
            grammar = answers.grammar(segment.translation, card.grounded, segment.source)
            turns = (*prompt.turns, *(shots.turns(prompt, whole, card.lp) if shots else ()))
            # What can change a candidate, and nothing else: neither N nor an index, so that more can be added.
            content = [identity, asdict(card.sampling), text, grammar, answers.name, turns]
            key = hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
            if not cls.shares_equal_pairs:
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
                schema=answers.schema,
                form=answers.grammar(segment.translation, source=segment.source)
                if card.grounded and answers.schema
                else "",
                token_logprobs=card.samples == 1,
                turns=turns,
            )
        keys.append(by_pair[pair])
    return Plan(card, engine, options, answers, prompt, requests, keys)


def _check_abilities(card: ModelCard, answers: AnswerFormat, cls: type[Engine], options: EngineOptions) -> None:
    """Check that the engine can do all that the card needs."""
    decision = card.decision
    if decision.decided_by.needs_logprobs or decision.weights == "model":
        reason = cls.lacks(options, logprobs=True, grammar=False)
        if reason:
            raise OptionError(f"rule={decision.rule} with weights={decision.weights}: {reason}")
    if card.grounded or not (answers.schema or answers.free):
        reason = cls.lacks(options, logprobs=False, grammar=True)
        if reason:
            raise OptionError(f"{'grounded=true' if card.grounded else f'format={answers.name}'}: {reason}")
