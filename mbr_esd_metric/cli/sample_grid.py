"""`mbr-esd sample --grid`: a table of settings; what each lost, what it cost, and how well it agrees with people."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.cli.shared_options import model_of
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.errors import number_of, say
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.metaeval.score_statistics import score_statistic
from mbr_esd_metric.metaeval.spans import SpanEvaluator
from mbr_esd_metric.metric.estimate import Estimate
from mbr_esd_metric.metric.grid import Measured, Setting, grid, measure, planned
from mbr_esd_metric.metric.plan import Segment
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES
from mbr_esd_metric.report.tables import Column, Table, TableRow, Value, render_table, table_of

#: Of scores, and of spans, where there is gold.
_STATISTICS = {"seg-pearson-none": "Pearson", "seg-spearman-none": "Spearman"}
_MEASURES = ("softdice-corpus", "mpp-corpus", "f1-corpus")


def run_grid(
    args: argparse.Namespace, named: Sequence[tuple[str, str, Segment]], test_set: TestSet | None, trial: int | None
) -> int:
    """Print the plan of a grid, sample it, and print what each setting gave; of a dry run the plan alone.

    Args:
        args: of `mbr-esd sample`.
        named: system, number and segment of each translation.
        test_set: with gold, if there is any.
        trial: segments to sample of each setting before a dry run's plan; None if this is no dry run.
    """
    segments = [segment for _, _, segment in named]
    settings = grid(model_of(args), args.grid)
    plans = [planned(one, segments, trial or 0) for one in settings]
    if trial is None:
        if not args.quiet:
            say(planned_line(plans, len(segments)))
        found = [measure(one, segments, progress=not args.quiet) for one in settings]
        table = grid_table(settings, found, named, test_set)
    else:
        table = plan_table(settings, plans, len(segments))
    print(render_table(table), end="")
    if args.output is not None:
        write_whole(Path(args.output), render_table(table, "json"))
    return 0


def plan_table(settings: Sequence[Setting], found: Sequence[Sequence[Estimate]], segments: int) -> Table:
    """What each setting would sample."""
    rows: list[dict[Column, Value]] = []
    for setting, parts in zip(settings, found, strict=True):
        times = [part.seconds for part in parts]
        costs = [part.cost[0] for part in parts if part.cost is not None]
        rows.append(
            {
                **_labelled(setting),
                Column("candidates", "candidates"): sum(part.candidates for part in parts),
                Column("stored", "stored"): sum(part.stored for part in parts),
                Column("to_sample", "to sample"): sum(part.candidates - part.stored for part in parts),
                Column("tokens", "tokens to generate"): sum(part.tokens for part in parts),
                Column("seconds", "seconds"): None if None in times else round(sum(one or 0.0 for one in times)),
                Column("cost", "cost", digits=4): sum(costs) if costs else None,
            }
        )
    unknown = [column for column in rows[0] if all(row[column] is None for row in rows)]
    rows = [{column: value for column, value in row.items() if column not in unknown} for row in rows]
    notes = [planned_line(found, segments)]
    if any(part.mean_tokens is None for parts in found for part in parts):
        notes.append("tokens are a guess where nothing is stored; --try 4 samples 4 segments of each, and measures")
    if len(settings) > 1:
        notes.append("settings that differ only in how they decide share their candidates, which are sampled once")
    return table_of("plan", rows, notes)


def planned_line(found: Sequence[Sequence[Estimate]], segments: int) -> str:
    """The whole grid in one line; arguments as of `plan_table`."""
    every = [part for parts in found for part in parts]
    wanted, stored = sum(one.candidates for one in every), sum(one.stored for one in every)
    size = f"{number_of(len(found), 'setting')} x {number_of(segments, 'segment')}"
    tokens = sum(one.tokens for one in every)
    return f"{size}: {wanted:,} candidates, {stored:,} of them stored; about {tokens:,} tokens to generate"


def grid_table(
    settings: Sequence[Setting],
    found: Sequence[Measured],
    named: Sequence[tuple[str, str, Segment]],
    test_set: TestSet | None = None,
) -> Table:
    """What each setting gave."""
    gold = None if test_set is None else _Gold(test_set, named)
    rows: list[TableRow] = []
    for setting, one in zip(settings, found, strict=True):
        told = one.run.summary
        valid = told.candidates - told.cut - told.unreadable
        rows.append(
            {
                **_labelled(setting),
                Column("candidates", "candidates"): told.candidates,
                _percent("invalid"): _share(told.unreadable, told.candidates),
                _percent("cut"): _share(told.cut, told.candidates),
                _percent("unmarked"): _share(told.unmarked, valid),
                _percent("dropped"): _share(told.dropped, told.located + told.dropped),
                Column("tokens", "tokens", digits=1): one.tokens,
                Column("sampled", "sampled"): one.sampled,
                Column("seconds", "seconds", digits=1): one.seconds,
                **({} if gold is None else gold.values(one.run.decisions)),
            }
        )
    notes = [
        "unmarked: valid candidates without an error; dropped: error spans that are not in the text; tokens: of a "
        "candidate",
        "sampled, seconds: in this run; what is stored costs no time",
    ]
    notes += [
        f"{_words(setting)}: a segment has no valid candidate; invalid ones count as no error there"
        for setting, one in zip(settings, found, strict=True)
        if one.lacking
    ]
    notes += [f"{_words(s)}: {line}" for s, one in zip(settings, found, strict=True) for line in one.run.summary.advice]
    beside = {
        "models": [{"model": s.model, "signature": one.run.signature} for s, one in zip(settings, found, strict=True)]
    }
    return table_of("grid", rows, notes, beside)


class _Gold:
    """People's scores and error spans, and what agrees with them."""

    def __init__(self, test_set: TestSet, named: Sequence[tuple[str, str, Segment]]) -> None:
        rows = {system: at for at, system in enumerate(test_set.systems)}
        self._places = [(rows[system], int(number) - 1) for system, number, _ in named]
        self._gold = test_set.gold
        there = set(self._places)
        human = [
            [[cell if (i, j) in there else None for j, cell in enumerate(row)] for i, row in enumerate(matrix)]
            for matrix in test_set.human().values()
        ]
        rated = any(cell is not None for matrix in human for row in matrix for cell in row)
        self._spans = SpanEvaluator(human, test_set.lengths, _MEASURES) if rated else None

    def values(self, decisions: Sequence[Decision]) -> dict[Column, Value]:
        """Of the statistics and, where people marked spans, of the measures."""
        scores = np.full(self._gold.shape, np.nan)
        predicted: list[list[Annotation | None]] = [[None for _ in row] for row in scores]
        for (i, j), decision in zip(self._places, decisions, strict=True):
            scores[i, j], predicted[i][j] = decision.score, decision.annotation
        values = {name: score_statistic(name).of_segments(self._gold, scores) for name in _STATISTICS}
        spans = self._spans.evaluate(predicted).values if self._spans else {}
        titles = {**MEASURE_TITLES, **_STATISTICS}
        found = (values | dict(spans)).items()
        return {Column(name, titles.get(name, name), best="max"): float(value) for name, value in found}


def _labelled(setting: Setting) -> dict[Column, Value]:
    return {Column(option, option, label=True): value for option, value in setting.values.items()}


def _percent(key: str) -> Column:
    return Column(key, f"% {key}", digits=1, percent=True)


def _words(setting: Setting) -> str:
    return " ".join(f"{option}={value}" for option, value in setting.values.items())


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
