"""`mbr-esd rank`: systems by their mean scores, with intervals, and whether N was enough to tell each two apart."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.gate import Check, add_gate, check_gate, close_gate
from mbr_esd_metric.cli.shared_options import add_decision_options, add_table, decision_options
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError
from mbr_esd_metric.report.tables import Cell, Column, Table, render_all

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.comparison import Drawn, SystemPair

#: Fields of `DecisionOptions` that are options here.
_OPTIONS = ("rule", "utility", "weights", "invalid", "mqm", "location", "format", "score")


def configure(parser: argparse.ArgumentParser) -> None:
    """Candidates of several systems, and how they are decided."""
    parser.add_argument("candidates", nargs="+", metavar="CANDIDATES", help="candidates files of one or more systems")
    add_decision_options(parser, _OPTIONS)
    add_table(parser)
    parser.add_argument("--resamples", type=int, default=20, metavar="R", help="draws a segment (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default %(default)s)")
    parser.add_argument(
        "--fail-if-worse",
        type=float,
        nargs="?",
        const=0.05,
        metavar="LEVEL",
        help="exit status 3 if the second system is significantly worse than the first, at this level (%(const)s)",
    )
    add_gate(parser)
    parser.epilog = (
        "examples:\n  mbr-esd rank candidates.jsonl --score expected\n"
        "  mbr-esd rank old.jsonl new.jsonl --fail-if-worse"
    )


def run(args: argparse.Namespace) -> int:
    """Print one row a system, best first, then one a pair of systems."""
    import numpy as np

    from mbr_esd_metric.files.records import read_candidates
    from mbr_esd_metric.metaeval.comparison import drawn_score

    options = decision_options(args, _OPTIONS)
    level = args.fail_if_worse
    if level is not None and not 0 < level < 1:
        raise OptionError(f"--fail-if-worse {level:g}: give a level between 0 and 1; put the files before the option")
    check_gate(args, None if level is None else "--fail-if-worse")
    rng = np.random.default_rng(args.seed)
    systems: dict[str, dict[tuple[str, int], Drawn]] = defaultdict(dict)
    for path in args.candidates:
        times: dict[tuple[str, str], int] = defaultdict(int)
        for record in read_candidates(path):
            name = record.system or path
            try:
                drawn = drawn_score(record.columns, record.src, record.mt, options, args.resamples, rng)
            except (InputError, NoValidCandidateError) as error:
                raise type(error)(f"{path}, {record.label}: {error}") from None
            systems[name][record.src, times[name, record.src]] = drawn
            times[name, record.src] += 1
        if not times:
            raise InputError(f"{path} has no candidates; `mbr-esd sample` writes them")
    notes = (
        f"mean MQM scores ({options.score}, rule {options.rule}), 95% intervals; {args.resamples} draws "
        f"of the candidates a segment, seed {args.seed}",
    )
    tables = [_means(systems, notes)]
    if len(systems) > 1:
        tables.append(_pairs(systems, notes))
    print(render_all(tables, args.table), end="")
    return close_gate(args, "rank", tables, [] if level is None else [_check(systems, level)])


def _check(systems: Mapping[str, Mapping[tuple[str, int], Drawn]], level: float) -> Check:
    """Whether the second system is as good as the first, as far as the segments tell."""
    from mbr_esd_metric.metaeval.comparison import compare

    if len(systems) != 2:
        raise InputError(f"--fail-if-worse compares a new system with an old one, and there are {len(systems)}")
    old, new = systems
    both = [key for key in systems[old] if key in systems[new]]
    found = compare([systems[old][key] for key in both], [systems[new][key] for key in both])
    worse = found.difference < 0 and found.p_value < level
    said = f"{new} is worse than {old} by {-found.difference:.3f} (p = {found.p_value:.2g}, level {level:g})"
    return Check(f"{new} against {old}", said if worse else None)


#: The intervals' headings: the noise of sampling alone, and that of the choice of segments, too.
_INTERVALS = (
    Column("same_segments", "same segments, sampled anew"),
    Column("other_segments", "other segments, sampled anew"),
)


def _means(systems: Mapping[str, Mapping[tuple[str, int], Drawn]], notes: tuple[str, ...]) -> Table:
    """Each system's mean score: its difference from a system without any error."""
    from mbr_esd_metric.metaeval.comparison import Drawn, compare

    found = {name: compare([Drawn(0.0, 0.0)] * len(own), list(own.values())) for name, own in systems.items()}
    order = sorted(found, key=lambda name: -found[name].difference)
    rows = tuple(
        (Cell(name), Cell(found[name].segments), Cell(found[name].difference), *_intervals(found[name]))
        for name in order
    )
    columns = (Column("system", "system"), Column("segments", "segments"), Column("score", "mean score"), *_INTERVALS)
    return Table("systems", columns, rows, notes)


def _pairs(systems: Mapping[str, Mapping[tuple[str, int], Drawn]], notes: tuple[str, ...]) -> Table:
    """Each two systems on the segments that both have."""
    from mbr_esd_metric.metaeval.comparison import compare

    rows = []
    for a, b in combinations(systems, 2):
        both = [key for key in systems[a] if key in systems[b]]
        found = compare([systems[a][key] for key in both], [systems[b][key] for key in both])
        rows.append(
            (
                Cell(a),
                Cell(b),
                Cell(found.segments),
                Cell(found.difference),
                *_intervals(found),
                Cell(found.sampling_share),
                Cell(found.verdict),
            )
        )
    columns = (
        Column("a", "a"),
        Column("b", "b"),
        Column("segments", "segments"),
        Column("difference", "b - a"),
        *_INTERVALS,
        Column("sampling_share", "share of sampling", percent=True, digits=0),
        Column("verdict", "was N enough?"),
    )
    return Table("pairs of systems", columns, tuple(rows), notes)


def _intervals(found: SystemPair) -> tuple[Cell, Cell]:
    low, high = found.same_segments
    least, most = found.other_segments
    return Cell(f"{low:+.3f} to {high:+.3f}"), Cell(f"{least:+.3f} to {most:+.3f}")
