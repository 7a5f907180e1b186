"""`mbr-esd models`: list model cards, or show one model's options; ``--check``: what works on this machine."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.cores import available_cores
from mbr_esd_metric.installing import install_command
from mbr_esd_metric.messages import number_of, printable

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard
    from mbr_esd_metric.plugins import Parts

#: The usual decision settings; only different ones are listed for a card.
_USUAL = "N = 256, mbr-softf1"


def packages() -> dict[str, tuple[str, str]]:
    """Package -> its purpose, and the extra that installs it ("" if there is none)."""
    from mbr_esd_metric.generation.engine import ENGINES

    uses = {
        "unbabel-comet": ("comet-score with our models", "comet"),
        "trl": ("distillation", "train"),
        "matplotlib": ("plots", "report"),
    }
    for name, cls in ENGINES.all().items():
        uses |= dict.fromkeys(cls.packages, (f"engine={name}", cls.extra))
    return uses


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the model to describe, and the check of this machine."""
    parser.add_argument("name", nargs="?", help="show this model's options, with their values and meanings")
    parser.add_argument(
        "--check", action="store_true", help="check which engines work on this machine, and print a fix for the others"
    )
    parser.epilog = (
        "examples:\n  mbr-esd models\n  mbr-esd models 'mbr-esd-llama?n=64&utility=softf1+scoresim'\n"
        "  mbr-esd models --check\n  mbr-esd models mbr-esd-llama --check"
    )


def run(args: argparse.Namespace) -> int:
    """Print the table, one card, or the check; returns 1 if the checked card cannot run here."""
    from mbr_esd_metric.generation.server.address import shown
    from mbr_esd_metric.metric.card import settings
    from mbr_esd_metric.metric.cards import limits, load_card

    if args.check:
        return _check(args.name)
    if args.name:
        meanings = _meanings()
        for key, value in settings(load_card(args.name)).items():
            texts = [shown(str(one)) for one in value] if isinstance(value, tuple) else [printable(str(value))]
            text = ", ".join(texts) if value not in (None, (), "") else "-"
            print(f"{key:<18}{text:<18}  {meanings.get(key, '')}".rstrip())
        return 0
    cards = sorted(listed(), key=lambda card: card.memory_gb)
    print("\n".join([*map(_line, cards), "", *(f"  {line}" for line in limits(one.name for one in cards))]))
    print(
        f"GB: size of the published weights. Decisions use {_USUAL} unless a line says otherwise. Scores: the paper's\n"
        "models use the chosen spans, mbr-esd-small its own estimate, the others the mean over the candidates.\n"
        "`mbr-esd models NAME` shows a model's options, `mbr-esd models --check` what works on this machine."
    )
    return 0


def _meanings() -> dict[str, str]:
    """Option of a model name -> its meaning and valid values."""
    from mbr_esd_metric.cli.decide import option_help
    from mbr_esd_metric.decoding.options import FIELDS
    from mbr_esd_metric.generation.engine import ENGINES
    from mbr_esd_metric.metric.card import OPTIONS

    takes = {name: f.metadata["takes"] for name, f in OPTIONS.items()}
    takes["engine"] = ", ".join(["auto", *ENGINES.names()])
    meanings = {name: f"{f.metadata['help']}: {takes[name]}" for name, f in OPTIONS.items()}
    return meanings | {name: option_help(name) for name in FIELDS}


def listed() -> list[ModelCard]:
    """The cards to list; ``MBR_ESD_DEMO=1`` adds the test models, which only a checkout has."""
    from mbr_esd_metric.metric.cards import CARD_NAMES, get_card

    every = os.environ.get("MBR_ESD_DEMO") == "1"
    return [get_card(name) for name in CARD_NAMES if every or not name.startswith("mbr-esd-demo")]


def _line(card: ModelCard) -> str:
    by = card.decision.rule_instance
    decides = f"N = {card.samples}, {by.name}" + (f"-{card.decision.effective_utility}" if by.by_utility else "")
    size = f"{card.memory_gb:.{card.memory_gb < 10:d}f} GB" if card.memory_gb else ""
    in_package = not card.model or Path(card.model).is_absolute()
    about = [card.description if in_package else f"{card.model}: {card.description}"]
    if decides != _USUAL:
        about.append(decides)
    return f"{card.name:<30}{size:>8}  {'; '.join(about)}"


def _check(name: str | None) -> int:
    """Print which engines work here, and a fix for the others. Returns 1 if the named model cannot run here."""
    from mbr_esd_metric.metric.card import LOCAL_MODEL
    from mbr_esd_metric.metric.cards import load_card

    if not name:
        _print_machine()
    works = not name
    for card in [load_card(name)] if name else [one for one in listed() if one.name != LOCAL_MODEL]:
        print(card.title if name else f"\n{card.title}")
        for engine, problem in engine_problems(card).items():
            print(f"  {engine:<13} {problem or 'works here'}")
            works |= problem is None
    return int(not works)


def engine_problems(card: ModelCard) -> dict[str, str | None]:
    """Each engine that could run the card -> the problem on this machine and its fix; None if it works. Those that
    `engine=auto` tries come first. Engines that load weights are omitted for a model on the user's server; the engine
    without a model is only for the card without one."""
    from mbr_esd_metric.generation.engine import AUTOMATIC, ENGINES, NO_MODEL
    from mbr_esd_metric.metric.card import ANY_MODEL
    from mbr_esd_metric.metric.sources import engine_problem

    engines = ENGINES.all()
    names = [*AUTOMATIC, *(name for name in engines if name not in AUTOMATIC)]
    made = [engines[name](card.engine_options) for name in names]
    return {
        engine.name: engine_problem(card, engine)
        for engine in made
        if card.format_problem(engine) is None
        and not (card.name == ANY_MODEL and engine.loads_weights)
        and (card.engine == NO_MODEL) == (engine.name == NO_MODEL)
    }


def _print_machine() -> None:
    """Print the installed packages, the engines, and plugins."""
    from mbr_esd_metric.checks.check import CHECKS
    from mbr_esd_metric.cli.verbs import VERBS
    from mbr_esd_metric.core.rules import RULES
    from mbr_esd_metric.core.similarities import SIMILARITIES
    from mbr_esd_metric.generation.engine import ENGINES
    from mbr_esd_metric.generation.store import cache_folder
    from mbr_esd_metric.metaeval.score_statistics import SCORE_STATISTICS
    from mbr_esd_metric.prompting.formats import FORMATS

    cores = number_of(available_cores(), "core")
    print(f"mbr-esd-metric {__version__}, Python {platform.python_version()}, {cores}, {_gpus()}")
    print(f"cache folder: {cache_folder()}\n")
    for package, (purpose, extra) in packages().items():
        version = _version(package)
        fix = "" if version else f"   {install_command(extra) if extra else f'pip install {package}'}"
        print(f"  {package:<16}{version or 'not installed':<16}{purpose}{fix}")
    print()
    for engine, cls in ENGINES.all().items():
        print(f"  engine={engine:<16} {cls.description}")
    kinds: tuple[Parts[Any], ...] = (ENGINES, FORMATS, SIMILARITIES, RULES, CHECKS, SCORE_STATISTICS, VERBS)
    for parts in kinds:
        for one, package in parts.offered().items():
            if one in parts.all():
                print(f"  the {parts.kind} {one} comes from {package}")


def _version(package: str) -> str | None:
    """The installed version, also if another distribution provides the package, such as vLLM's CPU build."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        others = importlib.metadata.packages_distributions().get(package, [])
        return next(map(importlib.metadata.version, others), None)


def _gpus() -> str:
    if _version("torch") is None:
        return "GPUs unknown (torch is not installed)"
    import torch

    return ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count()))) or "no GPU"
