"""`mbr-esd lambda-sweep`: a metric evaluated after dropping the spans that it is not sure of."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.shared_options import (
    add_measures,
    add_metrics,
    check_plot_of,
    load_test_sets,
    named_metrics,
    print_tables,
)
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.report.plots import plot_curves, save
from mbr_esd_metric.report.tables import Column, Table, shown_values

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.evaluation import Evaluation
    from mbr_esd_metric.metaeval.spans import AnnotationMatrix
    from mbr_esd_metric.report.evaluations import Row

#: Span measures of a sweep, and of precision-recall curves.
_MEASURES, _OF_CURVES = ("softf1", "f1"), ("f1-corpus",)
#: Metric -> its spans in one test set, and what was repaired in them.
_Spans = Mapping[str, tuple["AnnotationMatrix", Sequence[str]]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Which metrics, which thresholds, table and plot."""
    add_metrics(parser)
    add_measures(parser, "softf1 f1; of precision-recall curves f1-corpus")
    parser.add_argument(
        "--precision-recall",
        action="store_true",
        help="curves over every confidence that occurs, and the area under them, for each of --measures, which are of "
        "the corpus: f1-corpus, f1-wmt25-corpus, mpp-corpus, softdice-corpus",
    )
    parser.add_argument("--plot", metavar="OUT.png", help="also plot, to OUT.png and OUT.svg")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd lambda-sweep --metric XCOMET-ESD --test-set data/wmt24 --lp en-de en-es ja-zh\n"
        "  comet-score -s src.txt -t A.txt B.txt --model Unbabel/XCOMET-XXL --to_json xcomet.json\n"
        "  mbr-esd lambda-sweep --metric xcomet.json --test-set data/wmt24 --lp en-de --plot sweep.png\n"
        "  mbr-esd lambda-sweep --precision-recall --test-set wmt24 --lp en-de --plot curves.png"
    )


def run(args: argparse.Namespace) -> int:
    """Sweep each metric in each language pair."""
    names, files = named_metrics(args.metric)
    check_plot_of(args, *files.values())
    test_sets = list(load_test_sets(args, files=files))
    return (_precision_recall if args.precision_recall else _sweep)(args, test_sets, names)


def _sweep(args: argparse.Namespace, test_sets: Sequence[TestSet], names: Sequence[str]) -> int:
    from mbr_esd_metric.metaeval.evaluation import LAMBDAS, lambda_sweep
    from mbr_esd_metric.report.evaluations import (
        EvaluationSettings,
        evaluation_panels,
        evaluation_row,
        evaluation_table,
    )

    measuring = EvaluationSettings(tuple(args.raters), tuple(args.measures or _MEASURES))
    swept: dict[str, dict[str, dict[Row, Evaluation]]] = {}
    notes: dict[str, list[str]] = {}
    nothing: dict[str, Evaluation] = {}
    baseline: list[str] = []
    for test_set in test_sets:
        pair, shared, evaluator = test_set.lp, measuring.notes(test_set), measuring.evaluator(test_set)
        for name, (predicted, repaired) in _all_spans(test_set, names).items():
            with labelled(f"{name}, {pair}"):
                points = lambda_sweep(evaluator, predicted)
            swept.setdefault(name, {})[pair] = {(threshold,): point for threshold, point in points.items()}
            notes.setdefault(name, []).extend(repaired)
        # A sweep ends close to the empty annotation, so read it next to the sweep.
        nothing[pair] = evaluator.evaluate([[EMPTY] * test_set.segments] * len(test_set.systems))
        shown = shown_values(evaluation_row(measuring.measures, nothing[pair], pair))
        baseline += [f"empty, no error at all, {pair}: {shown}", *shared]
    tables = [
        evaluation_table(
            f"{name}, {test_sets[0].name}: spans of lower confidence dropped",
            [Column("lambda", "lambda", digits=1)],
            of,
            args.lp,
            measuring,
            [*baseline, *notes[name]],
            lambda row: f"lambda {row[0]:.1f}",
        )
        for name, of in swept.items()
    ]
    print_tables(tables, args.table)
    if args.plot:
        lines = {
            f"{name} {pair}": [(float(at), one) for (at,), one in points.items()]
            for name, of in swept.items()
            for pair, points in of.items()
        }
        level = {f"empty {pair}": [(at, empty) for at in (LAMBDAS[0], LAMBDAS[-1])] for pair, empty in nothing.items()}
        panels = evaluation_panels(measuring.measures, lines, spans=True, guides=level)
        save(plot_curves(panels, "lambda"), Path(args.plot))
    return 0


def _precision_recall(args: argparse.Namespace, test_sets: Sequence[TestSet], names: Sequence[str]) -> int:
    from mbr_esd_metric.report.evaluations import (
        EvaluationSettings,
        precision_recall_curves,
        precision_recall_panels,
        precision_recall_table,
    )

    measuring = EvaluationSettings(tuple(args.raters), tuple(args.measures or _OF_CURVES))
    curves = {}
    tables: list[Table] = []
    for test_set in test_sets:
        spans = _all_spans(test_set, names)
        predicted = {name: matrix for name, (matrix, _) in spans.items()}
        repaired = [note for _, notes in spans.values() for note in notes]
        for measure in measuring.measures:
            curve = precision_recall_curves(test_set, predicted, measure, measuring)
            curves[test_set.lp, measure] = curve
            tables.append(precision_recall_table(test_set, measure, curve, repaired))
    print_tables(tables, args.table)
    if args.plot:
        save(plot_curves(precision_recall_panels(curves), "recall"), Path(args.plot))
    return 0


def _all_spans(test_set: TestSet, names: Sequence[str]) -> _Spans:
    """The metrics that are named, or all that have error spans."""
    from mbr_esd_metric.adapters.wmt.test_set import base_name
    from mbr_esd_metric.report.leaderboard_table import row_name

    metrics, notes = test_set.read_metrics(names, with_spans=True)
    metric_notes = {note for metric in metrics for note in metric.notes}
    others = [note for note in notes if note not in metric_notes]
    spans = {
        row_name(base_name(metric.name)): (
            metric.ratings.of(test_set.systems, test_set.segments),
            [*others, *metric.notes],
        )
        for metric in metrics
        if metric.ratings is not None
    }
    if not spans:
        raise InputError(f"{test_set.layout.metric_rating('*')}: no metric of {test_set.lp} has error spans")
    return spans
