"""`mbr-esd models`: the model cards, and what each of them needs."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("name", nargs="?", help="show this one whole, with its options")
    parser.epilog = "example:\n  mbr-esd models\n  mbr-esd models 'mbr-esd-llama?n=64&utility=softf1+scoresim'"


def run(args: argparse.Namespace) -> int:
    """Print the table, or one card."""
    from mbr_esd_metric.generation.server.address import shown
    from mbr_esd_metric.metric.card import options_help, settings
    from mbr_esd_metric.metric.cards import CARDS, load_card

    if args.name:
        card = load_card(args.name)
        for key, value in settings(card).items():
            if card.context or key not in ("context", "recommended"):
                text = ", ".join(value) if isinstance(value, tuple) else str(value)
                print(f"{key:<18}{shown(text) if value not in (None, ()) else '-'}")
        return 0
    memory = available_gb()
    for title, cards in grouped(CARDS.values(), memory):
        if cards:
            print(f"{title}\n")
        for card in cards:
            _print(card)
    print("options, as in mbr-esd-llama?n=64&utility=scoresim:\n" + options_help())
    return 0


def grouped(cards: Iterable[ModelCard], memory_gb: float) -> list[tuple[str, list[ModelCard]]]:
    """The cards under a title each: those that fit into this machine's memory, larger ones, and hosted ones.

    Args:
        cards: all of them.
        memory_gb: of the GPUs, or where there is none of the machine; prompts and the rest take a fifth of it.
    """
    here: list[ModelCard] = []
    larger: list[ModelCard] = []
    hosted: list[ModelCard] = []
    for card in cards:
        group = hosted if card.memory_gb == 0 else here if card.memory_gb <= 0.8 * memory_gb else larger
        group.append(card)
    return [
        (f"== models that fit into this machine ({memory_gb:.0f} GB)", here),
        ("== models that need a server with more memory than this machine has", larger),
        ("== hosted models: name the service with server=URL, and put your key into MBR_ESD_API_KEY", hosted),
    ]


def available_gb() -> float:
    """Memory of all GPUs in GB (10^9 bytes), or where there is none of the machine; 0 if neither can be told."""
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


def _print(card: ModelCard) -> None:
    from mbr_esd_metric.generation.embedded import EMBEDDED

    by = card.decision.decided_by
    rule = f"N = {card.samples}, {by}" + (f"-{card.decision.maximised}" if by.by_utility else "")
    lines = [card.model, f"{card.description}; {rule}", f"needs {_needs(card)}"]
    if card.context:
        lines.append(f"{card.context:,} tokens of context; servers: {', '.join(card.recommended)}")
    if card.model in EMBEDDED:
        lines.append(f"licence of the weights: {EMBEDDED[card.model].licence}")
    print(f"{card.name:<28}" + f"\n{'':<28}".join(lines) + "\n")


def _needs(card: ModelCard) -> str:
    if card.memory_gb == 0:
        return "a key of the service that hosts it"
    if card.memory_gb < 1:
        return "any machine: 2 cores, 2 GB of memory"
    where = "a vLLM server on GPUs (mbr-esd serve), or GPUs in process"
    return f"{card.memory_gb:.0f} GB for the weights as published: {where}"
