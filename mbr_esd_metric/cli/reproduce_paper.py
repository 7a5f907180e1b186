"""`mbr-esd reproduce paper`: every table of the paper, ours beside its figures, from stored candidates."""

from __future__ import annotations

import argparse
from pathlib import Path

from mbr_esd_metric.cli.data import add_reading_arguments, load_test_sets
from mbr_esd_metric.cli.shared_options import add_format
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.report.paper_rows import TITLES
from mbr_esd_metric.report.tables import render_all


def configure(parser: argparse.ArgumentParser) -> None:
    """Which tables of which test sets, and the candidates."""
    parser.add_argument("--test-set", default="wmt24", metavar="T", help="its name (%(default)s)")
    parser.add_argument(
        "--lp",
        nargs="+",
        default=["en-de", "en-es", "ja-zh"],
        metavar="LP",
        help="language pairs (the paper's: en-de en-es ja-zh)",
    )
    add_reading_arguments(parser)
    parser.add_argument(
        "--candidates",
        type=Path,
        metavar="FOLDER",
        help="folder of stored candidates; without it, only the tables that need none",
    )
    parser.add_argument(
        "--table",
        nargs="+",
        choices=list(TITLES),
        default=list(TITLES),
        metavar="TABLE",
        help=f"which tables: {', '.join(TITLES)} (default: all)",
    )
    parser.add_argument(
        "--invalid",
        choices=["drop", "empty"],
        default="drop",
        help="what an answer that cannot be read is: left out, or no error (%(default)s)",
    )
    add_format(parser)
    parser.epilog = (
        "FOLDER has one file for each model and language pair, such as llama.en-de.jsonl (.gz, .zst, or .gen.json),\n"
        "with the candidates of every rated translation, and llama-greedy.en-de.jsonl with one at temperature 0.\n"
        "Models are llama, gemma2, phi4, mistral and llama-distill-greedy. A row that cannot be computed says what is\n"
        "missing.\n\n"
        "examples:\n"
        "  mbr-esd reproduce paper --candidates FOLDER\n"
        "  mbr-esd reproduce paper --data DATA --test-set wmt23 --lp en-de --table synthetic"
    )


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    from mbr_esd_metric.report.paper import Study, legible

    if args.candidates is not None and not args.candidates.is_dir():
        raise InputError(f"{args.candidates}: no such folder; give the one that holds the candidates")
    study = Study(list(load_test_sets(args)), args.candidates, args.invalid)
    tables = [study.table(name) for name in args.table]
    if args.format == "text":
        tables = [block for table in tables for block in legible(table)]
    print(render_all(tables, args.format), end="")
    return 0
