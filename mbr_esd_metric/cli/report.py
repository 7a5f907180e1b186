"""`mbr-esd report`: one HTML file to look at error spans."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.data import add_data_arguments, add_raters, load_optional_test_set, test_set_folder
from mbr_esd_metric.cli.shared_options import add_decision_options, add_mqm_option, given_decision
from mbr_esd_metric.errors import OptionError, number_of, useless

if TYPE_CHECKING:
    from pathlib import Path

    from mbr_esd_metric.report.rating_table import RatingTable

#: Fields of `DecisionOptions` that say how candidates are read.
_READING = ("location", "format")


def configure(parser: argparse.ArgumentParser) -> None:
    """Inputs, and where the page goes."""
    add_inputs(parser)
    add_shown(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.html", help="the page; one file, loads nothing")
    parser.add_argument("--title", help="heading of the page (default: the names of the inputs)")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd report out.json -o report.html                        what comet-score --to_json wrote\n"
        "  mbr-esd report MBR=decisions.jsonl candidates.jsonl xcomet.json -o report.html\n"
        "  mbr-esd report --data DATA --test-set wmt24 --lp en-de -o report.html"
    )


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """What `report` and `show` read."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="[NAME=]FILE",
        help="output of comet-score --to_json, decisions, candidates, or human MQM (TSV); NAME is shown for it",
    )
    add_decision_options(parser, _READING)
    add_data_arguments(parser, optional=True)
    add_raters(parser)


def add_shown(parser: argparse.ArgumentParser) -> None:
    """The arguments of `report` and `show` that say what to show."""
    parser.add_argument(
        "--metric", nargs="+", default=[], metavar="NAME", help="stored metrics (default: all that have error spans)"
    )
    add_mqm_option(parser)


def input_paths(args: argparse.Namespace) -> list[Path | None]:
    """The named files and the folder of the test set."""
    from mbr_esd_metric.report.inputs import Source

    return [*(Source.parse(text).path for text in args.inputs), test_set_folder(args)]


def read_inputs(args: argparse.Namespace, metrics: Sequence[str] | None) -> RatingTable:
    """The inputs side by side. Notes on standard error say what is in one input only, and what was repaired."""
    from mbr_esd_metric.report.inputs import Source, read_sheet

    if not args.inputs and not args.test_set and not args.lp:
        raise OptionError("there is nothing to show; name a file, or a test set with --test-set and --lp")
    test_set = load_optional_test_set(args)
    sheet = read_sheet(
        [Source.parse(text) for text in args.inputs],
        test_set,
        ratings=args.raters,
        metrics=metrics,
        given=given_decision(args, _READING),
        decide=True,
    )
    for name, value in (("--location", args.location), ("--format", args.format)):
        if value and not sheet.candidates:
            raise useless(f"{name} {value}", "inputs without candidates")
    alone = (f"{count} of the segments of {name} are in no other input" for name, count in sheet.unmatched)
    for note in (*sheet.notes, *alone):
        print(f"note: {note}", file=sys.stderr)
    return sheet


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from mbr_esd_metric.files.paths import check_output
    from mbr_esd_metric.files.streams import write_whole
    from mbr_esd_metric.report.viewer import render_page

    check_output(args.output, input_paths(args))
    sheet = read_inputs(args, args.metric)
    page = render_page(sheet, args.title or _title(args, sheet), args.mqm)
    write_whole(args.output, page)
    rows, columns = number_of(len(sheet.rows), "segment"), number_of(len(sheet.columns), "column")
    print(f"{args.output}: {rows}, {columns}, {len(page) / 1e6:.1f} MB")
    return 0


def _title(args: argparse.Namespace, sheet: RatingTable) -> str:
    names = ", ".join(column.name for column in sheet.columns)
    return f"{args.test_set} {args.lp[0]}: {names}" if args.test_set else f"Error spans: {names}"
