"""`mbr-esd breakdown`: a leaderboard for each domain, each document, or translations of like length."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.analysis import add_measure_arguments, add_spa, check_outputs, exact_notes, put_out, without_spa
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import useless

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.test_set import TestSet
    from mbr_esd_metric.report.tables import Table

_BY = ("domain", "document", "length")
_DEFAULT = ("spa", "acc_eq", "f1-corpus", "softdice-corpus", "mpp-corpus")


def configure(parser: argparse.ArgumentParser) -> None:
    """Which parts, which measures."""
    add_measure_arguments(parser, _DEFAULT)
    parser.add_argument("--by", choices=list(_BY), default="domain", help="the parts (%(default)s)")
    parser.add_argument(
        "--edges",
        type=int,
        nargs="+",
        default=[],
        metavar="L",
        help="with --by length, where buckets begin, in characters of the source (default: quartiles)",
    )
    parser.add_argument("--metric", nargs="+", default=[], metavar="NAME", help="only these (default: all stored)")
    add_spa(parser)
    parser.epilog = (
        "examples:\n"
        "  mbr-esd breakdown --test-set wmt24 --direction en-de --by domain\n"
        "  mbr-esd breakdown --test-set wmt24 --direction en-de --by length --edges 50 100 200 --measures spa f1-corpus"
    )


def run(args: argparse.Namespace) -> int:
    """One table for each direction."""
    if args.edges and args.by != "length":
        raise useless("--edges", f"--by {args.by}")
    if "spa" not in args.measures:
        without_spa(args, f"--measures {' '.join(args.measures)}")
    check_outputs(args)
    put_out(args, [_table(args, test_set) for test_set in load_test_sets(args)])
    return 0


def _table(args: argparse.Namespace, test_set: TestSet) -> Table:
    from mbr_esd_metric.adapters.wmt.contestants import contestants
    from mbr_esd_metric.metaeval.breakdown import breakdown, length_labels, quartile_edges
    from mbr_esd_metric.metaeval.score_statistics import STATISTICS
    from mbr_esd_metric.metaeval.spa import constant_notes
    from mbr_esd_metric.report.leaderboard import MEASURE_TITLES, input_of
    from mbr_esd_metric.report.statistics import statistic_title
    from mbr_esd_metric.report.tables import Cell, Column, Table

    exact = args.spa == "exact"
    data = contestants(test_set, args.metric, args.raters)
    if args.by == "length":
        lengths = [len(source) for source in test_set.sources]
        labels = length_labels(lengths, args.edges or quartile_edges(lengths))
    else:
        labels = [domain if args.by == "domain" else document for domain, document in test_set.documents]
    parts = breakdown(data, labels, args.measures, args.several, args.missing, exact=exact)
    if args.by == "length":
        parts = tuple(sorted(parts, key=lambda part: int(part.name.split("-")[0])))
    columns = [Column(args.by, args.by), Column("segments", "segments"), Column("rated", "rated")]
    columns += [Column("metric", "metric"), Column("input", "input")]
    for name in args.measures:
        title = statistic_title(STATISTICS[name]) if name in STATISTICS else MEASURE_TITLES.get(name, name)
        columns.append(Column(name, title))
    rows = []
    for part in parts:
        ordered = sorted(part.values.items(), key=lambda item: (_falling(item[1][args.measures[0]]), item[0]))
        for key, values in ordered:
            named = (Cell(part.name), Cell(part.segments), Cell(part.rated), Cell(key[0]), Cell(input_of(key[1])))
            rows.append((*named, *(Cell(values[name]) for name in args.measures)))
    legend = "rated: translations with a gold score"
    if args.by == "length":
        legend += "; lengths are those of the source, in characters"
    legends = [legend]
    if "softf1" in args.measures:
        legends.append("SoftF1 rewards a metric that marks little; compare with the metric empty")
    title = f"{test_set.name} {test_set.direction} by {args.by}"
    notes = constant_notes(test_set.direction, data.gold, data.scores, exact) if "spa" in args.measures else ()
    return Table(title, tuple(columns), tuple(rows), (*legends, *exact_notes(args), *data.notes, *notes))


def _falling(value: float | None) -> float:
    """A sort key: the highest value first, no value last."""
    return math.inf if value is None else -value
