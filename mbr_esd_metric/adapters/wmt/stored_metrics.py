"""The metrics stored for a test set and language pair, as a leaderboard takes them."""

from __future__ import annotations

from collections.abc import Sequence

from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.metric_set import MetricEntry, MetricSet


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
