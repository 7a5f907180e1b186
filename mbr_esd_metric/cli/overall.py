"""`mbr-esd overall`: the overall score of WMT's metrics task of a year, with its statistics and weights."""

from __future__ import annotations

import argparse
import os

from mbr_esd_metric.cli.analysis import (
    add_score_arguments,
    check_outputs,
    exact_notes,
    missing_notes,
    put_out,
    without_spa,
)
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import OptionError


def configure(parser: argparse.ArgumentParser) -> None:
    """Which metrics, by which year's tasks."""
    add_score_arguments(parser)
    parser.add_argument(
        "--tasks", metavar="YEAR", help="wmt22, wmt23, wmt24 or wmt25 (default: that of the test set's name)"
    )
    parser.add_argument(
        "--k", type=int, metavar="N", help="draws of the tests (default: 1000 for wmt24 and wmt25, which can be tested)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the tests (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="threads (%(default)s)")
    parser.epilog = "example:\n  mbr-esd overall --test-set wmt23 --direction en-de he-en zh-en"


def run(args: argparse.Namespace) -> int:
    """Evaluate every metric in every task."""
    from mbr_esd_metric.adapters.wmt.scored import scored
    from mbr_esd_metric.metaeval.tasks import TASK_SETS, clusters, overall, testable, wmt_tasks
    from mbr_esd_metric.report.statistics import overall_table

    check_outputs(args)
    year = args.tasks or args.test_set.split(".")[0]
    if args.tasks is None and year not in TASK_SETS:
        raise OptionError(f"--test-set {args.test_set} has no tasks of its own; choose --tasks {', '.join(TASK_SETS)}")
    exact = args.spa == "exact"
    test_sets = list(load_test_sets(args))
    directions = [scored(test_set, args.metric) for test_set in test_sets]
    tasks = wmt_tasks(year, directions)
    notes = [note for direction in directions for note in direction.notes]
    if any(task.statistic.kind == "spa" for task in tasks):
        notes += exact_notes(args)
        for test_set, direction in zip(test_sets, directions, strict=True):
            notes += [*missing_notes(test_set, args.missing), *direction.spa_notes(exact)]
    else:
        without_spa(args, f"the tasks of {year}")
    found = overall(tasks, directions, args.missing, exact=exact)
    draws = args.k if args.k is not None else 1000 if testable(tasks) else 0
    ranks = None
    if draws and found.overall:
        ranks = clusters(tasks, directions, draws, args.seed, missing=args.missing, exact=exact, workers=args.workers)
    names = ", ".join(direction.direction for direction in directions)
    full = args.format in ("tsv", "json")
    put_out(
        args, [overall_table(f"{args.test_set} {names}, tasks of {year}", found, full=full, ranks=ranks, notes=notes)]
    )
    return 0
