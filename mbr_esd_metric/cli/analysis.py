"""What the analyses share: their arguments, and how their tables are printed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.data import add_raters, add_test_set, test_set_folder
from mbr_esd_metric.cli.shared_options import add_table
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES

if TYPE_CHECKING:
    from pathlib import Path

    from mbr_esd_metric.report.tables import Table

#: Characters of a line of text; a table of several language pairs is cut between them where it is wider.
WIDTH = 130


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """--metric, of names and files."""
    parser.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="[NAME=]METRIC",
        help="only these: stored metrics by full or base name, and files that comet-score or mbr-esd score wrote with "
        "--to_json (default: all stored)",
    )


def add_measures(parser: argparse.ArgumentParser, default: str = " ".join(DEFAULT_MEASURES)) -> None:
    """The test set, which of its raters, how error spans are measured, and the form of the table."""
    add_test_set(parser)
    add_raters(parser)
    parser.add_argument(
        "--measures",
        nargs="+",
        metavar="NAME",
        help="of error spans; NAME-precision and NAME-recall are parts of one, NAME-parts is all three "
        f"(default: {default})",
    )
    add_table(parser)


def check_plot_of(args: argparse.Namespace, *inputs: str | Path) -> None:
    """Check ``--plot`` before any work; the test set's files are inputs, too."""
    from mbr_esd_metric.report.plots import check_plot

    if args.plot:
        check_plot(args.plot, [*inputs, test_set_folder(args)])


def print_tables(tables: Sequence[Table], form: str) -> None:
    """Print tables, as text and LaTeX one block a language pair where they are wide."""
    from mbr_esd_metric.report.tables import blocks, render_all

    if form in ("text", "latex"):
        tables = [block for table in tables for block in blocks(table, WIDTH)]
    print(render_all(tables, form), end="")
