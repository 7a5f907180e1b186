"""What several verbs have: a model, a decision (made from the fields of `DecisionOptions`), tables, dry runs, verbs of
their own."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mbr_esd_metric.cli import functions_of
from mbr_esd_metric.decoding.options import FIELDS, option_help
from mbr_esd_metric.errors import OptionError, say
from mbr_esd_metric.generation.server.address import shown

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard
    from mbr_esd_metric.metric.estimate import Machine
    from mbr_esd_metric.metric.plan import Segment

#: The best one that any machine can run.
DEFAULT_MODEL = "mbr-esd-small"


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``--model``."""
    parser.add_argument("--model", help=f"model name with options (default: {DEFAULT_MODEL})")


def card_of(args: argparse.Namespace) -> ModelCard:
    """The card that `add_model` read."""
    from mbr_esd_metric.metric.cards import load_card, spelled_out

    name = args.model or DEFAULT_MODEL
    card = load_card(name)
    if card.others and not args.quiet:
        for one in spelled_out(name):
            base, _, options = one.partition("?")
            say(f"{base} takes {' '.join(map(shown, options.split('&'))) or 'the defaults'}")
    return card


def add_decision_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--NAME`` for each field of `DecisionOptions`. The value is None if an option is not given."""
    for name, option in FIELDS.items():
        meaning = option_help(name) + (f" (default {option.default})" if option.default is not None else "")
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=name.upper(), help=meaning)


def given_decision(args: argparse.Namespace) -> dict[str, str]:
    """Option -> value of those that `add_decision_options` read and that were given."""
    return {name: value for name in FIELDS if (value := getattr(args, name)) is not None}


def spelled_value(name: str, value: str) -> str:
    """A field of `DecisionOptions` and its value as they are written on the command line."""
    return f"--{name.replace('_', '-')} {value}"


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
    """`--table`, what a table is written as."""
    from mbr_esd_metric.report.tables import TABLE_FORMATS

    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text", help="form of the table (%(default)s)")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``, whose value is "" where it is given alone."""
    parser.add_argument(
        "--dry-run",
        nargs="?",
        const="",
        metavar="N|4xH100",
        help="say what would be sampled, and sample nothing; with N, sample N segments first, which are kept, and say "
        "how long the rest takes; or how long such GPUs take",
    )


def trial_of(args: argparse.Namespace) -> tuple[int, Machine | None] | None:
    """How many segments a dry run samples first, and the machine that it is about; None if this is no dry run."""
    from mbr_esd_metric.metric.estimate import Machine

    if args.dry_run is None:
        return None
    if args.dry_run.isdecimal():
        if int(args.dry_run) < 2:
            raise OptionError(f"--dry-run {args.dry_run}: give 2 or more; the first waits until the model is loaded")
        return int(args.dry_run), None
    return 0, Machine.parse(args.dry_run) if args.dry_run else None


def print_estimates(card: ModelCard, segments: Sequence[Segment], trial: tuple[int, Machine | None]) -> int:
    """Print what a run would sample; of several models joined by ``+`` for each of them. Returns the exit code."""
    from mbr_esd_metric.metric.estimate import estimates

    found = estimates(card, segments, *trial)
    for one in found:
        if len(found) > 1:
            print(f"{one.card.title}:")
        print("\n".join(one.lines()))
    return 0
