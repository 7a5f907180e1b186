"""`mbr-esd wmt`: imports human annotations into mt-metrics-eval's data layout, adds metric scores, reads and writes
submissions."""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.shared_options import add_verbs, run_verb

run = run_verb


def configure(parser: argparse.ArgumentParser) -> None:
    """Its verbs."""
    add_verbs(
        parser,
        {
            "import": ("wmt_import", "make a test set of what WMT publishes, or a metric of a submission"),
            "score": ("wmt_score", "score every system of a test set, with error spans, into the data folder"),
            "submit": ("wmt_submit", "write a metric, or people's gold, in the format of one of WMT's tasks"),
        },
    )
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt import mqm_ted_ende.tsv --test-set wmt21.tedtalks --lp en-de --data data\n"
        "  mbr-esd wmt score --data data --test-set wmt21.tedtalks --lp en-de --model BLEU empty"
    )
