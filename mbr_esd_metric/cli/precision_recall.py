"""`mbr-esd precision-recall`: the precision-recall curve of a span measure, over all thresholds on the confidence.

It is for a board of metrics of a test set, and severity counts. `mbr-esd calibrate` asks another question, whether a
confidence of 0.7 is confirmed in 70 of 100 cases; its precision and recall are of claims, and severity plays no part.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import add_rater_arguments, check_outputs, human_of, metrics_with_spans, put_out
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.spans import RATERS

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.precision_recall import CurvePoint, PrecisionRecallCurve
    from mbr_esd_metric.report.tables import Cell, Table


def configure(parser: argparse.ArgumentParser) -> None:
    """Which metrics, by which measure, table and plot."""
    add_rater_arguments(parser)
    parser.add_argument(
        "--metric", nargs="+", default=[], metavar="NAME", help="only these (default: all stored with error spans)"
    )
    parser.add_argument(
        "--several", choices=list(RATERS), default="mean", help="what several raters count (%(default)s)"
    )
    parser.add_argument(
        "--measure",
        default="f1-corpus",
        metavar="NAME",
        help="f1-corpus, f1-wmt25-corpus, mpp-corpus or softdice-corpus (%(default)s)",
    )
    parser.add_argument("--points", action="store_true", help="also print the curves, one row for each threshold")
    parser.add_argument("--plot", metavar="OUT.png", help="also plot, to OUT.png and OUT.svg")
    parser.epilog = "example:\n  mbr-esd precision-recall --test-set wmt24 --direction en-de --plot curves.png"


def run(args: argparse.Namespace) -> int:
    """One table for each direction, and with --points one of the curves."""
    check_outputs(args)
    curves: dict[tuple[str, str], PrecisionRecallCurve] = {}
    tables = []
    for test_set in load_test_sets(args):
        found, notes = _curves(args, test_set)
        curves |= {(name, test_set.direction): curve for name, curve in found.items()}
        tables.append(_summary(args, test_set, found, notes))
        if args.points:
            tables.append(_points(args, test_set, found))
    put_out(args, tables)
    if args.plot:
        from mbr_esd_metric.report.curves import Curve
        from mbr_esd_metric.report.plots import plot_curves, save

        lines = [
            Curve(
                f"{name} {direction}",
                tuple(point.recall for point in curve.points[1:]),
                tuple(point.precision for point in curve.points[1:]),
            )
            for (name, direction), curve in curves.items()
            if len(curve.points) > 1  # a metric without any span has no curve
        ]
        save(plot_curves({"precision": lines}, "recall"), Path(args.plot))
    return 0


def _curves(args: argparse.Namespace, test_set: TestSet) -> tuple[dict[str, PrecisionRecallCurve], list[str]]:
    from mbr_esd_metric.adapters.wmt.test_set import base_name
    from mbr_esd_metric.metaeval.precision_recall import precision_recall_curve
    from mbr_esd_metric.report.leaderboard import row_name

    human = list(human_of(args, test_set).values())
    if not human:
        raise InputError(f"{test_set.layout.human_rating('*')}: no human ratings to compare spans with")
    found, notes = {}, list(test_set.notes)
    for name, metric, ratings in metrics_with_spans(args, test_set):
        predicted = ratings.of(test_set.systems, test_set.segments)
        try:
            curve = precision_recall_curve(predicted, human, test_set.lengths, args.measure, args.several)
        except InputError as error:
            raise InputError(f"{name}, {test_set.direction}: {error}") from None
        found[row_name(base_name(name))] = curve
        notes += metric.notes
    if not found:
        raise InputError(f"{test_set.layout.metric_rating('*')}: no metric of {test_set.direction} has error spans")
    return found, notes


def _summary(
    args: argparse.Namespace, test_set: TestSet, curves: dict[str, PrecisionRecallCurve], notes: list[str]
) -> Table:
    from mbr_esd_metric.report.leaderboard import MEASURE_TITLES
    from mbr_esd_metric.report.tables import Cell, Column, Table

    title = MEASURE_TITLES.get(args.measure, args.measure)
    columns = [Column("metric", "metric"), Column("area", "area", best="max"), Column("thresholds", "thresholds")]
    for group, key in (("all spans", "all"), ("the best threshold", "best")):
        columns += [Column(f"{key}_{part}", part[0].upper(), group) for part in ("precision", "recall")]
        columns.append(Column(f"{key}_value", title, group, best="max"))
    columns.append(Column("threshold", "threshold", "the best threshold", digits=2))
    ordered = sorted(curves.items(), key=lambda item: (-item[1].area, item[0]))
    rows = tuple(
        (
            Cell(name),
            Cell(curve.area),
            Cell(len(curve.points) - 1),
            *_cells(curve.points[-1]),
            *_cells(curve.best),
            Cell(None if math.isinf(curve.best.threshold) else curve.best.threshold),
        )
        for name, curve in ordered
    )
    legend = (
        "area: under precision over recall, by falling confidence; the best threshold is that of these translations"
    )
    return Table(f"{test_set.name} {test_set.direction}", tuple(columns), rows, (legend, *notes))


def _points(args: argparse.Namespace, test_set: TestSet, curves: dict[str, PrecisionRecallCurve]) -> Table:
    from mbr_esd_metric.report.leaderboard import MEASURE_TITLES
    from mbr_esd_metric.report.tables import Cell, Column, Table

    columns = (
        Column("metric", "metric"),
        Column("threshold", "threshold"),
        Column("precision", "precision"),
        Column("recall", "recall"),
        Column("value", MEASURE_TITLES.get(args.measure, args.measure)),
    )
    rows = tuple(
        (Cell(name), Cell(point.threshold), *_cells(point))
        for name, curve in curves.items()
        for point in curve.points[1:]
    )
    return Table(f"{test_set.name} {test_set.direction}, curves", columns, rows)


def _cells(point: CurvePoint) -> list[Cell]:
    from mbr_esd_metric.report.tables import Cell

    return [Cell(point.precision), Cell(point.recall), Cell(point.value)]
