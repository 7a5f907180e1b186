"""A metric's files in the folder (scores, error spans, signature), and other files joined to a test set: outputs of
``comet-score --to_json`` and `mbr-esd score`, decisions, and candidates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.layout import Layout
from mbr_esd_metric.adapters.wmt.rating_files import SpanSet, fault_note, read_ratings, write_ratings
from mbr_esd_metric.adapters.wmt.test_set import StoredMetric, TestSet
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.judged import JudgedSegment, read_judged
from mbr_esd_metric.files.records import CandidateRecord, Join, read_candidates, read_decided
from mbr_esd_metric.files.streams import numbered_lines, write_whole
from mbr_esd_metric.messages import number_of
from mbr_esd_metric.metaeval.choosing import Sampled

#: Extension of the layout's files with segment scores.
SEG_SCORE = ".seg.score"


def is_score_file(path: Path) -> bool:
    """Whether a file has segment scores in the layout's format."""
    return path.name.endswith(SEG_SCORE)


@dataclass(slots=True)
class MetricFiles:
    """The contents of a metric's files, by system.

    Attributes:
        scores: score of each segment; None if missing.
        annotations: annotation of each segment, with both sides; empty for a metric without error spans.
        system_scores: score of the system, if it is not the mean over its segments.
    """

    scores: dict[str, list[float | None]] = field(default_factory=dict)
    annotations: dict[str, list[Annotation | None]] = field(default_factory=dict)
    system_scores: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, layout: Layout, name: str) -> MetricFiles:
        """Read the files of a metric, by full name."""
        means = {s: row[0] for s, row in files.read_scores(layout.metric_file(name, "sys.score")).items()}
        return cls(
            files.read_scores(layout.metric_file(name, "seg.score")),
            read_ratings(layout.metric_file(name, "seg.rating")),
            {system: score for system, score in means.items() if score is not None},
        )

    def write(self, test_set: TestSet, name: str, signature: Signature) -> None:
        """Write the files. Segment scores with another signature are removed first; the new scores are written last."""
        layout = test_set.layout
        segments, rating = layout.metric_file(name, "seg.score"), layout.metric_file(name, "seg.rating")
        if test_set.signature(name) != signature:
            segments.unlink(missing_ok=True)
        if self.annotations:
            write_ratings(rating, self.annotations)
        else:
            rating.unlink(missing_ok=True)
        known = {system: [score for score in row if score is not None] for system, row in self.scores.items()}
        means = {system: sum(row) / len(row) for system, row in known.items() if row} | self.system_scores
        files.write_scores(layout.metric_file(name, "sys.score"), {system: [mean] for system, mean in means.items()})
        write_whole(layout.metric_file(name, "signature"), f"{signature}\n")
        files.write_scores(segments, self.scores)

    def add(self, test_set: TestSet, name: str, signature: Signature, *, overwrite: bool, left_out: int = 0) -> str:
        """Write the files of an imported metric, from whose file `left_out` rows of other translations were dropped.
        Returns a description of what was written. Raises `InputError` if the test set already has a metric with this
        full name, unless `overwrite`."""
        path = test_set.layout.metric_file(name, "seg.score")
        if path.is_file() and not overwrite:
            raise InputError(f"{path} is already there; choose another name, or add --overwrite")
        self.write(test_set, name, signature)
        count, systems = sum(score is not None for row in self.scores.values() for score in row), len(self.scores)
        kind = "scores and error spans" if len(self.annotations) == systems else "scores"
        done = f"{name}, {kind} of {number_of(count, 'translation')} by {number_of(systems, 'system')}"
        if left_out:
            done += f"; left out: {number_of(left_out, 'row')} of other translations"
        if without := systems * test_set.segments - count:
            done += f"; {number_of(without, 'unrated translation')} without an answer"
        return done


_T = TypeVar("_T")


def joined_records(test_set: TestSet, records: Iterable[tuple[Segment, _T]], where: str) -> list[list[_T | None]]:
    """The record for each translation of the evaluated systems, with its (system, segment) index; None for an unrated
    one without a record. For the matching, see `files.records`.

    Raises:
        InputError: a translation with a gold score is not in the file (with system and segment number).
    """
    join = Join(records, test_set.outputs)
    rows: list[list[_T | None]] = []
    for number, system in enumerate(test_set.systems):
        places = [
            Segment(source, translation or "", system=system)
            for source, translation in zip(test_set.sources, test_set.outputs[system], strict=True)
        ]
        rows.append(join.find(places))
        rated = ~np.isnan(test_set.gold[number])
        missing = [segment for segment, record in enumerate(rows[-1]) if record is None and rated[segment]]
        if missing:
            first = places[missing[0]]
            more = f" (nor on {len(missing) - 1} more of them)" if len(missing) > 1 else ""
            raise InputError(
                f"{where}: nothing on segment {missing[0] + 1} of system {system} in {test_set.lp}, which has "
                f"a gold score{more}: {first.translation[:60]!r} of {first.source[:60]!r}"
            )
    return rows


def with_files(test_set: TestSet, files: Mapping[str, Path], named: Sequence[str] = ()) -> TestSet:
    """The test set with these metrics, which replace metrics of the same names in its folder. Unreadable score files
    are omitted from tables, like those in the folder.

    Raises:
        InputError: see `metric_of_file`; or a file has the name of a metric in the folder that is also in `named`.
    """
    added: dict[str, StoredMetric | InputError] = {}
    for name, path in files.items():
        metric = _metric_or_error(test_set, name, path)
        full = f"{name}-src" if isinstance(metric, InputError) else metric.name
        if full in named:  # like a stored metric
            raise InputError(f"{path}: the file is called {full}, which is also given; rename it: NAME={path}")
        added[full] = metric
    return replace(test_set, added={**test_set.added, **added})


def _metric_or_error(test_set: TestSet, name: str, path: Path) -> StoredMetric | InputError:
    """`metric_of_file`, but for unreadable score files in the layout's format, returns the reason."""
    try:
        return metric_of_file(test_set, name, path)
    except InputError as error:
        if is_score_file(path):
            return error
        raise


def metric_of_file(test_set: TestSet, name: str, path: Path) -> StoredMetric:
    """The scores and spans of a file, which must have a score for each rated translation. The full name ends in the
    standard reference if the file's rows have references, otherwise in "src". For rows with spans but no score, the
    score is (25 + Score(E)) / 25.

    Raises:
        InputError: a file of another format, or one that lacks a rated translation.
    """
    if is_score_file(path):
        *_, used = path.name.removesuffix(SEG_SCORE).rpartition("-")
        used = used if used in {"all", *test_set.references} else "src"
        return StoredMetric(f"{name.removesuffix(f'-{used}')}-{used}", test_set.scores_of(path), None)
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    of_decisions = first.startswith("{") and '"expected_utility"' in first
    rows = _decisions(test_set, path) if of_decisions else read_judged(path)
    cells = joined_records(test_set, ((row.segment, row) for row in rows), str(path))
    scores = np.array([[np.nan if cell is None else _score(cell, path) for cell in row] for row in cells])
    faults: Counter[str] = Counter()
    annotations = [
        [
            None if cell is None else cell.of(Segment(source, text or "", "", system)).annotation
            for cell, source, text in zip(row, test_set.sources, test_set.outputs[system], strict=True)
        ]
        for system, row in zip(test_set.systems, cells, strict=True)
    ]
    by_system = dict(zip(test_set.systems, annotations, strict=True))
    ratings = SpanSet.fitting(name, by_system, test_set.outputs, faults)
    notes = fault_note(f"{name}, {test_set.lp}", faults)
    covered = sum(cell is not None for row in cells for cell in row)
    if covered < scores.size:
        notes += (f"{name} covers {covered} of {scores.size} translations of {test_set.lp}, all that have gold",)
    suffix = test_set.info.standard_reference if any(row.reference for row in rows) else None
    with_spans = any(row.annotation is not None for row in rows)
    origins = {row.settings for row in rows}
    settings = origins.pop() if len(origins) == 1 else Settings(next((one.model for one in origins), None))
    return StoredMetric(f"{name}-{suffix or 'src'}", scores, ratings if with_spans else None, notes, settings)


def _decisions(test_set: TestSet, path: Path) -> list[JudgedSegment]:
    """The rows of a decisions file, in which segment ids are numbers from 1."""
    texts = {}
    for system in test_set.outputs:
        for number, pair in enumerate(zip(test_set.sources, test_set.outputs[system], strict=True), 1):
            texts[system, str(number)] = Segment(pair[0], pair[1] or "", str(number), system)
    if len(test_set.systems) == 1:
        texts |= {("", name): text for (system, name), text in texts.items() if system == test_set.systems[0]}
    elsewhere = f"no system of {test_set.name} {test_set.lp}; decide on candidates of: mbr-esd sample --test-set"
    return read_decided(path, texts, elsewhere)


def import_file(path: str | Path, test_set: TestSet, name: str, *, overwrite: bool = False) -> str:
    """Write a file's scores and spans into the folder, as a metric with this base name, without unrated systems that
    the file lacks. Returns a description of what was written. Raises `InputError` for a file without translations of
    the test set, or that lacks a rated one."""
    metric = metric_of_file(test_set, name, Path(path))
    files = MetricFiles()
    for system, row in zip(test_set.systems, metric.scores.tolist(), strict=True):
        if all(map(math.isnan, row)):
            continue
        files.scores[system] = [None if math.isnan(score) else score for score in row]
        if metric.ratings:
            files.annotations[system] = list(metric.ratings.both[system])
    if not files.scores:
        raise InputError(f"{path}: no translation of {test_set.name} {test_set.lp}; give the file of these texts")
    signature = metric.settings.signature or Signature.of("comet-json", {}, __version__)
    return files.add(test_set, metric.name, signature, overwrite=overwrite)


def _score(row: JudgedSegment, path: Path) -> float:
    if row.input_score is None:
        raise InputError(
            f"{path}, system {row.segment.system}, segment {row.segment.label}: neither a score nor error spans; score "
            "it with blank=worst if it was left out as blank"
        )
    return row.input_score


def read_sampled(test_set: TestSet, path: str) -> list[list[Sampled | None]]:
    """The candidates of a file, joined to the translations. Error spans are located in the texts of the test set."""
    records = joined_records(test_set, ((record.segment, record) for record in read_candidates(path)), path)

    def sampled(record: CandidateRecord, system: str, number: int) -> Sampled:
        translation, label = test_set.outputs[system][number] or "", f"{path}: segment {number + 1} of {system}"
        return Sampled(translation, record.candidates, label, test_set.sources[number])

    return [
        [None if record is None else sampled(record, system, number) for number, record in enumerate(row)]
        for system, row in zip(test_set.systems, records, strict=True)
    ]
