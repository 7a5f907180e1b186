"""How many error spans each metric and the raters mark, and how well they agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.errors import InputError, number_of
from mbr_esd_metric.metaeval.omissions import evaluate_omissions
from mbr_esd_metric.metaeval.spans import SpanEvaluator, SpanScores, rater_agreement
from mbr_esd_metric.report.evaluations import Measuring
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES, input_of
from mbr_esd_metric.report.tables import Cell, Column, Table

#: Of what translations leave out, where a metric says it.
_OMISSIONS = (
    Column("omissions", "omitted", digits=0),
    Column("omission_precision", "omission precision", best="max"),
    Column("omission_recall", "omission recall", best="max"),
    Column("omission_f1", "omission F1", best="max"),
)


def span_table(test_set: TestSet, measuring: Measuring, metrics: Sequence[str] = ()) -> Table:
    """The humans, "no error" everywhere, and each metric with error spans.

    Where translations have two raters, also what one rater reaches against the others, and each metric's share of it.

    Raises:
        InputError: no human ratings, or a named metric without error spans.
    """
    human = test_set.human(measuring.raters)
    if not human:
        raise InputError(
            f"{test_set.layout.human_rating('*')}: no human ratings to compare spans with; import them with: "
            "mbr-esd wmt import"
        )
    evaluator = SpanEvaluator(list(human.values()), test_set.lengths, measuring.measures, measuring.aggregation)
    nothing = evaluator.evaluate([[EMPTY] * test_set.segments] * len(test_set.systems))
    counts = nothing.counts
    among_people = rater_agreement(list(human.values()), test_set.lengths, measuring.measures, measuring.aggregation)
    with_spans, notes = test_set.metrics_with_spans(metrics)
    rows = [
        (
            Cell("human"),
            Cell(),
            *_counts(counts.gold_major, counts.gold_minor, nothing.rated, None),
            *_shared(dict.fromkeys(measuring.measures) | among_people, among_people),
        ),
        _row("no error", None, nothing, among_people),
    ]
    people = [r.omissions_of(test_set.systems, test_set.segments) for r in test_set.human_ratings(measuring.raters)]
    said = [ratings.omissions_of(test_set.systems, test_set.segments) for _, ratings in with_spans]
    with_omissions = any(cell is not None and len(cell) > 0 for matrix in said for row in matrix for cell in row)
    if with_omissions:
        rows = [(*row, *[Cell()] * len(_OMISSIONS)) for row in rows]
    for (metric, ratings), omissions in zip(with_spans, said, strict=True):
        try:
            found = evaluator.evaluate(ratings.of(test_set.systems, test_set.segments))
        except InputError as error:
            raise InputError(f"{metric.name}, {test_set.lp}: {error}") from None
        base, uses_reference = base_name(metric.name)
        row = _row(base, input_of(uses_reference), found, among_people)
        if with_omissions:
            left_out = evaluate_omissions(omissions, people)
            cells = (left_out.predicted, left_out.precision, left_out.recall, left_out.f1)
            row = (*row, *(Cell(None if math.isnan(value) else value) for value in cells))
        rows.append(row)
    columns = (
        Column("metric", "metric", label=True),
        Column("input", "input", label=True),
        Column("major", "major", digits=0),
        Column("minor", "minor", digits=0),
        Column("per_translation", "per translation", digits=2),
        Column("major_share", "% major", digits=1, percent=True),
        Column("ratio", "ratio", digits=2),
        *(column for name in measuring.measures for column in _columns(name, bool(among_people))),
        *(_OMISSIONS if with_omissions else ()),
    )
    legend = (
        f"{number_of(nothing.rated, 'rated translation')}, {number_of(len(test_set.systems), 'system')}, raters: "
        f"{', '.join(human)}",
        "ratio: error spans per human error span",
        *(("human: one rater against the others; % human: the share of it",) if among_people else ()),
        *(
            ("omitted: what is left out, as spans of the source; right if they meet a human one",)
            if with_omissions
            else ()
        ),
    )
    return Table(f"{test_set.name} {test_set.lp}", columns, tuple(rows), (*legend, *test_set.notes, *notes))


def _columns(measure: str, shared: bool) -> list[Column]:
    share = [Column(f"{measure}_share", "% human", digits=0, percent=True)] if shared else []
    return [Column(measure, MEASURE_TITLES.get(measure, measure), best="max"), *share]


def _shared(values: Mapping[str, float | None], among_people: Mapping[str, float]) -> list[Cell]:
    """Each value, and where people agree with one another its share of that."""
    cells = []
    for name, value in values.items():
        cells.append(Cell(value))
        if among_people:
            human = among_people[name]
            cells.append(Cell(value / human if value is not None and human > 0 else None))
    return cells


def _row(name: str, looks_at: str | None, scores: SpanScores, among_people: Mapping[str, float]) -> tuple[Cell, ...]:
    counts = scores.counts
    return (
        Cell(name),
        Cell(looks_at),
        *_counts(counts.major, counts.minor, scores.rated, counts.ratio),
        *_shared(scores.values, among_people),
    )


def _counts(major: float, minor: float, rated: int, ratio: float | None) -> list[Cell]:
    total = major + minor
    return [
        Cell(major),
        Cell(minor),
        Cell(total / rated),
        Cell(major / total if total else None),
        Cell(None if ratio is None or math.isnan(ratio) else ratio),
    ]
