"""`mbr-esd annotate`: what people look at, what they say, and what pre-filled error spans did."""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.shared_options import add_verbs, run_verb

run = run_verb


def configure(parser: argparse.ArgumentParser) -> None:
    """Its verbs."""
    add_verbs(
        parser,
        {
            "export": ("annotate_export", "a campaign for Pearmut, with error spans to begin from"),
            "import": ("annotate_import", "what annotators gave back, as ratings that every verb reads"),
            "report": ("annotate_report", "the systems compared by people, and what pre-filled spans did"),
        },
    )
    parser.epilog = "example:\n  mbr-esd annotate export --help"
