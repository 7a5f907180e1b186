"""Writes a stored metric as a submission to one of WMT's tasks, and reads a submission as a stored metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.wmt.layout import score_rows
from mbr_esd_metric.adapters.wmt.metric_files import MetricFiles, WrittenMetric
from mbr_esd_metric.adapters.wmt.rating_files import fitted
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS, SubmissionRow, cell_text
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError, OptionError, first_of
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.metaeval.error_free import ErrorFreeModel, Judged

#: Lowest and highest Score(E), this package's own scores.
_SCORE_RANGE = (-25.0, 0.0)


def write_submission(
    path: str | Path,
    form: str,
    test_sets: Sequence[TestSet],
    metric: str | None,
    *,
    raters: str | None = None,
    score_range: tuple[float, float] | None = None,
    error_free: ErrorFreeModel | float | None = None,
) -> int:
    """Write a metric's, or people's, annotations of the translations, except the standard reference; how many.

    Args:
        path, form: file or folder, as that format of `submissions.SUBMISSION_FORMATS` has it.
        metric: full or base name of a stored metric, in all of them; None for people.
        raters: the set of human ratings, where people's gold is written; the scores are gold's, and what has none
            is left out.
        score_range: lowest and highest score, which become 0 and 100 in WMT26's format; by default those of this
            package's models where there are error spans.
        error_free: tells from the stored scores which translations are without error; a number is the least score,
            of 0 to 100, of one; by default, one without error spans.
    """
    rows: list[SubmissionRow] = []
    systems: dict[tuple[str, str], float] = {}
    for test_set in test_sets:
        name, stored = _gold(test_set, raters) if metric is None else _metric(test_set, metric)
        if SUBMISSION_FORMATS[form].spans and not stored.annotations:
            raise InputError(f"{name} has no error spans in {test_set.lp}, and {form} is made of them")
        rows_of_pair = list(_rows(test_set, stored, form, gold=metric is None))
        rows += rows_of_pair
        for system in dict.fromkeys(row.system for row in rows_of_pair):
            scores = [row.score for row in rows_of_pair if row.system == system and row.score is not None]
            systems[test_set.lp, system] = stored.system_scores.get(system, sum(scores) / max(1, len(scores)))
    if not rows:
        raise OptionError(f"{metric or 'gold'} has no translation")
    if isinstance(error_free, ErrorFreeModel):
        judged = [Judged(row.score or 0.0, row.spans, len(row.translation or ""), row.lp) for row in rows]
        clean = error_free.clean(judged).tolist()
        rows = [replace(row, clean=one and bool(row.translation)) for row, one in zip(rows, clean, strict=True)]
    if form == "wmt26":
        rows = list(_to_hundred(rows, score_range))
    if isinstance(error_free, int | float):
        rows = [replace(row, clean=row.score is not None and row.score >= error_free) for row in rows]
    SUBMISSION_FORMATS[form].write(Path(path), rows, systems)
    return len(rows)


def _metric(test_set: TestSet, metric: str) -> tuple[str, MetricFiles]:
    names = test_set.find_metrics([metric])
    if len(names) > 1:
        raise OptionError(f"--metric {metric}: there are {' and '.join(names)}; name one of them in full")
    return names[0], MetricFiles.read(test_set.layout, names[0])


def _gold(test_set: TestSet, raters: str | None) -> tuple[str, MetricFiles]:
    sets = test_set.human_ratings([raters] if raters else ()) if test_set.ratings else ()
    if len(sets) > 1:
        names = ", ".join(ratings.name for ratings in sets)
        raise OptionError(f"there are several sets of human ratings in {test_set.lp} ({names}); name one")
    scores = score_rows(test_set.layout.human_scores(test_set.info.gold, "seg"))
    return "gold", MetricFiles(scores, {s: list(row) for one in sets for s, row in one.annotations.items()})


def _rows(test_set: TestSet, stored: MetricFiles, form: str, gold: bool) -> Iterator[SubmissionRow]:
    reference = test_set.references.get(test_set.info.standard_reference or "")
    gold_scores = dict(zip(test_set.systems, test_set.gold, strict=True))
    task_systems, labels = _task_names(test_set)
    kind = test_set.info.gold.split("-")[0].upper()
    for system in sorted(test_set.outputs):
        if system == test_set.info.standard_reference or system not in stored.scores:
            continue
        for number, (document, place) in enumerate(_places(test_set)):
            if gold and (system not in gold_scores or math.isnan(gold_scores[system][number])):
                continue
            text = test_set.outputs[system][number]
            spans = stored.annotations[system][number] if system in stored.annotations else None
            if gold and stored.annotations and spans is None:
                continue  # rated, but not by these
            name = task_systems.get(system, system)
            label = labels[number] if labels else str(place if form == "wmt26" else number + 1)
            cut = None if spans is None else fitted(spans, len(text or ""))
            score, domain = stored.scores[system][number], test_set.documents[number][0]
            texts = (test_set.sources[number], text, reference[number] if reference else None)
            yield SubmissionRow(test_set.lp, name, document, place, label, cut, score, domain, *texts, kind)


def _task_names(test_set: TestSet) -> tuple[dict[str, str], list[str]]:
    """The task's name of each system and its number of each segment; empty where the folder has none."""
    systems, segments = test_set.layout.task("systems"), test_set.layout.task("segments")
    names = dict(line.split("\t", 1) for _, line in numbered_lines(systems)) if systems.is_file() else {}
    labels = [line for _, line in numbered_lines(segments)] if segments.is_file() else []
    if labels and len(labels) != test_set.segments:
        raise InputError(f"{segments}: {len(labels)} lines, but {test_set.segments} source segments")
    return names, labels


def _places(test_set: TestSet) -> list[tuple[str, int]]:
    """The document of each segment, which is in one piece, and its place in it."""
    documents = groupby(document for _, document in test_set.documents)
    return [(document, place) for document, segments in documents for place, _ in enumerate(segments)]


def _to_hundred(rows: Sequence[SubmissionRow], score_range: tuple[float, float] | None) -> Iterator[SubmissionRow]:
    low, high = score_range or _SCORE_RANGE
    if score_range is None and any(row.spans is None for row in rows):
        raise OptionError("WMT26's scores go from 0 to 100; say where the metric's lie: --range LOW HIGH")
    for row in rows:
        if row.score is None or not low <= row.score <= high:
            raise OptionError(f"a score of {row.score} is not within {low:g} and {high:g}; give --range LOW HIGH")
        yield replace(row, score=100 * (row.score - low) / (high - low))


def import_submission(
    path: str | Path, form: str, test_set: TestSet, name: str, *, overwrite: bool = False
) -> WrittenMetric:
    """Read a submission into a test set, as metric scores and error spans; spans without scores give Score(E).

    Args:
        path, form: as for `write_submission`.
        name: full name of the metric, such as "GemSpanEval-src"; `overwrite` replaces one of that name.

    Raises:
        InputError: the file has another format, lacks a rated translation of one of its systems, or has another text;
            or the metric is in the test set already.
    """
    every = SUBMISSION_FORMATS[form].read(Path(path))
    rows = [row for row in every if row.lp == test_set.lp]
    if not rows:
        pairs = ", ".join(sorted({row.lp for row in every})) or "nothing at all"
        raise InputError(f"{path}: nothing of {test_set.lp}; there is: {pairs}")
    cells = _cells(path, rows, test_set)
    if not cells:
        systems = first_of(sorted({row.system for row in rows}))
        raise InputError(f"{path}: no system of {test_set.name} {test_set.lp}; there are: {systems}")
    rated = score_rows(test_set.layout.human_scores(test_set.info.gold, "seg"))
    files = MetricFiles()
    for system, by_number in cells.items():
        row_of = [by_number.get(number) for number in range(test_set.segments)]
        missing = [
            number + 1
            for number, row in enumerate(row_of)
            if row is None and (system not in rated or rated[system][number] is not None)
        ]
        if missing:
            raise InputError(f"{path}: nothing on segment {missing[0]} of system {system} ({len(missing)} are missing)")
        files.scores[system] = [None if row is None else _score(row) for row in row_of]
        if all(row.spans is not None for row in by_number.values()):
            files.annotations[system] = [None if row is None else row.spans for row in row_of]
    left_out = len(rows) - sum(map(len, cells.values()))
    return files.add(test_set, name, f"{form}|submission|v:{__version__}", overwrite=overwrite, left_out=left_out)


def _score(row: SubmissionRow) -> float:
    """A row's score; without one Score(E) of its spans in the translation, which are a set."""
    if row.score is not None:
        return row.score
    spans = (row.spans or EMPTY).on("translation")
    return mqm_score(spans.with_spans(spans))


def _cells(
    path: str | Path, rows: Sequence[SubmissionRow], test_set: TestSet
) -> Mapping[str, dict[int, SubmissionRow]]:
    """System -> segment's number -> row, without rows for other translations than the test set's."""
    cells: dict[str, dict[int, SubmissionRow]] = {}
    names, _ = _task_names(test_set)
    systems = {name: system for system, name in names.items()}
    numbers = _numbers(rows, test_set)
    for row, number in zip(rows, numbers, strict=True):
        system = systems.get(row.system, "_".join(row.system.replace("/", " ").split()))
        if system not in test_set.outputs or number is None:
            continue
        where = f"{path}, line {row.line}" if row.line else str(path)
        text = cell_text(test_set.outputs[system][number] or "").rstrip()
        if row.translation is not None and cell_text(row.translation).rstrip() != text:
            raise InputError(
                f"{where}: another text of system {system}, segment {number + 1}: {row.translation[:60]!r}, and the "
                f"test set has {text[:60]!r}"
            )
        if number in cells.setdefault(system, {}):
            raise InputError(f"{where}: a second row for segment {number + 1} of system {system}; leave one out")
        cells[system][number] = replace(row, spans=None if row.spans is None else fitted(row.spans, len(text)))
    return cells


def _numbers(rows: Sequence[SubmissionRow], test_set: TestSet) -> list[int | None]:
    """The segment of each row: by the task's number where the folder has it; else by its number in the language pair,
    from 1, where all rows have one that fits their document; else by its place in the document."""
    _, labels = _task_names(test_set)
    documents = [document for _, document in test_set.documents]
    of_rows = ["_".join(row.document.split()) for row in rows]
    if labels:
        by_label = {key: number for number, key in enumerate(zip(documents, labels, strict=True))}
        return [by_label.get((document, row.label)) for document, row in zip(of_rows, rows, strict=True)]
    numbers = [int(row.label) - 1 if row.label.isdecimal() else -1 for row in rows]
    if all(0 <= n < len(documents) and documents[n] == one for n, one in zip(numbers, of_rows, strict=True)):
        return list(numbers)
    by_place = {key: number for number, key in enumerate(_places(test_set))}
    return [by_place.get((document, row.place)) for document, row in zip(of_rows, rows, strict=True)]
