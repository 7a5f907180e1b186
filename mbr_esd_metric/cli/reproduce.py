"""`mbr-esd reproduce`: what the paper shows, computed again."""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.shared_options import add_verbs, run_verb

run = run_verb


def configure(parser: argparse.ArgumentParser) -> None:
    """Its verbs."""
    add_verbs(
        parser,
        {
            "paper": ("reproduce_paper", "every table of the paper, ours beside its figures"),
            "synthetic": ("reproduce_synthetic", "does a similarity fall with every error that is added or deleted?"),
        },
    )
    parser.epilog = "example:\n  mbr-esd reproduce paper --candidates FOLDER"
