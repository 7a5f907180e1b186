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

from mbr_esd_metric.adapters.ratings import MqmError, annotation_of_errors
from mbr_esd_metric.adapters.wmt.rating_files import fit_to_text
from mbr_esd_metric.adapters.wmt.test_set import choose_ratings
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.score_statistics import MetricEntry, MetricSet
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, SpanScores, evaluate_spans

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
    scores = {name: evs.Scores("seg", name) for name in evs.metric_names}
    usable = sorted(n for n, values in scores.items() if values and set(evs.ReferencesUsed(n)) <= {evs.std_ref})
    for name in metrics:
        if name not in usable:
            raise unknown(f"metric of {evs.name} {evs.lp}", name, usable)
    if not usable:
        raise InputError(f"{evs.name} {evs.lp}: no metric has segment scores; pass read_stored_metric_scores=True")
    entries = []
    for name in list(metrics) or usable:
        predicted = _annotations(evs, spans[name], systems)[0] if spans and name in spans else None
        values = _matrix(scores[name], systems)
        entries.append(MetricEntry(evs.BaseMetric(name), bool(evs.ReferencesUsed(name)), values, predicted))
    human, cut = _human(evs, systems, raters)
    notes = []
    if cut:
        notes.append(f"error spans of people, {evs.lp}: in {cut} translations some end past the text and are cut there")
    for name in () if metrics else sorted(set(scores) - set(usable)):
        why = f"the standard reference is {evs.std_ref}" if scores[name] else "it has no scores of segments"
        notes.append(f"{name} is left out in {evs.lp}: {why}")
    gold = _matrix(evs.Scores("seg", evs.StdHumanScoreName("seg")), systems)
    return MetricSet(evs.lp, gold, _lengths(evs, systems), human, entries, tuple(notes))


def evaluate_spans_of(
    evs: Any,
    predicted: SystemSpans,
    raters: Sequence[str] = (),
    measures: Sequence[str] = DEFAULT_MEASURES,
) -> SpanScores:
    """SoftF1, F1, softdice, MPP and span counts of predicted spans against an ``EvalSet``'s human ratings.

    Args:
        evs, raters: as of `metrics_of`.
        predicted: system -> for each segment a ``Rating`` or an annotation.
        measures: see `mbr_esd_metric.metaeval.span_measures`.

    Raises:
        InputError: a rated translation without prediction, spans past the end of a translation, no ratings.
        OptionError: an unknown set of ratings or measure.
    """
    systems = _systems(evs)
    spans, lengths = _annotations(evs, predicted, systems)[0], _lengths(evs, systems)
    return evaluate_spans(spans, _human(evs, systems, raters)[0], lengths, measures)


def annotation_of(rating: Any) -> Annotation | None:
    """The target side of a toolkit's ``Rating``, with all that a rater marked; an annotation, or None, as it is."""
    if rating is None or isinstance(rating, Annotation):
        return rating
    if not hasattr(rating, "errors"):
        return Annotation.of_rater(rating)
    return annotation_of_errors(
        MqmError(e.severity or "", e.category, "target", e.start, e.end) for e in rating.errors if not e.is_source_error
    )


def _systems(evs: Any) -> list[str]:
    gold = evs.StdHumanScoreName("seg")
    scores = evs.Scores("seg", gold) if gold is not None else None
    if not scores:
        raise InputError(f"{evs.name} {evs.lp}: no gold scores of segments")
    left_out = {evs.std_ref} | set(evs.outlier_sys_names)
    return sorted(s for s, row in scores.items() if s not in left_out and any(score is not None for score in row))


def _matrix(scores: Mapping[str, Sequence[float | None]], systems: Sequence[str]) -> npt.NDArray[np.float64]:
    return np.array([scores[system] for system in systems], dtype=np.float64)


def _lengths(evs: Any, systems: Sequence[str]) -> npt.NDArray[np.int64]:
    return np.array([[len(text or "") for text in evs.sys_outputs[system]] for system in systems], dtype=np.int64)


def _human(evs: Any, systems: Sequence[str], raters: Sequence[str]) -> tuple[list[AnnotationMatrix], int]:
    """Human spans, and the number of annotations with a span past the end of the translation."""
    names = choose_ratings(evs.human_rating_names, evs.StdHumanScoreName("seg"), raters)
    sets = [_annotations(evs, evs.Ratings(name), systems) for name in names]
    return [matrix for matrix, _ in sets], sum(cut for _, cut in sets)


def _annotations(evs: Any, ratings: SystemSpans, systems: Sequence[str]) -> tuple[list[list[Annotation | None]], int]:
    """The annotations cut to their texts, and the number of those with a span that had to be cut."""
    cut = 0
    rows: list[list[Annotation | None]] = []
    for system in systems:
        rows.append([])
        for rating, text in zip(ratings.get(system, [None] * len(evs.src)), evs.sys_outputs[system], strict=True):
            annotation, length = annotation_of(rating), len(text or "")
            cut += annotation is not None and any(span.end > length for span in annotation)
            rows[-1].append(None if annotation is None else fit_to_text(annotation, length))
    return rows, cut
