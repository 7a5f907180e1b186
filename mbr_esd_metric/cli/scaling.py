"""`mbr-esd scaling`: what more candidates bring, from the first N stored candidates."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import (
    add_choice_arguments,
    answers_of,
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
    read_sampled,
)
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import useless

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.choosing import ScalingPoint


def configure(parser: argparse.ArgumentParser) -> None:
    """Which candidates, how many of them, which rules."""
    add_choice_arguments(parser, ("mbr", "map", "majority"), least="+")
    parser.add_argument("--utility", help="of mbr (softf1)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="N", help="(default: those of 16 64 256 1024 that there are)"
    )
    parser.add_argument("--plot", metavar="OUT.png", help="also plot, to OUT.png and OUT.svg")
    parser.epilog = (
        "example:\n  mbr-esd scaling candidates.jsonl --sizes 16 64 256 --data data --test-set wmt24 --direction en-de"
    )


def run(args: argparse.Namespace) -> int:
    """One row for each rule and size."""
    from mbr_esd_metric.decoding.options import DecisionOptions
    from mbr_esd_metric.metaeval.choosing import SIZES, scaling
    from mbr_esd_metric.report.tables import Cell, Column, Table

    check_outputs(args, args.candidates)
    if args.utility is not None and "mbr" not in args.rules:
        raise useless(f"--utility {args.utility}", f"--rules {' '.join(args.rules)}")
    utility = args.utility or "softf1"
    columns = [Column("rule", "rule"), Column("n", "N")]
    test_sets = list(load_test_sets(args))
    matrices = [read_sampled(test_set, args.candidates, args.rules, answers_of(args)) for test_set in test_sets]
    fewest = min(len(cell.candidates) for matrix in matrices for row in matrix for cell in row if cell is not None)
    sizes = args.sizes or [size for size in SIZES if size <= fewest] or [fewest]
    results = []
    repaired = [line for test_set in test_sets for line in missing_notes(test_set, args.missing)]
    for test_set, sampled in zip(test_sets, matrices, strict=True):
        columns += evaluation_columns(args, test_set.direction)
        human = list(human_of(args, test_set).values())
        evaluator = evaluator_of(args, test_set, human)
        results.append(scaling(evaluator, sampled, sizes, [DecisionOptions(rule, utility) for rule in args.rules]))
        named = {f"{point.rule}, N = {point.size}": point.evaluation for point in results[-1]}
        repaired += [*test_set.notes, *constant_notes(test_set, named, args.spa)]
    rows = tuple(
        (
            Cell(points[0].rule),
            Cell(points[0].size),
            *(cell for point in points for cell in evaluation_cells(args, point.evaluation)),
        )
        for points in zip(*results, strict=True)
    )
    note = f"the first N candidates of each translation; utility of mbr: {utility}"
    put_out(args, [Table(f"scaling, {args.test_set}", tuple(columns), rows, (note, *exact_notes(args), *repaired))])
    if args.plot:
        _plot({t.direction: points for t, points in zip(test_sets, results, strict=True)}, args)
    return 0


def _plot(points: Mapping[str, Sequence[ScalingPoint]], args: argparse.Namespace) -> None:
    """One panel for each measure, and one line for each rule and direction."""
    from mbr_esd_metric.report.curves import Curve
    from mbr_esd_metric.report.plots import plot_curves, save

    panels: dict[str, list[Curve]] = {}
    for direction, found in points.items():
        for rule in args.rules:
            own = [point for point in found if point.rule == rule]
            x = tuple(float(point.size) for point in own)
            label = f"{rule} {direction}" if len(points) > 1 else rule
            for panel, y in evaluation_curves(args, [point.evaluation for point in own]).items():
                panels.setdefault(panel, []).append(Curve(label, x, y))
    save(plot_curves(panels, "candidates N", log_x=True), Path(args.plot))
