"""`mbr-esd oracle`: how good the best choice among the candidates would be, and what more candidates bring."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import add_choice_arguments, answers_of, check_outputs, measuring_of, put_out
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import InputError, OptionError

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.evaluation import Evaluation, Evaluator
    from mbr_esd_metric.metaeval.spans import AnnotationMatrix
    from mbr_esd_metric.report.evaluations import Measuring


def configure(parser: argparse.ArgumentParser) -> None:
    """Which candidates, and which rules besides the oracle."""
    add_choice_arguments(parser, ("empty", "map", "majority", "mbr"), least="*")
    parser.add_argument("--utility", default="softf1", help="of mbr and of the oracle (%(default)s)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="N", help="a row for each: the first N candidates (default: all)"
    )
    parser.add_argument("--plot", metavar="OUT.png", help="with --sizes: also plot, to OUT.png and OUT.svg")
    parser.epilog = (
        "Each rule is a row, and so is the oracle, which takes the candidate with the highest utility to the human\n"
        "annotation. With several raters there is one row for their mean, and one for each of them, on the\n"
        "translations that this rater rated.\n\n"
        "example:\n"
        "  mbr-esd oracle candidates.jsonl --data data --test-set wmt21.tedtalks --lp en-de\n"
        "  mbr-esd oracle candidates.jsonl --sizes 16 64 256 --test-set wmt24 --lp en-de --plot curve.png"
    )


def run(args: argparse.Namespace) -> int:
    """One row for each rule, then one for each oracle."""
    from mbr_esd_metric.report.evaluations import Line, evaluation_table
    from mbr_esd_metric.report.tables import Cell, Column

    check_outputs(args, args.candidates)
    if args.plot and not args.sizes:
        raise OptionError("--plot draws what more candidates bring; say how many with --sizes, for instance 16 64 256")
    if args.sizes:
        return _by_size(args)
    measuring = measuring_of(args)
    results: dict[str, dict[str, Evaluation]] = {}
    notes = [f"oracle: the candidate with the highest {args.utility} to the rater, or on average to all"]
    for test_set in load_test_sets(args):
        notes += measuring.notes(test_set)
        results[test_set.lp] = _evaluate(args, measuring, test_set, notes)
    notes += measuring.constant_notes(results)
    names = dict.fromkeys(name for found in results.values() for name in found)
    # A rater may not have rated every language pair.
    lines = [
        Line((Cell(name),), {pair: found[name] for pair, found in results.items() if name in found}) for name in names
    ]
    label = [Column("rule", "rule", label=True)]
    put_out(args, [evaluation_table(f"oracle, {args.test_set}", label, lines, args.lp, measuring, notes, rated=True)])
    return 0


def _by_size(args: argparse.Namespace) -> int:
    """One row for each rule and size, then one for the oracle and each size."""
    from mbr_esd_metric.adapters.wmt.sampled import read_sampled
    from mbr_esd_metric.decoding.options import DecisionOptions
    from mbr_esd_metric.metaeval.choosing import oracle, scaling
    from mbr_esd_metric.report.evaluations import Line, evaluation_panels, evaluation_table
    from mbr_esd_metric.report.plots import plot_curves, save
    from mbr_esd_metric.report.tables import Cell, Column

    measuring, test_sets = measuring_of(args), list(load_test_sets(args))
    options = [DecisionOptions(rule, args.utility) for rule in args.rules]
    names = [*args.rules, "oracle"]
    notes = [f"the first N candidates of each translation; utility of mbr and the oracle: {args.utility}"]
    results: dict[str, dict[tuple[str, int], Evaluation]] = {}
    for test_set in test_sets:
        sampled = read_sampled(test_set, args.candidates, args.rules, answers_of(args))
        evaluator, human = measuring.evaluator(test_set), list(_human(args, test_set).values())
        found = {(one.rule, one.size): one.evaluation for one in scaling(evaluator, sampled, args.sizes, options)}
        for size in args.sizes:
            found["oracle", size] = evaluator.evaluate(oracle(sampled, human, args.utility, size))
        results[test_set.lp] = found
        notes += measuring.notes(test_set)
    named = {
        pair: {f"{name} (N = {size})": one for (name, size), one in found.items()} for pair, found in results.items()
    }
    notes += measuring.constant_notes(named)
    lines = [
        Line((Cell(name), Cell(size)), {pair: found[name, size] for pair, found in results.items()})
        for name in names
        for size in args.sizes
    ]
    labels = [Column("rule", "rule", label=True), Column("n", "N", label=True)]
    put_out(args, [evaluation_table(f"oracle, {args.test_set}", labels, lines, args.lp, measuring, notes)])
    if args.plot:
        curves = {
            f"{name} {pair}" if len(results) > 1 else name: [(float(size), found[name, size]) for size in args.sizes]
            for pair, found in results.items()
            for name in names
        }
        panels = evaluation_panels(measuring.measures, curves)
        save(plot_curves(panels, "candidates N", log_x=True), Path(args.plot))
    return 0


def _human(args: argparse.Namespace, test_set: TestSet) -> Mapping[str, AnnotationMatrix]:
    """The raters that are asked for, at least one.

    Raises:
        InputError: there is none.
    """
    human = test_set.human(args.raters)
    if not human:
        raise InputError(
            f"{test_set.layout.human_rating('*')}: no human ratings, and an oracle needs some; import them with: "
            "mbr-esd wmt import"
        )
    return dict(human)


def _evaluate(
    args: argparse.Namespace, measuring: Measuring, test_set: TestSet, notes: list[str]
) -> dict[str, Evaluation]:
    """Row -> its evaluation. `notes` gets a line for each rater whose ratings alone cannot compare systems."""
    import numpy as np

    from mbr_esd_metric.adapters.wmt.sampled import read_sampled
    from mbr_esd_metric.decoding.options import DecisionOptions
    from mbr_esd_metric.metaeval.choosing import choose_all, oracle

    human = _human(args, test_set)
    sampled = read_sampled(test_set, args.candidates, args.rules, answers_of(args))

    def evaluator(names: list[str]) -> Evaluator:
        """Against these raters, on what they rated."""
        matrices = [human[name] for name in names]
        rated = np.array(
            [
                [any(m[i][j] is not None for m in matrices) for j in range(test_set.segments)]
                for i in range(len(test_set.systems))
            ]
        )
        return measuring.evaluator(test_set, matrices, np.where(rated, test_set.gold, np.nan))

    everybody = evaluator(list(human))
    found = {rule: everybody.evaluate(choose_all(sampled, DecisionOptions(rule, args.utility))) for rule in args.rules}
    found["oracle"] = everybody.evaluate(oracle(sampled, list(human.values()), args.utility))
    if len(human) > 1:
        for name, matrix in human.items():
            try:
                alone = evaluator([name])
                found[f"oracle {name}"] = alone.evaluate(oracle(sampled, [matrix], args.utility))
            except InputError as error:
                notes.append(f"oracle {name} is left out in {test_set.lp}: {error}")
    return found
