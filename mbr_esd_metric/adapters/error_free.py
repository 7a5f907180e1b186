"""A metric's scores and spans of translations that people rated, and whether these are without error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np

from mbr_esd_metric.adapters.comet_json import read_comet_json
from mbr_esd_metric.adapters.mqm_tsv import read_mqm
from mbr_esd_metric.adapters.ratings import MqmRating, read_person_ratings
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.join import Join, SegmentKey
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.metaeval.error_free import ESA_THRESHOLD, Judged, gold_labels


@dataclass(slots=True)
class _Rated:
    """People's ratings of one translation: whether somebody marked an error, and their scores, if they gave any."""

    rating: MqmRating
    marked: bool = False
    scores: list[float] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.marked and (not self.scores or fmean(self.scores) >= ESA_THRESHOLD)


def judged_of_files(metrics: Sequence[str], ratings: Sequence[str]) -> tuple[list[Judged], list[bool]]:
    """The translations of a metric's files that people rated.

    Args:
        metrics: files of `mbr-esd score --to_json` or ``comet-score --to_json``, of one metric.
        ratings: people's, in any format that `read_mqm` reads; those of `annotate import` with their scores.
    """
    people: dict[SegmentKey, _Rated] = {}
    for one, score in (pair for path in ratings for pair in _ratings(path)):
        rated = people.setdefault(SegmentKey(one.system, one.source, one.target), _Rated(one))
        rated.marked |= any(fold_severity(error.severity) is not None for error in one.errors)
        rated.scores += [] if score is None else [score]
    rows = [row for path in metrics for row in read_comet_json(Path(path))]
    join = Join(people.items(), {row.place.system for row in rows})
    judged, labels = [], []
    for row in rows:
        human = join.find(row.place)
        score = row.score if row.score is not None or row.annotation is None else mqm_score(row.annotation)
        if human is not None and score is not None:
            length = len(row.place.translation)
            judged.append(Judged(score, row.annotation, length, human.rating.lp or "", human.rating.doc))
            labels.append(human.clean)
    if not judged:
        raise InputError(f"no translation of {', '.join(metrics)} is rated in {', '.join(ratings)}")
    return judged, labels


def _ratings(path: str) -> Iterable[tuple[MqmRating, float | None]]:
    """Each rating, and its score from 0 to 100 if it has one."""
    first = next((line for _, line in numbered_lines(path)), "")
    if plain_name(path).endswith(".jsonl") and '"checks"' in first:
        return ((one.rating, one.score) for one in read_person_ratings(path))
    return ((one, None) for one in read_mqm(path))


def judged_of_test_set(test_set: TestSet, metric: str) -> tuple[list[Judged], list[bool]]:
    """The rated translations of a test set, with a stored metric."""
    (name, *_) = test_set.find_metrics([metric])
    stored, gold = test_set.metric(name), test_set.info.gold
    least = ESA_THRESHOLD if gold.startswith("esa") else -np.inf
    labels = gold_labels(test_set.gold, list(test_set.human().values()), least)
    judged, clean = [], []
    for row, system in enumerate(test_set.systems):
        for number in np.flatnonzero(~np.isnan(labels[row])).tolist():
            annotation = stored.ratings.both_of(system, number) if stored.ratings else None
            length = int(test_set.lengths[row, number])
            document = "/".join(test_set.documents[number])
            judged.append(Judged(float(stored.scores[row, number]), annotation, length, test_set.lp, document))
            clean.append(bool(labels[row, number]))
    return judged, clean
