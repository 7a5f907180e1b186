"""`mbr-esd show`: segments with their error spans, in the terminal."""

from __future__ import annotations

import argparse
import sys

from mbr_esd_metric.cli.report import add_inputs, add_shown, read_inputs
from mbr_esd_metric.errors import InputError, OptionError, unknown


def configure(parser: argparse.ArgumentParser) -> None:
    """Inputs as for `report`, and which segments."""
    add_inputs(parser)
    add_shown(parser)
    parser.add_argument("--id", action="append", default=[], metavar="ID", help="only segments of this name")
    parser.add_argument("--system", metavar="NAME", help="only this system")
    parser.add_argument("--worst", metavar="COLUMN", help="lowest score of this metric or rater first")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="at most N segments")
    parser.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set (default: %(default)s)",
    )
    parser.epilog = "examples:\n  mbr-esd show out.json --id 12\n  mbr-esd show out.json --worst out -n 5"


def run(args: argparse.Namespace) -> int:
    """Print the requested segments."""
    from mbr_esd_metric.report.terminal import show, wants_color

    if args.limit is not None and args.limit < 1:
        raise OptionError(f"-n is a number from 1, not {args.limit}")
    sheet = read_inputs(args, args.metric)
    rows = list(range(len(sheet.rows)))
    systems = {text.system for text in sheet.rows}
    if args.system is not None:
        if args.system not in systems:
            raise unknown("system", args.system, systems)
        rows = [row for row in rows if sheet.rows[row].system == args.system]
    if args.id:
        rows = [row for row in rows if sheet.rows[row].id in args.id]
        if not rows:
            last = sheet.rows[-1].id
            raise InputError(
                f"no segment is named {' or '.join(args.id)}; the first is {sheet.rows[0].id}, the last {last}"
            )
    if args.worst is not None:
        columns = {column.name: column for column in sheet.columns}
        if args.worst not in columns:
            raise unknown("column", args.worst, columns)
        ratings = columns[args.worst].ratings
        scores = [(found.score(args.mqm), row) for row in rows if (found := ratings[row]) is not None]
        rows = [row for _, row in sorted((score, row) for score, row in scores if score is not None)]
    color = args.color == "always" or (args.color == "auto" and wants_color(sys.stdout))
    print("\n".join(show(sheet, row, color=color, weights=args.mqm) for row in rows[: args.limit]), end="")
    return 0
