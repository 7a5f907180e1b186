"""Calibration of the confidences in a table: tables and curves."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mbr_esd_metric.adapters.scored_files import SegmentRating
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.recalibration import Recalibration
from mbr_esd_metric.metaeval.calibration import (
    CALIBRATION_LEVELS,
    CalibrationLevel,
    Predicted,
    calibration_error,
    predicted_spans,
    reliability,
    threshold_curve,
)
from mbr_esd_metric.report.inputs import RatingTable
from mbr_esd_metric.report.plots import Curve, plot_curves
from mbr_esd_metric.report.tables import Column, Table, TableRow, table_of


def predicted_of(table: RatingTable, level: CalibrationLevel = "span") -> dict[str, Predicted]:
    """Metric -> its predicted spans in the rows that a human rated; without metrics whose spans have no confidence."""
    human = [[[_translation(o) for o in column.ratings]] for column in table.columns if column.human]
    lengths = [[len(text.translation) for text in table.rows]]
    by_metric: dict[str, Predicted] = {}
    for column in table.columns:
        annotations = [_translation(rating) for rating in column.ratings]
        spans = [span for annotation in annotations if annotation for span in annotation]
        if column.human or not human or not spans or any(span.confidence is None for span in spans):
            continue
        both = [[[a if b is not None else None for a, b in zip(rater[0], annotations, strict=True)]] for rater in human]
        if any(annotation is not None for rater in both for annotation in rater[0]):
            by_metric[column.name] = predicted_spans([annotations], both, lengths, level)
    return by_metric


def cross_fitted(predicted: Predicted, sources: Sequence[str]) -> Predicted:
    """The predicted spans, recalibrated by those of the other half of the sources, one for each translation; by their
    own where a half is empty."""
    half = np.array([zlib.crc32(source.encode("utf-8", "surrogatepass")) % 2 for source in sources], dtype=np.intp)
    of = half[predicted.segment]
    confidence = predicted.confidence.copy()
    for part in (0, 1):
        learn = of != part
        if learn.any():
            learnt = Recalibration.fit(predicted.confidence[learn], predicted.confirmed[learn])
            confidence[of == part] = learnt.of(predicted.confidence[of == part])
    return replace(predicted, confidence=confidence)


def calibration_tables(table: RatingTable) -> list[Table]:
    """Calibration errors, and how well confidence tells right from wrong, one row a metric and level; then for each
    metric its confidence and confirmation in each bin that has predicted spans."""
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
                Column("ece_other_half", "ECE, learnt on the other half"): calibration_error(crossed),
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
        "confirmed: the share of a predicted span's characters (of predicted characters) that a human marks, whatever "
        "the severity; the mean over raters",
        "ECE: expected calibration error, 10 bins; learnt on the other half: isotonic, the sources cut in two",
        "mean risk: the area under 1 - precision over coverage; lower is better",
    )
    return [table_of("calibration of confidences", rows, notes), *of_metrics]


def calibration_plot(table: RatingTable) -> Any:
    """The figure of confirmed, precision and risk of spans; each curve has at most 200 points."""
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


def _translation(rating: SegmentRating | None) -> Annotation | None:
    """The spans of the translation; those of the source are compared with nothing here."""
    return None if rating is None or rating.annotation is None else rating.annotation.on("translation")
