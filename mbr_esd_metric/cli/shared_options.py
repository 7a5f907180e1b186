"""Options of several verbs: inputs, test sets, measures, metrics, tables, plots and dry runs."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import InputError, OptionError, no_effect_error, unknown
from mbr_esd_metric.files.paths import plain_name

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt import TestSet
    from mbr_esd_metric.adapters.wmt.layout import SystemChoice
    from mbr_esd_metric.core.segment import Segment
    from mbr_esd_metric.metric.card import ModelCard
    from mbr_esd_metric.report.inputs import JudgedTable
    from mbr_esd_metric.report.tables import Table

#: The best model that runs on any machine.
DEFAULT_MODEL = "mbr-esd-small"


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the table format."""
    from mbr_esd_metric.report.tables import TABLE_FORMATS

    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text", help="table format (%(default)s)")


def add_measures(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the test set, ``--raters``, ``--measures``, of which `default` are said to be the usual, and ``--table``."""
    add_test_set(parser)
    parser.add_argument(
        "--raters",
        nargs="+",
        default=(),
        metavar="NAME",
        help="sets of human ratings (default: merged ratings, or else all)",
    )
    parser.add_argument(
        "--measures",
        nargs="+",
        metavar="NAME",
        help="span measures; NAME-precision and NAME-recall are the parts of a measure, NAME-parts all three "
        f"(default: {default})",
    )
    add_table(parser)


def check_plot_of(args: argparse.Namespace, *inputs: str | Path) -> None:
    """Check ``--plot`` early; the test set's files count as inputs."""
    if args.plot:
        from mbr_esd_metric.report.plots import check_plot

        check_plot(args.plot, [*inputs, test_set_folder(args)])


def print_tables(tables: Sequence[Table], form: str) -> None:
    """Print tables; text and LaTeX tables wider than 130 characters are split by language pair."""
    from mbr_esd_metric.report.tables import blocks, render_all

    if form in ("text", "latex"):
        tables = [block for table in tables for block in blocks(table, width=130)]
    print(render_all(tables, form), end="")


def add_test_set(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add --test-set and --lp; verbs that also work without a test set accept one language pair."""
    group = parser.add_argument_group("test set, in the layout of mt-metrics-eval")
    group.add_argument(
        "--test-set",
        required=not optional,
        metavar="T",
        help="test set folder, such as data/wmt24; a bare name is looked up in ~/.mt-metrics-eval/mt-metrics-eval-v2",
    )
    group.add_argument(
        "--lp",
        required=not optional,
        nargs=1 if optional else "+",
        default=[],
        metavar="LP",
        help="language pair, such as en-de",
    )


def add_systems(parser: argparse.ArgumentParser) -> None:
    """Add the choice of systems and of the standard reference."""
    parser.add_argument("--reference", metavar="NAME", help="standard reference (default: WMT's)")
    parser.add_argument("--systems", nargs="+", default=[], metavar="NAME", help="evaluate only these systems")
    parser.add_argument("--exclude", nargs="+", default=[], metavar="NAME", help="exclude these systems")


def folder_and_name(test_set: str) -> tuple[Path, str]:
    """The parent folder and the name of a test set; a bare name is in the folder of mt-metrics-eval's download."""
    from mbr_esd_metric.adapters.wmt.layout import default_data

    path = Path(test_set).expanduser()
    return (path.parent, path.name) if "/" in test_set or path.is_absolute() else (default_data(), test_set)


def load_test_sets(
    args: argparse.Namespace,
    *,
    blind: bool = False,
    choice: SystemChoice | None = None,
    gold: str | None = None,
    files: Mapping[str, Path] = {},
) -> Iterator[TestSet]:
    """The test set of `add_test_set` in each language pair, one after the other.

    Args:
        blind: whether gold may be missing.
        choice: the systems to evaluate, if the arguments of `add_systems` do not choose them.
        gold: name of the gold scores, if not the default.
        files: metrics that are not in the folder, from `named_metrics`.
    """
    from mbr_esd_metric.adapters.wmt import load_test_set
    from mbr_esd_metric.adapters.wmt.layout import Layout, SystemChoice
    from mbr_esd_metric.adapters.wmt.metric_files import with_files

    if len({*args.lp}) < len(args.lp):  # a duplicate would count twice in averages
        raise OptionError(f"--lp {' '.join(args.lp)}: duplicate language pair")
    data, name = folder_and_name(args.test_set)
    only, exclude = getattr(args, "systems", ()), getattr(args, "exclude", ())
    systems = {one for lp in args.lp for one in Layout(data, name, lp).outputs()} if only or exclude else set()
    for system in (*only, *exclude):
        if systems and system not in systems:
            raise unknown(f"system of {name} {' '.join(args.lp)}", system, systems)
    choice = choice or SystemChoice(tuple(only), tuple(exclude))
    reference = getattr(args, "reference", None)
    for lp in args.lp:
        test_set = load_test_set(data, name, lp, reference=reference, gold=gold, choice=choice, blind=blind)
        yield with_files(test_set, files, args.metric) if files else test_set


def named_metrics(metrics: Sequence[str]) -> tuple[list[str], dict[str, Path]]:
    """The names of these metrics, and name -> file for metrics given as files."""
    from mbr_esd_metric.adapters.file_kinds import kind_of_input
    from mbr_esd_metric.adapters.wmt.metric_files import is_score_file
    from mbr_esd_metric.files.paths import NamedPath, tell_apart

    sources = [NamedPath.parse(text) for text in metrics]
    for source in sources:
        if (plain_name(source.path).endswith(".json") or is_score_file(source.path)) and not source.path.exists():
            raise InputError(f"--metric {source.path}: no such file")
    places = [at for at, source in enumerate(sources) if source.path.is_file() and source.path.suffix]
    names, paths = list(metrics), {}
    for at, source in zip(places, tell_apart([sources[at] for at in places]), strict=True):
        if not is_score_file(source.path) and kind_of_input(source.path) not in ("comet", "decisions"):
            raise InputError(
                f"{source.path}: a metric is a name, or a file that comet-score --to_json, mbr-esd score --to_json or "
                "mbr-esd decide wrote, or WMT's NAME-REF.seg.score"
            )
        names[at] = source.label
        paths[source.label] = source.path
    if (name := Counter(names).most_common(1)) and name[0][1] > 1:
        same = ", ".join(text for text, one in zip(metrics, names, strict=True) if one == name[0][0])
        raise OptionError(f"--metric {same}: two metrics are named {name[0][0]}; rename one with NAME=FILE")
    return names, paths


def test_set_folder(args: argparse.Namespace) -> Path | None:
    """The folder of the test set; None without --test-set."""
    return Path(*folder_and_name(args.test_set)) if args.test_set else None


def used_option(args: argparse.Namespace, *options: str) -> str | None:
    """The first of these options that is set, or None."""
    return next((o for o in options if getattr(args, o.removeprefix("--").replace("-", "_"), None)), None)


def load_optional_test_set(args: argparse.Namespace) -> TestSet | None:
    """The test set, for verbs that also work without one; None without --test-set."""
    if args.test_set and not args.lp:
        raise OptionError(f"--test-set {args.test_set}: specify its language pair with --lp, for instance --lp en-de")
    return next(load_test_sets(args), None) if args.test_set else None


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the inputs of `report`, `show` and `calibrate`."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="[NAME=]FILE",
        help="output of comet-score --to_json, decisions, candidates, or human MQM (TSV); NAME is its label",
    )
    add_test_set(parser, optional=True)
    parser.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="NAME",
        help="stored metrics and sets of human ratings (default: all metrics with error spans; merged ratings, or "
        "else all)",
    )


def input_paths(args: argparse.Namespace) -> list[Path | None]:
    """The input files and the folder of the test set."""
    from mbr_esd_metric.files.paths import NamedPath

    return [*(NamedPath.parse(text).path for text in args.inputs), test_set_folder(args)]


def read_inputs(args: argparse.Namespace) -> JudgedTable:
    """The inputs joined into one table. Notes on standard error report unmatched segments and repairs."""
    from mbr_esd_metric.files.paths import NamedPath
    from mbr_esd_metric.report.inputs import read_table

    if not args.inputs and not args.test_set:
        raise OptionError("no input; specify a file, or a test set with --test-set and --lp")
    if not args.test_set and (option := used_option(args, "--lp", "--metric")):
        raise no_effect_error(option, "files alone, without --test-set")
    sources = [NamedPath.parse(text) for text in args.inputs]
    table = read_table(sources, load_optional_test_set(args), args.metric)
    for note in table.notes:
        print(f"note: {note}", file=sys.stderr)
    return table


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``; its value is 0 without an argument."""
    parser.add_argument(
        "--dry-run",
        type=int,
        nargs="?",
        const=0,
        metavar="N",
        help="print what would be sampled, without sampling; with N, sample and keep N segments, and estimate the "
        "time of the rest",
    )


def print_estimates(card: ModelCard, segments: Sequence[Segment], trial: int) -> int:
    """Print what a run would sample, after sampling `trial` of its segments. Returns the exit status."""
    from mbr_esd_metric.metric.estimate import estimate

    if trial < 0 or trial == 1:
        raise OptionError(f"--dry-run {trial}: must be 2 or more, because the first segment includes loading the model")
    for name, text in estimate(card, segments, trial).items():
        print(f"{name:<21}{text}")
    return 0
