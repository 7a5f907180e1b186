"""Evaluations of test sets as tables and plots: sweeps, curves, numbers of spans, error-free translations, parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeAlias

import numpy as np

from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name, metric_set_of, missing_notes
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.errors import InputError, labelled, number_of
from mbr_esd_metric.metaeval.error_free import (
    ESA_THRESHOLD,
    ErrorFree,
    Validation,
    best_threshold,
    error_free,
    gold_labels,
    unmarked,
)
from mbr_esd_metric.metaeval.evaluation import (
    LAMBDAS,
    CurvePoint,
    Evaluation,
    Evaluator,
    PrecisionRecallCurve,
    lambda_sweep,
    precision_recall_curve,
)
from mbr_esd_metric.metaeval.score_statistics import SCORE_STATISTICS, breakdown, length_labels
from mbr_esd_metric.metaeval.spa import constant_notes, exact_notes
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES, expand_measures
from mbr_esd_metric.metaeval.spans import (
    AnnotationMatrix,
    SpanCounts,
    SpanEvaluator,
    evaluate_omissions,
    rater_agreement,
)
from mbr_esd_metric.prompting.text import word_count
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES, input_of, measure_column, row_name, statistic_title
from mbr_esd_metric.report.plots import Curve
from mbr_esd_metric.report.tables import Cell, Column, Table, TableRow, Value, finite_or_empty, table_of

#: The first cells of a row.
Row: TypeAlias = tuple[str | float, ...]


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """The options of an `Evaluator`.

    Attributes:
        raters: sets of human ratings; none for the merged one, or every rater's where there is none.
        measures: of error spans; "NAME-parts" stands for the measure, its precision and its recall.
        exact: which SPA.
    """

    raters: tuple[str, ...] = ()
    measures: tuple[str, ...] = DEFAULT_MEASURES
    exact: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "measures", expand_measures(self.measures))

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
        return Evaluator(gold, human, test_set.lengths, self.measures, exact_spa=self.exact)

    def notes(self, test_set: TestSet) -> list[str]:
        """Notes on repairs of a test set, and on the segments that SPA uses."""
        return [*test_set.notes, *missing_notes(test_set)]


def evaluation_table(
    title: str,
    labels: Sequence[Column],
    evaluations: Mapping[str, Mapping[Row, Evaluation]],
    pairs: Sequence[str],
    measuring: EvaluationSettings,
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

    def cells(pair: str, evaluation: Evaluation | None) -> TableRow:
        spans = evaluation.spans if evaluation else None
        values: dict[str, float] = {"spa": evaluation.spa, "acc_eq": evaluation.acc_eq} if evaluation else {}
        values |= spans.values if spans else {}
        return {
            **{measure_column(name, pair): values.get(name) for name in ("spa", "acc_eq", *measuring.measures)},
            Column("major", "major", pair): evaluation.major if evaluation else None,
            Column("minor", "minor", pair): evaluation.minor if evaluation else None,
            **({Column("rated", "rated", pair): spans.rated if spans else None} if rated else {}),
        }

    rows: list[TableRow] = []
    for row in dict.fromkeys(row for of in evaluations.values() for row in of):
        shown: dict[Column, Value | Cell] = dict(zip(labels, row, strict=True))
        for pair in pairs:
            shown |= cells(pair, evaluations.get(pair, {}).get(row))
        rows.append(shown)
    constant = {pair: [named(row) for row, one in of.items() if one.constant] for pair, of in evaluations.items()}
    below = (*exact_notes(measuring.exact), *notes, *constant_notes(constant, measuring.exact))
    return table_of(title, rows, below)


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


def sweep_tables(
    test_sets: Sequence[TestSet], measuring: EvaluationSettings, metrics: Sequence[str] = ()
) -> tuple[list[Table], dict[str, list[Curve]]]:
    """A table for each metric with error spans, and the panels of a plot. A row for each lambda evaluates the metric
    without the spans of a confidence below it. A sweep ends close to no error at all, the row "empty"."""
    swept: dict[str, dict[str, dict[Row, Evaluation]]] = {}
    lines: dict[str, list[tuple[float, Evaluation]]] = {}
    guides: dict[str, list[tuple[float, Evaluation]]] = {}
    notes: list[str] = []
    for test_set in test_sets:
        pair, evaluator = test_set.lp, measuring.evaluator(test_set)
        empty = evaluator.evaluate([[EMPTY] * test_set.segments] * len(test_set.systems))
        guides[f"empty {pair}"] = [(at, empty) for at in (LAMBDAS[0], LAMBDAS[-1])]
        spans, of_metrics = _spans_of_metrics(test_set, metrics)
        notes += [*measuring.notes(test_set), *of_metrics]
        for name, predicted in spans.items():
            with labelled(f"{name}, {pair}"):
                points = lambda_sweep(evaluator, predicted)
            lines[f"{name} {pair}"] = list(points.items())
            swept.setdefault(name, {})[pair] = {**{(at,): point for at, point in points.items()}, ("empty",): empty}
    tables = [
        evaluation_table(
            f"{name}, {test_sets[0].name}: spans of lower confidence dropped",
            [Column("lambda", "lambda", digits=1)],
            of,
            [test_set.lp for test_set in test_sets],
            measuring,
            notes,
            lambda row: "empty" if row[0] == "empty" else f"lambda {row[0]:.1f}",
        )
        for name, of in swept.items()
    ]
    return tables, evaluation_panels(measuring.measures, lines, spans=True, guides=guides)


def precision_recall_tables(
    test_sets: Sequence[TestSet], measuring: EvaluationSettings, metrics: Sequence[str] = ()
) -> tuple[list[Table], dict[str, list[Curve]]]:
    """A table for each language pair and measure: the area under each metric's precision-recall curve, all its spans,
    and the best threshold of their confidence; and the panels of a plot, without metrics that mark nothing."""
    tables: list[Table] = []
    panels: dict[str, list[Curve]] = {}
    for test_set in test_sets:
        human = [
            ratings.of(test_set.systems, test_set.segments) for ratings in test_set.human_ratings(measuring.raters)
        ]
        spans, notes = _spans_of_metrics(test_set, metrics)
        for measure in measuring.measures:
            title, curves = MEASURE_TITLES.get(measure, measure), {}
            for name, predicted in spans.items():
                with labelled(f"{name}, {test_set.lp}"):
                    curves[name] = precision_recall_curve(predicted, human, test_set.lengths, measure)
            for name, curve in curves.items():
                if marked := curve.points[1:]:
                    x, y = tuple(p.recall for p in marked), tuple(p.precision for p in marked)
                    panels.setdefault(f"precision, {title}", []).append(Curve(f"{name} {test_set.lp}", x, y))
            rows = [
                _curve_row(name, curve, title)
                for name, curve in sorted(curves.items(), key=lambda item: (-item[1].area, item[0]))
            ]
            legend = "area: under precision over recall, by falling confidence; the best threshold is that of these "
            legends = (f"{legend}translations", *test_set.notes, *notes)
            tables.append(table_of(f"{test_set.name} {test_set.lp}, {title}", rows, legends))
    return tables, panels


def _curve_row(name: str, curve: PrecisionRecallCurve, title: str) -> TableRow:
    best = "the best threshold"

    def point(key: str, group: str, at: CurvePoint) -> TableRow:
        return {
            Column(f"{key}_precision", "P", group): at.precision,
            Column(f"{key}_recall", "R", group): at.recall,
            Column(f"{key}_value", title, group, best="max"): at.value,
        }

    return {
        Column("metric", "metric"): name,
        Column("area", "area", best="max"): curve.area,
        Column("thresholds", "thresholds"): len(curve.points) - 1,
        **point("all", "all spans", curve.points[-1]),
        **point("best", best, curve.best),
        Column("threshold", "threshold", best, digits=2): finite_or_empty(curve.best.threshold),
    }


def _spans_of_metrics(test_set: TestSet, metrics: Sequence[str]) -> tuple[dict[str, AnnotationMatrix], list[str]]:
    """Name in tables of each metric with error spans, or of those that are named -> its spans; and notes on them."""
    stored, notes = test_set.read_metrics(metrics, with_spans=True)
    spans: dict[str, AnnotationMatrix] = {
        row_name(base_name(metric.name)): metric.ratings.of(test_set.systems, test_set.segments)
        for metric in stored
        if metric.ratings is not None
    }
    if not spans:
        raise InputError(
            f"{test_set.layout.metric_file('*', 'seg.rating')}: no metric of {test_set.lp} has error spans"
        )
    return spans, notes


#: Field of `OmissionScores` -> column.
_OMISSIONS = {
    "predicted": Column("omissions", "omitted", digits=0),
    "precision": Column("omission_precision", "omission precision", best="max"),
    "recall": Column("omission_recall", "omission recall", best="max"),
    "f1": Column("omission_f1", "omission F1", best="max"),
}


def span_table(test_set: TestSet, measuring: EvaluationSettings, metrics: Sequence[str] = ()) -> Table:
    """The humans, "no error" everywhere, and each metric with error spans.

    Where translations have two raters, also what one rater reaches against the others, and each metric's share of it.
    """
    systems, segments = test_set.systems, test_set.segments
    people = test_set.human_ratings(measuring.raters)
    human = [ratings.of(systems, segments) for ratings in people]
    evaluator = SpanEvaluator(human, test_set.lengths, measuring.measures)
    nothing = evaluator.evaluate([[EMPTY] * segments] * len(systems))
    counts = nothing.counts
    among_people = rater_agreement(human, test_set.lengths, measuring.measures)
    stored, notes = test_set.read_metrics(metrics, with_spans=True)
    with_spans = [(metric, metric.ratings) for metric in stored if metric.ratings is not None]
    omissions = [ratings.of(systems, segments, omissions=True) for _, ratings in with_spans]
    with_omissions = any(cell is not None and len(cell) > 0 for matrix in omissions for row in matrix for cell in row)

    def row(
        name: str, source: str | None, of: SpanCounts, values: Mapping[str, float], left_out: object = None
    ) -> TableRow:
        both = of.major + of.minor
        cells: dict[Column, Value | Cell] = {
            Column("metric", "metric"): name,
            Column("input", "input"): source,
            Column("major", "major", digits=0): of.major,
            Column("minor", "minor", digits=0): of.minor,
            Column("per_translation", "per translation", digits=2): both / nothing.rated,
            Column("major_share", "% major", digits=1, percent=True): of.major / both if both else None,
            Column("ratio", "ratio", digits=2): finite_or_empty(of.ratio),
        }
        for measure in measuring.measures:
            cells[measure_column(measure)] = value = values.get(measure)
            if among_people:
                best = among_people[measure]
                share = value / best if value is not None and best > 0 else None
                cells[Column(f"{measure}_share", "% human", digits=0, percent=True)] = share
        if with_omissions:
            cells |= {column: finite_or_empty(getattr(left_out, key, None)) for key, column in _OMISSIONS.items()}
        return cells

    rows = [
        row("human", None, SpanCounts(counts.gold_major, counts.gold_minor, 0, 0), among_people),
        row("no error", None, counts, nothing.values),
    ]
    for (metric, ratings), left_out in zip(with_spans, omissions, strict=True):
        with labelled(f"{metric.name}, {test_set.lp}"):
            scores = evaluator.evaluate(ratings.of(systems, segments))
        base, uses_reference = base_name(metric.name)
        of_people = [ratings.of(systems, segments, omissions=True) for ratings in people]
        omitted = evaluate_omissions(left_out, of_people) if with_omissions else None
        rows.append(row(base, input_of(uses_reference), scores.counts, scores.values, omitted))
    legend = [
        f"{number_of(nothing.rated, 'rated translation')}, {number_of(len(systems), 'system')}, raters: "
        f"{', '.join(ratings.name for ratings in people)}",
        "ratio: error spans per human error span",
    ]
    if among_people:
        legend.append("human: one rater against the others; % human: the share of it")
    if with_omissions:
        legend.append("omitted: what is left out, as spans of the source; right if they meet a human one")
    return table_of(f"{test_set.name} {test_set.lp}", rows, (*legend, *test_set.notes, *notes))


def error_free_table(test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = ()) -> Table:
    """Each metric, by its spans and by its score; metrics by full or base names, none for all."""
    gold = test_set.info.gold
    least = ESA_THRESHOLD if gold.startswith("esa") else 0.0 if gold.startswith("mqm") else -math.inf
    labels = gold_labels(test_set.gold, list(test_set.human(raters).values()), least)
    rated, clean = int((~np.isnan(labels)).sum()), int(np.nansum(labels))

    def row(name: str, by: str | None, result: ErrorFree, threshold: float | None, auc: float | None) -> TableRow:
        return {
            Column("metric", "metric"): name,
            Column("by", "by"): by,
            **_values(result),
            Column("threshold", "threshold"): finite_or_empty(threshold),
            Column("auc", "AUC", best="max"): finite_or_empty(auc),
        }

    rows = [row("none without error", None, error_free(labels, np.zeros(labels.shape)), None, None)]
    stored, notes = test_set.read_metrics(metrics)
    for metric in stored:
        shown = row_name(base_name(metric.name))
        if metric.ratings is not None:
            clean_spans = unmarked(metric.ratings.of(test_set.systems, test_set.segments))
            rows.append(row(shown, "no span", error_free(labels, clean_spans), None, None))
        best = best_threshold(labels, metric.scores)
        rows.append(row(shown, "score, best", best.result, best.threshold, best.auc))
    score = "" if least == -math.inf else f" and a gold score of at least {least:g}"
    legend = [f"{clean} of {rated} rated translations are without error: no marked error{score}"]
    legend.append("best: the threshold of the score with the highest MCC on these translations")
    return table_of(f"{test_set.name} {test_set.lp}", rows, (*legend, *test_set.notes, *notes))


def learning_tables(
    title: str, tried: Sequence[Validation], labels: Sequence[bool], precision: float | None = None
) -> list[Table]:
    """Ways to say "without error" on translations that they were not learnt on, and each language pair by itself."""
    pairs = list(tried[0].by_pair)
    rows: list[TableRow] = []
    for one in tried:
        mcc, *others = _values(one.result).items()
        interval = Column("interval", "95% interval"), "{:+.3f} to {:+.3f}".format(*one.interval)
        row = dict([(Column("by", "by"), one.name), mcc, interval, *others])
        if len(pairs) > 1:
            row |= {Column(f"mcc {pair}", f"MCC {pair}", best="max"): one.by_pair[pair].mcc for pair in pairs}
        rows.append(row)
    aim = "the highest MCC" if precision is None else f"a precision of {precision:g}"
    notes = (
        f"{sum(labels)} of {len(labels)} rated translations are without error",
        f"learnt on four fifths of the documents, for {aim}, and tried on the last; intervals resample documents",
    )
    return [table_of(f"{title}: without error", rows, notes)]


def _values(result: ErrorFree) -> TableRow:
    return {
        Column("mcc", "MCC", best="max"): result.mcc,
        Column("precision", "P", best="max"): result.precision,
        Column("recall", "R", best="max"): result.recall,
        Column("f1", "F1", best="max"): result.f1,
        Column("accuracy", "accuracy", best="max"): result.accuracy,
    }


#: What a test set can be divided by.
By = Literal["domain", "document", "length"]


def breakdown_table(
    test_set: TestSet, by: By, statistics: Sequence[str], measuring: EvaluationSettings, metrics: Sequence[str] = ()
) -> Table:
    """One row for each part and metric; within a part the best by the first statistic or measure comes first.

    Statistics of scores come before the measures of error spans; metrics by full or base names, none for all.
    """
    names = [*statistics, *measuring.measures]
    data = metric_set_of(test_set, metrics, measuring.raters)
    if by == "length":
        labels = length_labels(words_of_translations(test_set))
    else:
        labels = [domain if by == "domain" else document for domain, document in test_set.documents]
    parts = breakdown(data, labels, names, exact=measuring.exact)
    if by == "length":
        parts = tuple(sorted(parts, key=lambda part: int(part.name.split("-")[0])))
    titles = {
        name: statistic_title(SCORE_STATISTICS[name]) if name in SCORE_STATISTICS else MEASURE_TITLES.get(name, name)
        for name in names
    }
    rows: list[TableRow] = [
        {
            Column(by, by): part.name,
            Column("segments", "segments"): part.segments,
            Column("rated", "rated"): part.rated,
            Column("metric", "metric"): key[0],
            Column("input", "input"): input_of(key[1]),
            **{Column(name, title): values[name] for name, title in titles.items()},
        }
        for part in parts
        for key, values in sorted(part.values.items(), key=lambda item: (descending_key(item[1][names[0]]), item[0]))
    ]
    legend = "rated: translations with a gold score"
    if by == "length":
        legend += "; lengths are words of the translation, the mean over the systems"
    legends = [legend]
    if "softf1" in names:
        legends.append("SoftF1 rewards a metric that marks little; compare with the metric empty")
    title = f"{test_set.name} {test_set.lp} by {by}"
    constant = {test_set.lp: data.constant} if "spa" in names else {}
    notes = constant_notes(constant, measuring.exact)
    return table_of(title, rows, (*legends, *exact_notes(measuring.exact), *data.notes, *notes))


def words_of_translations(test_set: TestSet) -> list[int]:
    """The mean number of words of each segment's translations, rounded."""
    each: list[list[int]] = [[] for _ in test_set.sources]
    for texts in test_set.outputs.values():
        for words, text in zip(each, texts, strict=True):
            words += [] if text is None else [word_count(text)]
    return [round(fmean(words)) if words else 0 for words in each]


def descending_key(value: float | None) -> float:
    """A sort key: the highest value first, no value last."""
    return math.inf if value is None else -value
