"""The arguments that name a WMT test set, the same for all verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import OptionError, unknown, useless

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt import TestSet
    from mbr_esd_metric.adapters.wmt.system_choice import SystemChoice
    from mbr_esd_metric.adapters.wmt.target import Target


#: Options without effect if no test set is named.
FOR_TEST_SETS = (
    "--data",
    "--reference",
    "--gold",
    "--lenient",
    "--strict",
    "--systems",
    "--exclude",
    "--outliers",
    "--human",
    "--raters",
    "--metric",
)


def add_data_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add --data, --test-set, --direction and the options for reading them.

    Args:
        parser: gets them.
        optional: whether the verb works without a test set; then it takes one direction.
    """
    group = parser.add_argument_group("a test set in the layout of mt-metrics-eval")
    group.add_argument("--test-set", required=not optional, metavar="T", help="such as wmt24")
    if optional:
        group.add_argument("--direction", nargs=1, default=[], metavar="D", help="such as en-de")
    else:
        group.add_argument("--direction", required=True, nargs="+", metavar="D", help="one or several, such as en-de")
    add_reading_arguments(group)


def add_reading_arguments(group: argparse._ActionsContainer) -> None:
    """Add --data and the options for reading a test set."""
    group.add_argument(
        "--data", metavar="DATA", help="folder of the test sets (default: ~/.mt-metrics-eval/mt-metrics-eval-v2)"
    )
    group.add_argument("--reference", metavar="NAME", help="standard reference, where it is not WMT's")
    group.add_argument("--gold", metavar="NAME", help="name of the gold scores (default: mqm)")
    group.add_argument(
        "--lenient",
        action="store_true",
        help="where a metric lacks a system, count 0 as mt-metrics-eval does, instead of stopping",
    )
    group.add_argument(
        "--strict",
        action="store_true",
        help="stop at an error span that ends past its translation, instead of cutting it there",
    )
    group.add_argument("--systems", nargs="+", default=[], metavar="NAME", help="only these systems")
    group.add_argument("--exclude", nargs="+", default=[], metavar="NAME", help="leave these systems out")
    group.add_argument("--outliers", action="store_true", help="evaluate the systems that WMT left out as outliers")
    group.add_argument(
        "--human",
        choices=["others", "none", "all"],
        help="references as systems: all but the standard one, none as mtme does, or all (others)",
    )


def add_import_arguments(parser: argparse.ArgumentParser, test_set: str, replaces: str) -> None:
    """Where an import writes to: --test-set, --data (once -o) and --overwrite.

    Args:
        parser: gets them.
        test_set: help of --test-set.
        replaces: what --overwrite replaces.
    """
    parser.add_argument("--test-set", required=True, metavar="T", help=test_set)
    parser.add_argument("--data", "-o", "--output", required=True, metavar="DATA", help="folder of the test sets")
    parser.add_argument("--overwrite", action="store_true", help=f"replace {replaces}")


def add_name_arguments(parser: argparse.ArgumentParser) -> None:
    """Names of imported systems: --reference and --rename."""
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME",
        help="a system that is a reference; repeatable (default: ref, refA, refB, ...)",
    )
    parser.add_argument(
        "--rename", action="append", default=[], metavar="OLD=NEW", help="change a system's name; repeatable"
    )


def import_target(args: argparse.Namespace, direction: str) -> Target:
    """Where an import writes to, by the options that its verb has.

    Raises:
        OptionError: a ``--rename`` that is not OLD=NEW.
    """
    from mbr_esd_metric.adapters.wmt.target import Target

    rename = {}
    for pair in getattr(args, "rename", ()):
        old, equals, new = pair.partition("=")
        if not equals or not old or not new:
            raise OptionError(f"--rename {pair}: write OLD=NEW")
        rename[old] = new
    references, weights = getattr(args, "reference", ()), getattr(args, "mqm", "google")
    return Target(args.data, args.test_set, direction, references, rename, weights, args.overwrite)


def add_raters(parser: argparse.ArgumentParser) -> None:
    """--raters, of the test set."""
    parser.add_argument(
        "--raters", nargs="+", default=[], metavar="NAME", help="sets of human ratings (default: merged, or all)"
    )


def load_test_sets(
    args: argparse.Namespace, *, blind: bool = False, choice: SystemChoice | None = None
) -> Iterator[TestSet]:
    """The test set in each requested direction, one after the other.

    Args:
        args: of `add_data_arguments`.
        blind: whether gold may be missing.
        choice: which systems are evaluated, where the arguments do not say it.

    Raises:
        OptionError: a direction is named twice; it would count twice in every average.
    """
    from mbr_esd_metric.adapters.wmt import load_test_set
    from mbr_esd_metric.adapters.wmt.system_choice import SystemChoice

    for direction in args.direction:
        if args.direction.count(direction) > 1:
            raise OptionError(f"--direction {' '.join(args.direction)}: {direction} is there twice; name it once")
    _check_systems(args)
    if choice is None:
        choice = SystemChoice(tuple(args.systems), tuple(args.exclude), args.outliers, args.human or "others")
    for direction in args.direction:
        yield load_test_set(
            args.data,
            args.test_set,
            direction,
            reference=args.reference,
            gold=args.gold,
            strict=args.strict,
            lenient=args.lenient,
            choice=choice,
            blind=blind,
        )


def every_system(args: argparse.Namespace) -> SystemChoice:
    """What is scored or submitted, whatever is evaluated later: all systems, also references and outliers, but for
    those that the user leaves out.
    """
    from mbr_esd_metric.adapters.wmt.system_choice import SystemChoice

    return SystemChoice(tuple(args.systems), tuple(args.exclude), True, args.human or "all")


def _check_systems(args: argparse.Namespace) -> None:
    """Raise `OptionError` for a system that is in none of the directions."""
    from mbr_esd_metric.adapters.wmt.layout import Layout, default_data

    named = [*args.systems, *args.exclude]
    if not named:
        return
    data = Path(args.data).expanduser() if args.data else default_data()
    there = {system for d in args.direction for system in Layout(data, args.test_set, d).outputs()}
    for system in named:
        if there and system not in there:
            raise unknown(f"system of {args.test_set} {' '.join(args.direction)}", system, there)


def test_set_folder(args: argparse.Namespace) -> Path | None:
    """The folder whose files the verb reads; None if no test set is named."""
    from mbr_esd_metric.adapters.wmt.layout import default_data

    data = Path(args.data).expanduser() if args.data else default_data()
    return data / args.test_set if args.test_set else None


def given_of(args: argparse.Namespace, *options: str) -> str | None:
    """The first of these options that was given, or None."""
    return next((o for o in options if getattr(args, o.removeprefix("--").replace("-", "_"), None)), None)


def load_optional_test_set(args: argparse.Namespace) -> TestSet | None:
    """The test set of a verb that works without one; None if none is named.

    Raises:
        OptionError: --test-set or --direction without the other, or an option for a test set if none is named.
    """
    if bool(args.test_set) != bool(args.direction):
        raise OptionError("--test-set and --direction belong together; give both, or neither")
    if not args.test_set and (option := given_of(args, *FOR_TEST_SETS)):
        raise useless(option, "files alone, without --test-set and --direction")
    return next(load_test_sets(args), None)
