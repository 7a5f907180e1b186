"""`mbr-esd lambda-sweep`: a metric evaluated after dropping the spans that it is not sure of."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import (
    add_evaluation_arguments,
    check_outputs,
    constant_notes,
    evaluation_cells,
    evaluation_columns,
    evaluation_curves,
    evaluator_of,
    exact_notes,
    human_of,
    missing_notes,
    put_out,
)
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import InputError, OptionError

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.spans import AnnotationMatrix
    from mbr_esd_metric.metaeval.sweep import SweepPoint
    from mbr_esd_metric.report.curves import Curve
    from mbr_esd_metric.report.inputs import Source


def configure(parser: argparse.ArgumentParser) -> None:
    """Which metrics, which thresholds, table and plot."""
    parser.add_argument(
        "metrics",
        nargs="+",
        metavar="METRIC",
        help="a metric stored in the folder with its error spans, as the leaderboard names it, or the output of "
        "comet-score --to_json, as OUT.json or NAME=OUT.json",
    )
    add_evaluation_arguments(parser, ("softf1", "f1"))
    parser.add_argument(
        "--lambdas", type=float, nargs="+", metavar="L", help="thresholds in [0, 1] (default: 0.0, 0.1, ..., 1.0)"
    )
    parser.add_argument("--plot", metavar="OUT.png", help="also plot, to OUT.png and OUT.svg")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd lambda-sweep XCOMET-ESD --data data --test-set wmt24 --direction en-de en-es ja-zh\n"
        "  comet-score -s src.txt -t A.txt B.txt --model Unbabel/XCOMET-XXL --to_json xcomet.json\n"
        "  mbr-esd lambda-sweep xcomet.json --data data --test-set wmt24 --direction en-de --plot sweep.png"
    )


def run(args: argparse.Namespace) -> int:
    """Sweep each metric in each direction."""
    from mbr_esd_metric.metaeval.sweep import LAMBDAS, lambda_sweep
    from mbr_esd_metric.report.inputs import Source, tell_apart
    from mbr_esd_metric.report.tables import Cell, Column, Table

    sources = tell_apart([Source.parse(text) for text in args.metrics])
    check_outputs(args, *(source.path for source in sources))
    lambdas = args.lambdas or LAMBDAS
    test_sets = list(load_test_sets(args))
    said = {test_set.direction: missing_notes(test_set, args.missing) for test_set in test_sets}
    points: dict[tuple[str, str], list[SweepPoint]] = {}
    notes: dict[str, list[str]] = {}
    for text, source in zip(args.metrics, sources, strict=True):
        for test_set in test_sets:
            for name, (predicted, repaired) in _spans(test_set, text, source).items():
                try:
                    points[name, test_set.direction] = lambda_sweep(
                        test_set.gold,
                        predicted,
                        lambdas,
                        human=list(human_of(args, test_set).values()),
                        lengths=test_set.lengths,
                        measures=args.measures,
                        raters=args.several,
                        weights=args.mqm,
                        missing=args.missing,
                        exact_spa=args.spa == "exact",
                    )
                except InputError as error:
                    raise InputError(f"{text}, {test_set.direction}: {error}") from None
                swept = {f"{name} at lambda {p.threshold:.1f}": p.evaluation for p in points[name, test_set.direction]}
                notes.setdefault(name, []).extend([*repaired, *constant_notes(test_set, swept, args.spa)])
    directions = [test_set.direction for test_set in test_sets]
    columns = [Column("lambda", "lambda", digits=1)]
    for direction in directions:
        columns += evaluation_columns(args, direction)
    baseline = [
        line for test_set in test_sets for line in (_empty(args, test_set), *test_set.notes, *said[test_set.direction])
    ]
    tables = []
    for name in dict.fromkeys(name for name, _ in points):
        rows = []
        for at, threshold in enumerate(lambdas):
            cells = [Cell(threshold)]
            for direction in directions:
                if (name, direction) in points:
                    cells += evaluation_cells(args, points[name, direction][at].evaluation)
                else:  # under this base name, one with a reference that this direction lacks
                    cells += [Cell()] * ((len(columns) - 1) // len(directions))
            rows.append(tuple(cells))
        title = f"{name}, {args.test_set}: spans of lower confidence dropped"
        tables.append(Table(title, tuple(columns), tuple(rows), (*exact_notes(args), *baseline, *notes[name])))
    put_out(args, tables)
    if args.plot:
        _plot(points, args)
    return 0


def _empty(args: argparse.Namespace, test_set: TestSet) -> str:
    """A line with the values of the empty annotation. A sweep ends close to it, so read it next to the sweep."""
    from mbr_esd_metric.core.annotation import EMPTY
    from mbr_esd_metric.report.tables import shown_values

    evaluator = evaluator_of(args, test_set, list(human_of(args, test_set).values()))
    columns = evaluation_columns(args, test_set.direction)
    found = evaluator.evaluate([[EMPTY] * test_set.segments] * len(test_set.systems))
    return f"empty, no error at all, {test_set.direction}: {shown_values(evaluation_cells(args, found), columns)}"


def _spans(test_set: TestSet, text: str, source: Source) -> Mapping[str, tuple[AnnotationMatrix, Sequence[str]]]:
    """Name -> spans of a metric, and what was repaired in them.

    The metric is given by its full or base name, or by a file. A base name can stand for two metrics.
    """
    from mbr_esd_metric.adapters.wmt.joining import joined
    from mbr_esd_metric.adapters.wmt.test_set import base_name
    from mbr_esd_metric.report.inputs import comet_layer, kind_of
    from mbr_esd_metric.report.leaderboard import row_name

    found = {}
    for full in test_set.metrics_named(text):
        metric = test_set.metric(full)
        if metric.ratings is None:
            raise InputError(
                f"{test_set.layout.metric_rating(full)}: no such file, and a sweep needs error spans; score the metric "
                "with: mbr-esd wmt score"
            )
        spans = metric.ratings.of(test_set.systems, test_set.segments)
        found[row_name(base_name(full))] = (spans, metric.notes)
    if found:
        return found
    if not source.path.is_file():
        stored = ", ".join(test_set.metric_names()) or "none"
        raise OptionError(f"{text} is neither a file nor a metric of {test_set.name} {test_set.direction}: {stored}")
    if kind_of(source.path) != "comet":
        raise InputError(f"{source.path}: a sweep reads what comet-score --to_json writes, and metrics in the folder")
    layer = comet_layer(source)
    records = ((opinion.text.place, opinion.annotation) for opinion in layer.opinions)
    return {layer.name: (joined(test_set, records, str(source.path)), ())}


def _plot(points: Mapping[tuple[str, str], Sequence[SweepPoint]], args: argparse.Namespace) -> None:
    from mbr_esd_metric.report.curves import Curve
    from mbr_esd_metric.report.plots import plot_curves, save

    panels: dict[str, list[Curve]] = {}
    for (name, direction), swept in points.items():
        x = tuple(point.threshold for point in swept)
        evaluations = [point.evaluation for point in swept]
        values = evaluation_curves(args, evaluations)
        values["spans"] = tuple(float(e.major + e.minor) for e in evaluations)
        for panel, y in values.items():
            panels.setdefault(panel, []).append(Curve(f"{name} {direction}", x, y))
    save(plot_curves(panels, "lambda"), Path(args.plot))
