"""Precision-recall curves of error spans: their tables and their plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.evaluation import CurvePoint, PrecisionRecallCurve, precision_recall_curve
from mbr_esd_metric.metaeval.spans import AnnotationMatrix
from mbr_esd_metric.report.curves import Curve
from mbr_esd_metric.report.evaluations import Measuring
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES
from mbr_esd_metric.report.tables import Cell, Column, Table


def precision_recall_curves(
    test_set: TestSet, predicted: Mapping[str, AnnotationMatrix], measure: str, measuring: Measuring
) -> dict[str, PrecisionRecallCurve]:
    """The curve of each metric.

    Raises:
        InputError: no human ratings, or spans that do not fit.
    """
    human = list(test_set.human(measuring.raters).values())
    if not human:
        raise InputError(f"{test_set.layout.human_rating('*')}: no human ratings to compare spans with")
    found = {}
    for name, spans in predicted.items():
        try:
            found[name] = precision_recall_curve(spans, human, test_set.lengths, measure, measuring.aggregation)
        except InputError as error:
            raise InputError(f"{name}, {test_set.lp}: {error}") from None
    return found


def precision_recall_table(
    test_set: TestSet, measure: str, curves: Mapping[str, PrecisionRecallCurve], notes: Sequence[str]
) -> Table:
    """The area under each curve, all spans, and the best threshold; `notes` say what was repaired in the metrics."""
    title = MEASURE_TITLES.get(measure, measure)
    columns = [Column("metric", "metric", label=True), Column("area", "area", best="max")]
    columns.append(Column("thresholds", "thresholds"))
    for group, key in (("all spans", "all"), ("the best threshold", "best")):
        columns += [Column(f"{key}_{part}", part[0].upper(), group) for part in ("precision", "recall")]
        columns.append(Column(f"{key}_value", title, group, best="max"))
    columns.append(Column("threshold", "threshold", "the best threshold", digits=2))
    ordered = sorted(curves.items(), key=lambda item: (-item[1].area, item[0]))
    rows = tuple(
        (
            Cell(name),
            Cell(curve.area),
            Cell(len(curve.points) - 1),
            *_cells(curve.points[-1]),
            *_cells(curve.best),
            Cell(None if math.isinf(curve.best.threshold) else curve.best.threshold),
        )
        for name, curve in ordered
    )
    legend = (
        "area: under precision over recall, by falling confidence; the best threshold is that of these translations"
    )
    return Table(f"{test_set.name} {test_set.lp}, {title}", tuple(columns), rows, (legend, *test_set.notes, *notes))


def precision_recall_panels(
    curves: Mapping[tuple[str, str], Mapping[str, PrecisionRecallCurve]],
) -> dict[str, Sequence[Curve]]:
    """One panel for each measure. A metric without any span has no curve.

    Args:
        curves: (language pair, measure) -> metric -> its curve.

    Raises:
        InputError: no metric has a span.
    """
    panels: dict[str, list[Curve]] = {}
    for (pair, measure), found in curves.items():
        for name, curve in found.items():
            x, y = [p.recall for p in curve.points[1:]], [p.precision for p in curve.points[1:]]
            if x:
                title = f"precision, {MEASURE_TITLES.get(measure, measure)}"
                panels.setdefault(title, []).append(Curve(f"{name} {pair}", tuple(x), tuple(y)))
    if not panels:
        raise InputError("no metric marks a span on a rated translation, so there is no curve to plot")
    return {**panels}


def _cells(point: CurvePoint) -> list[Cell]:
    return [Cell(point.precision), Cell(point.recall), Cell(point.value)]
