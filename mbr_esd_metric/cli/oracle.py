"""`mbr-esd oracle`: how good the best choice among the candidates would be, and what more candidates bring."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.shared_options import add_measures, check_plot_of, load_test_sets, print_tables
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.choosing import choose_all, choosing_rules
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.report.plots import plot_curves, save
from mbr_esd_metric.report.tables import Column

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.evaluation import Evaluation
    from mbr_esd_metric.report.evaluations import EvaluationSettings, Row

#: Rules that are compared if none is named.
_RULES = ("empty", "map", "majority", "mbr")


def configure(parser: argparse.ArgumentParser) -> None:
    """Which candidates, and which rules besides the oracle."""
    parser.add_argument("candidates", metavar="CANDIDATES", help="candidates file, as `mbr-esd decide` reads it")
    add_measures(parser, " ".join(DEFAULT_MEASURES))
    parser.add_argument(
        "--rules",
        nargs="*",
        default=list(_RULES),
        metavar="RULE",
        help=f"{', '.join(choosing_rules())} (default: {' '.join(_RULES)})",
    )
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
        "  mbr-esd oracle candidates.jsonl --test-set data/wmt21.tedtalks --lp en-de\n"
        "  mbr-esd oracle candidates.jsonl --sizes 16 64 256 --test-set wmt24 --lp en-de --plot curve.png"
    )


def run(args: argparse.Namespace) -> int:
    """One row for each rule, then one for each oracle; with --sizes one for each of these and each size."""
    from mbr_esd_metric.report.evaluations import EvaluationSettings, evaluation_panels, evaluation_table

    check_plot_of(args, args.candidates)
    if args.plot and not args.sizes:
        raise OptionError("--plot draws what more candidates bring; say how many with --sizes, for instance 16 64 256")
    measuring = EvaluationSettings(tuple(args.raters), tuple(args.measures or DEFAULT_MEASURES))
    labels = [Column("rule", "rule")]
    if args.sizes:
        labels.append(Column("n", "N"))
        notes = [f"the first N candidates of each translation; utility of mbr and the oracle: {args.utility}"]
    else:
        notes = [f"oracle: the candidate with the highest {args.utility} to the rater, or on average to all"]
    evaluations: dict[str, dict[Row, Evaluation]] = {}
    for test_set in load_test_sets(args):
        notes += measuring.notes(test_set)
        evaluations[test_set.lp] = _evaluate(args, measuring, test_set, notes)

    def named(row: Row) -> str:
        return f"{row[0]} (N = {row[1]})" if args.sizes else str(row[0])

    title = f"oracle, {Path(args.test_set).name}"
    table = evaluation_table(title, labels, evaluations, args.lp, measuring, notes, named, rated=not args.sizes)
    print_tables([table], args.table)
    if args.plot:
        curves: dict[str, list[tuple[float, Evaluation]]] = defaultdict(list)
        for pair, of in evaluations.items():
            for (name, size), one in of.items():
                curves[f"{name} {pair}" if len(evaluations) > 1 else str(name)].append((float(size), one))
        panels = evaluation_panels(measuring.measures, curves)
        save(plot_curves(panels, "candidates N", log_x=True), Path(args.plot))
    return 0


def _evaluate(
    args: argparse.Namespace, measuring: EvaluationSettings, test_set: TestSet, notes: list[str]
) -> dict[Row, Evaluation]:
    """Row -> its evaluation. `notes` gets a line for each rater whose ratings alone cannot compare systems."""
    from mbr_esd_metric.adapters.wmt.metric_files import read_sampled

    human = test_set.human(args.raters)
    if not human:
        raise InputError(
            f"{test_set.layout.human_file('*', 'seg.rating')}: no human ratings, and an oracle needs some; import "
            "them with: mbr-esd wmt import"
        )
    sampled = read_sampled(test_set, args.candidates)
    everybody = measuring.evaluator(test_set, None if args.sizes else list(human.values()))
    raters, sizes, oracle = list(human.values()), args.sizes or [None], DecisionOptions("oracle", args.utility)

    def row(name: str, size: int | None) -> Row:
        return (name,) if size is None else (name, size)

    evaluations = {
        row(rule, size): everybody.evaluate(choose_all(sampled, DecisionOptions(rule, args.utility), size))
        for rule in args.rules
        for size in sizes
    }
    evaluations |= {row("oracle", n): everybody.evaluate(choose_all(sampled, oracle, n, raters)) for n in sizes}
    if len(human) > 1 and not args.sizes:
        for name, matrix in human.items():
            try:
                alone = measuring.evaluator(test_set, [matrix])
                evaluations[(f"oracle {name}",)] = alone.evaluate(choose_all(sampled, oracle, None, [matrix]))
            except InputError as error:
                notes.append(f"oracle {name} is left out in {test_set.lp}: {error}")
    return evaluations
