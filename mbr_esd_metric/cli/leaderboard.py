"""`mbr-esd leaderboard`: the metrics of a WMT test set by their agreement with human judgement, in several views."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.cli.analysis import add_measure_arguments, add_metrics, check_outputs, measuring_of, put_out
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import OptionError, unknown, useless
from mbr_esd_metric.files.streams import Progress

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.meta_info import Status
    from mbr_esd_metric.report.tables import Table

#: Statistics where none is named: alone, and of parts.
_STATISTICS = ("sys-accuracy", "sys-pearson", "seg-pearson-none", "seg-spearman-item", "seg-kendall-item")
_OF_PARTS = ("spa", "acc_eq")
#: Span measures of parts.
_MEASURES_OF_PARTS = ("f1-corpus", "softdice-corpus", "mpp-corpus")
#: Views of --tasks besides the years of the metrics task.
_SPANS, _ERROR_FREE = "spans", "error-free"
_RATERS = ("raters", "rater_aggregation", "measures")
_SPA = ("missing", "spa")
_TESTS = ("k", "seed")
#: View -> the options that have an effect in it, besides those of every view.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "board": (*_RATERS, *_SPA, *_TESTS, "bootstrap", "against", "plot"),
    "--statistics": _SPA,
    "--tasks": (*_SPA, *_TESTS),
    _SPANS: _RATERS,
    _ERROR_FREE: ("raters", "threshold"),
    "--by": (*_RATERS, *_SPA, "statistics"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """What to rank, in which view, and how to test."""
    add_measure_arguments(parser)
    add_metrics(parser)
    views = parser.add_argument_group("other views than SPA, acc_eq* and span measures with their significance")
    views.add_argument(
        "--statistics",
        nargs="*",
        metavar="NAME",
        help="of scores: spa, acc_eq, sys-accuracy, sys-KIND, seg-KIND-GROUP, doc-KIND-GROUP, where KIND is pearson, "
        f"spearman or kendall and GROUP none, item or system (default: {' '.join(_STATISTICS)})",
    )
    views.add_argument(
        "--tasks",
        nargs="?",
        const="",
        metavar="TASKS",
        help="the overall score of wmt23, wmt24 or wmt25 (default: that of the test set's name); spans: their "
        "numbers and agreement; error-free: which translations have no error (WMT26's task 3)",
    )
    views.add_argument("--by", choices=["domain", "document", "length"], help="a board of each part")
    views.add_argument(
        "--threshold",
        type=float,
        metavar="SCORE",
        help="with --tasks error-free, a metric's score of at least this says: without error (default: the best one)",
    )
    marks = parser.add_argument_group("marks (default: those of mt-metrics-eval, for wmt21 to wmt25)")
    marks.add_argument("--primary", nargs="+", default=[], metavar="NAME", help="no mark; others are contrastive (*)")
    marks.add_argument("--baselines", nargs="+", default=[], metavar="NAME", help="the organisers' own metrics (_)")
    tests = parser.add_argument_group("significance")
    tests.add_argument(
        "--against",
        default="",
        metavar="NAMES",
        help="rivals for daggers, separated by commas: metrics, or rules such as map,majority",
    )
    tests.add_argument("--k", type=int, metavar="N", help="draws of the tests; 0 tests nothing (default: 1000)")
    tests.add_argument("--seed", type=int, default=0, help="of the tests (%(default)s)")
    tests.add_argument(
        "--bootstrap",
        choices=["segment", "instance"],
        default="segment",
        help="of error spans draws segments, with all systems, or translations, as the paper (%(default)s)",
    )
    tests.add_argument(
        "--plot", metavar="OUT.png", help="a heat map of who beats whom by each statistic, to OUT.png and OUT.svg"
    )
    parser.set_defaults(default_of=parser.get_default)
    parser.epilog = (
        "examples:\n"
        "  mbr-esd leaderboard --data data --test-set wmt21.tedtalks --lp en-de\n"
        "  mbr-esd leaderboard --test-set wmt24 --lp en-de en-es ja-zh --against map,majority --table latex\n"
        "  mbr-esd leaderboard --test-set wmt23 --lp en-de he-en zh-en --statistics seg-kendall-item spa\n"
        "  mbr-esd leaderboard --test-set wmt23 --lp en-de he-en zh-en --tasks\n"
        "  mbr-esd leaderboard --test-set wmt24 --lp en-de --by length --measures f1-corpus"
    )


def run(args: argparse.Namespace) -> int:
    """Compute the view that is asked for, and print it."""
    from mbr_esd_metric.report.tables import with_status

    view, said = _view(args)
    for name in {name for options in _OPTIONS.values() for name in options} - set(_OPTIONS[view]):
        value = getattr(args, name)
        if value != args.default_of(name) and f"--{name}" != view:
            shown = " ".join(map(str, value)) if isinstance(value, list) else value
            raise useless(f"--{name.replace('_', '-')} {shown}", said)
    check_outputs(args)
    status_of = _status_of(args)
    boards = {"board": _board, "--statistics": _statistics, "--tasks": _overall, "--by": _parts}
    if view in boards:
        tables = boards[view](args, said)
    else:
        tables = [_of_task(args, view, test_set) for test_set in load_test_sets(args)]
    put_out(args, [with_status(table, status_of) for table in tables])
    return 0


def _status_of(args: argparse.Namespace) -> Callable[[str], Status | None]:
    """Whether a metric of a board is primary, contrastive or a baseline: as given, or in the test set's task.

    Raises:
        OptionError: a metric that is named is in no language pair.
    """
    from mbr_esd_metric.adapters.wmt.meta_info import metric_status
    from mbr_esd_metric.adapters.wmt.test_set import base_name

    given: dict[str, Status] = dict.fromkeys(args.primary, "primary")
    given |= dict.fromkeys(args.baselines, "baseline")
    if given:
        known = {base_name(metric)[0] for test_set in load_test_sets(args) for metric in test_set.metric_names()}
        for name in given:
            if name not in known:
                raise unknown("metric", name, known)

    def status_of(shown: str) -> Status | None:
        name = shown.removesuffix(" (src)").removesuffix(" (src+ref)")
        if given:
            return given.get(name, "contrastive" if args.primary else None)
        return metric_status(args.test_set, name)

    return status_of


def _view(args: argparse.Namespace) -> tuple[str, str]:
    """The key of `_OPTIONS`, and how messages call the view."""
    from mbr_esd_metric.metaeval.score_statistics import TASK_SETS

    if args.tasks is not None and args.by is not None:
        raise useless(f"--by {args.by}", f"--tasks {args.tasks}")
    if args.tasks is not None:
        if args.tasks in (_SPANS, _ERROR_FREE):
            return args.tasks, f"--tasks {args.tasks}"
        year = args.tasks or args.test_set.split(".")[0]
        if year not in TASK_SETS and not args.tasks:
            raise OptionError(
                f"--test-set {args.test_set} has no tasks of its own; choose --tasks {', '.join(TASK_SETS)}"
            )
        if year not in TASK_SETS:
            raise unknown("task", year, (*TASK_SETS, _SPANS, _ERROR_FREE))
        return "--tasks", f"--tasks {year}"
    if args.by is not None:
        return "--by", f"--by {args.by}"
    if args.statistics is not None:
        return "--statistics", f"--statistics {' '.join(args.statistics or _STATISTICS)}"
    return "board", "the board of all metrics, without --statistics, --tasks or --by"


def _board(args: argparse.Namespace, _said: str) -> list[Table]:
    from mbr_esd_metric.adapters.wmt.scored import missing_notes, stored_metrics
    from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, compute_leaderboard
    from mbr_esd_metric.report.leaderboard_table import leaderboard_table, win_panels
    from mbr_esd_metric.report.plots import plot_wins, save

    measuring = measuring_of(args)
    settings = LeaderboardSettings(
        draws=1000 if args.k is None else args.k,
        seed=args.seed,
        measures=measuring.measures,
        aggregation=measuring.aggregation,
        against=tuple(name.strip() for name in args.against.split(",") if name.strip()),
        missing=measuring.missing,
        exact=measuring.exact,
        bootstrap=args.bootstrap,
        order="name",
    )
    sets = []
    for test_set in load_test_sets(args):
        found = stored_metrics(test_set, args.metric, args.raters)
        sets.append(replace(found, notes=(*found.notes, *missing_notes(test_set, args.missing))))
    with Progress("testing") as bar:
        board = compute_leaderboard(args.test_set, sets, settings, bar.done)
    if args.plot:
        save(plot_wins(win_panels(board), settings.alpha), Path(args.plot))
    return [leaderboard_table(board, "column" if args.table in ("tsv", "json") else "notes")]


def _statistics(args: argparse.Namespace, said: str) -> list[Table]:
    from mbr_esd_metric.adapters.wmt.scored import missing_notes, scored
    from mbr_esd_metric.metaeval.score_statistics import evaluate, score_statistic
    from mbr_esd_metric.metaeval.spa import constant_notes, exact_notes
    from mbr_esd_metric.report.statistics import correlation_table

    exact = args.spa == "exact"
    names = args.statistics or _STATISTICS
    statistics = [score_statistic(name) for name in names]
    if "spa" not in names:
        _without_spa(args, said)
    test_sets = list(load_test_sets(args))
    sets = [scored(test_set, args.metric) for test_set in test_sets]
    notes: list[str] = exact_notes(exact)
    for test_set, one in zip(test_sets, sets, strict=True):
        notes += one.notes
        if "spa" in names:
            notes += missing_notes(test_set, args.missing)
    if "spa" in names:
        notes += constant_notes({one.lp: one.constant for one in sets}, exact)
    values = {
        (one.lp, str(statistic)): evaluate(statistic, [one], missing=args.missing, exact=exact)
        for one in sets
        for statistic in statistics
    }
    return [correlation_table(f"{args.test_set} {', '.join(args.lp)}", args.lp, statistics, values, notes)]


def _overall(args: argparse.Namespace, said: str) -> list[Table]:
    from mbr_esd_metric.adapters.wmt.scored import missing_notes, scored
    from mbr_esd_metric.metaeval.score_statistics import clusters, overall, testable, wmt_tasks
    from mbr_esd_metric.metaeval.spa import constant_notes, exact_notes
    from mbr_esd_metric.report.statistics import overall_table

    year = args.tasks or args.test_set.split(".")[0]
    exact = args.spa == "exact"
    test_sets = list(load_test_sets(args))
    sets = [scored(test_set, args.metric) for test_set in test_sets]
    tasks = wmt_tasks(year, sets)
    notes = [note for one in sets for note in one.notes]
    if any(task.statistic.kind == "spa" for task in tasks):
        notes += exact_notes(exact)
        for test_set in test_sets:
            notes += missing_notes(test_set, args.missing)
        notes += constant_notes({one.lp: one.constant for one in sets}, exact)
    else:
        _without_spa(args, said)
    found = overall(tasks, sets, args.missing, exact=exact)
    draws = args.k if args.k is not None else 1000 if testable(tasks) else 0
    ranks = None
    if draws and found.overall:
        ranks = clusters(tasks, sets, draws, args.seed, missing=args.missing, exact=exact)
    title = f"{args.test_set} {', '.join(args.lp)}, tasks of {year}"
    return [overall_table(title, found, ranks, notes)]


def _parts(args: argparse.Namespace, said: str) -> list[Table]:
    from mbr_esd_metric.report.leaderboard_views import breakdown_table

    # Where one of the two is named, the other has no default.
    statistics = args.statistics or (_OF_PARTS if args.measures is None and args.statistics is None else ())
    measuring = measuring_of(args, _MEASURES_OF_PARTS if args.statistics is None else ())
    if "spa" not in statistics:
        _without_spa(args, f"{said} without SPA")
    return [breakdown_table(test_set, args.by, statistics, measuring, args.metric) for test_set in load_test_sets(args)]


def _of_task(args: argparse.Namespace, task: str, test_set: Any) -> Table:
    from mbr_esd_metric.report.leaderboard_views import error_free_table, span_table

    if task == _SPANS:
        return span_table(test_set, measuring_of(args), args.metric)
    return error_free_table(test_set, args.metric, args.raters, args.threshold)


def _without_spa(args: argparse.Namespace, beside: str) -> None:
    """Raise `OptionError` for an option of SPA, where there is none."""
    for option in _SPA:
        if (value := getattr(args, option)) != args.default_of(option):
            raise useless(f"--{option} {value}", beside)
