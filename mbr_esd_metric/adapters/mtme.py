"""Bridge to google-research/mt-metrics-eval: this package's leaderboard and span measures on its ``EvalSet``.

    from mt_metrics_eval.data import EvalSet
    evs = EvalSet("wmt24", "en-de", read_stored_metric_scores=True, read_stored_ratings=True)
    board = compute_leaderboard("wmt24", [metric_set_of(load_eval_set(evs))])

Install the toolkit from its repository; the package of that name on the index is a different one. This module does not
import the toolkit; it only reads its objects.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mbr_esd_metric.adapters.ratings import MqmError, annotation_of_errors
from mbr_esd_metric.adapters.wmt.layout import Layout, SystemChoice, TestSetInfo
from mbr_esd_metric.adapters.wmt.rating_files import SpanSet, choose_ratings, fault_note
from mbr_esd_metric.adapters.wmt.test_set import StoredMetric, TestSet
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.spans import DEFAULT_MEASURES, SpanScores, evaluate_spans

#: System -> for each segment the toolkit's ``Rating``, an annotation, or None.
SystemSpans = Mapping[str, Sequence[Any]]


def load_eval_set(evs: Any, spans: Mapping[str, SystemSpans] | None = None) -> TestSet:
    """The test set of an ``EvalSet``, with the same systems as in `load_test_set`, but without reference texts and
    document names.

    Args:
        evs: an ``EvalSet``, read with stored metric scores, human ratings, or both.
        spans: full metric name -> its error spans, which an ``EvalSet`` does not contain;
            ``mt_metrics_eval.ratings.ReadRatingFile(path, name)[0]`` reads them.

    Raises:
        InputError: no segment-level gold scores, or no metrics or ratings.
    """
    name = evs.StdHumanScoreName("seg")
    gold = evs.Scores("seg", name) if name is not None else None
    if not gold:
        raise InputError(f"{evs.name} {evs.lp}: no gold scores of segments")
    if not evs.metric_names and not evs.human_rating_names:
        raise InputError(f"{evs.name} {evs.lp}: no metrics or ratings; pass read_stored_metric_scores=True")
    info = TestSetInfo(evs.std_ref, name, frozenset(evs.outlier_sys_names))
    rated = (system for system, row in sorted(gold.items()) if any(score is not None for score in row))
    systems = tuple(system for system in rated if SystemChoice().takes(system, info))
    faults: Counter[str] = Counter()
    evaluated = choose_ratings(evs.human_rating_names, name)
    added = {}
    for metric in evs.metric_names:
        if scores := evs.Scores("seg", metric):
            matrix = np.array([scores[system] for system in systems], np.float64)
            ratings = _span_set(evs, metric, spans[metric]) if spans and metric in spans else None
            added[metric] = StoredMetric(metric, matrix, ratings)
    return TestSet(
        layout=Layout(Path(os.devnull), evs.name, evs.lp),
        info=info,
        systems=systems,
        sources=tuple(evs.src),
        documents=(),
        references={evs.std_ref: ()},
        outputs={system: tuple(texts) for system, texts in evs.sys_outputs.items()},
        gold=np.array([gold[system] for system in systems], np.float64),
        ratings=tuple(
            _span_set(evs, one, evs.Ratings(one), faults if one in evaluated else None)
            for one in sorted(evs.human_rating_names)
        ),
        notes=fault_note(f"people, {evs.lp}", faults, of_people=True),
        added=added,
    )


def evaluate_spans_of(
    evs: Any, predicted: SystemSpans, raters: Sequence[str] = (), measures: Sequence[str] = DEFAULT_MEASURES
) -> SpanScores:
    """`evaluate_spans` of predicted spans (a ``Rating`` or annotation for each system and segment) against the human
    ratings of an ``EvalSet`` with these names; by default the merged ones, or else every rater's.

    Raises:
        InputError: a rated translation without prediction, or no ratings.
        OptionError: an unknown set of ratings or measure.
    """
    test_set = load_eval_set(evs)
    spans = _span_set(evs, "predicted", predicted).of(test_set.systems, test_set.segments)
    return evaluate_spans(spans, test_set.human(raters), test_set.lengths, measures)


def annotation_of(rating: Any) -> Annotation | None:
    """The annotation of a toolkit's ``Rating`` of a translation, with duplicates; annotations and None are returned
    unchanged."""
    if rating is None or isinstance(rating, Annotation):
        return rating
    return annotation_of_errors(
        MqmError(e.severity or "", e.category, "translation", e.start, e.end)
        for e in rating.errors
        if not e.is_source_error
    )


def _span_set(evs: Any, name: str, spans: SystemSpans, faults: Counter[str] | None = None) -> SpanSet:
    rows = {system: [annotation_of(rating) for rating in row] for system, row in spans.items()}
    return SpanSet.fitting(name, rows, evs.sys_outputs, Counter() if faults is None else faults)
