"""`mbr-esd doctor`: what is installed, which engines work here, which card runs with which engine, and what to do if
none does."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform

from mbr_esd_metric.errors import install_command

#: Package -> its use, and the extra that installs it; in addition to those of the engines.
FEATURES = {
    "unbabel-comet": ("comet-score with our models", "comet"),
    "trl": ("distillation", "train"),
    "matplotlib": ("plots", "report"),
}


def packages() -> dict[str, tuple[str, str]]:
    """Package -> its use, and the extra that installs it ("" if there is none)."""
    from mbr_esd_metric.generation.registry import ENGINES

    found = dict(FEATURES)
    for name, cls in ENGINES.all().items():
        found |= dict.fromkeys(cls.packages, (f"engine={name}", cls.extra))
    return found


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--model", help="only this card")
    parser.epilog = "examples:\n  mbr-esd doctor\n  mbr-esd doctor --model mbr-esd-llama"


def run(args: argparse.Namespace) -> int:
    """Print the findings. The exit status is 1 if a card named with --model cannot run here."""
    from mbr_esd_metric._version import __version__
    from mbr_esd_metric.core.rules import RULES
    from mbr_esd_metric.core.similarity import SIMILARITIES
    from mbr_esd_metric.generation.cache import cache_folder
    from mbr_esd_metric.generation.registry import ENGINES
    from mbr_esd_metric.generation.server.detection import DIALECTS
    from mbr_esd_metric.metric.cards import CARDS, load_card
    from mbr_esd_metric.metric.catalogue import CATALOGUE
    from mbr_esd_metric.metric.engine_choice import ways

    print(f"mbr-esd-metric {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, {_gpus()}")
    print(f"cache folder: {cache_folder()}\n")
    for package, (purpose, extra) in packages().items():
        version = _version(package)
        mend = "" if version else f"   {install_command(extra) if extra else f'pip install {package}'}"
        print(f"  {package:<16}{version or 'not installed':<16}{purpose}{mend}")
    print()
    for name, cls in ENGINES.all().items():
        print(f"  engine={name:<16} {cls.description}")
    for catalog in (ENGINES, DIALECTS, SIMILARITIES, RULES):
        for name, package in catalog.offered().items():
            if name in catalog.all():
                print(f"  the {catalog.kind} {name} comes from {package}")
    works = False
    others = {f"mbr-esd-{entry.name}" for entry in CATALOGUE}
    for card in [load_card(args.model)] if args.model else [c for c in CARDS.values() if c.name not in others]:
        print(f"\n{card.name}")
        for way in ways(card):
            print(f"  {way.engine:<14}{'works here' if way.problem is None else way.problem}")
            works |= way.problem is None
    if not args.model:
        print(f"\n{len(others)} more models: mbr-esd models; of one of them: mbr-esd doctor --model NAME")
    return 0 if works or not args.model else 1


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpus() -> str:
    if _version("torch") is None:
        return "GPUs unknown (torch is not installed)"
    import torch

    if not torch.cuda.is_available():
        return "no GPU"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join(names)
