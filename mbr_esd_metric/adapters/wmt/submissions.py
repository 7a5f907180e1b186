"""Submissions to WMT's evaluation tasks: written from a stored metric, and imported as one.

    wmt25-task1   scores (a folder with segments.tsv and systems.tsv): a row a segment and system, and a row a system
    wmt25-task2   error spans (predictions.tsv): start_indices, end_indices and error_types of each translation; what is
                  left out of the source has "missing" for its indices
    wmt26         all tasks in one file (.jsonl), an object a segment: item_id, and by system task1_pred (error spans,
                  severity of omissions), task2_pred (a score from 0 to 100) and task3_pred (1: without error)

Rows are sorted by system, then in the order of the test set. Segments of WMT25 are numbered through a language pair,
from 1, and those of WMT26 within their document, from 0.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.qe_tsv import span_columns
from mbr_esd_metric.adapters.ratings import MqmError, annotation_of_errors
from mbr_esd_metric.adapters.wmt.layout import one_line, read_scores, read_text, write_lines
from mbr_esd_metric.adapters.wmt.metric_files import MetricFiles
from mbr_esd_metric.adapters.wmt.rating_files import SpanSet, fit_to_text
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import EMPTY, Annotation, Severity, fold_severity, mqm_score
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import VERSION, Signature
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.streams import numbered_lines, write_whole
from mbr_esd_metric.files.tables import table_cells
from mbr_esd_metric.files.untrusted import finite, json_objects, reading, text_of
from mbr_esd_metric.messages import first_of
from mbr_esd_metric.metaeval.error_free import ErrorFreeModel, ScoredTranslation

_T = TypeVar("_T")

#: Position of an omission in WMT25's tables.
MISSING = "missing"
#: Separator of the parts of an identifier of WMT26.
SEPARATOR = "_###_"

_IDENTITY = ("doc_id", "segment_id", "source_lang", "target_lang", "set_id", "system_id")
_TEXTS = ("source_segment", "hypothesis_segment", "reference_segment")
_SPANS = ("start_indices", "end_indices", "error_types")


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """One row of a submission: a segment, its error spans and its score.

    Attributes:
        segment: its label is the task's segment number; its texts are empty if the format has none.
        place: the position of the segment in its document, from 0.
        spans, score: None if the format has none.
        has_translation: whether the format has the translation.
        method: the kind of gold scores, such as "MQM" or "ESA".
        system_score: the score of its system.
        clean: whether it is error-free; None to derive this from the spans.
        line: the line in the file that it was read from, from 1; 0 if unknown.
    """

    lp: str
    segment: Segment
    place: int
    spans: Annotation | None = None
    score: float | None = None
    domain: str = "all"
    has_translation: bool = False
    reference: str | None = None
    method: str = ""
    system_score: float = 0.0
    clean: bool | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Format:
    """A task's format: a description for `--help`, its writer and reader, and whether it has error spans."""

    description: str
    write: Callable[[Path, Sequence[SubmissionRow]], None]
    read: Callable[[Path], list[SubmissionRow]]
    spans: bool = True


def _write_wmt25_scores(path: Path, rows: Sequence[SubmissionRow]) -> None:
    header = (*_IDENTITY, "domain_name", "method", "overall")
    segments = [(*_identity(row), row.domain, row.method, repr(_needed(row, row.score, "score"))) for row in rows]
    scores = {(row.lp, row.segment.system): row.system_score for row in rows}
    systems = [
        ("all", "all", *lp.split("-", 1), "official", system, "all", "", repr(score))
        for (lp, system), score in sorted(scores.items())
    ]
    for name, table in (("segments.tsv", segments), ("systems.tsv", systems)):
        write_lines(path / name, ("\t".join(map(cell_text, cells)) for cells in (header, *table)))


def _write_wmt25_spans(path: Path, rows: Sequence[SubmissionRow]) -> None:
    lines: list[tuple[str, ...]] = [(*_IDENTITY, *_TEXTS, "domain_name", "method", *_SPANS)]
    for row in rows:
        texts = (row.segment.source, row.segment.translation, "NaN" if row.reference is None else row.reference)
        spans = write_spans(_needed(row, row.spans, "error spans"))
        lines.append((*_identity(row), *map(cell_text, texts), row.domain, row.method, *spans))
    # The task's scorer reads with pandas's defaults, so quotes inside a field must be quoted.
    out = io.StringIO()
    csv.writer(out, delimiter="\t", lineterminator="\n").writerows(lines)
    write_whole(path, out.getvalue())


def _read_wmt25(path: Path) -> list[SubmissionRow]:
    if path.is_dir():
        path = path / "segments.tsv"
    first = next(iter(numbered_lines(path)), (1, ""))[1]
    scores = "overall" in first.split("\t")
    rows = []
    places: Counter[tuple[str, str, str]] = Counter()
    # The task's scorer reads the table of spans with pandas's defaults, so fields may be quoted.
    cells = table_cells(path, "\t", (*_IDENTITY, *(() if scores else _SPANS)), quoted=not scores)
    for number, cell in cells:
        if cell["set_id"] != "official":
            continue
        with reading(f"{path}, line {number}"):
            key = (f"{cell['source_lang']}-{cell['target_lang']}", cell["system_id"], cell["doc_id"])
            spans, score = (
                (None, finite(cell["overall"])) if scores else (read_spans(*(cell[name] for name in _SPANS)), None)
            )
            lp, system, document = key
            translation = cell.get("hypothesis_segment")
            segment = Segment("", translation or "", cell["segment_id"], system, document)
            has = translation is not None
            rows.append(SubmissionRow(lp, segment, places[key], spans, score, has_translation=has, line=number))
            places[key] += 1
    return rows


def _write_wmt26(path: Path, rows: Sequence[SubmissionRow]) -> None:
    items: dict[str, dict[str, Any]] = {}
    for row in rows:
        source, target = row.lp.split("-", 1)
        identifier = SEPARATOR.join(["official", source, target, row.domain, row.segment.document, row.segment.label])
        predicted: dict[str, Any] = {f"task{number}_pred": {} for number in (1, 2, 3)}
        item = items.setdefault(identifier, {"item_id": identifier, **predicted})
        spans, score = _needed(row, row.spans, "error spans"), _needed(row, row.score, "score")
        errors = [
            {"start": s.start, "end": s.end, "severity": s.severity, "category": s.category or "other"}
            for s in spans.on("translation")
        ]
        errors += [{"start": at, "end": at, "severity": s, "category": "other"} for at, s in spans.points]
        omissions = {*spans.unplaced, *(span.severity for span in spans.on("source"))}
        faults = {error["severity"] for error in errors if "instruction" in str(error["category"]).lower()}
        item["task1_pred"][row.segment.system] = {
            "errors": errors,
            "omission": min(omissions, default=None),  # "major" is before "minor"
            "instruction_fault": min(faults, default=None),
        }
        item["task2_pred"][row.segment.system] = score
        item["task3_pred"][row.segment.system] = int(spans.clean if row.clean is None else row.clean)
    write_whole(path, "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items.values()))


def read_items(path: Path, take: Callable[[Mapping[str, Any], str, str, str, str], Iterable[_T]]) -> list[_T]:
    """The results of `take` for each official segment in a WMT26 file.

    Args:
        take: called with a line's object, and the language pair, domain, document and position in its item_id.
    """
    results: list[_T] = []
    for where, _, item in json_objects(path):
        with reading(where):
            parts = text_of(item, "item_id").split(SEPARATOR)
            if parts[0] == "official":
                _, source, target, domain, *document, place = parts
                results += take(item, f"{source}-{target}", domain, SEPARATOR.join(document), place)
    return results


def _read_wmt26(path: Path) -> list[SubmissionRow]:
    def rows(item: Mapping[str, Any], lp: str, domain: str, document: str, place: str) -> Iterator[SubmissionRow]:
        spans, scores = item.get("task1_pred") or {}, item.get("task2_pred") or {}
        for system in dict.fromkeys([*spans, *scores]):
            annotation, answer = None, spans.get(system)
            if answer is not None:
                omission = [{"severity": answer["omission"]}] if answer.get("omission") else []
                annotation = _annotation([*answer["errors"], *omission])
            score = None if scores.get(system) is None else finite(scores[system])
            yield SubmissionRow(lp, Segment("", "", place, system, document), int(place), annotation, score, domain)

    return read_items(path, rows)


#: Name -> format.
SUBMISSION_FORMATS: Mapping[str, Format] = {
    "wmt25-task1": Format("WMT25, scores", _write_wmt25_scores, _read_wmt25, spans=False),
    "wmt25-task2": Format("WMT25, spans", _write_wmt25_spans, _read_wmt25),
    "wmt26": Format("WMT26, spans, scores, and error-free or not", _write_wmt26, _read_wmt26),
}


def read_spans(starts: str, ends: str, severities: str) -> Annotation:
    """Parse error spans as space-separated words with half-open offsets; "-1 -1 no-error" if there are none. Spans
    without characters become points, and errors without a position ("missing") `unplaced` omissions. Neutral errors are
    dropped.
    """
    return _annotation(
        {"severity": word} if first == MISSING else {"severity": word, "start": first, "end": last}
        for first, last, word in span_columns(starts, ends, severities)
    )


def _annotation(errors: Iterable[Mapping[str, Any]]) -> Annotation:
    """The annotation of errors with start and end, or omissions without."""
    marked = []
    for error in errors:
        severity = str(error["severity"])
        if fold_severity(severity) is None and severity.lower() != "neutral":
            raise InputError(f"severity {severity!r}; the task has major and minor")
        if "start" not in error:
            marked.append(MqmError(severity, None, "source"))
            continue
        start, end = int(error["start"]), int(error["end"])
        marked.append(
            MqmError(severity, error.get("category"), "translation" if 0 <= start <= end else None, start, end)
        )
    return annotation_of_errors(marked)


def write_spans(spans: Annotation) -> tuple[str, str, str]:
    """Starts, ends and severities in the format of `read_spans`; omissions have no position."""
    errors: list[tuple[int | str, int | str, Severity]] = [span.key for span in spans.on("translation")]
    errors += [(at, at, severity) for at, severity in spans.points]
    unplaced = [*(span.severity for span in spans.on("source")), *spans.unplaced]
    errors += [(MISSING, MISSING, severity) for severity in unplaced]
    if not errors:
        return "-1", "-1", "no-error"
    starts, ends, severities = zip(*errors, strict=True)
    return " ".join(map(str, starts)), " ".join(map(str, ends)), " ".join(severities)


def _identity(row: SubmissionRow) -> tuple[str, ...]:
    source, target = row.lp.split("-", 1)
    return (row.segment.document, row.segment.label, source, target, "official", row.segment.system)


def _needed(row: SubmissionRow, value: _T | None, what: str) -> _T:
    if value is None:
        raise InputError(
            f"no {what} of system {row.segment.system} in {row.lp}, which this task requires; choose another metric"
        )
    return value


def cell_text(text: str) -> str:
    """`text` with tabs and line ends replaced, with the same length."""
    return one_line(text).replace("\t", " ")


def write_submission(
    path: str | Path,
    form: str,
    test_sets: Sequence[TestSet],
    metric: str,
    *,
    score_range: tuple[float, float] | None = None,
    error_free: ErrorFreeModel | float | None = None,
) -> int:
    """Write the annotations of a metric or of humans, for all systems except the standard reference. Returns the number
    of translations.

    Args:
        path, form: output file or folder, and the name of its format in `submissions.SUBMISSION_FORMATS`.
        metric: full or base name of a metric stored in all test sets; "gold" for human scores and annotations, or a set
            of human ratings for gold with these annotations. Translations without gold, or without an annotation that
            the format or the named set requires, are omitted.
        score_range: the scores that map to 0 and 100 in WMT26's format; by default the range of Score(E).
        error_free: classifies stored scores as error-free or not; a number is the minimum score (0 to 100) of an
            error-free translation; by default, translations without error spans are error-free.
    """
    rows = [row for test_set in test_sets for row in _rows(test_set, metric, form)]
    if not rows:
        raise OptionError(f"{metric} has no translation")
    if isinstance(error_free, ErrorFreeModel):
        scored = [ScoredTranslation(row.score or 0.0, row.spans, len(row.segment.translation), row.lp) for row in rows]
        clean = error_free.clean(scored).tolist()
        rows = [replace(row, clean=one and bool(row.segment.translation)) for row, one in zip(rows, clean, strict=True)]
    if form == "wmt26":
        rows = list(_to_hundred(rows, score_range))
    if isinstance(error_free, int | float):
        rows = [replace(row, clean=row.score is not None and row.score >= error_free) for row in rows]
    SUBMISSION_FORMATS[form].write(Path(path), rows)
    return len(rows)


def _rows(test_set: TestSet, metric: str, form: str) -> Iterator[SubmissionRow]:
    """The rows of every system, sorted, without the standard reference and translations without gold."""
    of_people = metric == "gold" or any(ratings.name == metric for ratings in test_set.ratings)
    spans = SUBMISSION_FORMATS[form].spans
    stored = _gold(test_set, metric, spans=spans) if of_people else _metric(test_set, metric)
    standard = test_set.info.standard_reference or ""
    reference = test_set.references.get(standard)
    rated = dict(zip(test_set.systems, ~np.isnan(test_set.gold), strict=True))
    task_systems, labels = _task_names(test_set)
    places = _places(test_set)
    for system in sorted(stored.scores):
        if system == standard or system not in test_set.outputs or (of_people and system not in rated):
            continue
        annotations = stored.annotations.get(system, [None] * test_set.segments)
        written = [
            number
            for number, annotation in enumerate(annotations)
            if not of_people or (rated[system][number] and (annotation is not None or not stored.annotations))
        ]
        scores = [score for number in written if (score := stored.scores[system][number]) is not None]
        for number in written:
            (document, place), text = places[number], test_set.outputs[system][number] or ""
            label = labels[number] if labels else str(place if form == "wmt26" else number + 1)
            name = task_systems.get(system, system)
            yield SubmissionRow(
                lp=test_set.lp,
                segment=Segment(test_set.sources[number], text, label, name, document),
                place=place,
                spans=fit_to_text(annotations[number], len(text)),
                score=stored.scores[system][number],
                domain=test_set.documents[number][0],
                has_translation=True,
                reference=reference[number] if reference else None,
                method=test_set.info.gold.split("-")[0].upper(),
                system_score=stored.system_scores.get(system, sum(scores) / max(1, len(scores))),
            )


def _metric(test_set: TestSet, metric: str) -> MetricFiles:
    """The files of a stored metric."""
    names = test_set.find_metrics([metric])
    if len(names) > 1:
        raise OptionError(f"--metric {metric}: there are {' and '.join(names)}; name one of them in full")
    return MetricFiles.read(test_set.layout, names[0])


def _gold(test_set: TestSet, raters: str, *, spans: bool) -> MetricFiles:
    """Human scores, and annotations if `spans` or a set of them is named."""
    sets: Sequence[SpanSet] = ()
    if raters != "gold" or (spans and test_set.ratings):
        sets = test_set.human_ratings([] if raters == "gold" else [raters])
    if len(sets) > 1:
        names = ", ".join(ratings.name for ratings in sets)
        raise OptionError(f"there are several sets of human ratings in {test_set.lp} ({names}); name one")
    scores = read_scores(test_set.layout.human_file(test_set.info.gold, "seg.score"))
    return MetricFiles(scores, {s: list(row) for one in sets for s, row in one.annotations.items()})


def _task_names(test_set: TestSet) -> tuple[dict[str, str], Sequence[str]]:
    """The task's system names and segment numbers; empty if the folder has none."""
    systems, segments = test_set.layout.task("systems"), test_set.layout.task("segments")
    names = dict(line.split("\t", 1) for _, line in numbered_lines(systems)) if systems.is_file() else {}
    labels = read_text(segments, "", test_set.segments) if segments.is_file() else ()
    return names, [label or "" for label in labels]


def _places(test_set: TestSet) -> list[tuple[str, int]]:
    """The document of each segment, which is contiguous, and the position of the segment in it."""
    documents = groupby(document for _, document in test_set.documents)
    return [(document, place) for document, segments in documents for place, _ in enumerate(segments)]


def _to_hundred(rows: Sequence[SubmissionRow], score_range: tuple[float, float] | None) -> Iterator[SubmissionRow]:
    low, high = score_range or (-25.0, 0.0)  # range of Score(E)
    for row in rows:
        _needed(row, row.spans, "error spans")
        if row.score is None or not low <= row.score <= high:
            raise OptionError(f"a score of {row.score} is not within {low:g} and {high:g}; give --range LOW HIGH")
        yield replace(row, score=100 * (row.score - low) / (high - low))


def import_submission(path: str | Path, form: str, test_set: TestSet, name: str, *, overwrite: bool = False) -> str:
    """Import a submission into a test set, as metric scores and error spans. Returns a description of what was written.
    Scores default to Score(E) of the spans.

    Args:
        path, form: see `write_submission`.
        name: full name of the metric, such as "GemSpanEval-src"; `overwrite` replaces one of that name.

    Raises:
        InputError: the file has another format, lacks a rated translation of one of its systems, or has different
            texts; or the test set already has the metric.
    """
    every = SUBMISSION_FORMATS[form].read(Path(path))
    rows = [row for row in every if row.lp == test_set.lp]
    if not rows:
        pairs = ", ".join(sorted({row.lp for row in every})) or "nothing at all"
        raise InputError(f"{path}: nothing of {test_set.lp}; there is: {pairs}")
    cells = _cells(path, rows, test_set)
    if not cells:
        systems = first_of(sorted({row.segment.system for row in rows}))
        raise InputError(f"{path}: no system of {test_set.name} {test_set.lp}; there are: {systems}")
    rated = read_scores(test_set.layout.human_file(test_set.info.gold, "seg.score"))
    files, left_out = MetricFiles(), len(rows)
    for system, row_of in cells.items():
        missing = [
            number + 1
            for number, row in enumerate(row_of)
            if row is None and (system not in rated or rated[system][number] is not None)
        ]
        if missing:
            raise InputError(f"{path}: nothing on segment {missing[0]} of system {system} ({len(missing)} are missing)")
        left_out -= sum(row is not None for row in row_of)
        files.scores[system] = [None if row is None else _score(row) for row in row_of]
        if all(row is None or row.spans is not None for row in row_of):
            files.annotations[system] = [None if row is None else row.spans for row in row_of]
    signature = Signature(form, (("submission", None), (VERSION, __version__)))
    return files.add(test_set, name, signature, overwrite=overwrite, left_out=left_out)


def _score(row: SubmissionRow) -> float:
    """A row's score, or else Score(E) of its distinct spans in the translation."""
    if row.score is not None:
        return row.score
    spans = (row.spans or EMPTY).on("translation")
    return mqm_score(spans.with_spans(spans))


def _cells(
    path: str | Path, rows: Sequence[SubmissionRow], test_set: TestSet
) -> Mapping[str, list[SubmissionRow | None]]:
    """System -> the row of each segment; rows for translations that are not in the test set are dropped."""
    cells: dict[str, list[SubmissionRow | None]] = {}
    systems = {name: system for system, name in _task_names(test_set)[0].items()}
    for row, number in zip(rows, _numbers(rows, test_set), strict=True):
        system = systems.get(row.segment.system, "_".join(row.segment.system.replace("/", " ").split()))
        if system not in test_set.outputs or number is None:
            continue
        where = f"{path}, line {row.line}" if row.line else str(path)
        text = cell_text(test_set.outputs[system][number] or "").rstrip()
        other = row.segment.translation
        if row.has_translation and cell_text(other).rstrip() != text:
            raise InputError(
                f"{where}: another text of system {system}, segment {number + 1}: {other[:60]!r}, and the test set has "
                f"{text[:60]!r}"
            )
        if cells.setdefault(system, [None] * test_set.segments)[number]:
            raise InputError(f"{where}: a second row for segment {number + 1} of system {system}; remove one")
        cells[system][number] = replace(row, spans=fit_to_text(row.spans, len(text)))
    return cells


def _numbers(rows: Sequence[SubmissionRow], test_set: TestSet) -> list[int | None]:
    """The segment of each row: by the task's segment number, if the folder has it; otherwise by its number in the
    language pair, from 1, if it fits the document in all rows; otherwise by its position in the document."""
    _, labels = _task_names(test_set)
    documents = [document for _, document in test_set.documents]
    of_rows = ["_".join(row.segment.document.split()) for row in rows]
    if labels:
        by_label = {key: number for number, key in enumerate(zip(documents, labels, strict=True))}
        return [by_label.get((document, row.segment.label)) for document, row in zip(of_rows, rows, strict=True)]
    numbers = [int(row.segment.label) - 1 if row.segment.label.isdecimal() else -1 for row in rows]
    if all(0 <= n < len(documents) and documents[n] == one for n, one in zip(numbers, of_rows, strict=True)):
        return list(numbers)
    by_place = {key: number for number, key in enumerate(_places(test_set))}
    return [by_place.get((document, row.place)) for document, row in zip(of_rows, rows, strict=True)]
