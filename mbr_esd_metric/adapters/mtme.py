"""Bridge to google-research/mt-metrics-eval: this package's leaderboard and span measures on its ``EvalSet``.

    from mt_metrics_eval.data import EvalSet
    evs = EvalSet("wmt24", "en-de", read_stored_metric_scores=True, read_stored_ratings=True)
    board = compute_leaderboard("wmt24", [metrics_of(evs)])

Install the toolkit from its repository; the package of that name on the index is a different one. This module does not
import the toolkit. It only reads the objects that it gets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.wmt.rating_files import fitted
from mbr_esd_metric.adapters.wmt.test_set import choose_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, as_annotation, fold_severity
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.metric_set import MetricEntry, MetricSet
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, Raters, SpanScores, evaluate_spans

#: System -> for each segment the toolkit's ``Rating``, an annotation, or None.
SystemSpans = Mapping[str, Sequence[Any]]


def metrics_of(
    evs: Any, metrics: Sequence[str] = (), raters: Sequence[str] = (), spans: Mapping[str, SystemSpans] | None = None
) -> MetricSet:
    """The metrics of an ``EvalSet``, for `mbr_esd_metric.metaeval.leaderboard.compute_leaderboard`.

    The systems are those of our reader of data folders: all except the standard reference, outliers and systems
    without gold, sorted by name. Metrics that use another reference than the standard one are left out.

    Args:
        evs: an ``EvalSet`` with metric scores, and with ratings where spans are to be evaluated.
        metrics: full names; none for all.
        raters: names of human ratings; none for the merged ones, or every rater's where there are none.
        spans: full metric name -> its error spans, as an ``EvalSet`` keeps none of metrics;
            ``mt_metrics_eval.ratings.ReadRatingFile(path, name)[0]`` reads them.

    Raises:
        InputError: no gold segment scores, or no metric with segment scores.
        OptionError: an unknown metric or set of ratings.
    """
    systems = _systems(evs)
    gold = _matrix(evs.Scores("seg", evs.StdHumanScoreName("seg")), systems)
    names = sorted(name for name in evs.metric_names if evs.Scores("seg", name) and _fits(evs, name))
    for name in metrics:
        if name not in names:
            raise unknown(f"metric of {evs.name} {evs.lp}", name, names)
    chosen = list(metrics) or names
    if not chosen:
        raise InputError(f"{evs.name} {evs.lp}: no metric has segment scores; pass read_stored_metric_scores=True")
    entries = []
    for name in chosen:
        predicted = _predicted(evs, spans[name], systems) if spans and name in spans else None
        scores = _matrix(evs.Scores("seg", name), systems)
        entries.append(MetricEntry(evs.BaseMetric(name), bool(evs.ReferencesUsed(name)), scores, predicted))
    human, notes = _human(evs, systems, raters)
    for name in () if metrics else sorted(set(evs.metric_names) - set(names)):
        why = f"the standard reference is {evs.std_ref}" if evs.Scores("seg", name) else "it has no scores of segments"
        notes.append(f"{name} is left out in {evs.lp}: {why}")
    return MetricSet(evs.lp, gold, _lengths(evs, systems), human, entries, tuple(notes))


def evaluate_spans_of(
    evs: Any,
    predicted: SystemSpans,
    raters: Sequence[str] = (),
    measures: Sequence[str] = DEFAULT_MEASURES,
    aggregation: Raters = "mean",
) -> SpanScores:
    """SoftF1, F1, softdice, MPP and span counts of predicted spans against an ``EvalSet``'s human ratings.

    Args:
        evs: an ``EvalSet`` with ratings.
        predicted: system -> for each segment a ``Rating`` or an annotation.
        raters: names of human ratings; none for the merged ones, or every rater's where there are none.
        measures: see `mbr_esd_metric.metaeval.span_measures`.
        aggregation: what several raters of one translation count.

    Raises:
        InputError: a rated translation without prediction, spans past the end of a translation, no ratings.
        OptionError: an unknown set of ratings or measure.
    """
    systems = _systems(evs)
    grid = _predicted(evs, predicted, systems)
    return evaluate_spans(grid, _human(evs, systems, raters)[0], _lengths(evs, systems), measures, aggregation)


def annotation_of(rating: Any) -> Annotation | None:
    """The target side of a toolkit's ``Rating``, with all that a rater marked; an annotation, or None, as it is."""
    if rating is None or isinstance(rating, Annotation):
        return rating
    if not hasattr(rating, "errors"):
        return Annotation.of_rater(rating)
    there = [
        (error, severity)
        for error in rating.errors
        if not error.is_source_error and (severity := fold_severity(error.severity or "")) is not None
    ]
    spans = Annotation.of_rater(ErrorSpan(e.start, e.end, s, e.category) for e, s in there if e.start < e.end)
    return spans.pointing((e.start, s) for e, s in there if e.start == e.end)


def _systems(evs: Any) -> list[str]:
    gold = evs.StdHumanScoreName("seg")
    stored = evs.Scores("seg", gold) if gold is not None else None
    if not stored:
        raise InputError(f"{evs.name} {evs.lp}: no gold scores of segments")
    left_out = {evs.std_ref} | set(evs.outlier_sys_names)
    return sorted(
        system
        for system, scores in stored.items()
        if system not in left_out and any(score is not None for score in scores)
    )


def _fits(evs: Any, name: str) -> bool:
    return set(evs.ReferencesUsed(name)) <= {evs.std_ref}


def _matrix(scores: Mapping[str, Sequence[float | None]], systems: Sequence[str]) -> npt.NDArray[np.float64]:
    return np.array([[np.nan if s is None else s for s in scores[system]] for system in systems], dtype=np.float64)


def _lengths(evs: Any, systems: Sequence[str]) -> npt.NDArray[np.int64]:
    return np.array([[len(text or "") for text in evs.sys_outputs[system]] for system in systems], dtype=np.int64)


def _human(evs: Any, systems: Sequence[str], raters: Sequence[str]) -> tuple[list[AnnotationMatrix], list[str]]:
    """Human spans, and a note if some of them end past their translation, as about one in a hundred does."""
    names = choose_ratings(evs.human_rating_names, evs.StdHumanScoreName("seg"), raters)
    grids = [_grid(evs.Ratings(name), systems, len(evs.src)) for name in names]
    cut = [_cut(grid, _lengths(evs, systems)) for grid in grids]
    changed = sum(found for _, found in cut)
    note = f"error spans of people, {evs.lp}: in {changed} translations some end past the text and are cut there"
    return [grid for grid, _ in cut], [note] if changed else []


def _predicted(evs: Any, ratings: SystemSpans, systems: Sequence[str]) -> AnnotationMatrix:
    """As `_grid`, for a metric: its spans are cut at the end of the translation."""
    return _cut(_grid(ratings, systems, len(evs.src)), _lengths(evs, systems))[0]


def _cut(grid: AnnotationMatrix, lengths: npt.NDArray[np.int64]) -> tuple[list[list[Annotation | None]], int]:
    """The annotations cut to their texts, and the number of annotations with a span that had to be cut."""
    changed = 0
    rows: list[list[Annotation | None]] = []
    for row, of in zip(grid, lengths.tolist(), strict=True):
        rows.append([])
        for cell, length in zip(row, of, strict=True):
            if cell is None:
                rows[-1].append(None)
                continue
            given = as_annotation(cell)
            changed += any(span.end > length for span in given)
            rows[-1].append(fitted(given, length))
    return rows, changed


def _grid(ratings: SystemSpans, systems: Sequence[str], segments: int) -> AnnotationMatrix:
    unrated = [None] * segments
    return [[annotation_of(rating) for rating in ratings.get(system, unrated)] for system in systems]
