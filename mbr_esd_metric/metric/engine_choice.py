"""Chooses the engine that runs a card on this machine, and says what the others lack."""

from __future__ import annotations

from dataclasses import dataclass

from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import EngineError, MbrEsdError
from mbr_esd_metric.generation.engine import ENGINES, Engine
from mbr_esd_metric.metric.card import ModelCard


@dataclass(frozen=True, slots=True)
class Way:
    """One engine for one card. `problem` is None if it works here; otherwise it says why not, and what to do."""

    engine: str
    problem: str | None


def ways(card: ModelCard) -> list[Way]:
    """Each engine that could run the card, with the reason if it cannot run it on this machine.

    The engines that `engine=auto` tries come first. `replay` is left out if the card names no file of candidates, and
    what loads weights from this machine where the model is one on a server of the user's.
    """
    return [
        Way(name, _problem(card, cls))
        for name, cls in _ranked().items()
        if (cls.stored or getattr(card, cls.place, True)) and not (card.own_model and cls.loads_weights)
    ]


def choose_engine(card: ModelCard) -> str:
    """The card's engine, or with `engine=auto` the first that works: replay, server, vllm, transformers.

    One that starts late (vLLM's CPU build with a small model) comes last.

    If the card names the engine, or the place that it needs, it is not checked here. It says itself what it lacks, and
    a run whose candidates are all stored does not need it at all.

    Raises:
        EngineError: no engine works; the message lists all of them, and what to do about each.
    """
    if card.engine != "auto":
        return card.engine
    problems, late = [], None
    for name, cls in _ranked().items():
        if cls.rank is None:
            continue
        if cls.place and getattr(card, cls.place):
            return name
        problem = _problem(card, cls)
        if problem is None:
            if not cls.starts_late(card.engine_options(name, fetch=False)):
                return name
            late = late or name
            continue
        # Users who have candidates in a file know it; the others need not read about `replay`.
        if cls.stored:
            problems.append(f"engine={name}: {problem}")
    if late is not None:
        return late
    raise EngineError(
        f"{card.name} cannot run here. "
        + " ".join(f"[{number}] {text}." for number, text in enumerate(problems, 1))
        + " `mbr-esd models --check` shows what works on this machine."
    )


def _ranked() -> dict[str, type[Engine]]:
    engines = ENGINES.all().items()
    return dict(sorted(engines, key=lambda item: (item[1].rank is None, item[1].rank or 0)))


def _instead(only: str, cls: type[Engine]) -> str:
    return f"engine={only}" if only else f"format={cls.only_format}"


def _problem(card: ModelCard, cls: type[Engine]) -> str | None:
    if card.hosted and cls.loads_weights:
        return f"{card.model} is hosted, and its weights are not published; take engine=server"
    if card.hosted and not card.servers and cls.stored:
        return (
            f"name the service and your key: export MBR_ESD_SERVER=URL (or {card.name}?server=URL, such as "
            "https://api.openai.com/v1), and export MBR_ESD_API_KEY=KEY"
        )
    only = get_format(card.decision.format).engine
    if cls.stored and (only or cls.only_format) and cls.name != only:
        return f"it does not answer in format={card.decision.format}; take {_instead(only, cls)}"
    if card.own_model and not card.servers and cls.stored:
        return f"name your server: {card.name}?server=URL, with &model=NAME where it serves several"
    if cls.place and not getattr(card, cls.place):
        return cls.how_to_place.format(card=card.name)
    try:
        return cls.problem(card.engine_options(cls.name, fetch=False))
    except MbrEsdError as error:
        return str(error)
