"""What oracle and the lambda sweep share: how predictions are evaluated, and their tables and curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mbr_esd_metric.adapters.wmt.scored import missing_notes
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.metaeval.evaluation import Evaluation, Evaluator
from mbr_esd_metric.metaeval.matrices import Missing
from mbr_esd_metric.metaeval.spa import constant_notes, exact_notes
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, Raters
from mbr_esd_metric.report.curves import Curve
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES
from mbr_esd_metric.report.tables import Cell, Column, Table

#: The first cells of a row.
Row: TypeAlias = tuple[str | float, ...]


@dataclass(frozen=True, slots=True)
class Measuring:
    """How predictions are evaluated; see `Evaluator`.

    Attributes:
        raters: sets of human ratings; none for the merged one, or every rater's where there is none.
        measures: of error spans.
        aggregation: what several raters of one translation count.
        weights: MQM weights of Score(E).
        missing, exact: which SPA.
    """

    raters: tuple[str, ...] = ()
    measures: tuple[str, ...] = DEFAULT_MEASURES
    aggregation: Raters = "mean"
    weights: str = "paper"
    missing: Missing = "pairs"
    exact: bool = False

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
        return Evaluator(
            gold,
            human,
            test_set.lengths,
            self.measures,
            self.aggregation,
            self.weights,
            self.missing,
            self.exact,
        )

    def notes(self, test_set: TestSet) -> list[str]:
        """What was repaired in a test set, and which segments SPA uses."""
        return [*test_set.notes, *missing_notes(test_set, self.missing)]


def evaluation_table(
    title: str,
    labels: Sequence[Column],
    found: Mapping[str, Mapping[Row, Evaluation]],
    pairs: Sequence[str],
    measuring: Measuring,
    notes: Sequence[str],
    named: Callable[[Row], str],
    *,
    rated: bool = False,
) -> Table:
    """SPA, acc_eq, the span measures (empty without human ratings) and numbers of spans, for each language pair.

    Args:
        title, labels: above the table, and the first columns.
        found: language pair -> row -> evaluation; the cells of a pair that lacks a row are empty.
        pairs: the language pairs, in order.
        measuring: how the evaluations were made.
        notes: below the table, between that of exact SPA and that of rows with one score for everything.
        named: what that last note calls a row.
        rated: whether a column says how many translations were rated.
    """
    columns = [*labels, *(column for pair in pairs for column in evaluation_columns(measuring.measures, pair, rated))]
    rows = dict.fromkeys(row for of in found.values() for row in of)
    body = tuple(
        (
            *map(Cell, row),
            *(
                cell
                for pair in pairs
                for cell in evaluation_cells(measuring.measures, found.get(pair, {}).get(row), rated)
            ),
        )
        for row in rows
    )
    constant = {pair: [named(row) for row, one in of.items() if one.constant] for pair, of in found.items()}
    below = (*exact_notes(measuring.exact), *notes, *constant_notes(constant, measuring.exact))
    return Table(title, tuple(columns), body, below)


def evaluation_columns(measures: Sequence[str], group: str, rated: bool = False) -> list[Column]:
    """Columns for `evaluation_cells`."""
    return [
        *(Column(name, MEASURE_TITLES.get(name, name), group, best="max") for name in ("spa", "acc_eq", *measures)),
        Column("major", "major", group),
        Column("minor", "minor", group),
        *([Column("rated", "rated", group)] if rated else []),
    ]


def evaluation_cells(measures: Sequence[str], evaluation: Evaluation | None, rated: bool = False) -> list[Cell]:
    """One row's cells of one language pair; empty ones for None."""
    if evaluation is None:
        return [Cell()] * (4 + len(measures) + rated)
    spans = evaluation.spans.values if evaluation.spans else {}
    values = [evaluation.spa, evaluation.acc_eq, *(spans.get(name) for name in measures)]
    cells = [*map(Cell, values), Cell(evaluation.major), Cell(evaluation.minor)]
    return [*cells, Cell(evaluation.spans.rated if evaluation.spans else None)] if rated else cells


def evaluation_panels(
    measures: Sequence[str],
    lines: Mapping[str, Sequence[tuple[float, Evaluation]]],
    *,
    spans: bool = False,
    guides: Mapping[str, Sequence[tuple[float, Evaluation]]] | None = None,
) -> dict[str, list[Curve]]:
    """Panel of a plot -> its curves: SPA, acc_eq, the span measures where all have them, and the numbers of spans.

    Args:
        measures: of error spans.
        lines: label of a curve -> its points.
        spans: whether there is a panel for the numbers of spans.
        guides: the same of what the lines are compared with.
    """
    panels: dict[str, list[Curve]] = {}
    guides = guides or {}
    for label, points in (*lines.items(), *guides.items()):
        x, found = tuple(at for at, _ in points), [evaluation for _, evaluation in points]
        values = {"spa": tuple(e.spa for e in found), "acc_eq": tuple(e.acc_eq for e in found)}
        if all(e.spans for e in found):
            values |= {name: tuple(e.spans.values[name] for e in found if e.spans) for name in measures}
        if spans:
            values["spans"] = tuple(float(e.major + e.minor) for e in found)
        for name, y in values.items():
            panels.setdefault(MEASURE_TITLES.get(name, name), []).append(Curve(label, x, y, guide=label in guides))
    return panels
