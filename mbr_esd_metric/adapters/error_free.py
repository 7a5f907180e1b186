"""A metric's scores and spans of translations that people rated, and whether these are without error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from mbr_esd_metric.adapters.comet_json import read_comet_json
from mbr_esd_metric.adapters.mqm_tsv import read_mqm
from mbr_esd_metric.adapters.ratings import MqmRating, read_person_ratings
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.join import Join, SegmentKey
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.metaeval.error_free import ESA_THRESHOLD, ScoredTranslation, gold_labels


def scored_of_files(metrics: Sequence[str], ratings: Sequence[str]) -> tuple[list[ScoredTranslation], list[bool]]:
    """The translations of a metric's files that people rated.

    Args:
        metrics: files of `mbr-esd score --to_json` or ``comet-score --to_json``, of one metric.
        ratings: people's, in any format that `read_mqm` reads; those of `annotate import` with their scores.
    """
    people: dict[SegmentKey, list[tuple[MqmRating, float | None]]] = defaultdict(list)
    for path in ratings:
        beginning = next((line for _, line in numbered_lines(path)), "")
        if plain_name(path).endswith((".jsonl", ".json")) and '"checks"' in beginning:
            scored = [(one.rating, one.score) for one in read_person_ratings(path)]
        else:
            scored = [(one, None) for one in read_mqm(path)]
        for one, score in scored:
            people[SegmentKey(one.system, one.source, one.target)].append((one, score))
    rows = [row for path in metrics for row in read_comet_json(Path(path))]
    join = Join(people.items(), {row.place.system for row in rows})
    translations, labels = [], []
    for row in rows:
        human = join.find(row.place)
        if human is not None and row.score is not None:
            first, length = human[0][0], len(row.place.translation)
            translations.append(ScoredTranslation(row.score, row.annotation, length, first.lp or "", first.doc))
            marked = any(fold_severity(error.severity) is not None for one, _ in human for error in one.errors)
            scores = [value for _, value in human if value is not None]
            labels.append(not marked and (not scores or fmean(scores) >= ESA_THRESHOLD))
    if not translations:
        raise InputError(f"no translation of {', '.join(metrics)} is rated in {', '.join(ratings)}")
    return translations, labels


def scored_of_test_set(test_set: TestSet, metric: str) -> tuple[list[ScoredTranslation], list[bool]]:
    """The rated translations of a test set, with a stored metric."""
    (name, *_) = test_set.find_metrics([metric])
    stored, gold = test_set.metric(name), test_set.info.gold
    least = ESA_THRESHOLD if gold.startswith("esa") else -np.inf
    labels = gold_labels(test_set.gold, list(test_set.human().values()), least)
    translations, clean = [], []
    for row, system in enumerate(test_set.systems):
        for number in np.flatnonzero(~np.isnan(labels[row])).tolist():
            annotation = stored.ratings.both_of(system, number) if stored.ratings else None
            length = int(test_set.lengths[row, number])
            document = "/".join(test_set.documents[number])
            translations.append(
                ScoredTranslation(float(stored.scores[row, number]), annotation, length, test_set.lp, document)
            )
            clean.append(bool(labels[row, number]))
    return translations, clean
