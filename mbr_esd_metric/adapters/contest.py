"""What takes part in a leaderboard: the metrics of one direction over the same translations, from whatever source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.wmt.test_set import Array, Ratings, TestSet, base_name
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.spans import AnnotationMatrix

#: Base name, and whether a reference was used: what makes entries of several directions one row.
Key = tuple[str, bool]


@dataclass(frozen=True, eq=False)
class Entry:
    """One metric in one direction.

    Attributes:
        name: base name, the same in every direction.
        uses_reference: whether it saw one.
        scores: systems x segments, higher is better.
        spans: systems x segments; None where the metric has no error spans.
        signature: what the scores depend on, where known.
    """

    name: str
    uses_reference: bool
    scores: Array
    spans: AnnotationMatrix | None = None
    signature: str | None = None

    @property
    def key(self) -> Key:
        """What makes two entries one row."""
        return (self.name, self.uses_reference)


@dataclass(frozen=True, eq=False)
class Contestants:
    """All metrics of one direction, on the same translations.

    Attributes:
        direction: such as "en-de".
        gold: systems x segments, NaN where unrated, higher is better.
        lengths: systems x segments, characters of each translation.
        human: one or several sets of human spans, systems x segments each.
        entries: the metrics.
        notes: what readers of the table should know.
    """

    direction: str
    gold: Array
    lengths: npt.NDArray[np.int64]
    human: Sequence[AnnotationMatrix]
    entries: Sequence[Entry]
    notes: tuple[str, ...] = ()


def contestants(test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = ()) -> Contestants:
    """What is stored of a test set and direction.

    Args:
        test_set: what `load_test_set` returned.
        metrics: full or base names; none for all that are stored.
        raters: sets of human ratings; none for the merged one, or every rater's where there is none.

    Raises:
        InputError: no such metric is there, or its files do not fit.
        OptionError: an unknown name.
    """
    names = sorted(test_set.find_metrics(metrics))
    if not names:
        raise InputError(
            f"{test_set.layout.metric_scores('*', 'seg')}: no metric has segment scores; "
            "score some with: mbr-esd wmt score"
        )
    entries: list[Entry] = []
    notes = list(test_set.notes)
    for name in names:
        metric = test_set.metric(name)
        spans = metric.ratings.of(test_set.systems, test_set.segments) if metric.ratings else None
        entries.append(Entry(*base_name(name), metric.scores, spans, test_set.signature(name)))
        notes += metric.notes
    sets: Iterable[Ratings] = test_set.human_ratings(raters) if test_set.ratings else ()
    human = [ratings.of(test_set.systems, test_set.segments) for ratings in sets]
    return Contestants(test_set.direction, test_set.gold, test_set.lengths, human, entries, tuple(notes))
