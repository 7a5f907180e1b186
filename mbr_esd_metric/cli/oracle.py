"""`mbr-esd oracle`: how good the best choice among the candidates would be."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import (
    add_choice_arguments,
    answers_of,
    check_outputs,
    constant_notes,
    evaluation_cells,
    evaluation_columns,
    evaluator_of,
    exact_notes,
    human_of,
    missing_notes,
    put_out,
    read_sampled,
)
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import InputError

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.evaluation import Evaluation, Evaluator


def configure(parser: argparse.ArgumentParser) -> None:
    """Which candidates, and which rules besides the oracle."""
    add_choice_arguments(parser, ("empty", "map", "majority", "mbr"), least="*")
    parser.add_argument("--utility", default="softf1", help="of mbr and of the oracle (%(default)s)")
    parser.epilog = (
        "Each rule is a row, and so is the oracle, which takes the candidate with the highest utility to the human\n"
        "annotation. With several raters there is one row for their mean, and one for each of them, on the\n"
        "translations that this rater rated.\n\n"
        "example:\n"
        "  mbr-esd oracle candidates.jsonl --data data --test-set wmt21.tedtalks --direction en-de"
    )


def run(args: argparse.Namespace) -> int:
    """One row for each rule, then one for each oracle."""
    from mbr_esd_metric.report.tables import Cell, Column, Table

    check_outputs(args, args.candidates)
    columns = [Column("rule", "rule")]
    results: list[dict[str, Evaluation]] = []
    repaired: list[str] = []
    for test_set in load_test_sets(args):
        repaired += [*test_set.notes, *missing_notes(test_set, args.missing)]
        columns += [*evaluation_columns(args, test_set.direction), Column("rated", "rated", test_set.direction)]
        results.append(_evaluate(args, test_set, repaired))
        repaired += constant_notes(test_set, results[-1], args.spa)
    rows = []
    for name in dict.fromkeys(name for found in results for name in found):
        cells = [Cell(name)]
        for found in results:
            if name in found:
                spans = found[name].spans
                cells += [*evaluation_cells(args, found[name]), Cell(spans.rated if spans else None)]
            else:  # this rater did not rate this direction
                cells += [Cell()] * ((len(columns) - 1) // len(results))
        rows.append(tuple(cells))
    note = f"oracle: the candidate with the highest {args.utility} to the rater, or on average to all"
    put_out(
        args, [Table(f"oracle, {args.test_set}", tuple(columns), tuple(rows), (note, *exact_notes(args), *repaired))]
    )
    return 0


def _evaluate(args: argparse.Namespace, test_set: TestSet, notes: list[str]) -> dict[str, Evaluation]:
    """Row -> its evaluation. `notes` gets a line for each rater whose ratings alone cannot compare systems."""
    import numpy as np

    from mbr_esd_metric.decoding.options import DecisionOptions
    from mbr_esd_metric.metaeval.choosing import choose_all, oracle

    human = human_of(args, test_set)
    if not human:
        raise InputError(
            f"{test_set.layout.human_rating('*')}: no human ratings, and an oracle needs some; import them with: "
            "mbr-esd wmt import-mqm"
        )
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
        return evaluator_of(args, test_set, matrices, np.where(rated, test_set.gold, np.nan))

    everybody = evaluator(list(human))
    found = {rule: everybody.evaluate(choose_all(sampled, DecisionOptions(rule, args.utility))) for rule in args.rules}
    found["oracle"] = everybody.evaluate(oracle(sampled, list(human.values()), args.utility))
    if len(human) > 1:
        for name, matrix in human.items():
            try:
                alone = evaluator([name])
                found[f"oracle {name}"] = alone.evaluate(oracle(sampled, [matrix], args.utility))
            except InputError as error:
                notes.append(f"oracle {name} is left out in {test_set.direction}: {error}")
    return found
