"""The stored scores of a test set, as leaderboards, correlations and WMT's tasks take them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mbr_esd_metric.adapters.wmt.layout import score_rows
from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector
from mbr_esd_metric.metaeval.metric_set import Key, MetricEntry, MetricSet, ScoredSet, Scores


def scored_set_of(test_set: TestSet, metrics: Sequence[str] = ()) -> ScoredSet:
    """The scores of gold and of the stored metrics. Scores of systems are read where they are stored.

    Args:
        metrics: full or base names; none for all, including those that score only systems.

    Raises:
        InputError: a file that does not fit.
        OptionError: an unknown name.
    """
    scores: dict[Key, Scores] = {}
    layout = test_set.layout
    names = sorted(test_set.find_metrics(metrics, of_systems=True))
    if not names:
        raise InputError(f"{layout.metric_scores('*', 'seg')}: no metric; score some with: mbr-esd wmt score")
    notes = list(test_set.notes)
    if not metrics:
        notes += [line for name, line in test_set.left_out().items() if name not in names]
    for name in names:
        key = base_name(name)
        if key in scores:
            raise InputError(f"{test_set.lp}: metric {key[0]} is there twice; choose one of them by its full name")
        segments = None
        if name in test_set.added or layout.metric_scores(name, "seg").is_file():
            try:
                stored = test_set.metric(name)
            except InputError as error:
                if metrics:
                    raise
                notes.append(f"{name} is left out in {test_set.lp}: {error}")
                continue
            segments = stored.scores
            notes += stored.notes
        scores[key] = Scores(segments, _system_scores(test_set, layout.metric_scores(name, "sys")))
    documents = tuple(document for _, document in test_set.documents)
    human = layout.human_scores(test_set.info.gold, "sys"), layout.human_scores(test_set.info.gold, "doc")
    gold = Scores(test_set.gold, _system_scores(test_set, human[0]), _stored(test_set, human[1], len(set(documents))))
    return ScoredSet(test_set.lp, documents, gold, scores, tuple(notes))


def _system_scores(test_set: TestSet, path: Path) -> FloatVector | None:
    stored = _stored(test_set, path, 1)
    return None if stored is None else stored[:, 0]


def _stored(test_set: TestSet, path: Path, count: int) -> FloatMatrix | None:
    """Evaluated systems x so many scores, as the folder has them; None if it has none for one of the systems."""
    stored = score_rows(path)
    if not all(system in stored for system in test_set.systems):
        return None
    for system in test_set.systems:
        if len(stored[system]) != count:
            raise InputError(f"{path}: {system} has {len(stored[system])} scores, not {count}")
    return np.array([stored[system] for system in test_set.systems], dtype=np.float64)


def metric_set_of(test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = ()) -> MetricSet:
    """The stored metrics with scores of segments, and people's spans; arguments and errors as of `scored_set_of`.

    Args:
        raters: sets of human ratings; none for the merged one, or every rater's where there is none.
    """
    stored, notes = test_set.read_metrics(metrics)
    if not stored:
        raise InputError(
            f"{test_set.layout.metric_scores('*', 'seg')}: no metric has segment scores; "
            f"score some with: mbr-esd wmt score{''.join(f'; {line}' for line in notes)}"
        )
    entries: list[MetricEntry] = []
    for metric in sorted(stored, key=lambda one: one.name):
        spans = metric.ratings.of(test_set.systems, test_set.segments) if metric.ratings else None
        entries.append(MetricEntry(*base_name(metric.name), metric.scores, spans, test_set.signature(metric.name)))
    human = list(test_set.human(raters).values())
    return MetricSet(test_set.lp, test_set.gold, test_set.lengths, human, entries, (*test_set.notes, *notes))


def missing_notes(test_set: TestSet) -> list[str]:
    """A line that says which segments SPA uses, if systems are rated on different ones."""
    rated = ~np.isnan(test_set.gold)
    if (rated == rated[0]).all():
        return []
    shared = (rated.astype(np.int64) @ rated.T)[np.triu_indices(len(rated), 1)]
    some = shared[shared > 0].tolist()
    low, high = min(some, default=0), max(some, default=0)
    left_out = f"; {len(shared) - len(some)} of {len(shared)} pairs have none" if len(some) < len(shared) else ""
    return [
        f"in {test_set.lp} systems are rated on different segments: SPA compares each pair of systems on the "
        f"{low if low == high else f'{low} to {high}'} segments that both have{left_out}"
    ]
