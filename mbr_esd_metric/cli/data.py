"""The arguments that name a WMT test set, the same for all verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import InputError, OptionError, unknown, useless

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt import TestSet
    from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice


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
    """Add --data, --test-set, --lp and the options for reading them.

    Args:
        parser: gets them.
        optional: whether the verb works without a test set; then it takes one language pair.
    """
    group = parser.add_argument_group("a test set in the layout of mt-metrics-eval")
    group.add_argument("--test-set", required=not optional, metavar="T", help="such as wmt24")
    if optional:
        group.add_argument("--lp", nargs=1, default=[], metavar="LP", help="language pair, such as en-de")
    else:
        group.add_argument("--lp", required=True, nargs="+", metavar="LP", help="language pairs, such as en-de")
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


def add_raters(parser: argparse.ArgumentParser) -> None:
    """--raters, of the test set."""
    parser.add_argument(
        "--raters", nargs="+", default=[], metavar="NAME", help="sets of human ratings (default: merged, or all)"
    )


def load_test_sets(
    args: argparse.Namespace, *, blind: bool = False, choice: SystemChoice | None = None
) -> Iterator[TestSet]:
    """The test set in each requested language pair, one after the other.

    Args:
        args: of `add_data_arguments`.
        blind: whether gold may be missing.
        choice: which systems are evaluated, where the arguments do not say it.

    Raises:
        OptionError: a language pair is named twice; it would count twice in every average.
    """
    from mbr_esd_metric.adapters.wmt import load_test_set
    from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice
    from mbr_esd_metric.adapters.wmt.metric_files import with_files

    for lp in args.lp:
        if args.lp.count(lp) > 1:
            raise OptionError(f"--lp {' '.join(args.lp)}: {lp} is there twice; name it once")
    _check_systems(args)
    if choice is None:
        choice = SystemChoice(tuple(args.systems), tuple(args.exclude), args.outliers, args.human or "others")
    files = _metric_files(args)
    for lp in args.lp:
        test_set = load_test_set(
            args.data,
            args.test_set,
            lp,
            reference=args.reference,
            gold=args.gold,
            strict=args.strict,
            lenient=args.lenient,
            choice=choice,
            blind=blind,
        )
        yield with_files(test_set, files) if files else test_set


def _metric_files(args: argparse.Namespace) -> dict[str, Path]:
    """Base name -> file of each ``--metric`` that is a file; ``args.metric`` has the names afterwards.

    Raises:
        InputError: a file that is not there, or of another kind.
    """
    from mbr_esd_metric.files.paths import plain_name
    from mbr_esd_metric.report.inputs import Source, kind_of_input, tell_apart

    named = getattr(args, "metric", None)
    if not isinstance(named, list):
        return {}
    before: dict[str, Path] | None = getattr(args, "metric_files", None)
    if before is not None:
        return before
    given = [Source.parse(text) for text in named]
    for source in given:
        if plain_name(source.path).endswith(".json") and not source.path.exists():
            raise InputError(f"--metric {source.path}: no such file")
    there = [source.path.is_file() and source.path.suffix != "" for source in given]
    files = iter(tell_apart([source for source, is_file in zip(given, there, strict=True) if is_file]))
    found: dict[str, Path] = {}
    for at, is_file in enumerate(there):
        if not is_file:
            continue
        source = next(files)
        if kind_of_input(source.path) not in ("comet", "decisions"):
            raise InputError(
                f"{source.path}: a metric is a name, or a file that comet-score --to_json, mbr-esd score --to_json or "
                "mbr-esd decide wrote"
            )
        named[at] = source.label
        found[source.label] = source.path
    args.metric_files = found
    return found


def every_system(args: argparse.Namespace) -> SystemChoice:
    """What is scored or submitted, whatever is evaluated later: all systems, also references and outliers, but for
    those that the user leaves out.
    """
    from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice

    return SystemChoice(tuple(args.systems), tuple(args.exclude), True, args.human or "all")


def _check_systems(args: argparse.Namespace) -> None:
    """Raise `OptionError` for a system that is in none of the language pairs."""
    from mbr_esd_metric.adapters.wmt.layout import Layout, default_data

    named = [*args.systems, *args.exclude]
    if not named:
        return
    data = Path(args.data).expanduser() if args.data else default_data()
    there = {system for d in args.lp for system in Layout(data, args.test_set, d).outputs()}
    for system in named:
        if there and system not in there:
            raise unknown(f"system of {args.test_set} {' '.join(args.lp)}", system, there)


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
        OptionError: --test-set or --lp without the other, or an option for a test set if none is named.
    """
    if bool(args.test_set) != bool(args.lp):
        raise OptionError("--test-set and --lp belong together; give both, or neither")
    if not args.test_set and (option := given_of(args, *FOR_TEST_SETS)):
        raise useless(option, "files alone, without --test-set and --lp")
    return next(load_test_sets(args), None)
