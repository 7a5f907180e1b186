"""`mbr-esd compare`: mean scores of systems with confidence intervals, significance tests, and gates."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mbr_esd_metric.cli.gates import Check, FailedSegment, add_gate, check_gate, close_gate
from mbr_esd_metric.cli.shared_options import add_table
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.core.signature import Comparability, Settings, comparability
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, labelled
from mbr_esd_metric.files.judged import Place
from mbr_esd_metric.files.paths import NamedPath, check_distinct, chosen_system, system_names
from mbr_esd_metric.messages import first_of, number_of, printable
from mbr_esd_metric.report.tables import Cell, Column, Table, TableRow, render_all, table_of

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.comparison import SampledScore, SystemMean, SystemPair

#: Number of resamples of a segment's candidates, and the seed.
_RESAMPLES, _SEED = 20, 0
#: Rows in the table of drops, and characters shown of each translation.
_DROPS, _SHOWN = 5, 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the systems' files, and the gate."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="[NAME=]FILE",
        help="output of `score --to_json`, comet-score --to_json, `decide` or `sample`, with one or more systems; "
        "NAME is its label",
    )
    parser.add_argument(
        "--systems", nargs=2, metavar=("OLD", "NEW"), help="compare these two systems, of files with more of them"
    )
    add_table(parser)
    parser.add_argument(
        "--fail-if-worse",
        action="store_true",
        help="exit with status 3 if the second system's mean is significantly lower than the first one's (p < 0.05)",
    )
    parser.add_argument(
        "--max-drop",
        type=float,
        metavar="X",
        help="exit with status 3 if any segment's score drops by more than X from the first to the second system",
    )
    add_gate(parser)
    parser.epilog = (
        "examples:\n  mbr-esd score -s src.txt -t old.txt new.txt --to_json out.json && mbr-esd compare out.json\n"
        "  mbr-esd compare old.json new.json --fail-if-worse --max-drop 0.3\n"
        "  mbr-esd compare MBR=mbr.json MAP=map.json"
    )


def run(args: argparse.Namespace) -> int:
    """Print one row per system, best first, then one per pair of systems, then the largest score drops."""
    if args.max_drop is not None and not 0 <= args.max_drop < math.inf:
        raise OptionError(f"--max-drop {args.max_drop:g}: must be a score difference of 0 or more, such as 0.3")
    gate = args.fail_if_worse or args.max_drop is not None
    check_gate(args, gate)
    files = [NamedPath.parse(text) for text in args.files]
    check_distinct([str(file.path) for file in files])
    systems = _systems(files)
    if args.systems:
        systems = {name: systems[name] for name in (chosen_system(one, systems) for one in args.systems)}
    sampled = any(one.score.variance for system in systems.values() for one in system.values())
    tables = [_means(systems, sampled)]
    tables += [table for table in (_pairs(systems, sampled), _drops(systems)) if table.rows]
    checks = _checks(systems, args.fail_if_worse, args.max_drop) if gate else []
    status = close_gate(args, "compare", tables, checks)
    print(render_all(tables, args.table), end="")
    return status


@dataclass(frozen=True, slots=True)
class _Row:
    """One translation of a system: its place, its texts and settings if the file has them, and its scores."""

    system: str
    place: Place
    source: str | None
    translation: str | None
    score: SampledScore
    mqm: float | None
    settings: Settings
    unsure: bool = False

    @property
    def id(self) -> str:
        """The segment's id in its file."""
        return self.place.id


#: Segment key -> row, for one system.
_System = dict[Hashable, _Row]


def _systems(files: Sequence[NamedPath]) -> dict[str, _System]:
    """Name -> rows of each system, joined by source and occurrence, or by id if a file has no sources."""
    rows: dict[tuple[str, str], list[_Row]] = {}
    names: dict[str, str] = {}
    for file in files:
        path = str(file.path)
        names |= {path: file.name} if file.name else {}
        for row in (read := list(_rows(path))):
            rows.setdefault((path, row.system), []).append(row)
        if not read:
            raise InputError(f"{path} is empty; specify output of `mbr-esd score --to_json` or `mbr-esd sample`")
    by_source = all(row.source is not None for system in rows.values() for row in system)
    systems: dict[str, _System] = {}
    for name, system in zip(system_names(list(rows), names), rows.values(), strict=True):
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

    from mbr_esd_metric.adapters.file_kinds import kind_of_input
    from mbr_esd_metric.decoding.file import decided_records, file_options
    from mbr_esd_metric.decoding.signature import signature_of_file
    from mbr_esd_metric.files.judged import read_judged
    from mbr_esd_metric.files.records import read_decisions
    from mbr_esd_metric.metaeval.comparison import SampledScore, sampled_score

    kind = kind_of_input(Path(path))
    if kind == "mqm":
        raise InputError(f"{path} contains human ratings; specify the output of a metric")
    if kind == "comet":
        for row in read_judged(Path(path)):
            texts, score = (row.segment.source, row.segment.translation), SampledScore(row.score_or_nan, 0.0)
            yield _Row(row.segment.system, row.place, *texts, score, row.input_mqm, row.settings, row.unsure)
    elif kind == "decisions":
        for one in read_decisions(path):
            score, settings = SampledScore(one.score, 0.0), Settings(None, one.signature, path)
            yield _Row(one.system or "", Place(path, one.id), None, None, score, one.mqm, settings, one.unsure)
    else:
        options, rng = file_options(path), np.random.default_rng(_SEED)
        settings = Settings(None, signature_of_file(path, options), path)
        for record, decision in decided_records(path, options):
            if decision is None:
                raise NoValidCandidateError(f"{path}, {record.label}: no valid candidate; sample the segment again")
            segment = record.segment
            texts, place = (segment.source, segment.translation), Place(path, segment.label)
            score = sampled_score(decision, record.columns, *texts, options, _RESAMPLES, rng)
            yield _Row(segment.system, place, *texts, score, decision.mqm, settings, decision.unsure)


def _scored(system: _System) -> _System:
    """The rows with a score; skipped translations have none."""
    return {key: row for key, row in system.items() if not math.isnan(row.score.score)}


def _both(a: _System, b: _System) -> tuple[list[_Row], list[_Row]]:
    """The segments scored in both systems."""
    a, b = _scored(a), _scored(b)
    keys = [key for key in a if key in b]
    return [a[key] for key in keys], [b[key] for key in keys]


def _compared(a: Sequence[_Row], b: Sequence[_Row]) -> SystemPair:
    from mbr_esd_metric.metaeval.comparison import compare

    return compare([row.score for row in a], [row.score for row in b])


def _comparability(systems: Iterable[_System]) -> Comparability:
    """Whether these systems were scored by one model with the same settings."""
    return comparability(row.settings for system in systems for row in system.values())


def _checks(systems: Mapping[str, _System], fail_if_worse: bool, max_drop: float | None) -> list[Check]:
    """The gates: the second system against the first, on the mean and for each segment."""
    options = ["--fail-if-worse"] * fail_if_worse + ["--max-drop"] * (max_drop is not None)
    if len(systems) != 2:
        requirement = f"{options[0]} requires exactly two systems, old and new (got {len(systems)})"
        raise InputError(f"{requirement}; choose them with --systems")
    (old, rows), (new, others) = systems.items()
    a, b = _both(rows, others)
    name = f"{new} against {old}"
    if len(a) < max(len(rows), len(others)):
        sizes = f"{len(a)} common scored segments, of {len(rows)} of {old} and {len(others)} of {new}"
        return [Check(name, False, f"{sizes}; compare the same segments")]
    if problem := _comparability(systems.values()).problem:
        return [Check(name, False, f"{problem}; score both systems with one model and the same options")]
    checks = [_mean_check(f"{name} --fail-if-worse", old, new, _compared(a, b))] if fail_if_worse else []
    if max_drop is not None:
        drops = _sorted_drops(a, b)
        failed = [
            FailedSegment(one.place, f"{one.before:.4f} to {one.after:.4f}") for one in drops if one.size > max_drop
        ]
        what = f"of {new} scored more than {max_drop:g} below {old}"
        largest = f"; the largest drop is {drops[0].size:.4f} ({drops[0].place})" if drops else ""
        passed = f"no segment {what}{largest}"
        checks.append(Check.of_segments(f"{name} --max-drop {max_drop:g}", failed, what, passed))
    unsure = [FailedSegment(row.place, UNSURE) for row in b if row.unsure]
    return [check.and_judged(unsure, new) for check in checks]


def _mean_check(name: str, old: str, new: str, pair: SystemPair) -> Check:
    numbers = f"(p = {pair.p_value:.2g}, {number_of(pair.segments, 'segment')})"
    if not pair.difference:
        return Check(name, True, f"{new} and {old} have the same mean score {numbers}")
    than = "worse" if pair.difference < 0 else "better"
    if pair.differ:
        return Check(name, than == "better", f"{new} is {than} than {old} by {abs(pair.difference):#.4g} {numbers}")
    higher = "lower" if pair.difference < 0 else "higher"
    mean = f"the mean of {new} is {higher} than that of {old} by {abs(pair.difference):#.4g}"
    return Check(name, True, f"{mean}, but the difference is not significant {numbers}")


@dataclass(frozen=True, slots=True)
class _Drop:
    """A segment whose score is lower in the second system, with its place and translation there."""

    place: Place
    translation: str | None
    before: float
    after: float

    @property
    def size(self) -> float:
        """The score difference, rounded to hide floating-point noise."""
        return round(self.before - self.after, 9)


def _sorted_drops(a: Sequence[_Row], b: Sequence[_Row]) -> list[_Drop]:
    """The segments with a lower score in b than in a, largest drop first."""
    from mbr_esd_metric.metaeval.comparison import TOLERANCE

    pairs = zip(a, b, strict=True)
    drops = [_Drop(two.place, two.translation, one.score.score, two.score.score) for one, two in pairs]
    return sorted((one for one in drops if one.size > TOLERANCE), key=lambda one: -one.size)


def _drops(systems: Mapping[str, _System]) -> Table:
    """The table of the largest drops between each system and a later one."""
    drops = [
        (a, b, drop)
        for a, b in combinations(systems, 2)
        if _comparability((systems[a], systems[b])).problem is None
        for drop in _sorted_drops(*_both(systems[a], systems[b]))[:_DROPS]
    ]
    rows: list[TableRow] = [
        {
            Column("a", "a"): a,
            Column("b", "b"): b,
            Column("segment", "segment of b"): str(drop.place),
            Column("before", "score of a", digits=4): drop.before,
            Column("after", "score of b", digits=4): drop.after,
            Column("drop", "drop", digits=4): drop.size,
            Column("translation", "translation of b"): _beginning(drop.translation),
        }
        for a, b, drop in sorted(drops, key=lambda one: -one[2].size)[:_DROPS]
    ]
    return table_of("largest drops of a segment", rows)


def _beginning(text: str | None) -> str | None:
    """The first characters of a text, on one line."""
    line = None if text is None else printable(" ".join(text.split()))
    return line if line is None or len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _means(systems: Mapping[str, _System], sampled: bool) -> Table:
    """Each system's mean score and MQM score."""
    from mbr_esd_metric.metaeval.comparison import mean_score
    from mbr_esd_metric.metric.cards import limits

    score = Column("score", "score", digits=4)
    rows: list[TableRow] = []
    problems: list[str] = []
    for name, system in systems.items():
        scored = list(_scored(system).values())
        if len(scored) < len(system):
            missing = [row.id for row in system.values() if math.isnan(row.score.score)]
            problems.append(f"{name}: {number_of(len(missing), 'segment')} without a score ({first_of(missing)})")
        if unsure := [row.id for row in scored if row.unsure]:
            problems.append(f"{name}: {number_of(len(unsure), 'segment')} {UNSURE} ({first_of(unsure)})")
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
    notes = ["95% confidence intervals of the mean score (bootstrap over segments); scores are in [0, 1]", *problems]
    comparable = _comparability(systems.values())
    notes += [f"{comparable.problem} cannot be compared"] if comparable.problem else []
    models = {row.settings.title for system in systems.values() for row in system.values()}
    notes += [*comparable.notes, *limits(models)]
    if sampled:
        notes.append(f"{_RESAMPLES} draws of the candidates of a segment, seed {_SEED}")
    return table_of("systems", sorted(rows, key=lambda row: -cast("float", row[score])), notes)


def _pairs(systems: Mapping[str, _System], sampled: bool) -> Table:
    """The table of pairs of comparable systems, on their common segments."""
    rows: list[TableRow] = []
    for a, b in combinations(systems, 2):
        if _comparability((systems[a], systems[b])).problem is not None:
            continue
        with labelled(f"{a} and {b}"):
            pair = _compared(*_both(systems[a], systems[b]))
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
    notes = ["p: two-sided sign-flip permutation test on the segment differences"] if rows else []
    return table_of("pairs of systems", rows, notes)


def _intervals(of: SystemMean | SystemPair, sampled: bool, sign: str) -> TableRow:
    """The 95% interval of a mean or difference; for candidates, also the interval when resampling them."""
    intervals = {Column("interval", "95% interval"): of.interval}
    if sampled:
        intervals[Column("sampling_interval", "of sampling alone")] = of.sampling_interval
    return {column: f"{low:{sign}.4f} to {high:{sign}.4f}" for column, (low, high) in intervals.items()}
