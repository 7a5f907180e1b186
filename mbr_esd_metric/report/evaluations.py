"""The evaluation of predictions in oracle, lambda sweep and precision-recall curves; their tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mbr_esd_metric.adapters.wmt.metric_sets import missing_notes
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.metaeval.evaluation import (
    CurvePoint,
    Evaluation,
    Evaluator,
    PrecisionRecallCurve,
    precision_recall_curve,
)
from mbr_esd_metric.metaeval.spa import constant_notes, exact_notes
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES, expanded
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, Raters
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES, measure_column
from mbr_esd_metric.report.plots import Curve
from mbr_esd_metric.report.tables import Cell, Column, Table, TableRow, Value, finite_or_empty, table_of

#: The first cells of a row.
Row: TypeAlias = tuple[str | float, ...]


@dataclass(frozen=True, slots=True)
class Measuring:
    """The options of an `Evaluator`.

    Attributes:
        raters: sets of human ratings; none for the merged one, or every rater's where there is none.
        measures: of error spans; "NAME-parts" stands for the measure, its precision and its recall.
        aggregation: what several raters of one translation count.
        exact: which SPA.
    """

    raters: tuple[str, ...] = ()
    measures: tuple[str, ...] = DEFAULT_MEASURES
    aggregation: Raters = "mean"
    exact: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "measures", expanded(self.measures))

    def evaluator(self, test_set: TestSet, human: Sequence[AnnotationMatrix] | None = None) -> Evaluator:
        """Against these raters, on the translations that one of them rated; by default against all that are asked for,
        on all translations with gold."""
        gold = test_set.gold
        if human is None:
            human = list(test_set.human(self.raters).values())
        else:
            rated = [
                [any(matrix[i][j] is not None for matrix in human) for j in range(test_set.segments)]
                for i in range(len(test_set.systems))
            ]
            gold = np.where(rated, gold, np.nan)
        return Evaluator(gold, human, test_set.lengths, self.measures, self.aggregation, exact_spa=self.exact)

    def notes(self, test_set: TestSet) -> list[str]:
        """Notes on repairs of a test set, and on the segments that SPA uses."""
        return [*test_set.notes, *missing_notes(test_set)]


def evaluation_table(
    title: str,
    labels: Sequence[Column],
    evaluations: Mapping[str, Mapping[Row, Evaluation]],
    pairs: Sequence[str],
    measuring: Measuring,
    notes: Sequence[str],
    named: Callable[[Row], str],
    *,
    rated: bool = False,
) -> Table:
    """SPA, acc_eq, the span measures (empty without human ratings) and numbers of spans, for each language pair.

    Args:
        labels: the first columns.
        evaluations: language pair -> row -> evaluation; the cells of a pair that lacks a row are empty.
        notes: below the table, before that on rows with one score for everything, which `named` names.
        rated: whether a column says how many translations were rated.
    """
    rows: list[TableRow] = []
    for row in dict.fromkeys(row for of in evaluations.values() for row in of):
        cells: dict[Column, Value | Cell] = dict(zip(labels, row, strict=True))
        for pair in pairs:
            cells |= evaluation_row(measuring.measures, evaluations.get(pair, {}).get(row), pair, rated)
        rows.append(cells)
    constant = {pair: [named(row) for row, one in of.items() if one.constant] for pair, of in evaluations.items()}
    below = (*exact_notes(measuring.exact), *notes, *constant_notes(constant, measuring.exact))
    return table_of(title, rows, below)


def evaluation_row(measures: Sequence[str], evaluation: Evaluation | None, group: str, rated: bool = False) -> TableRow:
    """One row's values of one language pair; empty ones for None."""
    spans = evaluation.spans if evaluation else None
    values: dict[str, float] = {"spa": evaluation.spa, "acc_eq": evaluation.acc_eq} if evaluation else {}
    values |= spans.values if spans else {}
    return {
        **{measure_column(name, group): values.get(name) for name in ("spa", "acc_eq", *measures)},
        Column("major", "major", group): evaluation.major if evaluation else None,
        Column("minor", "minor", group): evaluation.minor if evaluation else None,
        **({Column("rated", "rated", group): spans.rated if spans else None} if rated else {}),
    }


def evaluation_panels(
    measures: Sequence[str],
    lines: Mapping[str, Sequence[tuple[float, Evaluation]]],
    *,
    spans: bool = False,
    guides: Mapping[str, Sequence[tuple[float, Evaluation]]] | None = None,
) -> dict[str, list[Curve]]:
    """Panel of a plot -> its curves: SPA, acc_eq, the span measures where all have them, and the numbers of spans.

    Lines are label -> points; guides are what the lines are compared with.
    """
    panels: dict[str, list[Curve]] = {}
    guides = guides or {}
    for label, points in (*lines.items(), *guides.items()):
        x, evaluations = tuple(at for at, _ in points), [evaluation for _, evaluation in points]
        values = {"spa": tuple(e.spa for e in evaluations), "acc_eq": tuple(e.acc_eq for e in evaluations)}
        if all(e.spans for e in evaluations):
            values |= {name: tuple(e.spans.values[name] for e in evaluations if e.spans) for name in measures}
        if spans:
            values["spans"] = tuple(float(e.major + e.minor) for e in evaluations)
        for name, y in values.items():
            panels.setdefault(MEASURE_TITLES.get(name, name), []).append(Curve(label, x, y, guide=label in guides))
    return panels


def precision_recall_curves(
    test_set: TestSet, predicted: Mapping[str, AnnotationMatrix], measure: str, measuring: Measuring
) -> dict[str, PrecisionRecallCurve]:
    """The curve of each metric. Raises `InputError`: no human ratings, or spans that do not fit."""
    human = list(test_set.human(measuring.raters).values())
    if not human:
        raise InputError(f"{test_set.layout.human_rating('*')}: no human ratings to compare spans with")
    curves = {}
    for name, spans in predicted.items():
        with labelled(f"{name}, {test_set.lp}"):
            curves[name] = precision_recall_curve(spans, human, test_set.lengths, measure, measuring.aggregation)
    return curves


def precision_recall_table(
    test_set: TestSet, measure: str, curves: Mapping[str, PrecisionRecallCurve], notes: Sequence[str]
) -> Table:
    """The area under each curve, all spans, and the best threshold; `notes` say what was repaired in the metrics."""
    best, title = "the best threshold", MEASURE_TITLES.get(measure, measure)

    def point(key: str, group: str, at: CurvePoint) -> TableRow:
        return {
            Column(f"{key}_precision", "P", group): at.precision,
            Column(f"{key}_recall", "R", group): at.recall,
            Column(f"{key}_value", title, group, best="max"): at.value,
        }

    rows: list[TableRow] = [
        {
            Column("metric", "metric"): name,
            Column("area", "area", best="max"): curve.area,
            Column("thresholds", "thresholds"): len(curve.points) - 1,
            **point("all", "all spans", curve.points[-1]),
            **point("best", best, curve.best),
            Column("threshold", "threshold", best, digits=2): finite_or_empty(curve.best.threshold),
        }
        for name, curve in sorted(curves.items(), key=lambda item: (-item[1].area, item[0]))
    ]
    legend = (
        "area: under precision over recall, by falling confidence; the best threshold is that of these translations"
    )
    return table_of(f"{test_set.name} {test_set.lp}, {title}", rows, (legend, *test_set.notes, *notes))


def precision_recall_panels(
    curves: Mapping[tuple[str, str], Mapping[str, PrecisionRecallCurve]],
) -> dict[str, Sequence[Curve]]:
    """One panel for each measure, of (language pair, measure) -> metric -> curve. A metric without any span has none.

    Raises `InputError` if no metric has a span.
    """
    panels: dict[str, list[Curve]] = {}
    for (pair, measure), by_metric in curves.items():
        for name, curve in by_metric.items():
            x, y = [p.recall for p in curve.points[1:]], [p.precision for p in curve.points[1:]]
            if x:
                title = f"precision, {MEASURE_TITLES.get(measure, measure)}"
                panels.setdefault(title, []).append(Curve(f"{name} {pair}", tuple(x), tuple(y)))
    if not panels:
        raise InputError("no metric marks a span on a rated translation, so there is no curve to plot")
    return {**panels}
