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
from mbr_esd_metric.report.tables import Cell, Column, Table, render

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
    print(render(table), end="")
    if args.output is not None:
        write_whole(Path(args.output), render(table, "json"))
    return 0


def plan_table(settings: Sequence[Setting], found: Sequence[Sequence[Estimate]], segments: int) -> Table:
    """What each setting would sample."""
    rows = []
    for setting, parts in zip(settings, found, strict=True):
        times = [part.seconds for part in parts]
        costs = [part.cost[0] for part in parts if part.cost is not None]
        rows.append(
            (
                *map(Cell, setting.values.values()),
                Cell(sum(part.candidates for part in parts)),
                Cell(sum(part.stored for part in parts)),
                Cell(sum(part.candidates - part.stored for part in parts)),
                Cell(sum(part.tokens for part in parts)),
                Cell(None if None in times else round(sum(one or 0.0 for one in times))),
                Cell(sum(costs) if costs else None),
            )
        )
    columns = (
        *_labels(settings),
        Column("candidates", "candidates"),
        Column("stored", "stored"),
        Column("to_sample", "to sample"),
        Column("tokens", "tokens to generate"),
        Column("seconds", "seconds"),
        Column("cost", "cost", digits=4),
    )
    kept = [
        at
        for at, column in enumerate(columns)
        if column.key not in ("seconds", "cost") or any(row[at].value is not None for row in rows)
    ]
    notes = [planned_line(found, segments)]
    if any(part.mean_tokens is None for parts in found for part in parts):
        notes.append("tokens are a guess where nothing is stored; --try 4 samples 4 segments of each, and measures")
    if len(settings) > 1:
        notes.append("settings that differ only in how they decide share their candidates, which are sampled once")
    picked = tuple(columns[at] for at in kept)
    return Table("plan", picked, tuple(tuple(row[at] for at in kept) for row in rows), tuple(notes))


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
    columns = (
        *_labels(settings),
        Column("candidates", "candidates"),
        Column("invalid", "% invalid", digits=1, percent=True),
        Column("cut", "% cut", digits=1, percent=True),
        Column("unmarked", "% unmarked", digits=1, percent=True),
        Column("dropped", "% dropped", digits=1, percent=True),
        Column("tokens", "tokens", digits=1),
        Column("sampled", "sampled"),
        Column("seconds", "seconds", digits=1),
        *(() if gold is None else gold.columns),
    )
    rows = []
    for setting, one in zip(settings, found, strict=True):
        told = one.run.summary
        valid = told.candidates - told.cut - told.unreadable
        rows.append(
            (
                *map(Cell, setting.values.values()),
                Cell(told.candidates),
                _share(told.unreadable, told.candidates),
                _share(told.cut, told.candidates),
                _share(told.unmarked, valid),
                _share(told.dropped, told.located + told.dropped),
                Cell(one.tokens),
                Cell(one.sampled),
                Cell(one.seconds),
                *(() if gold is None else gold.cells(one.run.decisions)),
            )
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
    return Table("grid", columns, tuple(rows), tuple(notes), beside)


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

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of the statistics and, where people marked spans, of the measures."""
        measures = _MEASURES if self._spans else ()
        return (
            *(Column(name, title, best="max") for name, title in _STATISTICS.items()),
            *(Column(name, MEASURE_TITLES.get(name, name), best="max") for name in measures),
        )

    def cells(self, decisions: Sequence[Decision]) -> list[Cell]:
        """One row."""
        scores = np.full(self._gold.shape, np.nan)
        predicted: list[list[Annotation | None]] = [[None for _ in row] for row in scores]
        for (i, j), decision in zip(self._places, decisions, strict=True):
            scores[i, j], predicted[i][j] = decision.score, decision.annotation
        values = [score_statistic(name).of_segments(self._gold, scores) for name in _STATISTICS]
        spans = self._spans.evaluate(predicted).values if self._spans else {}
        return [Cell(float(value)) for value in (*values, *spans.values())]


def _labels(settings: Sequence[Setting]) -> list[Column]:
    return [Column(option, option, label=True) for option in settings[0].values]


def _words(setting: Setting) -> str:
    return " ".join(f"{option}={value}" for option, value in setting.values.items())


def _share(count: int, of: int) -> Cell:
    return Cell(count / of if of else None)
