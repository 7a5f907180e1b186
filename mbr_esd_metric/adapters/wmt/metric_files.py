"""A file of ``comet-score --to_json`` as a metric of a test set, for one run or in the folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.comet_json import CometRow, read_comet_json
from mbr_esd_metric.adapters.wmt.joining import joined_records
from mbr_esd_metric.adapters.wmt.rating_sets import Ratings, fitted
from mbr_esd_metric.adapters.wmt.submitting import Taken, check_new, written
from mbr_esd_metric.adapters.wmt.test_set import StoredMetric, TestSet
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError


def with_files(test_set: TestSet, files: Mapping[str, Path]) -> TestSet:
    """The test set with these metrics beside those of its folder.

    Raises:
        InputError: a file of another format, or one that lacks a rated translation.
    """
    added = [metric_of_file(test_set, name, path) for name, path in files.items()]
    return replace(test_set, added={**test_set.added, **{metric.name: metric for metric in added}})


def metric_of_file(test_set: TestSet, name: str, path: Path) -> StoredMetric:
    """The scores and spans of a file; a rated translation has a score, another one need not have any.

    Its full name ends in the standard reference where the file's rows have references, else in "src". Where rows have
    spans and no score, Score(E) counts.

    Raises:
        InputError: as `with_files`.
    """
    rows = read_comet_json(path)
    cells = joined_records(test_set, ((row.place, row) for row in rows), str(path))
    spans = any(row.annotation is not None for row in rows)
    scores = np.array([[np.nan if cell is None else _score(cell, path) for cell in row] for row in cells])
    fits: dict[str, tuple[Annotation | None, ...]] = {}
    missing: dict[str, tuple[Annotation | None, ...]] = {}
    for system, row, of in zip(test_set.systems, cells, test_set.lengths.tolist(), strict=True):
        pairs = zip(row, of, strict=True)
        both = [None if cell is None else fitted(cell.annotation or Annotation(), n) for cell, n in pairs]
        fits[system] = tuple(None if one is None else one.on("translation") for one in both)
        missing[system] = tuple(None if one is None else one.on("source") for one in both)
    suffix = test_set.info.standard_reference if any(row.reference for row in rows) else None
    notes = _notes([cell.annotation for row in cells for cell in row if cell and cell.annotation], test_set, name)
    ratings = Ratings(name, fits, dict.fromkeys(fits, (None,) * test_set.segments), missing) if spans else None
    return StoredMetric(f"{name}-{suffix or 'src'}", scores, ratings, notes)


def take_file(path: str | Path, test_set: TestSet, name: str, *, overwrite: bool = False) -> Taken:
    """Write a file's scores and spans into the folder, as a metric of that base name; errors as of `with_files`."""
    metric = metric_of_file(test_set, name, Path(path))
    check_new(test_set, metric.name, overwrite)
    scores: dict[str, list[float | None]] = {
        system: [None if np.isnan(score) else float(score) for score in row]
        for system, row in zip(test_set.systems, metric.scores, strict=True)
    }
    given = metric.ratings
    spans = {s: [given.both_of(s, n) for n in range(test_set.segments)] for s in given.annotations} if given else {}
    return written(test_set, metric.name, f"comet-json|v:{__version__}", scores, spans)


def _score(row: CometRow, path: Path) -> float:
    if row.score is not None:
        return row.score
    if row.annotation is None:
        raise InputError(f"{path}, system {row.place.system}, segment {row.number}: neither a score nor error spans")
    return mqm_score(row.annotation.with_spans(row.annotation))


def _notes(annotations: list[Annotation], test_set: TestSet, name: str) -> tuple[str, ...]:
    empty = sum(len(annotation.points) for annotation in annotations)
    said = f"error spans of {name}, {test_set.lp}: {empty} have no characters and are no spans"
    return (said,) if empty else ()
