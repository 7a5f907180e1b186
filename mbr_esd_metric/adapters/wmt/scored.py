"""What is stored for a test set, as leaderboards, correlations and WMT's tasks take it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mbr_esd_metric.adapters.wmt.layout import read_scores
from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector
from mbr_esd_metric.metaeval.metric_set import Key, MetricEntry, MetricSet, ScoredSet, Scores


def scored(test_set: TestSet, metrics: Sequence[str] = ()) -> ScoredSet:
    """The scores of gold and of the stored metrics. Scores of systems are read where they are stored.

    Args:
        test_set: what `load_test_set` returned.
        metrics: full or base names; none for all, including those that score only systems.

    Raises:
        InputError: a file that does not fit.
        OptionError: an unknown name.
    """
    found: dict[Key, Scores] = {}
    names = _names(test_set, metrics)
    notes = list(test_set.notes)
    if not metrics:
        notes += [line for name, line in test_set.left_out().items() if name not in names]
    for name in names:
        key = base_name(name)
        if key in found:
            raise InputError(f"{test_set.lp}: metric {key[0]} is there twice; choose one of them by its full name")
        segments = None
        if name in test_set.added or test_set.layout.metric_scores(name, "seg").is_file():
            try:
                stored = test_set.metric(name)
            except InputError as error:
                if metrics:
                    raise
                notes.append(f"{name} is left out in {test_set.lp}: {error}")
                continue
            segments = stored.scores
            notes += stored.notes
        found[key] = Scores(segments, _of_systems(test_set, test_set.layout.metric_scores(name, "sys")))
    gold = test_set.info.gold
    systems = _of_systems(test_set, test_set.layout.human_scores(gold, "sys"))
    documents = _of_documents(test_set, test_set.layout.human_scores(test_set.info.gold, "doc"))
    return ScoredSet(
        test_set.lp,
        tuple(document for _, document in test_set.documents),
        Scores(test_set.gold, systems, documents),
        found,
        tuple(notes),
    )


def _names(test_set: TestSet, chosen: Sequence[str]) -> list[str]:
    """Full names of the metrics that can be compared, including those that score only systems."""
    segments = test_set.layout.metrics()
    alone = [name for name in test_set.layout.metrics("sys") if name not in segments and not test_set.why_not(name)]
    there = sorted([*test_set.metric_names(), *alone])
    for name in chosen:
        known = {*there, *(base_name(full)[0] for full in there)}
        if name not in known:
            if why := test_set.why_left_out(name):
                raise InputError(why)
            raise unknown(f"metric of {test_set.name} {test_set.lp}", name, known)
    if not there:
        raise InputError(f"{test_set.layout.metric_scores('*', 'seg')}: no metric; score some with: mbr-esd wmt score")
    return [full for full in there if not chosen or full in chosen or base_name(full)[0] in chosen]


def _of_systems(test_set: TestSet, path: Path) -> FloatVector | None:
    """Scores of the evaluated systems, where the folder has one for each."""
    stored = {system: entries[0][1] for system, entries in read_scores(path).items()} if path.is_file() else {}
    if not all(system in stored for system in test_set.systems):
        return None
    scores = [stored[system] for system in test_set.systems]
    return np.array([np.nan if score is None else score for score in scores], dtype=np.float64)


def _of_documents(test_set: TestSet, path: Path) -> FloatMatrix | None:
    """Systems x documents, as the folder has them; None if it has none for one of the systems.

    Raises:
        InputError: a system with another number of scores than there are documents.
    """
    if not path.is_file():
        return None
    stored = read_scores(path)
    if not all(system in stored for system in test_set.systems):
        return None
    documents = len({document for _, document in test_set.documents})
    for system in test_set.systems:
        if len(stored[system]) != documents:
            raise InputError(f"{path}: {system} has {len(stored[system])} scores, and there are {documents} documents")
    scores = [[np.nan if score is None else score for _, score in stored[system]] for system in test_set.systems]
    return np.array(scores, dtype=np.float64)


def stored_metrics(test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = ()) -> MetricSet:
    """The stored metrics of a test set and language pair.

    Args:
        test_set: what `load_test_set` returned.
        metrics: full or base names; none for all that are stored.
        raters: sets of human ratings; none for the merged one, or every rater's where there is none.

    Raises:
        InputError: no such metric is there, or its files do not fit.
        OptionError: an unknown name.
    """
    found, notes = test_set.read_metrics(metrics)
    if not found:
        raise InputError(
            f"{test_set.layout.metric_scores('*', 'seg')}: no metric has segment scores; "
            f"score some with: mbr-esd wmt score{''.join(f'; {line}' for line in notes)}"
        )
    entries: list[MetricEntry] = []
    for metric in sorted(found, key=lambda one: one.name):
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
