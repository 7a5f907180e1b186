"""`mbr-esd leaderboard`: rank the metrics of a WMT test set by agreement with human judgement, in several views."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.shared_options import (
    add_measures,
    add_systems,
    check_plot_of,
    load_test_sets,
    named_metrics,
    print_tables,
)
from mbr_esd_metric.errors import InputError, OptionError, no_effect_error
from mbr_esd_metric.log import progress_bar
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, compute_leaderboard
from mbr_esd_metric.metaeval.metric_set import spa_notes
from mbr_esd_metric.metaeval.score_statistics import (
    SCORE_STATISTICS,
    TASK_SETS,
    evaluate,
    overall,
    statistic_names,
    wmt_tasks,
)
from mbr_esd_metric.metaeval.spans import DEFAULT_MEASURES
from mbr_esd_metric.report.tables import Table, with_status

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.layout import Status
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.metric_set import MetricSet

#: Default statistics: without other views, and for parts of a test set.
_STATISTICS = ("sys-accuracy", "sys-pearson", "seg-pearson-none", "seg-spearman-item", "seg-kendall-item")
_OF_PARTS = ("spa", "acc_eq")
_PARTS = ("domain", "document", "length")
#: View -> default span measures; other views use `DEFAULT_MEASURES`.
_MEASURES = {
    **dict.fromkeys(_PARTS, ("f1-corpus", "softdice-corpus", "mpp-corpus")),
    "lambda-sweep": ("softf1", "f1"),
    "precision-recall": ("f1-corpus",),
}
#: View that can be plotted -> label of its horizontal axis.
_PLOTS = {"lambda-sweep": "lambda", "precision-recall": "recall"}
#: View -> its options, beside those that apply to every view; "" is the default, without --statistics.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "": ("raters", "measures", "spa", "k", "against"),
    "wmt23": (),
    **dict.fromkeys(("wmt24", "wmt25"), ("spa", "k")),
    "spans": ("raters", "measures"),
    "error-free": ("raters",),
    "lambda-sweep": ("raters", "measures", "spa", "plot"),
    "precision-recall": ("raters", "measures", "plot"),
    **dict.fromkeys(_PARTS, ("raters", "measures", "spa", "statistics")),
    "--statistics": ("spa", "statistics"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the metrics to rank, the view, and the tests."""
    add_measures(parser, f"{' '.join(DEFAULT_MEASURES)}; other views have other defaults")
    parser.add_argument(
        "--spa",
        choices=["toolkit", "exact"],
        help="toolkit: 1000 permutations as in mt-metrics-eval, which depend on the order of the systems; exact: the "
        "limit of infinitely many (toolkit)",
    )
    parser.add_argument("--gold", metavar="NAME", help="name of the gold scores (default: WMT's)")
    add_systems(parser)
    parser.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="[NAME=]METRIC",
        help="metrics to rank: stored metrics by full or base name, and files from comet-score or mbr-esd score "
        "--to_json (default: all stored metrics)",
    )
    views = parser.add_argument_group("other views (default: SPA, acc_eq* and span measures with significance)")
    views.add_argument(
        "--statistics",
        nargs="*",
        metavar="NAME",
        help=f"statistics of scores: {', '.join(statistic_names())}, where KIND is pearson, spearman or kendall and "
        "GROUP none, "
        f"item or system (default: {' '.join(_STATISTICS)})",
    )
    views.add_argument(
        "--view",
        choices=("overall", *(view for view in _OPTIONS if view and view != "--statistics")),
        metavar="VIEW",
        help="overall: overall score over the tasks of the test set's year; wmt23, wmt24, wmt25: overall score over "
        "that year's tasks; spans: span counts and agreement; error-free: detection of error-free translations "
        "(WMT26's task 3); lambda-sweep: spans filtered by a rising confidence threshold; precision-recall: curves "
        "over all confidences and the area under them, for the corpus-level --measures; domain, document, length: "
        "--statistics and --measures per part",
    )
    views.add_argument(
        "--plot",
        metavar="OUT.png",
        help="with lambda-sweep and precision-recall: also write a plot, as OUT.png and OUT.svg",
    )
    tests = parser.add_argument_group("significance")
    tests.add_argument(
        "--against",
        metavar="NAMES",
        help="mark significant gains over these baselines with daggers: metrics, or rules, such as map,majority",
    )
    tests.add_argument(
        "--k", type=int, metavar="N", help="number of resamples in significance tests; 0 disables them (default: 1000)"
    )
    parser.epilog = (
        "examples:\n"
        "  mbr-esd leaderboard --test-set data/wmt21.tedtalks --lp en-de\n"
        "  mbr-esd leaderboard --test-set wmt24 --lp en-de en-es ja-zh --against map,majority --table latex\n"
        "  mbr-esd leaderboard --test-set wmt23 --lp en-de he-en zh-en --statistics seg-kendall-item spa\n"
        "  mbr-esd leaderboard --test-set wmt24 --lp en-de --view lambda-sweep --metric xcomet.json --plot sweep.png"
    )


def run(args: argparse.Namespace) -> int:
    """Compute and print the requested view."""
    from mbr_esd_metric.adapters.wmt.test_set import metric_set_of
    from mbr_esd_metric.report import evaluations

    year = _year(args)
    _check_options(args, year or args.view or ("" if args.statistics is None else "--statistics"))
    if args.k is not None and args.k < 0:
        raise OptionError(f"--k {args.k}: must be a number of resamples, or 0 to disable the tests")
    names, files = named_metrics(args.metric)
    check_plot_of(args, *files.values())
    test_sets = list(load_test_sets(args, gold=args.gold, files=files))
    name, settings, panels = test_sets[0].name, _settings(args), None

    def sets(**kind: bool) -> list[MetricSet]:
        return [metric_set_of(test_set, names, args.raters, **kind) for test_set in test_sets]

    if year or (args.statistics is not None and args.view is None):
        tables = [_scores(args, year, name, sets(of_systems=True))]
    elif args.view == "spans":
        tables = [evaluations.span_table(one, settings.measures, names, args.raters) for one in test_sets]
    elif args.view == "error-free":
        tables = [evaluations.error_free_table(one, names, args.raters) for one in test_sets]
    elif args.view == "lambda-sweep":
        tables, panels = evaluations.sweep_tables(name, sets(with_spans=True), settings)
    elif args.view == "precision-recall":
        tables, panels = evaluations.precision_recall_tables(name, sets(with_spans=True), settings.measures)
    elif args.view in _PARTS:
        # If only one of the two is given, the other is empty.
        statistics = args.statistics or (_OF_PARTS if args.measures is None and args.statistics is None else ())
        measures = () if args.measures is None and args.statistics is not None else settings.measures
        tables = [
            evaluations.breakdown_table(test_set, data, args.view, [*statistics, *measures], settings.exact)
            for test_set, data in zip(test_sets, sets(), strict=True)
        ]
    else:
        tables = [_board(args, name, sets(), settings)]
    print_tables([_with_limits(with_status(table, _status_of(name)), test_sets) for table in tables], args.table)
    if args.plot:
        from mbr_esd_metric.report.plots import plot_curves, save

        if not panels:
            raise InputError("no metric marks spans on rated translations, so there is nothing to plot")
        save(plot_curves(panels, _PLOTS[args.view]), Path(args.plot))
    return 0


def _check_options(args: argparse.Namespace, view: str) -> None:
    """Raises `OptionError` for a given option that the view, a key of `_OPTIONS`, does not have."""
    for option in dict.fromkeys(name for names in _OPTIONS.values() for name in names):
        if option not in _OPTIONS[view] and getattr(args, option) not in (None, ()):
            beside = f"--view {args.view}" if args.view else view or "the default view"
            raise no_effect_error(f"--{option}", beside)


def _year(args: argparse.Namespace) -> str | None:
    """The year of the requested overall score; None for other views."""
    if args.view != "overall":
        return args.view if args.view in TASK_SETS else None
    name: str = Path(args.test_set).name
    if (year := name.split(".")[0]) not in TASK_SETS:
        raise OptionError(f"--test-set {name} has no task definition; choose --view {', '.join(TASK_SETS)}")
    return year


def _status_of(test_set: str) -> Callable[[str], Status | None]:
    """The status of a metric in the test set's task: primary, contrastive or baseline."""
    from mbr_esd_metric.adapters.wmt.layout import metric_status

    return lambda metric: metric_status(test_set, metric)


def _with_limits(table: Table, test_sets: Sequence[TestSet]) -> Table:
    """The table, with notes on the limits of its models."""
    from mbr_esd_metric.adapters.wmt.layout import base_name
    from mbr_esd_metric.metric.cards import limits

    models: list[str | None] = [*table.metrics]
    for test_set in test_sets:
        for name in test_set.find_metrics():
            if base_name(name)[0] in table.metrics:
                signature = test_set.signature(name)
                added = test_set.added.get(name)
                models.append(None if added is None or isinstance(added, InputError) else added.settings.title)
                models.append(signature.get("model") if signature else None)
    return replace(table, notes=(*table.notes, *limits(models)))


def _settings(args: argparse.Namespace) -> LeaderboardSettings:
    measures = _MEASURES.get(args.view, DEFAULT_MEASURES) if args.measures is None else args.measures
    chosen = {what: getattr(args, what) for what in ("raters", "gold", "reference", "systems", "exclude")}
    return LeaderboardSettings(
        draws=1000 if args.k is None else args.k,
        measures=tuple(measures),
        against=tuple(name.strip() for name in (args.against or "").split(",") if name.strip()),
        exact=args.spa == "exact",
        order="name",
        choices={what: (names,) if isinstance(names, str) else names for what, names in chosen.items() if names},
    )


def _board(args: argparse.Namespace, name: str, sets: Sequence[MetricSet], settings: LeaderboardSettings) -> Table:
    from mbr_esd_metric.report.leaderboard_table import leaderboard_table

    with progress_bar("testing", bar_format="{l_bar}{bar}| {elapsed}, {remaining} left", delay=0.1) as bar:

        def advance(draws: int, total: int) -> None:
            bar.total = total
            bar.update(draws)

        board = compute_leaderboard(name, sets, settings, advance)
    return leaderboard_table(board, "column" if args.table in ("tsv", "csv", "json") else "notes")


def _scores(args: argparse.Namespace, year: str | None, name: str, sets: Sequence[MetricSet]) -> Table:
    """The table of the overall score of a year's tasks, or of the given statistics."""
    from mbr_esd_metric.report.leaderboard_table import correlation_table, overall_table

    title, exact = f"{name} {', '.join(args.lp)}", args.spa == "exact"
    tasks = wmt_tasks(year, sets) if year else ()
    statistics = [task.statistic for task in tasks] or [
        SCORE_STATISTICS.get(name) for name in args.statistics or _STATISTICS
    ]
    with_spa = any(statistic.contest == "spa" for statistic in statistics)
    notes = [note for one in sets for note in one.notes] + (spa_notes(sets, exact) if with_spa else [])
    if year:
        return overall_table(f"{title}, tasks of {year}", overall(tasks, sets, args.k, exact=exact), notes)
    values = {one.lp: {str(of): evaluate(of, [one], exact=exact) for of in statistics} for one in sets}
    return correlation_table(title, values, notes)
