"""`mbr-esd leaderboard`: the metrics of a WMT test set by their agreement with human judgement, in several views."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.shared_options import (
    add_measures,
    add_metrics,
    add_systems,
    load_test_sets,
    named_metrics,
    print_tables,
)
from mbr_esd_metric.errors import OptionError, no_effect_error, unknown
from mbr_esd_metric.files.streams import progress_bar
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, compute_leaderboard
from mbr_esd_metric.metaeval.score_statistics import (
    TASK_SETS,
    clusters,
    evaluate,
    overall,
    score_statistic,
    testable,
    wmt_tasks,
)
from mbr_esd_metric.metaeval.spa import constant_notes, exact_notes
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.report.tables import Table, with_status

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.layout import Status
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.report.evaluations import EvaluationSettings

#: Statistics where none is named: alone, and of parts.
_STATISTICS = ("sys-accuracy", "sys-pearson", "seg-pearson-none", "seg-spearman-item", "seg-kendall-item")
_OF_PARTS = ("spa", "acc_eq")
#: Span measures of parts.
_MEASURES_OF_PARTS = ("f1-corpus", "softdice-corpus", "mpp-corpus")
#: Views besides those of one year.
_OVERALL, _SPANS, _ERROR_FREE = "overall", "spans", "error-free"
PARTS = ("domain", "document", "length")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the metrics to rank, the view, and the tests."""
    add_measures(parser, " ".join(DEFAULT_MEASURES))
    parser.add_argument(
        "--spa",
        choices=["toolkit", "exact"],
        default="toolkit",
        help="1000 permutations, which depend on the order of the systems, as mt-metrics-eval; or infinitely many, "
        "which do not (%(default)s)",
    )
    parser.add_argument("--gold", metavar="NAME", help="name of the gold scores (default: WMT's)")
    add_systems(parser)
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
        "--view",
        metavar="VIEW",
        help="overall: the overall score by the tasks of the test set's year; wmt23, wmt24, wmt25: of that year; "
        "spans: their numbers and agreement; error-free: which translations have no error (WMT26's task 3); domain, "
        "document, length: --statistics and --measures of each part",
    )
    tests = parser.add_argument_group("significance")
    tests.add_argument(
        "--against",
        default="",
        metavar="NAMES",
        help="baselines for daggers, separated by commas: metrics, or rules such as map,majority",
    )
    tests.add_argument("--k", type=int, metavar="N", help="draws of the tests; 0 tests nothing (default: 1000)")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd leaderboard --test-set data/wmt21.tedtalks --lp en-de\n"
        "  mbr-esd leaderboard --test-set wmt24 --lp en-de en-es ja-zh --against map,majority --table latex\n"
        "  mbr-esd leaderboard --test-set wmt23 --lp en-de he-en zh-en --statistics seg-kendall-item spa\n"
        "  mbr-esd leaderboard --test-set wmt23 --lp en-de he-en zh-en --view overall\n"
        "  mbr-esd leaderboard --test-set wmt24 --lp en-de --view length --measures f1-corpus"
    )


def run(args: argparse.Namespace) -> int:
    """Compute the view that is asked for, and print it."""
    from mbr_esd_metric.report.evaluations import error_free_table, span_table

    if args.view is not None and args.view not in PARTS and args.statistics is not None:
        raise no_effect_error("--statistics", f"--view {args.view}")
    names, files = named_metrics(args.metric)
    year = _year(args)
    test_sets = list(load_test_sets(args, gold=args.gold, files=files))
    if year:
        tables = [_overall(args, year, test_sets, names)]
    elif args.view == _SPANS:
        tables = [span_table(test_set, _measuring(args), names) for test_set in test_sets]
    elif args.view == _ERROR_FREE:
        tables = [error_free_table(test_set, names, args.raters) for test_set in test_sets]
    elif args.view in PARTS:
        tables = _parts(args, test_sets, names)
    elif args.statistics is not None:
        tables = [_statistics(args, test_sets, names)]
    else:
        tables = [_board(args, test_sets, names)]
    status_of = _status_of(test_sets[0].name)
    print_tables([_with_limits(with_status(table, status_of), test_sets) for table in tables], args.table)
    return 0


def _year(args: argparse.Namespace) -> str | None:
    """The year whose overall score is asked for; None for another view."""
    if args.view is None or args.view in (_SPANS, _ERROR_FREE, *PARTS):
        return None
    name = args.test_set.rstrip("/").rpartition("/")[2]
    year: str = name.split(".")[0] if args.view == _OVERALL else args.view
    if year not in TASK_SETS and args.view == _OVERALL:
        raise OptionError(f"--test-set {name} has no tasks of its own; choose --view {', '.join(TASK_SETS)}")
    if year not in TASK_SETS:
        raise unknown("view", year, (_OVERALL, *TASK_SETS, _SPANS, _ERROR_FREE, *PARTS))
    return year


def _status_of(test_set: str) -> Callable[[str], Status | None]:
    """Whether a metric of the table is primary, contrastive or a baseline in the test set's task."""
    from mbr_esd_metric.adapters.wmt.layout import metric_status

    return lambda shown: metric_status(test_set, shown.removesuffix(" (src)").removesuffix(" (src+ref)"))


def _with_limits(table: Table, test_sets: Sequence[TestSet]) -> Table:
    """The table with what the small model can decide, where it has a row."""
    from mbr_esd_metric.adapters.wmt.test_set import base_name
    from mbr_esd_metric.metaeval.leaderboard import signature_field
    from mbr_esd_metric.metric.cards import limits

    shown = {str(cell.value).partition(" (")[0] for row in table.rows for cell in row if isinstance(cell.value, str)}
    models = [
        test_set.added[name].model if name in test_set.added else signature_field(test_set.signature(name), "model")
        for test_set in test_sets
        for name in test_set.metric_names()
        if base_name(name)[0] in shown
    ]
    return replace(table, notes=(*table.notes, *limits([*models, *shown])))


def _measuring(args: argparse.Namespace, measures: Sequence[str] = DEFAULT_MEASURES) -> EvaluationSettings:
    """The evaluation of error spans and SPA; `measures` are those where none is named."""
    from mbr_esd_metric.report.evaluations import EvaluationSettings

    named = tuple(measures if args.measures is None else args.measures)
    return EvaluationSettings(tuple(args.raters), named, args.spa == "exact")


def _board(args: argparse.Namespace, test_sets: Sequence[TestSet], names: Sequence[str]) -> Table:
    from mbr_esd_metric.adapters.wmt.test_set import metric_set_of, missing_notes
    from mbr_esd_metric.report.leaderboard_table import leaderboard_table

    measuring = _measuring(args)
    settings = LeaderboardSettings(
        draws=1000 if args.k is None else args.k,
        measures=measuring.measures,
        against=tuple(name.strip() for name in args.against.split(",") if name.strip()),
        exact=measuring.exact,
        order="name",
    )
    sets = []
    for test_set in test_sets:
        metrics = metric_set_of(test_set, names, args.raters)
        sets.append(replace(metrics, notes=(*metrics.notes, *missing_notes(test_set))))
    with progress_bar("testing", bar_format="{l_bar}{bar}| {elapsed}, {remaining} left", delay=0.1) as bar:

        def advance(draws: int, total: int) -> None:
            bar.total = total
            bar.update(draws)

        board = compute_leaderboard(test_sets[0].name, sets, settings, advance)
    return leaderboard_table(board, "column" if args.table in ("tsv", "json") else "notes")


def _statistics(args: argparse.Namespace, test_sets: Sequence[TestSet], names: Sequence[str]) -> Table:
    from mbr_esd_metric.adapters.wmt.test_set import missing_notes, scored_set_of
    from mbr_esd_metric.report.leaderboard_table import correlation_table

    statistic_names = args.statistics or _STATISTICS
    exact = args.spa == "exact" and "spa" in statistic_names
    statistics = [score_statistic(name) for name in statistic_names]
    sets = [scored_set_of(test_set, names) for test_set in test_sets]
    notes: list[str] = exact_notes(exact)
    for test_set, one in zip(test_sets, sets, strict=True):
        notes += one.notes
        if "spa" in statistic_names:
            notes += missing_notes(test_set)
    if "spa" in statistic_names:
        notes += constant_notes({one.lp: one.constant for one in sets}, exact)
    values = {
        (one.lp, str(statistic)): evaluate(statistic, [one], exact=exact) for one in sets for statistic in statistics
    }
    return correlation_table(f"{test_sets[0].name} {', '.join(args.lp)}", args.lp, statistics, values, notes)


def _overall(args: argparse.Namespace, year: str, test_sets: Sequence[TestSet], names: Sequence[str]) -> Table:
    from mbr_esd_metric.adapters.wmt.test_set import missing_notes, scored_set_of
    from mbr_esd_metric.report.leaderboard_table import overall_table

    sets = [scored_set_of(test_set, names) for test_set in test_sets]
    tasks = wmt_tasks(year, sets)
    exact = args.spa == "exact"
    notes = [note for one in sets for note in one.notes]
    if any(task.statistic.kind == "spa" for task in tasks):
        notes += [*exact_notes(exact), *(note for test_set in test_sets for note in missing_notes(test_set))]
        notes += constant_notes({one.lp: one.constant for one in sets}, exact)
    scores = overall(tasks, sets, exact=exact)
    draws = args.k if args.k is not None else 1000 if testable(tasks) else 0
    ranks = clusters(tasks, sets, draws, 0, exact=exact) if draws and scores.overall else None
    title = f"{test_sets[0].name} {', '.join(args.lp)}, tasks of {year}"
    return overall_table(title, scores, ranks, notes)


def _parts(args: argparse.Namespace, test_sets: Sequence[TestSet], names: Sequence[str]) -> list[Table]:
    from mbr_esd_metric.report.evaluations import breakdown_table

    # Where one of the two is named, the other has no default.
    statistics = args.statistics or (_OF_PARTS if args.measures is None and args.statistics is None else ())
    measuring = _measuring(args, _MEASURES_OF_PARTS if args.statistics is None else ())
    return [breakdown_table(test_set, args.view, statistics, measuring, names) for test_set in test_sets]
