"""What several verbs have: a model, a decision (made from the fields of `DecisionOptions`), MQM weights, dry runs,
verbs of their own."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mbr_esd_metric.core.mqm import WEIGHTS
from mbr_esd_metric.decoding.options import FIELDS, DecisionOptions, option_help
from mbr_esd_metric.errors import OptionError, say, useless
from mbr_esd_metric.generation.server.address import shown

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard
    from mbr_esd_metric.metric.plan import Segment

#: The best one that any machine can run.
DEFAULT_MODEL = "mbr-esd-small"


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``--model``, and short forms of two of its options."""
    parser.add_argument("--model", help=f"model name with options (default: {DEFAULT_MODEL})")
    parser.add_argument("--engine", help="short for ?engine=...; with --model")
    parser.add_argument("--server", help="short for ?server=URL; with --model")


def card_of(args: argparse.Namespace) -> ModelCard:
    """The card that `add_model` read.

    Raises:
        OptionError: an unknown name, option or value; or an engine or a server, and no model.
    """
    from mbr_esd_metric.metric.card import with_options
    from mbr_esd_metric.metric.cards import load_card, spelled_out

    given = _short_forms(args)
    if given and args.model is None:
        raise OptionError(
            f"--{next(iter(given))} needs --model: the default, {DEFAULT_MODEL}, has one engine and no server; "
            "`mbr-esd models` lists the others"
        )
    name = args.model or DEFAULT_MODEL
    card = with_options(load_card(name), given)
    if card.others and not getattr(args, "quiet", False):
        for one in spelled_out(name):
            base, _, options = one.partition("?")
            say(f"{base} takes {' '.join(map(shown, options.split('&'))) or 'the defaults'}")
    return card


def model_of(args: argparse.Namespace) -> str:
    """The name of the model that `add_model` read, with the short forms spelled out."""
    from mbr_esd_metric.metric.cards import with_named

    return with_named(args.model or DEFAULT_MODEL, _short_forms(args))


def _short_forms(args: argparse.Namespace) -> dict[str, str]:
    return {name: value for name in ("engine", "server") if (value := getattr(args, name)) is not None}


def add_decision_options(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Add ``--NAME`` for each of these fields of `DecisionOptions`. The value is None if an option is not given."""
    for name in names:
        default = FIELDS[name].default
        meaning = option_help(name) + (f" (default {default})" if default is not None else "")
        parser.add_argument(spelled(name), metavar=name.upper(), help=meaning)


def decision_options(args: argparse.Namespace, names: Sequence[str]) -> DecisionOptions:
    """The options that `add_decision_options` read.

    Raises:
        OptionError: an unknown name, or an option that has no effect together with the others.
    """
    return DecisionOptions().changed(given_decision(args, names), spelled_value)


def given_decision(args: argparse.Namespace, names: Sequence[str]) -> dict[str, str]:
    """Option -> value of those that `add_decision_options` read and that were given."""
    read = {name: getattr(args, spelled(name)[2:].replace("-", "_")) for name in names}
    return {name: value for name, value in read.items() if value is not None}


def spelled_value(name: str, value: str) -> str:
    """A field of `DecisionOptions` and its value as they are written on the command line."""
    return f"{spelled(name)} {value}"


def spelled(name: str) -> str:
    """The option for a field of `DecisionOptions`."""
    return f"--{name.replace('_', '-')}"


def add_mqm_option(
    parser: argparse._ActionsContainer, meaning: str = "of MQM scores (%(default)s)", default: str | None = "paper"
) -> None:
    """Add ``--mqm``, the weights of MQM scores."""
    parser.add_argument("--mqm", choices=list(WEIGHTS), default=default, help=f"weights {meaning}")


def add_verbs(parser: argparse.ArgumentParser, verbs: Mapping[str, tuple[str, str]]) -> None:
    """The verbs of a verb; `run_verb` runs the one that is named.

    Args:
        parser: of the verb.
        verbs: verb -> (module in this package, one line of help); each has ``configure`` and ``run``, as in `main`.
    """
    found = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb, (name, text) in verbs.items():
        module = importlib.import_module(f"mbr_esd_metric.cli.{name}")
        one = found.add_parser(verb, help=text, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        module.configure(one)
        one.set_defaults(run_verb=module.run, prog=one.prog)


def run_verb(args: argparse.Namespace) -> int:
    """Do what the verb below a verb does."""
    return int(args.run_verb(args))


def add_table(parser: argparse.ArgumentParser) -> None:
    """`--table`, what a table is written as."""
    from mbr_esd_metric.report.tables import TABLE_FORMATS

    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text", help="form of the table (%(default)s)")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``, ``--try`` and ``--machine``."""
    parser.add_argument("--dry-run", action="store_true", help="say what would be sampled, and sample nothing")
    parser.add_argument(
        "--try",
        dest="trial",
        type=int,
        metavar="N",
        help="with --dry-run: sample N segments first, which are kept, and say how long the rest takes",
    )
    parser.add_argument("--machine", metavar="4xH100", help="with --dry-run: how long such GPUs take")


def trial_of(args: argparse.Namespace) -> int | None:
    """Segments to sample on trial in a dry run, mostly 0; None if this is no dry run.

    Raises:
        OptionError: ``--try`` without ``--dry-run``, or of fewer than two segments.
    """
    if args.machine is not None and not args.dry_run:
        raise useless(f"--machine {args.machine}", "a run that is no --dry-run")
    if args.trial is not None and not args.dry_run:
        raise useless(f"--try {args.trial}", "a run that is no --dry-run")
    if args.trial is not None and args.trial < 2:
        raise OptionError(f"--try {args.trial}: give 2 or more; the first one waits until the model is loaded")
    return (args.trial or 0) if args.dry_run else None


def print_estimates(card: ModelCard, segments: Sequence[Segment], trial: int, machine: str | None = None) -> int:
    """Print what a run would sample; of several models joined by ``+`` for each of them. Returns the exit code."""
    from mbr_esd_metric.metric.estimate import Machine, estimates

    found = estimates(card, segments, trial, None if machine is None else Machine.parse(machine))
    for one in found:
        if len(found) > 1:
            print(f"{one.name}:")
        print("\n".join(one.lines()))
    return 0
