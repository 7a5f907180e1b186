"""Scores a whole test set with a metric, and writes the scores into the layout; a stopped run goes on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np

from mbr_esd_metric.adapters.wmt.layout import EVERY_SYSTEM, SystemChoice
from mbr_esd_metric.adapters.wmt.metric_files import MetricFiles, WrittenMetric
from mbr_esd_metric.adapters.wmt.test_set import TestSet, references_of
from mbr_esd_metric.errors import InputError, MissingCandidatesError
from mbr_esd_metric.files.streams import progress_bar
from mbr_esd_metric.scoring.scorers import ScoredText, Scorer

_T = TypeVar("_T")


def score_test_set(
    test_set: TestSet,
    scorer: Scorer,
    *,
    overwrite: bool = False,
    progress: bool = False,
    choice: SystemChoice = EVERY_SYSTEM,
    every: bool = True,
) -> list[WrittenMetric]:
    """Score every system of a test set and write ``.seg.score``, ``.sys.score`` and ``.seg.rating``.

    As the toolkit wants it, all systems are scored, evaluated or not, except the reference that a metric uses. Beside
    the scores, a file ``NAME.signature`` says what they depend on. Systems that have scores with the same signature are
    not scored again, and each system is written when it is done, so that a stopped run goes on.

    Args:
        choice: which systems are scored, in addition to those that already have such scores in the folder.
        every: score all translations; without, a scorer that samples scores only those that have gold, where some has.

    Raises:
        InputError: the folder has scores of that name with another signature, or no system is chosen.
        MbrEsdError: an error of the scorer; systems that were done before stay.
    """
    rated = only_rated(test_set, every) and scorer.samples
    values: dict[str, MetricFiles] = {}
    missing: dict[str, list[str]] = {}
    chosen: dict[str, list[str]] = {}
    for name, signature in scorer.signatures.items():
        stored = MetricFiles() if overwrite else _stored(test_set, name, signature)
        chosen[name] = _systems(test_set, name, choice, rated, stored.scores)
        missing[name] = [
            system
            for system in chosen[name]
            if system not in stored.scores
            or any(stored.scores[system][place] is None for place in _segments(test_set, system, rated))
        ]
        if missing[name] and scorer.samples:
            stored, missing[name] = MetricFiles(), chosen[name]
        values[name] = stored
    systems = sorted({system for each in missing.values() for system in each})
    texts = {system: _texts(test_set, system, rated) for system in systems}
    parts = [systems] if scorer.samples and systems else [[system] for system in systems]
    for part in progress_bar("scoring", "system", shown=progress and not scorer.samples, iterable=parts):
        try:
            results = scorer.score([text for s in part for text in texts[s]], progress and scorer.samples)
        except MissingCandidatesError as error:
            if set(error.systems) < set(systems):
                error.args = (f"{error}; to score the other systems: --exclude {' '.join(error.systems)}",)
            raise
        first = 0
        for system in part:
            piece = slice(first, first + len(texts[system]))
            first = piece.stop
            places = _segments(test_set, system, rated)
            for name in (name for name in missing if system in missing[name]):
                files, scores, annotations = values[name], results[name].scores[piece], results[name].annotations
                files.scores[system] = _spread(test_set, places, scores)
                files.annotations.pop(system, None)
                if annotations is not None:
                    files.annotations[system] = _spread(test_set, places, annotations[piece])
                files.system_scores[system] = scorer.system_score(scores, texts[system])
        for name in missing:
            if set(part) & set(missing[name]):
                values[name].write(test_set, name, scorer.signatures[name])
    written = []
    for name in scorer.signatures:
        count = sum(len(_segments(test_set, system, rated)) for system in chosen[name])
        without = len(chosen[name]) * test_set.segments - count
        written.append(WrittenMetric(name, len(chosen[name]), count, without, scored=bool(missing[name])))
    return sorted(written, key=lambda one: one.scored)


def only_rated(test_set: TestSet, every: bool) -> bool:
    """Whether only translations with gold are to be scored."""
    return not every and not bool(np.isnan(test_set.gold).all())


def texts_to_score(test_set: TestSet, name: str, choice: SystemChoice, rated: bool = False) -> list[ScoredText]:
    """Every translation that a metric of this full name would score if nothing was scored yet."""
    return [text for system in _systems(test_set, name, choice, rated) for text in _texts(test_set, system, rated)]


def _segments(test_set: TestSet, system: str, rated: bool) -> list[int]:
    """The numbers of the segments to score of a system."""
    if not rated:
        return list(range(test_set.segments))
    return [int(number) for number in np.flatnonzero(~np.isnan(test_set.gold[test_set.systems.index(system)]))]


def _spread(test_set: TestSet, places: Sequence[int], values: Sequence[_T]) -> list[_T | None]:
    """The values at their places among all segments."""
    by_place = dict(zip(places, values, strict=True))
    return [by_place.get(place) for place in range(test_set.segments)]


def _systems(
    test_set: TestSet, name: str, choice: SystemChoice, rated: bool, stored: Collection[str] = ()
) -> list[str]:
    """The systems to score with a metric: the chosen and the stored ones, without a reference that it uses."""
    used = references_of(name, tuple(test_set.references))
    able = [system for system in (test_set.systems if rated else test_set.outputs) if system not in used]
    chosen = [system for system in able if choice.takes(system, test_set.info)]
    if not chosen:
        raise InputError(
            f"{test_set.name} {test_set.lp}: no system is left for {name}; there are {', '.join(able) or 'none'}"
        )
    return [system for system in able if system in chosen or system in stored]


def _stored(test_set: TestSet, name: str, signature: str) -> MetricFiles:
    """The scores of the folder; empty where it has none."""
    path = test_set.layout.metric_scores(name, "seg")
    if not path.is_file():
        return MetricFiles()
    stored = test_set.signature(name)
    if stored != signature:
        raise InputError(
            f"{path}: scores of that name are there, but not these ({stored or 'without a signature'} instead of "
            f"{signature}); choose another name, NAME=MODEL, or replace them with --overwrite"
        )
    return MetricFiles.read(test_set.layout, name)


def _texts(test_set: TestSet, system: str, rated: bool) -> list[ScoredText]:
    reference = test_set.references.get(test_set.info.standard_reference or "")
    return [
        ScoredText(
            test_set.sources[i],
            test_set.outputs[system][i] or "",
            f"{system}, segment {i + 1}",
            system,
            test_set.documents[i][1],
            reference=reference[i] if reference else None,
            supplied=test_set.outputs[system][i] is not None,
        )
        for i in _segments(test_set, system, rated)
    ]
