"""The command line: `mbr-esd`. Each verb has two functions, one that adds its arguments and one that does the work."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable


def functions_of(verb: str) -> tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]:
    """``configure`` and ``run`` of "MODULE", or ``configure_VERB`` and ``run_VERB`` of "MODULE:VERB"."""
    name, _, suffix = verb.partition(":")
    module = importlib.import_module(f"mbr_esd_metric.cli.{name}")
    ending = f"_{suffix}" if suffix else ""
    return getattr(module, f"configure{ending}"), getattr(module, f"run{ending}")
