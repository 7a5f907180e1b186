"""`mbr-esd oracle`: the score of the best candidate (an upper bound), by rule and by number of candidates."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from mbr_esd_metric.cli.decide import flag
from mbr_esd_metric.cli.shared_options import add_measures, check_plot_of, load_test_sets, print_tables
from mbr_esd_metric.decoding.file import file_options
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.signature import signature_of_file
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.messages import number_of
from mbr_esd_metric.metaeval.choosing import choose_all, choosing_rules
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, Result, evaluate_metrics
from mbr_esd_metric.metaeval.metric_set import Key, MetricEntry, MetricSet
from mbr_esd_metric.metaeval.spans import DEFAULT_MEASURES
from mbr_esd_metric.report.plots import plot_curves, save
from mbr_esd_metric.report.tables import Column, TableRow

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.metaeval.spans import AnnotationMatrix

#: The default rules.
_RULES = ("empty", "map", "majority", "mbr")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the candidates, and the rules to compare with the oracle."""
    parser.add_argument("candidates", metavar="CANDIDATES", help="candidates file, in the format of `mbr-esd decide`")
    add_measures(parser, " ".join(DEFAULT_MEASURES))
    parser.add_argument(
        "--rules",
        nargs="*",
        default=list(_RULES),
        metavar="RULE",
        help=f"rules to compare: {', '.join(choosing_rules())} (default: {' '.join(_RULES)})",
    )
    parser.add_argument("--utility", default="softf1", help="utility of mbr and of the oracle (%(default)s)")
    parser.add_argument("--location", metavar="LOCATION", help="as for `mbr-esd decide`")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        metavar="N",
        help="print a row for each N, using the first N candidates (default: all candidates)",
    )
    parser.add_argument("--plot", metavar="OUT.png", help="with --sizes: also write a plot, as OUT.png and OUT.svg")
    parser.epilog = (
        "There is one row per rule, and one for the oracle, which chooses the candidate with the highest utility to "
        "the human\n"
        "annotation. With several raters there is one oracle row for their mean, and one per rater, on the\n"
        "translations that this rater rated.\n\n"
        "example:\n"
        "  mbr-esd oracle candidates.jsonl --sizes 16 64 256 --test-set wmt24 --lp en-de --plot curve.png"
    )


def run(args: argparse.Namespace) -> int:
    """Print one row per rule and per oracle; with --sizes, one for each of these and each size."""
    from mbr_esd_metric.report.evaluations import evaluation_panels, evaluation_table

    check_plot_of(args, args.candidates)
    if args.plot and not args.sizes:
        raise OptionError("--plot needs the numbers of candidates to plot; add --sizes, for instance --sizes 16 64 256")
    settings = LeaderboardSettings(measures=tuple(args.measures or DEFAULT_MEASURES))
    notes = [f"oracle: the candidate with the highest {args.utility} to the rater, or on average to all"]
    if args.sizes:
        notes = [f"the first N candidates of each translation; utility of mbr and the oracle: {args.utility}"]
    test_sets, options = list(load_test_sets(args)), _options(args)
    for rule in dict.fromkeys([*args.rules, "oracle"]):
        notes.append(f"{rule}: {signature_of_file(args.candidates, replace(options, rule=rule))}")
    sets: list[MetricSet] = []
    rows: dict[str, TableRow] = {}
    results: dict[str, dict[Key, Result]] = {}
    for test_set in test_sets:
        notes += test_set.notes
        data, results[test_set.lp] = _evaluate(args, options, test_set, settings, rows, notes)
        sets.append(data)
    title = f"oracle, {Path(args.test_set).name}"
    print_tables([evaluation_table(title, rows, results, sets, settings, notes)], args.table)
    if args.plot:
        curves: dict[str, list[tuple[float, Result]]] = defaultdict(list)
        for (lp, of), (name, row) in product(results.items(), rows.items()):
            rule, size = row.values()
            curves[f"{rule} {lp}" if len(results) > 1 else str(rule)].append((cast("int", size), of[name, False]))
        save(plot_curves(evaluation_panels(curves), "candidates N", log_x=True), Path(args.plot))
    return 0


def _options(args: argparse.Namespace) -> DecisionOptions:
    """The options, except for the rule: those for reading answers are the file's. Candidates of blank translations are
    read too."""
    changes = {} if args.location is None else {"location": args.location}
    of_file = file_options(args.candidates, changes, lambda name, value: f"{flag(name)} {value}")
    reading = {name: getattr(of_file, name) for name in ("location", "format", "invalid")}
    return DecisionOptions(utility=args.utility, blank="perfect", **reading)


def _evaluate(
    args: argparse.Namespace,
    options: DecisionOptions,
    test_set: TestSet,
    settings: LeaderboardSettings,
    rows: dict[str, TableRow],
    notes: list[str],
) -> tuple[MetricSet, dict[Key, Result]]:
    """The metric set with all raters, and metric -> result, including an oracle for each single rater. Adds the first
    cells of each metric to `rows`, and to `notes` the number of rated translations of each rater or an error."""
    from mbr_esd_metric.adapters.wmt.metric_files import read_sampled

    human = {one.name: one.of(test_set.systems, test_set.segments) for one in test_set.human_ratings(args.raters)}
    sampled = read_sampled(test_set, args.candidates)
    data = MetricSet(test_set.lp, test_set.gold, test_set.lengths, (), ())
    raters, sizes = list(human.values()), dict.fromkeys(args.sizes or [None])

    def chosen(label: str, rule: str, size: int | None, known: Sequence[AnnotationMatrix] = ()) -> MetricEntry:
        name = label if size is None else f"{label} (N = {size})"
        entry = MetricEntry.of_spans(name, choose_all(sampled, replace(options, rule=rule), size, known))
        rows[name] = {Column("rule", "rule"): label, **({} if size is None else {Column("n", "N"): size})}
        return entry

    entries = [chosen(rule, rule, size) for rule, size in product(dict.fromkeys(args.rules), sizes)]
    entries += [chosen("oracle", "oracle", size, raters) for size in sizes]
    everybody = replace(data.rated_by(raters), entries=entries)
    results = evaluate_metrics(everybody, settings)
    for name, matrix in human.items() if len(human) > 1 and not args.sizes else ():
        alone, label = data.rated_by([matrix]), f"oracle {name}"
        try:
            results |= evaluate_metrics(replace(alone, entries=[chosen(label, "oracle", None, [matrix])]), settings)
            notes.append(f"{label}: {number_of(int((~np.isnan(alone.gold)).sum()), 'translation')} in {test_set.lp}")
        except InputError as error:
            notes.append(f"{label} is omitted in {test_set.lp}: {error}")
    return everybody, results
