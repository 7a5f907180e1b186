"""Options of several verbs: a model, dry runs, measures, metrics, tables and plots; and verbs below a verb."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli import functions_of
from mbr_esd_metric.cli.data import add_raters, add_test_set, test_set_folder
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.report.plots import check_plot
from mbr_esd_metric.report.tables import TABLE_FORMATS, Table, blocks, render_all

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard
    from mbr_esd_metric.metric.requests import Segment

#: The best one that any machine can run.
DEFAULT_MODEL = "mbr-esd-small"
#: Characters of a line of text; a table of several language pairs is cut between them where it is wider.
WIDTH = 130


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``--model``."""
    parser.add_argument("--model", help=f"model name with options (default: {DEFAULT_MODEL})")


def card_of(args: argparse.Namespace) -> ModelCard:
    """The card that `add_model` read."""
    from mbr_esd_metric.metric.cards import load_card

    return load_card(args.model or DEFAULT_MODEL)


def add_verbs(parser: argparse.ArgumentParser, verbs: Mapping[str, tuple[str, str]]) -> None:
    """Add verb -> (what `functions_of` takes, one line of help) below a verb; `run_verb` runs the one that is named."""
    below = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb, (name, text) in verbs.items():
        configure, run = functions_of(name)
        one = below.add_parser(verb, help=text, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        configure(one)
        one.set_defaults(run_verb=run, prog=one.prog)


def run_verb(args: argparse.Namespace) -> int:
    """Do what the verb below a verb does."""
    return int(args.run_verb(args))


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add ``--table``."""
    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text", help="form of the table (%(default)s)")


def add_measures(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the test set, which of its raters, ``--measures``, of which `default` are said to be the usual, and
    ``--table``."""
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


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Add ``--metric``, of names and files."""
    parser.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="[NAME=]METRIC",
        help="only these: stored metrics by full or base name, and files that comet-score or mbr-esd score wrote with "
        "--to_json (default: all stored)",
    )


def check_plot_of(args: argparse.Namespace, *inputs: str | Path) -> None:
    """Check ``--plot`` before any work; the test set's files are inputs, too."""
    if args.plot:
        check_plot(args.plot, [*inputs, test_set_folder(args)])


def print_tables(tables: Sequence[Table], form: str) -> None:
    """Print tables, as text and LaTeX one block a language pair where they are wide."""
    if form in ("text", "latex"):
        tables = [block for table in tables for block in blocks(table, WIDTH)]
    print(render_all(tables, form), end="")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``, whose value is "" where it is given alone."""
    parser.add_argument(
        "--dry-run",
        nargs="?",
        const="",
        metavar="N",
        help="say what would be sampled, and sample nothing; with N, sample N segments first, which are kept, and say "
        "how long the rest takes",
    )


def trial_of(args: argparse.Namespace) -> int | None:
    """Return how many segments a dry run samples first; None if it is no dry run."""
    if not args.dry_run:
        return None if args.dry_run is None else 0
    if not args.dry_run.isdecimal() or int(args.dry_run) < 2:
        raise OptionError(
            f"--dry-run {args.dry_run}: give a number of segments from 2; the first waits until the model is loaded"
        )
    return int(args.dry_run)


def print_estimates(card: ModelCard, segments: Sequence[Segment], trial: int) -> int:
    """Print what a run would sample. Returns the exit code."""
    from mbr_esd_metric.metric.estimate import estimate

    print("\n".join(estimate(card, segments, trial).lines()))
    return 0
