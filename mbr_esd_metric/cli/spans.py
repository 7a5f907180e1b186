"""`mbr-esd spans`: how many error spans each metric and each rater marks, and how well they agree."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import add_measure_arguments, check_outputs, human_of, metrics_with_spans, put_out
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import InputError, number_of

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.spans import SpanScores
    from mbr_esd_metric.report.tables import Cell, Table


def configure(parser: argparse.ArgumentParser) -> None:
    """Which metrics, against which raters."""
    add_measure_arguments(parser)
    parser.add_argument(
        "--metric", nargs="+", default=[], metavar="NAME", help="only these (default: all stored with error spans)"
    )
    parser.epilog = "example:\n  mbr-esd spans --data data --test-set wmt21.tedtalks --direction en-de"


def run(args: argparse.Namespace) -> int:
    """One table for each direction: the humans, "no error" everywhere, and each metric."""
    check_outputs(args)
    put_out(args, [_table(args, test_set) for test_set in load_test_sets(args)])
    return 0


def _table(args: argparse.Namespace, test_set: TestSet) -> Table:
    from mbr_esd_metric.adapters.wmt.test_set import base_name
    from mbr_esd_metric.core.annotation import EMPTY
    from mbr_esd_metric.metaeval.spans import SpanEvaluator
    from mbr_esd_metric.report.leaderboard import MEASURE_TITLES, input_of
    from mbr_esd_metric.report.tables import Cell, Column, Table

    human = human_of(args, test_set)
    if not human:
        raise InputError(
            f"{test_set.layout.human_rating('*')}: no human ratings to compare spans with; import them with: "
            "mbr-esd wmt import-mqm"
        )
    evaluator = SpanEvaluator(list(human.values()), test_set.lengths, args.measures, args.several)
    nothing = evaluator.evaluate([[EMPTY] * test_set.segments] * len(test_set.systems))
    counts = nothing.counts
    repaired = list(test_set.notes)
    if not args.metric:
        lines = test_set.left_out().items()
        repaired += [line for name, line in lines if test_set.layout.metric_rating(name).is_file()]
    rows = [
        (
            Cell("human"),
            Cell(),
            *_counts(counts.gold_major, counts.gold_minor, nothing.rated, None),
            *[Cell()] * len(args.measures),
        ),
        _row("no error", None, nothing),
    ]
    for name, metric, ratings in metrics_with_spans(args, test_set):
        try:
            found = evaluator.evaluate(ratings.of(test_set.systems, test_set.segments))
        except InputError as error:
            raise InputError(f"{name}, {test_set.direction}: {error}") from None
        repaired += metric.notes
        base, uses_reference = base_name(name)
        rows.append(_row(base, input_of(uses_reference), found))
    columns = (
        Column("metric", "metric"),
        Column("input", "input"),
        Column("major", "major", digits=0),
        Column("minor", "minor", digits=0),
        Column("per_translation", "per translation", digits=2),
        Column("major_share", "% major", digits=1, percent=True),
        Column("ratio", "ratio", digits=2),
        *(Column(name, MEASURE_TITLES.get(name, name), best="max") for name in args.measures),
    )
    notes = (
        f"{number_of(nothing.rated, 'rated translation')}, {number_of(len(test_set.systems), 'system')}, raters: "
        f"{', '.join(human)}",
        "ratio: error spans per human error span",
        *repaired,
    )
    return Table(f"{test_set.name} {test_set.direction}", columns, tuple(rows), notes)


def _row(name: str, looks_at: str | None, scores: SpanScores) -> tuple[Cell, ...]:
    from mbr_esd_metric.report.tables import Cell

    counts = scores.counts
    return (
        Cell(name),
        Cell(looks_at),
        *_counts(counts.major, counts.minor, scores.rated, counts.ratio),
        *map(Cell, scores.values.values()),
    )


def _counts(major: float, minor: float, rated: int, ratio: float | None) -> list[Cell]:
    from mbr_esd_metric.report.tables import Cell

    total = major + minor
    return [
        Cell(major),
        Cell(minor),
        Cell(total / rated),
        Cell(major / total if total else None),
        Cell(None if ratio is None or math.isnan(ratio) else ratio),
    ]
