"""`mbr-esd models`: the model cards by what they need, one line each; with ``--check`` what works on this machine."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric._version import __version__
from mbr_esd_metric.errors import install_command, no_effect_error, printable

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard

#: How most cards decide; a card that decides otherwise says so on its line.
_USUAL = "N = 256, mbr-softf1"


def packages() -> dict[str, tuple[str, str]]:
    """Package -> its use, and the extra that installs it ("" if there is none)."""
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
    """Arguments."""
    parser.add_argument("name", nargs="?", help="show this model with all its settings")
    parser.add_argument("--options", action="store_true", help="list the options that a model name takes")
    parser.add_argument(
        "--check", action="store_true", help="say what works on this machine, why the rest does not, and what to do"
    )
    parser.epilog = (
        "examples:\n  mbr-esd models\n  mbr-esd models 'mbr-esd-llama?n=64&utility=softf1+scoresim'\n"
        "  mbr-esd models --check\n  mbr-esd models mbr-esd-llama --check"
    )


def run(args: argparse.Namespace) -> int:
    """Print the table, one card, the options, or what works here; 1 if the card to check cannot run here."""
    from mbr_esd_metric.generation.server.address import shown
    from mbr_esd_metric.metric.card import options_help, settings
    from mbr_esd_metric.metric.cards import limits, listed, load_card

    if args.check:
        if args.options:
            raise no_effect_error("--options", "--check")
        return _check(args.name)
    if args.name:
        card = load_card(args.name)
        for key, value in settings(card).items():
            texts = [shown(str(one)) for one in value] if isinstance(value, tuple) else [printable(str(value))]
            print(f"{key:<18}{', '.join(texts) if value not in (None, ()) else '-'}")
    if args.options:
        print("options, as in mbr-esd-llama?n=64&utility=scoresim:\n" + options_help())
    if args.name or args.options:
        return 0
    for title, cards in grouped(listed(), available_gb()).items():
        if cards:
            print(
                "\n".join([title, *map(_line, cards), *(f"  {line}" for line in limits(one.name for one in cards)), ""])
            )
    print(
        f"GB: the weights as published. A model decides with {_USUAL} unless its line says otherwise. The paper's\n"
        "models score by the chosen spans, mbr-esd-small by its own estimate, others by the mean over the candidates.\n"
        "`mbr-esd models NAME` shows all settings of one, and `mbr-esd models --options` lists the options."
    )
    return 0


def grouped(cards: Iterable[ModelCard], memory_gb: float) -> dict[str, list[ModelCard]]:
    """Title -> its cards; `memory_gb` is that of the GPUs, or of the machine if it has none. Prompts and the rest take
    a fifth of it.
    """
    groups: dict[str, list[ModelCard]] = {
        "== any model: on a server that runs already, or with its weights": [],
        "== small models of this package: they run on any machine with 2 cores and 2 GB of memory": [],
        f"== models that fit into this machine ({memory_gb:.0f} GB): in process, or on a server (mbr-esd serve)": [],
        "== larger models: on a server with GPUs (mbr-esd serve), or on GPUs in process": [],
    }
    any_model, small, fitting, larger = groups.values()
    for card in cards:
        if not card.model:
            any_model.append(card)
        elif card.memory_gb < 1:
            small.append(card)
        else:
            (fitting if card.memory_gb <= 0.8 * memory_gb else larger).append(card)
    return groups


def available_gb() -> float:
    """Memory of all GPUs in GB (10^9 bytes), or of the machine if it has none; 0 if neither can be told."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        return sum(int(line) for line in output.split()) * 1.048576e-3
    except (OSError, ValueError, subprocess.SubprocessError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):  # pragma: no cover - another platform
        return 0.0


def _line(card: ModelCard) -> str:
    by = card.decision.rule_instance
    decides = f"N = {card.samples}, {by}" + (f"-{card.decision.effective_utility}" if by.by_utility else "")
    size = f"{card.memory_gb:.{card.memory_gb < 10:d}f} GB" if card.memory_gb else ""
    in_package = not card.model or Path(card.model).is_absolute()
    about = [card.description if in_package else f"{card.model}: {card.description}"]
    if decides != _USUAL:
        about.append(decides)
    return f"{card.name:<30}{size:>8}  {'; '.join(about)}"


def _check(name: str | None) -> int:
    """Print what works here, and what to do about the rest. Returns 1 if the named model cannot run here."""
    from mbr_esd_metric.metric.cards import listed, load_card
    from mbr_esd_metric.metric.sources import engine_problems

    if not name:
        _print_machine()
    works = False
    named = load_card(name) if name else None
    for card in [named] if named else [card for card in listed() if card.model or card.any_model]:
        print(card.title if named else f"\n{card.title}")
        for engine, problem in engine_problems(card).items():
            print(f"  {engine:<13} {problem or 'works here'}")
            works |= problem is None
    return 0 if works or not name else 1


def _print_machine() -> None:
    """Print what is installed on this machine, the engines, and what other packages offer."""
    from mbr_esd_metric.core.rules import RULES
    from mbr_esd_metric.core.similarities import SIMILARITIES
    from mbr_esd_metric.generation.engine import ENGINES
    from mbr_esd_metric.generation.model_files import cache_folder
    from mbr_esd_metric.prompting.formats import FORMATS

    print(f"mbr-esd-metric {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, {_gpus()}")
    print(f"cache folder: {cache_folder()}\n")
    for package, (purpose, extra) in packages().items():
        version = _version(package)
        fix = "" if version else f"   {install_command(extra) if extra else f'pip install {package}'}"
        print(f"  {package:<16}{version or 'not installed':<16}{purpose}{fix}")
    print()
    for engine, cls in ENGINES.all().items():
        print(f"  engine={engine:<16} {cls.description}")
    for catalog in (ENGINES, FORMATS, SIMILARITIES, RULES):
        for one, package in catalog.offered().items():
            if one in catalog.all():
                print(f"  the {catalog.kind} {one} comes from {package}")


def _version(package: str) -> str | None:
    """Also of a package that another distribution installs, as vLLM's CPU build does."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        others = importlib.metadata.packages_distributions().get(package, [])
        return next(map(importlib.metadata.version, others), None)


def _gpus() -> str:
    if _version("torch") is None:
        return "GPUs unknown (torch is not installed)"
    import torch

    if not torch.cuda.is_available():
        return "no GPU"
    return ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))
