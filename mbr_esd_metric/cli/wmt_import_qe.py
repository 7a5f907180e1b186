"""`mbr-esd wmt import-qe`: error spans of WMT's quality estimation task into mt-metrics-eval's data layout."""

from __future__ import annotations

import argparse
import sys

from mbr_esd_metric.cli.data import add_import_arguments, import_target
from mbr_esd_metric.cli.options import add_mqm_option
from mbr_esd_metric.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    """Which file, where to."""
    parser.add_argument("tsv", metavar="TSV", help="a table of Task 2 of 2022 or 2023; plain, .gz or .zst")
    parser.add_argument("--direction", metavar="D", help="such as en-de (default: the one in the file or in its name)")
    add_import_arguments(parser, "such as wmt23.qe", "the texts and human scores")
    add_mqm_option(parser, "of MQM", "paper")
    parser.epilog = (
        "example:\n  mbr-esd wmt import-qe 2023_en-de_test.tsv.gz --test-set wmt23.qe --data data\n\n"
        "`mbr-esd distill sft` reads these tables as they are."
    )


def run(args: argparse.Namespace) -> int:
    """Read the table and write its test set."""
    from mbr_esd_metric.adapters.qe_tsv import direction_in_name, read_qe
    from mbr_esd_metric.cli.wmt import import_ratings
    from mbr_esd_metric.files.paths import check_folder

    check_folder(args.data)
    human = read_qe(args.tsv, args.direction)
    directions = sorted({rating.direction or "" for rating in human})
    if directions != [args.direction or directions[0]] or not directions[0]:
        found = ", ".join(filter(None, directions)) or "none"
        raise InputError(f"{args.tsv}: one direction is written at a time, and the file says {found}; give --direction")
    named = direction_in_name(args.tsv)
    if named and named != directions[0]:
        print(f"{args.tsv}: its name says {named}, and it is imported as {directions[0]}", file=sys.stderr)
    import_ratings(human, import_target(args, directions[0]))
    return 0
