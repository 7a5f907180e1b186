"""`mbr-esd compare`: the mean scores of systems, with intervals, and whether N was enough to tell them apart."""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import combinations

from mbr_esd_metric.cli.options import add_decision_options, decision_options
from mbr_esd_metric.errors import InputError, NoValidCandidateError
from mbr_esd_metric.report.tables import FORMATS

#: Fields of `DecisionOptions` that are options here.
_OPTIONS = ("rule", "utility", "weights", "invalid", "mqm", "location", "format", "span_cost", "score")


def configure(parser: argparse.ArgumentParser) -> None:
    """Candidates of several systems, and how they are decided."""
    parser.add_argument("candidates", nargs="+", metavar="CANDIDATES", help="candidates files of two or more systems")
    add_decision_options(parser, _OPTIONS)
    parser.add_argument("--format", choices=list(FORMATS), default="text", help="(%(default)s)")
    parser.add_argument("--resamples", type=int, default=20, metavar="R", help="draws a segment (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default %(default)s)")
    parser.epilog = "example:\n  mbr-esd compare candidates.jsonl --score expected"


def run(args: argparse.Namespace) -> int:
    """Print one row a pair of systems."""
    import numpy as np

    from mbr_esd_metric.files.records import read_candidates
    from mbr_esd_metric.metaeval.comparison import Drawn, compare, drawn_score
    from mbr_esd_metric.report.tables import Cell, Column, Table, render

    options = decision_options(args, _OPTIONS)
    rng = np.random.default_rng(args.seed)
    systems: dict[str, dict[tuple[str, int], Drawn]] = defaultdict(dict)
    for path in args.candidates:
        times: dict[tuple[str, str], int] = defaultdict(int)
        for record in read_candidates(path):
            name = record.system or path
            try:
                drawn = drawn_score(record.columns, record.mt, options, args.resamples, rng)
            except (InputError, NoValidCandidateError) as error:
                raise type(error)(f"{path}, {record.label}: {error}") from None
            systems[name][record.src, times[name, record.src]] = drawn
            times[name, record.src] += 1
    if len(systems) < 2:
        there = ", ".join(systems) or "none"
        raise InputError(
            f"a comparison needs two systems, and there is {there}; give another file, or name the systems in the "
            'records ("system")'
        )
    rows = []
    for a, b in combinations(systems, 2):
        both = [key for key in systems[a] if key in systems[b]]
        found = compare([systems[a][key] for key in both], [systems[b][key] for key in both])
        low, high = found.same_segments
        least, most = found.other_segments
        rows.append(
            (
                Cell(a),
                Cell(b),
                Cell(found.segments),
                Cell(found.difference),
                Cell(f"{low:+.3f} to {high:+.3f}"),
                Cell(f"{least:+.3f} to {most:+.3f}"),
                Cell(found.sampling_share),
                Cell(found.verdict),
            )
        )
    columns = (
        Column("a", "a"),
        Column("b", "b"),
        Column("segments", "segments"),
        Column("difference", "b - a"),
        Column("same_segments", "same segments, sampled anew"),
        Column("other_segments", "other segments, sampled anew"),
        Column("sampling_share", "share of sampling", percent=True, digits=0),
        Column("verdict", "was N enough?"),
    )
    notes = (
        f"mean MQM scores ({options.score}, rule {options.rule}), 95% intervals; {args.resamples} draws "
        f"of the candidates a segment, seed {args.seed}",
    )
    print(render(Table("systems compared", columns, tuple(rows), notes), args.format), end="")
    return 0
