"""`mbr-esd models`: the model cards by what they need, one line each."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard

#: How most cards decide; a card that decides otherwise says so on its line.
_USUAL = "N = 256, mbr-softf1"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("name", nargs="?", help="show this model with all its settings")
    parser.add_argument("--options", action="store_true", help="list the options that a model name takes")
    parser.epilog = "examples:\n  mbr-esd models\n  mbr-esd models 'mbr-esd-llama?n=64&utility=softf1+scoresim'"


def run(args: argparse.Namespace) -> int:
    """Print the table, one card, or the options."""
    from mbr_esd_metric.generation.server.address import shown
    from mbr_esd_metric.metric.card import options_help, settings
    from mbr_esd_metric.metric.cards import CARDS, load_card

    if args.name:
        card = load_card(args.name)
        for key, value in settings(card).items():
            if card.context or key not in ("context", "recommended"):
                text = ", ".join(value) if isinstance(value, tuple) else str(value)
                print(f"{key:<18}{shown(text) if value not in (None, ()) else '-'}")
    if args.options:
        print("options, as in mbr-esd-llama?n=64&utility=scoresim:\n" + options_help())
    if args.name or args.options:
        return 0
    for title, cards in grouped(CARDS.values(), available_gb()):
        if cards:
            print("\n".join([title, *map(_line, cards), ""]))
    print(
        "GB: the weights as published. K: thousands of tokens of context. A model decides with "
        f"{_USUAL} unless its line\nsays otherwise. `mbr-esd models NAME` shows all settings of one, and "
        "`mbr-esd models --options` lists the options."
    )
    return 0


def grouped(cards: Iterable[ModelCard], memory_gb: float) -> list[tuple[str, list[ModelCard]]]:
    """The cards under a title each: those of this package, those that fit into this machine's memory, larger ones, and
    hosted ones.

    Args:
        cards: all of them.
        memory_gb: of the GPUs, or of the machine if it has none; prompts and the rest take a fifth of it.
    """
    own: list[ModelCard] = []
    here: list[ModelCard] = []
    larger: list[ModelCard] = []
    hosted: list[ModelCard] = []
    for card in cards:
        if card.hosted:
            group = hosted
        elif card.memory_gb < 1:
            group = own
        else:
            group = here if card.memory_gb <= 0.8 * memory_gb else larger
        group.append(card)
    return [
        ("== small models of this package: they run on any machine with 2 cores and 2 GB of memory", own),
        (
            f"== models that fit into this machine ({memory_gb:.0f} GB): in process, or on a server (mbr-esd serve)",
            here,
        ),
        ("== larger models: on a server with GPUs (mbr-esd serve), or on GPUs in process", larger),
        ("== hosted models: name the service with server=URL, and put your key into MBR_ESD_API_KEY", hosted),
    ]


def available_gb() -> float:
    """Memory of all GPUs in GB (10^9 bytes), or of the machine if it has none; 0 if neither can be told."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        return sum(int(line) for line in said.split()) * 1.048576e-3
    except (OSError, ValueError, subprocess.SubprocessError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):  # pragma: no cover - another platform
        return 0.0


def _line(card: ModelCard) -> str:
    from mbr_esd_metric.generation.embedded import EMBEDDED

    by = card.decision.decided_by
    decides = f"N = {card.samples}, {by}" + (f"-{card.decision.maximised}" if by.by_utility else "")
    size = f"{card.memory_gb:.{card.memory_gb < 10:d}f} GB" if card.memory_gb else ""
    context = f"{card.context // 1000:,} K" if card.context else ""
    about = [f"{card.model}: {card.description}"]
    if decides != _USUAL:
        about.append(decides)
    if card.model in EMBEDDED:
        about.append(f"licence {EMBEDDED[card.model].licence}")
    return f"{card.name:<30}{size:>8}{context:>8}  {'; '.join(about)}"
