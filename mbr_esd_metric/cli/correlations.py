"""`mbr-esd correlations`: Pearson, Spearman and Kendall of metrics and gold, of systems and segments; accuracy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import (
    add_score_arguments,
    check_outputs,
    exact_notes,
    missing_notes,
    put_out,
    without_spa,
)
from mbr_esd_metric.cli.data import load_test_sets

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.score_statistics import ScoredDirection

#: What is shown where nothing is named.
_DEFAULT = ("sys-accuracy", "sys-pearson", "seg-pearson-none", "seg-spearman-item", "seg-kendall-item")


def configure(parser: argparse.ArgumentParser) -> None:
    """Which metrics, which statistics."""
    add_score_arguments(parser)
    parser.add_argument(
        "--statistics",
        nargs="+",
        default=list(_DEFAULT),
        metavar="NAME",
        help="spa, acc_eq, sys-accuracy, sys-KIND and seg-KIND-GROUP, where KIND is pearson, spearman or kendall and "
        f"GROUP none, item or system (default: {' '.join(_DEFAULT)})",
    )
    parser.epilog = (
        "examples:\n"
        "  mbr-esd correlations --data data --test-set wmt21.tedtalks --direction en-de\n"
        "  mbr-esd correlations --test-set wmt23 --direction en-de he-en zh-en --statistics seg-kendall-item spa"
    )


def run(args: argparse.Namespace) -> int:
    """Compute every statistic of every metric in every direction."""
    from mbr_esd_metric.adapters.wmt.scored import scored
    from mbr_esd_metric.metaeval.score_statistics import evaluate, score_statistic
    from mbr_esd_metric.report.statistics import correlation_table

    check_outputs(args)
    exact = args.spa == "exact"
    statistics = [score_statistic(name) for name in args.statistics]
    with_spa = "spa" in args.statistics
    if not with_spa:
        without_spa(args, f"--statistics {' '.join(args.statistics)}")
    directions: list[ScoredDirection] = []
    notes: list[str] = exact_notes(args)
    for test_set in load_test_sets(args):
        directions.append(scored(test_set, args.metric))
        notes += directions[-1].notes
        if with_spa:
            notes += [*missing_notes(test_set, args.missing), *directions[-1].spa_notes(exact)]
    values = {
        (direction.direction, str(statistic)): evaluate(statistic, [direction], missing=args.missing, exact=exact)
        for direction in directions
        for statistic in statistics
    }
    names = [direction.direction for direction in directions]
    put_out(args, [correlation_table(f"{args.test_set} {', '.join(names)}", names, statistics, values, notes)])
    return 0
