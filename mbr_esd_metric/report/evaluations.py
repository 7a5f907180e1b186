"""Tables and plots of evaluations: threshold sweeps, precision-recall curves, span counts, error-free translations,
breakdowns, calibration."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from mbr_esd_metric.adapters.wmt.layout import base_name
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.recalibration import Recalibration
from mbr_esd_metric.errors import labelled
from mbr_esd_metric.files.judged import JudgedSegment
from mbr_esd_metric.messages import number_of
from mbr_esd_metric.metaeval.calibration import (
    CALIBRATION_LEVELS,
    CalibrationLevel,
    Predicted,
    calibration_error,
    predicted_spans,
    reliability,
    threshold_curve,
)
from mbr_esd_metric.metaeval.error_free import (
    ErrorFree,
    Validation,
    best_threshold,
    error_free,
    lowest_error_free,
    unmarked,
)
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, Result, evaluate_metrics
from mbr_esd_metric.metaeval.matrices import rater_counts
from mbr_esd_metric.metaeval.metric_set import Key, MetricEntry, MetricSet, spa_notes
from mbr_esd_metric.metaeval.score_statistics import breakdown, length_labels
from mbr_esd_metric.metaeval.spans import (
    LAMBDAS,
    AnnotationMatrix,
    CurvePoint,
    PrecisionRecallCurve,
    SpanCounts,
    SpanEvaluator,
    SpanScores,
    evaluate_omissions,
    lambda_sweep,
    precision_recall_curve,
    rater_agreement,
)
from mbr_esd_metric.prompting.pieces import word_count
from mbr_esd_metric.report.inputs import JudgedTable, error_free_labels
from mbr_esd_metric.report.leaderboard_table import (
    input_of,
    measure_column,
    measure_title,
    metric_cells,
    named_cell,
    result_cells,
    row_name,
)
from mbr_esd_metric.report.plots import Curve, plot_curves
from mbr_esd_metric.report.tables import Cell, Column, Table, TableRow, Value, finite_or_empty, table_of


def evaluation_table(
    title: str,
    rows: Mapping[str, TableRow],
    results: Mapping[str, Mapping[Key, Result]],
    sets: Sequence[MetricSet],
    settings: LeaderboardSettings,
    notes: Sequence[str] = (),
) -> Table:
    """Table with SPA, acc_eq, the span measures (empty without human ratings) and span counts of each language pair.

    Args:
        rows: metric name -> the first cells of its row. Rows without a result in any language pair are omitted.
        notes: notes to show above those on SPA.
    """
    shown = []
    for name, labels in rows.items():
        key, cells = (name, False), dict(labels)
        if not any(key in of for of in results.values()):
            continue
        for lp, of in results.items():
            cells |= result_cells(lp, of.get(key), settings.measures if any(one.human for one in sets) else ())
        shown.append(cells)
    return table_of(title, shown, (*notes, *spa_notes(sets, settings.exact)))


def evaluation_panels(
    lines: Mapping[str, Sequence[tuple[float, Result]]], guides: Mapping[str, Sequence[tuple[float, Result]]] = {}
) -> dict[str, list[Curve]]:
    """Panel title -> its curves: SPA, acc_eq, the span measures, and the number of spans.

    Args:
        lines: label -> points.
        guides: label -> points of the reference lines.
    """
    panels: dict[str, list[Curve]] = {}
    for label, points in (*lines.items(), *guides.items()):
        x, results = tuple(at for at, _ in points), [result for _, result in points]
        values = {name: tuple(result.values[name] for result in results) for name in results[0].values}
        values["spans"] = tuple(one.counts.major + one.counts.minor for one in results if one.counts)
        for name, y in values.items():
            panels.setdefault(measure_title(name), []).append(Curve(label, x, y, guide=label in guides))
    return panels


def sweep_tables(
    test_set: str, sets: Sequence[MetricSet], settings: LeaderboardSettings
) -> tuple[list[Table], dict[str, list[Curve]]]:
    """One table per metric with error spans, and the panels of a plot. Each row evaluates the metric without the spans
    whose confidence is below lambda; the last row, "empty", evaluates it without any spans."""
    column = Column("lambda", "lambda", digits=1)
    rows: dict[str, TableRow] = {f"lambda {at:.1f}": {column: at} for at in LAMBDAS} | {"empty": {column: "empty"}}
    swept: dict[Key, list[MetricSet]] = {}
    for data in sets:
        nothing: AnnotationMatrix = [[EMPTY] * len(row) for row in data.gold]
        for metric in data.entries:
            with labelled(f"{row_name(metric.key)}, {data.lp}"):
                every = [*lambda_sweep(metric.spans or ()).values(), nothing]
            entries = [MetricEntry.of_spans(name, spans) for name, spans in zip(rows, every, strict=True)]
            swept.setdefault(metric.key, []).append(replace(data, entries=entries))
    tables, lines, guides = [], {}, {}
    for key, of_metric in swept.items():
        results = {one.lp: evaluate_metrics(one, settings) for one in of_metric}
        for lp, of in results.items():
            *points, empty = of.values()
            lines[f"{row_name(key)} {lp}"] = list(zip(LAMBDAS, points, strict=True))
            guides[f"empty {lp}"] = [(at, empty) for at in (LAMBDAS[0], LAMBDAS[-1])]
        title = f"{row_name(key)}, {test_set}: spans of lower confidence dropped"
        every_lp = {one.lp: results.get(one.lp, {}) for one in sets}
        notes = [note for one in sets for note in one.notes]
        tables.append(evaluation_table(title, rows, every_lp, of_metric, settings, notes))
    return tables, evaluation_panels(lines, guides)


def precision_recall_tables(
    test_set: str, sets: Sequence[MetricSet], measures: Sequence[str]
) -> tuple[list[Table], dict[str, list[Curve]]]:
    """One table per language pair and measure, and the panels of a plot. A row has the area under a metric's
    precision-recall curve, and its precision and recall with all spans and at the best confidence threshold. Metrics
    without spans are not plotted."""
    tables: list[Table] = []
    panels: dict[str, list[Curve]] = {}
    for data, measure in product(sets, measures):
        title, curves = measure_title(measure), {}
        for metric in data.entries:
            name = row_name(metric.key)
            with labelled(f"{name}, {data.lp}"):
                curves[metric.key] = precision_recall_curve(metric.spans or (), data.human, data.lengths, measure)
            if marked := curves[metric.key].points[1:]:
                x, y = tuple(p.recall for p in marked), tuple(p.precision for p in marked)
                panels.setdefault(f"precision, {title}", []).append(Curve(f"{name} {data.lp}", x, y))
        ordered = sorted(curves.items(), key=lambda item: (-item[1].area, row_name(item[0])))
        rows = [_curve_row(key, curve, title) for key, curve in ordered]
        legend = "area: under the precision-recall curve, by confidence; the best threshold is selected on these "
        tables.append(table_of(f"{test_set} {data.lp}, {title}", rows, (f"{legend}translations", *data.notes)))
    return tables, panels


def _curve_row(metric: Key, curve: PrecisionRecallCurve, title: str) -> TableRow:
    def point(key: str, group: str, at: CurvePoint) -> TableRow:
        return {
            Column(f"{key}_precision", "P", group): at.precision,
            Column(f"{key}_recall", "R", group): at.recall,
            Column(f"{key}_value", title, group, best="max"): at.value,
        }

    return {
        Column("metric", "metric"): named_cell(metric),
        Column("area", "area", best="max"): curve.area,
        Column("thresholds", "thresholds"): len(curve.points) - 1,
        **point("all", "all spans", curve.points[-1]),
        **point("best", "the best threshold", curve.best),
        Column("threshold", "threshold", "the best threshold", digits=2): finite_or_empty(curve.best.threshold),
    }


#: Field of `OmissionScores` -> column.
_OMISSIONS = {
    "predicted": Column("omissions", "omitted", digits=0),
    "precision": Column("omission_precision", "omission precision", best="max"),
    "recall": Column("omission_recall", "omission recall", best="max"),
    "f1": Column("omission_f1", "omission F1", best="max"),
}


def span_table(
    test_set: TestSet, measures: Sequence[str], metrics: Sequence[str] = (), raters: Sequence[str] = ()
) -> Table:
    """One row for the humans, one for "no error" everywhere (unless the metric `empty` is among the metrics), and one
    per metric with error spans.

    If translations have at least two raters, the table also has the agreement of one rater with the others, and the
    value of each metric on these translations as a share of that.
    """
    systems, segments = test_set.systems, test_set.segments
    people = test_set.human_ratings(raters)
    human = [ratings.of(systems, segments) for ratings in people]
    evaluator = SpanEvaluator(human, test_set.lengths, measures)
    nothing = evaluator.evaluate([[EMPTY] * segments] * len(systems))
    counts = nothing.counts
    among_people, shared = rater_agreement(human, test_set.lengths, measures), rater_counts(human) > 1
    stored, notes = test_set.read_metrics(metrics, with_spans=True)
    with_spans = [(metric, metric.ratings) for metric in stored if metric.ratings is not None]
    omissions = [ratings.of(systems, segments, omissions=True) for _, ratings in with_spans]
    with_omissions = any(cell is not None and len(cell) > 0 for matrix in omissions for row in matrix for cell in row)

    def row(name: Value | Cell, source: str | None, scores: SpanScores | None, left_out: object = None) -> TableRow:
        """The row of a metric; without scores, of the humans."""
        of = scores.counts if scores else SpanCounts(counts.gold_major, counts.gold_minor, 0, 0)
        values = scores.values if scores else among_people
        on_shared = scores.values_on(shared) if scores and among_people else among_people
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
        for measure in measures:
            cells[measure_column(measure)] = values.get(measure)
            if among_people:
                best = among_people[measure]
                share = on_shared[measure] / best if best > 0 else None
                cells[Column(f"{measure}_share", "% human", digits=0, percent=True)] = share
        if with_omissions:
            cells |= {column: finite_or_empty(getattr(left_out, key, None)) for key, column in _OMISSIONS.items()}
        return cells

    rows = [row("human", None, None)]
    if not any(base_name(metric.name)[0] == "empty" for metric, _ in with_spans):
        rows.append(row("no error", None, nothing))
    for (metric, ratings), left_out in zip(with_spans, omissions, strict=True):
        with labelled(f"{metric.name}, {test_set.lp}"):
            scores = evaluator.evaluate(ratings.of(systems, segments))
        base, uses_reference = base_name(metric.name)
        of_people = [ratings.of(systems, segments, omissions=True) for ratings in people]
        omitted = evaluate_omissions(left_out, of_people) if with_omissions else None
        rows.append(row(Cell(base, metric=base), input_of(uses_reference), scores, omitted))
    legend = [
        f"{number_of(nothing.rated, 'rated translation')}, {number_of(len(systems), 'system')}, raters: "
        f"{', '.join(ratings.name for ratings in people)}",
        "ratio: error spans per human error span",
    ]
    if among_people:
        legend.append("human: one rater against the others; % human: the metric's share of that value")
        if (both := int(shared.sum())) < nothing.rated:
            legend[-1] += f", on the {both} of {nothing.rated} rated translations with at least two raters"
    if with_omissions:
        legend.append("omitted: omissions, as spans of the source; correct if they overlap a human one")
    return table_of(f"{test_set.name} {test_set.lp}", rows, (*legend, *test_set.notes, *notes))


def error_free_table(test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = ()) -> Table:
    """Error-free classification by each metric: by the absence of spans, and by its score.

    Args:
        metrics: full or base names; all metrics if empty.
    """
    least = lowest_error_free(test_set.info.gold)
    labels = error_free_labels(test_set, raters)
    rated, clean = int((~np.isnan(labels)).sum()), int(np.nansum(labels))

    def row(
        name: Value | Cell, by: str | None, result: ErrorFree, threshold: float | None = None, auc: float | None = None
    ) -> TableRow:
        return {
            Column("metric", "metric"): name,
            Column("by", "by"): by,
            **_values(result),
            Column("threshold", "threshold"): finite_or_empty(threshold),
            Column("auc", "AUC", best="max"): finite_or_empty(auc),
        }

    rows = [row("none without error", None, error_free(labels, np.zeros(labels.shape)))]
    stored, notes = test_set.read_metrics(metrics)
    for metric in stored:
        shown = named_cell(base_name(metric.name))
        if metric.ratings is not None:
            clean_spans = unmarked(metric.ratings.both_sides(test_set.systems, test_set.segments))
            rows.append(row(shown, "no span", error_free(labels, clean_spans)))
        threshold, result, auc = best_threshold(labels, metric.scores)
        rows.append(row(shown, "score, best", result, threshold, auc))
    score = "" if least == -math.inf else f" and a gold score of at least {least:g}"
    legend = [f"{clean} of {rated} rated translations are without error: no marked error{score}"]
    legend.append("best: the score threshold with the highest MCC on these translations")
    return table_of(f"{test_set.name} {test_set.lp}", rows, (*legend, *test_set.notes, *notes))


def learning_table(
    title: str, tried: Sequence[Validation], labels: Sequence[bool], precision: float | None = None
) -> Table:
    """Cross-validated results of error-free classifiers, overall and per language pair."""
    pairs = list(tried[0].by_pair)
    rows: list[TableRow] = []
    unreached = [one.name for one in tried if one.result is None]
    for one in tried:
        if one.result is None:
            rows.append({Column("by", "by"): one.name})
            continue
        mcc, *others = _values(one.result).items()
        interval = Column("interval", "95% interval"), "{:+.3f} to {:+.3f}".format(*one.interval)
        row = dict([(Column("by", "by"), one.name), mcc, interval, *others])
        if len(pairs) > 1:
            row |= {Column(f"mcc {pair}", f"MCC {pair}", best="max"): one.by_pair[pair].mcc for pair in pairs}
        rows.append(row)
    aim = "the highest MCC" if precision is None else f"a precision of {precision:g}"
    notes = [
        f"{sum(labels)} of {len(labels)} rated translations are without error",
        f"5-fold cross-validation over documents, tuned for {aim}; intervals resample documents",
        *(f"{name}: no threshold reaches {aim} in at least one fold, so there is no result" for name in unreached),
    ]
    return table_of(f"{title}: without error", rows, notes)


def _values(result: ErrorFree) -> TableRow:
    titles = {"mcc": "MCC", "precision": "P", "recall": "R", "f1": "F1", "accuracy": "accuracy"}
    return {Column(name, title, best="max"): getattr(result, name) for name, title in titles.items()}


def breakdown_table(test_set: TestSet, data: MetricSet, by: str, names: Sequence[str], exact: bool = False) -> Table:
    """One row per part of the test set and metric, sorted within a part by the first statistic or measure.

    Args:
        by: the division into parts: "domain", "document" or "length".
    """
    labels = [domain if by == "domain" else document for domain, document in test_set.documents]
    if by == "length":
        texts = zip(*test_set.outputs.values(), strict=True)
        words = [[word_count(text) for text in of if text is not None] for of in texts]
        labels = length_labels([round(fmean(each)) if each else 0 for each in words])
    parts = breakdown(data, labels, names, exact=exact)
    if by == "length":
        parts = tuple(sorted(parts, key=lambda part: int(part.name.split("-")[0])))

    def order(item: tuple[Key, Mapping[str, float | None]]) -> tuple[float, Key]:
        first = item[1][names[0]]
        return math.inf if first is None else -first, item[0]

    rows: list[TableRow] = [
        {
            Column(by, by): part.name,
            Column("segments", "segments"): part.segments,
            Column("rated", "rated"): part.rated,
            **metric_cells(key),
            **{Column(name, measure_title(name)): values[name] for name in names},
        }
        for part in parts
        for key, values in sorted(part.values.items(), key=order)
    ]
    legends = ["rated: translations with a gold score"]
    if by == "length":
        legends[0] += "; length: words of the translation, averaged over the systems"
    if "softf1" in names:
        legends.append("SoftF1 rewards metrics that mark few spans; compare with the metric empty")
    notes = spa_notes([data], exact) if "spa" in names else []
    return table_of(f"{test_set.name} {test_set.lp} by {by}", rows, (*legends, *data.notes, *notes))


def predicted_of(table: JudgedTable, level: CalibrationLevel = "span") -> dict[str, Predicted]:
    """Metric -> its predicted spans in human-rated rows; metrics with spans without a confidence are omitted."""

    def of_translations(ratings: Sequence[JudgedSegment | None]) -> list[Annotation | None]:
        annotations = (None if rating is None else rating.annotation for rating in ratings)
        return [None if annotation is None else annotation.on("translation") for annotation in annotations]

    human = [[of_translations(column.judged)] for column in table.columns if column.human]
    lengths = [[len(text.translation) for text in table.rows]]
    by_metric: dict[str, Predicted] = {}
    for column in table.columns:
        annotations = of_translations(column.judged)
        spans = [span for annotation in annotations if annotation for span in annotation]
        if column.human or not human or not spans or any(span.confidence is None for span in spans):
            continue
        both = [[[a if b is not None else None for a, b in zip(rater[0], annotations, strict=True)]] for rater in human]
        if any(annotation is not None for rater in both for annotation in rater[0]):
            by_metric[column.name] = predicted_spans([annotations], both, lengths, level)
    return by_metric


def cross_fitted(predicted: Predicted, sources: Sequence[str]) -> Predicted:
    """The predicted spans with cross-fitted confidences: each half of the sources is recalibrated with the isotonic
    regression of the other half. If the other half has no spans, confidences are unchanged.

    Args:
        sources: the source of each translation.
    """
    half = np.array([zlib.crc32(source.encode("utf-8", "surrogatepass")) % 2 for source in sources], dtype=np.intp)
    of = half[predicted.segment]
    confidence = predicted.confidence.copy()
    for part in (0, 1):
        learn = of != part
        if learn.any():
            learnt = Recalibration.fit(predicted.confidence[learn], predicted.confirmed[learn])
            confidence[of == part] = learnt.of(predicted.confidence[of == part])
    return replace(predicted, confidence=confidence)


def calibration_tables(table: JudgedTable) -> list[Table]:
    """One table with the calibration error and the ranking quality of confidences per metric and level, and one
    reliability table per metric, whose rows are the bins with predicted spans."""
    rows: list[TableRow] = []
    of_metrics = []
    for level in CALIBRATION_LEVELS:
        for name, predicted in predicted_of(table, level).items():
            curve = threshold_curve(predicted)
            crossed = cross_fitted(predicted, [text.source for text in table.rows])
            row: TableRow = {
                Column("metric", "metric"): name,
                Column("level", "per"): level,
                Column("predicted", "predicted"): len(predicted),
                Column("confidence", "mean confidence"): float(predicted.confidence.mean()),
                Column("confirmed", "confirmed"): float(predicted.confirmed.mean()),
                Column("ece", "ECE"): calibration_error(predicted),
                Column("ece_other_half", "ECE, fitted on the other half"): calibration_error(crossed),
                Column("average_precision", "average precision"): curve.average_precision,
                Column("best_f1", "best F1"): curve.best_f1,
                Column("mean_risk", "mean risk"): curve.mean_risk,
            }
            rows.append(row)
            if level == "span":
                bins: list[TableRow] = [
                    {
                        Column("bin", "confidence"): f"{b.low:.2f} to {b.high:.2f}",
                        Column("predicted", "predicted"): b.count,
                        Column("confidence", "mean confidence"): b.confidence,
                        Column("confirmed", "confirmed"): b.confirmed,
                    }
                    for b in reliability(predicted)
                ]
                of_metrics.append(table_of(f"{name}: reliability per span", bins))
    notes = (
        "confirmed: the share of a predicted span's characters (or of all predicted characters) that a human marks, "
        "with any severity; averaged over raters",
        "ECE: expected calibration error, 10 bins; fitted on the other half: isotonic regression on half the sources",
        "mean risk: the area under 1 - precision over coverage; lower is better",
    )
    return [table_of("calibration of confidences", rows, notes), *of_metrics]


def calibration_plot(table: JudgedTable) -> Any:
    """Figure with reliability, precision-recall and risk-coverage curves of spans. The last two have at most 200
    points per metric."""
    confirmed, precision, risk = [Curve("calibrated", (0.0, 1.0), (0.0, 1.0), guide=True)], [], []
    for name, predicted in predicted_of(table).items():
        full = reliability(predicted)
        confirmed.append(Curve(name, tuple(b.confidence for b in full), tuple(b.confirmed for b in full)))
        curve = threshold_curve(predicted)
        at = np.unique(np.linspace(0, len(curve.threshold) - 1, 200).round().astype(np.intp))
        precision.append(Curve(name, tuple(curve.recall[at].tolist()), tuple(curve.precision[at].tolist())))
        risk.append(Curve(name, tuple(curve.coverage[at].tolist()), tuple(curve.risk[at].tolist())))
    panels = {"confirmed, per span": confirmed, "precision, per span": precision, "risk, per span": risk}
    return plot_curves(panels, dict(zip(panels, ("confidence", "recall", "coverage"), strict=True)))
