"""Which engines can run a model on this machine, and what helps the others."""

from __future__ import annotations

from collections.abc import Sequence

from mbr_esd_metric.errors import EngineError, MbrEsdError
from mbr_esd_metric.generation.engine import AUTOMATIC, ENGINES, Engine
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, ModelCard


def first_that_works(card: ModelCard, names: Sequence[str]) -> Engine:
    """The first of these engines that works here; one that starts late comes last. `EngineError` if none does."""
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


def engine_problems(card: ModelCard) -> dict[str, str | None]:
    """Each engine that could run the card -> the problem on this machine and its remedy; None if it can run. Those that
    `engine=auto` tries come first. What loads weights is left out for a model on a server of the user's."""
    engines = ENGINES.all()
    names = [*AUTOMATIC, *(name for name in engines if name not in AUTOMATIC)]
    made = [engines[name](card.engine_options) for name in names]
    return {
        engine.name: engine_problem(card, engine)
        for engine in made
        if card.format_problem(engine) is None and not (card.name == ANY_MODEL and engine.loads_weights)
    }


def engine_problem(card: ModelCard, engine: Engine) -> str | None:
    """Why the engine cannot run the card on this machine, and what helps; None if it can."""
    if not engine.options.server and engine.name in ("server", "batch"):
        if card.name == ANY_MODEL:
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
