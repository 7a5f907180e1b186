"""`mbr-esd show` and `mbr-esd report`: segments with their error spans, in the terminal and as one HTML file."""

from __future__ import annotations

import argparse
import sys

from mbr_esd_metric.cli.shared_options import add_inputs, input_paths, read_inputs
from mbr_esd_metric.errors import InputError, OptionError, number_of, printable, unknown
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.files.streams import write_whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Inputs as for `report`, and which segments."""
    add_inputs(parser)
    parser.add_argument("--id", action="append", default=[], metavar="ID", help="only segments of this name")
    parser.add_argument("--system", metavar="NAME", help="only this system")
    parser.add_argument("--worst", metavar="COLUMN", help="lowest score of this metric or rater first")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="at most N segments")
    parser.epilog = (
        "On a terminal spans are coloured; NO_COLOR=1 and FORCE_COLOR=1 in the environment decide it.\n\n"
        "examples:\n  mbr-esd show out.json --id 12\n  mbr-esd show out.json --worst out -n 5"
    )


def run(args: argparse.Namespace) -> int:
    """Print the requested segments."""
    from mbr_esd_metric.report.terminal import show, wants_color

    if args.limit is not None and args.limit < 1:
        raise OptionError(f"-n is a number from 1, not {args.limit}")
    table = read_inputs(args)
    rows = list(range(len(table.rows)))
    systems = {text.system for text in table.rows}
    if args.system is not None:
        if args.system not in systems:
            raise unknown("system", args.system, systems)
        rows = [row for row in rows if table.rows[row].system == args.system]
    if args.id:
        rows = [row for row in rows if table.rows[row].id in args.id]
        if not rows:
            first, last = table.rows[0].id, table.rows[-1].id
            raise InputError(f"no segment is named {' or '.join(args.id)}; the first is {first}, the last {last}")
    if args.worst is not None:
        columns = {column.name: column for column in table.columns}
        if args.worst not in columns:
            raise unknown("column", args.worst, columns)
        ratings = columns[args.worst].ratings
        scores = [(rating.score, row) for row in rows if (rating := ratings[row]) is not None]
        rows = [row for _, row in sorted((score, row) for score, row in scores if score is not None)]
    color = wants_color(sys.stdout)
    print("\n".join(show(table, row, color=color) for row in rows[: args.limit]), end="")
    return 0


def configure_report(parser: argparse.ArgumentParser) -> None:
    """Inputs, and where the page goes."""
    add_inputs(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.html", help="the page; one file, loads nothing")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd report out.json -o report.html                        what comet-score --to_json wrote\n"
        "  mbr-esd report MBR=decisions.jsonl candidates.jsonl xcomet.json -o report.html\n"
        "  mbr-esd report --test-set data/wmt24 --lp en-de -o report.html"
    )


def run_report(args: argparse.Namespace) -> int:
    """Write the page; its title names the test set and the columns."""
    from mbr_esd_metric.report.viewer import render_page

    check_output(args.output, input_paths(args))
    table = read_inputs(args)
    names = ", ".join(column.name for column in table.columns)
    of = f"{args.test_set.rstrip('/').rpartition('/')[2]} {args.lp[0]}" if args.test_set else "Error spans"
    page = render_page(table, f"{of}: {names}")
    write_whole(args.output, page)
    rows, columns = number_of(len(table.rows), "segment"), number_of(len(table.columns), "column")
    print(f"{printable(args.output)}: {rows}, {columns}, {len(page) / 1e6:.1f} MB")
    return 0
