"""The statistics and span measures of each metric on parts of a test set: domains, documents, lengths.

Each part is evaluated by itself. SPA and acc_eq* come from the part's own scores, acc_eq* with a threshold of its own.
Scores of systems are means over the part, and span measures come from sums over the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.matrices import BoolMatrix, FloatMatrix
from mbr_esd_metric.metaeval.metric_set import Key, MetricSet
from mbr_esd_metric.metaeval.score_statistics import SCORE_STATISTICS, score_statistic
from mbr_esd_metric.metaeval.span_measures import span_measure
from mbr_esd_metric.metaeval.spans import Raters, SpanEvaluator, SpanScores


@dataclass(frozen=True, eq=False)
class BreakdownPart:
    """One part of a test set, with numbers of segments and of translations that have a gold score.

    `values` are metric -> name of the statistic or measure -> value, None if it cannot be computed.
    """

    name: str
    segments: int
    rated: int
    values: Mapping[Key, Mapping[str, float | None]]


def breakdown(
    data: MetricSet, labels: Sequence[str], measures: Sequence[str], raters: Raters = "mean", *, exact: bool = False
) -> tuple[BreakdownPart, ...]:
    """Evaluate every metric on every part. `raters` is as in `spans`, and `exact` as in `spa`.

    Args:
        data: the metrics of one language pair.
        labels: the name of each segment's part; parts come in the order of their first segment.
        measures: statistics of `score_statistics` and measures of `span_measures`.

    Raises:
        InputError: spans that do not fit.
        OptionError: an unknown measure.
    """
    for name in measures:
        if name in SCORE_STATISTICS and SCORE_STATISTICS[name].level == "doc":
            raise OptionError(f"{name}: a part is not divided into documents; --statistics alone compares them")
    of_spans = [span_measure(name).name for name in measures if name not in SCORE_STATISTICS]
    spans: dict[Key, SpanScores] = {}
    if data.human and of_spans:
        spans = data.span_scores(SpanEvaluator(data.human, data.lengths, of_spans, raters))
    parts = []
    for name in dict.fromkeys(labels):
        columns = np.array([label == name for label in labels], dtype=np.bool_)
        values = {
            entry.key: {
                measure: _of_spans(spans.get(entry.key), measure, columns)
                if measure in of_spans
                else _of_scores(measure, data.gold[:, columns], entry.scores[:, columns], exact)
                for measure in measures
            }
            for entry in data.entries
        }
        rated = int((~np.isnan(data.gold[:, columns])).sum())
        parts.append(BreakdownPart(name, int(columns.sum()), rated, values))
    return tuple(parts)


def length_labels(lengths: Sequence[int]) -> list[str]:
    """The bucket of each length, of four that hold about as many each: "0-49", "50-99", "100-"."""
    quartiles = {int(np.ceil(edge)) for edge in np.quantile(lengths, [0.25, 0.5, 0.75])}
    edges = sorted(edge for edge in quartiles if edge > min(lengths))
    starts = [0, *edges]
    names = [f"{low}-{high - 1}" for low, high in zip(starts, edges, strict=False)] + [f"{starts[-1]}-"]
    return [names[int(np.searchsorted(edges, length, side="right"))] for length in lengths]


def _of_scores(name: str, gold: FloatMatrix, scores: FloatMatrix, exact: bool) -> float | None:
    rows = ~np.isnan(gold).all(axis=1)
    try:
        return score_statistic(name).of_segments(gold[rows], scores[rows], exact=exact)
    except InputError:
        return None  # too few ratings, or systems rated on different segments


def _of_spans(scores: SpanScores | None, name: str, columns: BoolMatrix) -> float | None:
    if scores is None:
        return None
    statistics = scores.statistics[name][:, columns]
    if np.isnan(statistics).all():
        return None
    return float(span_measure(name).value(np.nansum(statistics, axis=(0, 1))))
