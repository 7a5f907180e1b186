"""Scores a whole test set with a metric, and writes the scores into the layout; a stopped run goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.adapters.wmt.scorers import Scored, ScoredText, Scorer
from mbr_esd_metric.adapters.wmt.test_set import TestSet, references_of
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, MbrEsdError, MissingCandidatesError
from mbr_esd_metric.files.streams import locked, progress_bar, write_whole

_T = TypeVar("_T")

#: References and outliers as well.
EVERY_SYSTEM = SystemChoice(outliers=True, human="all")


@dataclass(frozen=True, slots=True)
class WrittenMetric:
    """One metric in the folder: its full name, the number of its systems and of their translations that have a score,
    all of their translations, and whether it was there before."""

    name: str
    systems: int
    translations: int
    of: int
    found: bool

    @classmethod
    def of_systems(
        cls, test_set: TestSet, name: str, systems: Sequence[str], rated: bool, found: bool
    ) -> WrittenMetric:
        """What is known of a metric of these systems."""
        scored = sum(len(_segments(test_set, system, rated)) for system in systems)
        return cls(name, len(systems), scored, len(systems) * test_set.segments, found)


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
    the scores, a file ``NAME.signature`` says what they depend on. Metrics that are there with the same signature are
    not scored again.

    Args:
        test_set: what `load_test_set` returned.
        scorer: what scores.
        overwrite: replace scores that are there.
        progress: show progress on standard error.
        choice: which systems are scored, in addition to those that already have such scores in the folder.
        every: score all translations; without, a scorer that samples scores only those that have gold, where some has.

    Raises:
        InputError: scores of that name with another signature are there, or no system is chosen.
        MbrEsdError: what the scorer raises; systems that were done are kept for the next run.
    """
    names = list(scorer.signatures)
    rated = only_rated(test_set, every) and scorer.samples
    if all(found := _found(test_set, scorer, overwrite, choice, rated)):
        return [
            WrittenMetric.of_systems(test_set, name, _systems(test_set, name, choice, rated), rated, True)
            for name in names
        ]
    with _Partial.of(test_set.layout, scorer.signatures) as partial:
        found = _found(test_set, scorer, overwrite, choice, rated)  # again: another run may just have ended
        wanted = [name for name, there in zip(names, found, strict=True) if not there]
        # A metric's file is written as a whole, so the systems that it has already are scored again with the others.
        chosen = {
            name: _systems(test_set, name, choice, rated, () if overwrite else _scored(test_set, name))
            for name in names
        }
        systems = sorted({system for name in wanted for system in chosen[name]})
        texts = {system: _texts(test_set, system, rated) for system in systems}
        try:
            results = _score_systems(scorer, texts, partial, progress) if wanted else {}
        except MissingCandidatesError as error:
            if set(error.systems) < set(systems):
                error.args = (f"{error}; to score the other systems: --exclude {' '.join(error.systems)}",)
            raise
        for name in wanted:
            own = {system: results[system][name] for system in chosen[name]}
            means = {s: scorer.system_score(name, own[s], texts[s]) for s in own}
            places = {s: _segments(test_set, s, rated) for s in own}
            spans = {s: _spread(test_set, places[s], one.annotations) for s, one in own.items() if one.annotations}
            scores = {s: _spread(test_set, places[s], one.scores) for s, one in own.items()}
            write_metric(test_set.layout, name, scorer.signatures[name], scores, spans, means)
        partial.remove()
    ready = [WrittenMetric.of_systems(test_set, name, chosen[name], rated, name not in wanted) for name in names]
    return sorted(ready, key=lambda one: not one.found)


def only_rated(test_set: TestSet, every: bool) -> bool:
    """Whether only translations with gold are to be scored."""
    return not every and not bool(np.isnan(test_set.gold).all())


def _segments(test_set: TestSet, system: str, rated: bool) -> list[int]:
    """The numbers of the segments to score of a system."""
    if not rated:
        return list(range(test_set.segments))
    return [int(number) for number in np.flatnonzero(~np.isnan(test_set.gold[test_set.systems.index(system)]))]


def _spread(test_set: TestSet, places: Sequence[int], values: Sequence[_T]) -> list[_T | None]:
    """The values at their places among all segments."""
    found: list[_T | None] = [None] * test_set.segments
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found


def _found(test_set: TestSet, scorer: Scorer, overwrite: bool, choice: SystemChoice, rated: bool) -> list[bool]:
    """Whether each metric is there already."""
    return [not overwrite and _is_there(test_set, scorer, name, choice, rated) for name in scorer.signatures]


def _systems(test_set: TestSet, name: str, choice: SystemChoice, rated: bool, there: Collection[str] = ()) -> list[str]:
    """The systems to score with a metric: the chosen ones and those in `there`, without a reference that it uses."""
    used = references_of(name, tuple(test_set.references))
    able = [system for system in (test_set.systems if rated else test_set.outputs) if system not in used]
    chosen = [s for s in able if s in there or choice.takes(s, test_set.info, test_set.references)]
    if not chosen:
        raise InputError(
            f"{test_set.name} {test_set.lp}: no system is left for {name}; there are {', '.join(able) or 'none'}"
        )
    return chosen


def texts_to_score(test_set: TestSet, name: str, choice: SystemChoice, rated: bool = False) -> list[ScoredText]:
    """Every translation that a metric of this full name would score if nothing was scored yet.

    Raises:
        InputError: no system is chosen.
    """
    return [text for system in _systems(test_set, name, choice, rated) for text in _texts(test_set, system, rated)]


def _scored(test_set: TestSet, name: str) -> Collection[str]:
    path = test_set.layout.metric_scores(name, "seg")
    return files.read_scores(path) if path.is_file() else ()


def _is_there(test_set: TestSet, scorer: Scorer, name: str, choice: SystemChoice, rated: bool) -> bool:
    path = test_set.layout.metric_scores(name, "seg")
    if not path.is_file():
        return False
    stored = test_set.signature(name)
    if stored != scorer.signatures[name]:
        raise InputError(
            f"{path}: scores of that name are there, but not these ({stored or 'without a signature'} instead of "
            f"{scorer.signatures[name]}); choose another --name, or replace them with --overwrite"
        )
    scores = files.read_scores(path)
    return all(
        system in scores and all(scores[system][place][1] is not None for place in _segments(test_set, system, rated))
        for system in _systems(test_set, name, choice, rated)
    )


def _texts(test_set: TestSet, system: str, rated: bool) -> list[ScoredText]:
    reference = test_set.references.get(test_set.info.standard_reference or "")
    return [
        ScoredText(
            test_set.sources[i],
            test_set.outputs[system][i] or "",
            reference[i] if reference else None,
            f"{system}, segment {i + 1}",
            system,
            test_set.outputs[system][i] is not None,
            test_set.documents[i][1],
        )
        for i in _segments(test_set, system, rated)
    ]


def _score_systems(
    scorer: Scorer, texts: Mapping[str, Sequence[ScoredText]], partial: _Partial, progress: bool
) -> dict[str, Mapping[str, Scored]]:
    if scorer.whole:
        every = [text for part in texts.values() for text in part]
        return _split(scorer.score(every, progress), texts)
    results: dict[str, Mapping[str, Scored]] = {}
    for system, part in progress_bar("scoring", "system", shown=progress, iterable=texts.items()):
        kept = partial.get(part)
        if kept is None:
            kept = scorer.score(part, False)
            partial.put(part, kept)
        results[system] = kept
    return results


def _split(scored: Mapping[str, Scored], texts: Mapping[str, Sequence[ScoredText]]) -> dict[str, Mapping[str, Scored]]:
    results: dict[str, Mapping[str, Scored]] = {}
    first = 0
    for system, part in texts.items():
        piece = slice(first, first + len(part))
        first += len(part)
        results[system] = {
            name: Scored(all_of.scores[piece], all_of.annotations[piece] if all_of.annotations else None)
            for name, all_of in scored.items()
        }
    return results


def write_metric(
    layout: files.Layout,
    name: str,
    signature: str,
    scores: Mapping[str, Sequence[float | None]],
    annotations: Mapping[str, Sequence[Annotation | None]],
    system_scores: Mapping[str, float],
) -> None:
    """Write a metric's files. Segment scores are removed first and written last: a metric that has them is complete.

    Args:
        layout: where to.
        name: full name of the metric.
        signature: what the scores depend on.
        scores: system -> a score for each segment; None for an unrated one that it says nothing on.
        annotations: system -> its spans; empty for a metric without any.
        system_scores: system -> its score.
    """
    segments, rating = layout.metric_scores(name, "seg"), layout.metric_rating(name)
    segments.unlink(missing_ok=True)
    if annotations:
        raters: dict[str, list[str | None]] = {s: [None] * len(a) for s, a in annotations.items()}
        write_ratings(rating, annotations, raters)
    else:
        rating.unlink(missing_ok=True)
    files.write_scores(layout.metric_scores(name, "sys"), {s: [score] for s, score in system_scores.items()})
    write_whole(layout.metric_signature(name), signature + "\n")
    files.write_scores(segments, scores)


class _Partial:
    """The systems that are done, one a line of a file beside the scores, so that a stopped run goes on.

    A line's key depends on the signatures and the texts, so lines of another run are not used.
    """

    def __init__(self, path: Path, signatures: Mapping[str, str]) -> None:
        self._path = path
        self._signatures = signatures
        self._done: dict[bytes, Any] = {}
        for line in path.read_bytes().splitlines() if path.exists() else ():
            key, _, content = line.partition(b" ")
            with suppress(ValueError):  # a damaged line is made again
                self._done[key] = json.loads(content)

    @classmethod
    @contextmanager
    def of(cls, layout: files.Layout, signatures: Mapping[str, str]) -> Iterator[_Partial]:
        """The file of this run. Its content stays when the run fails, and the error says so.

        It is named after the scorer's first metric, whichever metrics are written, so that two runs of one scorer use
        the same file.
        """
        first = layout.metric_scores(next(iter(signatures)), "seg")
        first.parent.mkdir(parents=True, exist_ok=True)
        name = first.name.removesuffix(".seg.score")
        path = first.with_name(f".{name}.partial")
        with locked(first.with_name(f".{name}.lock"), str(first)):
            try:
                yield cls(path, signatures)
            except MbrEsdError as error:
                if path.exists():
                    error.args = (f"{error}; systems that were done are kept, the same command goes on from there",)
                raise

    def get(self, texts: Sequence[ScoredText]) -> Mapping[str, Scored] | None:
        """What is stored for a system's texts."""
        stored = self._done.get(self._key(texts))
        if stored is None:
            return None
        return {
            name: Scored(tuple(scores), None if spans is None else tuple(_stored(s) for s in spans))
            for name, (scores, spans) in stored.items()
        }

    def put(self, texts: Sequence[ScoredText], results: Mapping[str, Scored]) -> None:
        """Store a system's results at once."""
        content = {
            name: (
                scored.scores,
                None
                if scored.annotations is None
                else [
                    [asdict(span) for span in annotation] + [{"severity": severity} for severity in annotation.unplaced]
                    for annotation in scored.annotations
                ],
            )
            for name, scored in results.items()
        }
        with self._path.open("ab") as file:
            # The line end before it ends what a killed run left.
            file.write(b"\n" + self._key(texts) + b" " + json.dumps(content).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def remove(self) -> None:
        """The run is complete."""
        self._path.unlink(missing_ok=True)

    def _key(self, texts: Sequence[ScoredText]) -> bytes:
        content = [dict(self._signatures), [(t.source, t.translation, t.reference) for t in texts]]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest().encode()


def _stored(errors: Sequence[Mapping[str, Any]]) -> Annotation:
    """What `_Partial.put` wrote; omissions without a place have a severity alone."""
    placed = Annotation(error for error in errors if "start" in error)
    return placed.missing(error["severity"] for error in errors if "start" not in error)
