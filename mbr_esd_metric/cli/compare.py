"""`mbr-esd compare`: systems by their mean scores, with intervals, and whether one is worse than another."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mbr_esd_metric.cli.shared_options import Check, add_gate, add_table, check_gate, close_gate, limits
from mbr_esd_metric.errors import InputError, NoValidCandidateError, first_of, labelled, number_of
from mbr_esd_metric.files.paths import check_distinct, system_names
from mbr_esd_metric.report.tables import Cell, Column, Table, TableRow, render_all, table_of

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.comparison import SampledScore, SystemMean, SystemPair

#: How often the candidates of a segment are drawn anew, and the seed.
_RESAMPLES, _SEED = 20, 0


def configure(parser: argparse.ArgumentParser) -> None:
    """Files of several systems, and the gate."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="what `score --to_json`, comet-score --to_json, `decide` or `sample` wrote, of one or more systems",
    )
    add_table(parser)
    parser.add_argument(
        "--fail-if-worse",
        action="store_true",
        help="exit status 3 if the second system is significantly worse than the first, at the level 0.05",
    )
    add_gate(parser)
    parser.epilog = (
        "examples:\n  mbr-esd score -s src.txt -t old.txt new.txt --to_json out.json && mbr-esd compare out.json\n"
        "  mbr-esd compare old.json new.json --fail-if-worse"
    )


def run(args: argparse.Namespace) -> int:
    """Print one row a system, best first, then one a pair of systems."""
    check_gate(args, args.fail_if_worse)
    check_distinct(args.files)
    systems = _systems(args.files)
    sampled = any(one.score.variance for system in systems.values() for one in system.values())
    tables = [_means(systems, sampled)]
    if (pairs := _pairs(systems, sampled)).rows:
        tables.append(pairs)
    checks = [_check(systems)] if args.fail_if_worse else []
    status = close_gate(args, "compare", tables, checks)
    print(render_all(tables, args.table), end="")
    return status


@dataclass(frozen=True, slots=True)
class _Row:
    """One translation of a system: its name, source and model where the file has them, and its scores."""

    system: str
    id: str
    source: str | None
    score: SampledScore
    mqm: float | None
    model: str | None = None


#: Key of a segment -> its row, of one system.
_System = dict[Hashable, _Row]


def _systems(paths: Sequence[str]) -> dict[str, _System]:
    """Name -> rows of each system, joined by source and occurrence, or by id if a file has no sources."""
    rows: dict[tuple[str, str], list[_Row]] = {}
    for path in paths:
        for row in (read := list(_rows(path))):
            rows.setdefault((path, row.system), []).append(row)
        if not read:
            raise InputError(f"{path} has no segment; give what `mbr-esd score --to_json` or `mbr-esd sample` wrote")
    by_source = all(row.source is not None for system in rows.values() for row in system)
    systems: dict[str, _System] = {}
    for name, system in zip(system_names(list(rows)), rows.values(), strict=True):
        times: Counter[str] = Counter()
        systems[name] = {}
        for row in system:
            text = (row.source or "").rstrip() if by_source else row.id
            systems[name][text, times[text]] = row
            times[text] += 1
    return systems


def _rows(path: str) -> Iterator[_Row]:
    """The translations of a file, in order."""
    import numpy as np

    from mbr_esd_metric.adapters.scored_files import read_comet_json
    from mbr_esd_metric.decoding.file import decided_records, file_options
    from mbr_esd_metric.files.records import read_decisions
    from mbr_esd_metric.metaeval.comparison import SampledScore, sampled_score
    from mbr_esd_metric.report.inputs import kind_of_input

    kind = kind_of_input(Path(path))
    if kind == "mqm":
        raise InputError(f"{path} has ratings of people; compare what a metric wrote")
    if kind == "comet":
        for row in read_comet_json(Path(path)):
            stored = SampledScore(math.nan if row.input_score is None else row.input_score, 0.0)
            yield _Row(row.text.system, row.text.id, row.text.source, stored, row.input_mqm, row.model)
    elif kind == "decisions":
        for one in read_decisions(path):
            yield _Row(one.system or "", one.id, None, SampledScore(one.score, 0.0), one.mqm)
    else:
        options, rng = file_options(path), np.random.default_rng(_SEED)
        for record, decision in decided_records(path, options):
            if decision is None:
                raise NoValidCandidateError(f"{path}, {record.label}: no candidate can be read; sample it anew")
            score = sampled_score(decision, record.columns, record.src, record.mt, options, _RESAMPLES, rng)
            yield _Row(record.system or "", record.id, record.src, score, decision.mqm)


def _scored(system: _System) -> _System:
    """The rows that have a score; a translation that was left out has none."""
    return {key: row for key, row in system.items() if not math.isnan(row.score.score)}


def _both(a: _System, b: _System) -> tuple[list[SampledScore], list[SampledScore]]:
    """The scores of the segments that both systems have."""
    a, b = _scored(a), _scored(b)
    keys = [key for key in a if key in b]
    return [a[key].score for key in keys], [b[key].score for key in keys]


def _models(systems: Mapping[str, _System]) -> list[str]:
    """The models that gave the scores, without options, where the files name them."""
    return sorted({row.model.split("?")[0] for rows in systems.values() for row in rows.values() if row.model})


def _check(systems: Mapping[str, _System]) -> Check:
    """Whether the second system is as good as the first."""
    from mbr_esd_metric.metaeval.comparison import compare

    if len(systems) != 2:
        raise InputError(f"--fail-if-worse compares two systems, the old and the new one, not {len(systems)}")
    (old, rows), (new, others) = systems.items()
    a, b = _both(rows, others)
    name = f"{new} against {old}"
    if len(a) < max(len(rows), len(others)):
        sizes = f"{len(a)} common scored segments, of {len(rows)} of {old} and {len(others)} of {new}"
        return Check(name, f"{sizes}; compare the same segments")
    if len(models := _models(systems)) > 1:
        return Check(name, f"scores of several models ({first_of(models)}); score both systems with one")
    pair = compare(a, b)
    problem = f"{new} is worse than {old} by {-pair.difference:#.4g} (p = {pair.p_value:.2g})"
    return Check(name, problem if pair.difference < 0 and pair.differ else None)


def _means(systems: Mapping[str, _System], sampled: bool) -> Table:
    """Each system's mean score and MQM score."""
    from mbr_esd_metric.metaeval.comparison import mean_score

    score = Column("score", "score", digits=4)
    rows: list[TableRow] = []
    left_out: list[str] = []
    for name, system in systems.items():
        scored = list(_scored(system).values())
        if len(scored) < len(system):
            missing = [row.id for row in system.values() if math.isnan(row.score.score)]
            left_out.append(f"{name}: {number_of(len(missing), 'segment')} without a score ({first_of(missing)})")
        penalties = [row.mqm for row in scored if row.mqm is not None]
        with labelled(name):
            mean = mean_score([row.score for row in scored])
        rows.append(
            {
                Column("system", "system"): name,
                Column("segments", "segments"): len(scored),
                score: mean.mean,
                Column("mqm", "MQM"): math.fsum(penalties) / len(penalties) if penalties else None,
                **_intervals(mean, sampled, ""),
            }
        )
    notes = ["95% intervals of the mean score (bootstrap over segments); a score is in [0, 1]", *left_out]
    models = _models(systems)
    if len(models) > 1:
        notes.append(f"scores of several models ({first_of(models)}) cannot be compared")
    notes += limits(models)
    if sampled:
        notes.append(f"{_RESAMPLES} draws of the candidates of a segment, seed {_SEED}")
    return table_of("systems", sorted(rows, key=lambda row: -cast("float", row[score])), notes)


def _pairs(systems: Mapping[str, _System], sampled: bool) -> Table:
    """Each two systems that one model scored, on the segments that both have."""
    from mbr_esd_metric.metaeval.comparison import compare

    rows: list[TableRow] = []
    for a, b in combinations(systems, 2):
        if len(_models({name: systems[name] for name in (a, b)})) > 1:
            continue
        with labelled(f"{a} and {b}"):
            pair = compare(*_both(systems[a], systems[b]))
        shares: TableRow = {Column("sampling_share", "share of sampling", percent=True, digits=0): pair.sampling_share}
        rows.append(
            {
                Column("a", "a"): a,
                Column("b", "b"): b,
                Column("segments", "segments"): pair.segments,
                Column("difference", "b - a", digits=4): Cell(pair.difference, interval=pair.interval),
                **_intervals(pair, sampled, "+"),
                Column("p", "p"): pair.p_value,
                **(shares if sampled else {}),
                Column("verdict", "verdict"): pair.verdict,
            }
        )
    return table_of("pairs of systems", rows)


def _intervals(of: SystemMean | SystemPair, sampled: bool, sign: str) -> TableRow:
    """The 95% interval of a mean or a difference, and of candidates that of sampling the same segments anew."""
    intervals = {Column("interval", "95% interval"): of.interval}
    if sampled:
        intervals[Column("sampling_interval", "of sampling alone")] = of.sampling_interval
    return {column: f"{low:{sign}.4f} to {high:{sign}.4f}" for column, (low, high) in intervals.items()}
