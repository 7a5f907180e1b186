"""Files of submissions to WMT's evaluation tasks.

    wmt25-task1   scores (a folder with segments.tsv and systems.tsv): one row a segment and system, and one for each
                  system, the score in the column overall
    wmt25-task2   error spans (predictions.tsv): the rows of the test set with start_indices, end_indices and
                  error_types; what is left out of the source has "missing" for its indices
    wmt26         all tasks in one file (.jsonl), an object a segment: item_id, and by system task1_pred (error spans,
                  and the severity of what is left out), task2_pred (a score from 0 to 100) and task3_pred (1: without
                  error)

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
from pathlib import Path
from typing import Any, TypeVar

from mbr_esd_metric.adapters.qe_tsv import span_columns
from mbr_esd_metric.adapters.ratings import MqmError, annotation_of_errors
from mbr_esd_metric.adapters.wmt.layout import one_line
from mbr_esd_metric.core.annotation import Annotation, Severity, fold_severity
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines, write_whole
from mbr_esd_metric.files.tables import table_cells
from mbr_esd_metric.files.untrusted import finite, json_objects, reading, text_of

_T = TypeVar("_T")

#: The place of an omission in WMT25's tables.
MISSING = "missing"
#: Separator of the parts of an identifier of WMT26.
SEPARATOR = "_###_"

_IDENTITY = ("doc_id", "segment_id", "source_lang", "target_lang", "set_id", "system_id")
_TEXTS = ("source_segment", "hypothesis_segment", "reference_segment")
_SPANS = ("start_indices", "end_indices", "error_types")


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """One row of a submission: a translation, its error spans and its score.

    Attributes:
        place: of the segment in its document, from 0.
        label: the task's number of the segment.
        spans, score: None if the format has none.
        method: the kind of gold, such as "MQM" or "ESA".
        clean: whether it is without error; None where the spans decide.
        line: of the file that it was read from, from 1; 0 if unknown.
    """

    lp: str
    system: str
    document: str
    place: int
    label: str
    spans: Annotation | None = None
    score: float | None = None
    domain: str = "all"
    source: str = ""
    translation: str | None = None
    reference: str | None = None
    method: str = ""
    clean: bool | None = None
    line: int = 0


#: (language pair, system) -> the metric's score of the system.
_SystemScores = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Format:
    """A task's format: a few words for `--help`, whether it has spans, and what writes and reads it."""

    description: str
    spans: bool
    write: Callable[[Path, Sequence[SubmissionRow], _SystemScores], None]
    read: Callable[[Path], list[SubmissionRow]]


def _write_wmt25_scores(path: Path, rows: Sequence[SubmissionRow], system_scores: _SystemScores) -> None:
    header = (*_IDENTITY, "domain_name", "method", "overall")
    segments = [(*_identity(row), row.domain, row.method, repr(_needed(row, row.score, "score"))) for row in rows]
    systems = []
    for (lp, system), score in sorted(system_scores.items()):
        source, target = lp.split("-", 1)
        systems.append(("all", "all", source, target, "official", system, "all", "", repr(score)))
    path.mkdir(parents=True, exist_ok=True)
    for name, table in (("segments.tsv", segments), ("systems.tsv", systems)):
        lines = ["\t".join(map(cell_text, cells)) + "\n" for cells in (header, *table)]
        write_whole(path / name, "".join(lines))


def _write_wmt25_spans(path: Path, rows: Sequence[SubmissionRow], _: _SystemScores) -> None:
    lines: list[tuple[str, ...]] = [(*_IDENTITY, *_TEXTS, "domain_name", "method", *_SPANS)]
    for row in rows:
        texts = (row.source, row.translation or "", "NaN" if row.reference is None else row.reference)
        spans = write_spans(_needed(row, row.spans, "error spans"))
        lines.append((*_identity(row), *map(cell_text, texts), row.domain, row.method, *spans))
    # The task's scorer reads with pandas's defaults: a quote inside a field has to be quoted.
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
    # The task's scorer reads the table of spans with pandas's defaults, where a field may be quoted.
    cells = table_cells(path, "\t", (*_IDENTITY, *(() if scores else _SPANS)), quoted=not scores)
    for number, cell in cells:
        if cell["set_id"] != "official":
            continue
        with reading(f"{path}, line {number}"):
            key = (f"{cell['source_lang']}-{cell['target_lang']}", cell["system_id"], cell["doc_id"])
            text = cell.get("hypothesis_segment")
            row = SubmissionRow(*key, places[key], cell["segment_id"], translation=text, line=number)
            places[key] += 1
            if scores:
                rows.append(replace(row, score=finite(cell["overall"])))
            else:
                columns = [cell[name] for name in _SPANS]
                rows.append(replace(row, spans=read_spans(*columns, length=None if text is None else len(text))))
    return rows


def _write_wmt26(path: Path, rows: Sequence[SubmissionRow], _: _SystemScores) -> None:
    items: dict[str, dict[str, Any]] = {}
    for row in rows:
        source, target = row.lp.split("-", 1)
        identifier = SEPARATOR.join(["official", source, target, row.domain, row.document, row.label])
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
        item["task1_pred"][row.system] = {
            "errors": errors,
            "omission": min(omissions, default=None),  # "major" is before "minor"
            "instruction_fault": min(faults, default=None),
        }
        item["task2_pred"][row.system] = score
        item["task3_pred"][row.system] = int(spans.clean if row.clean is None else row.clean)
    write_whole(path, "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items.values()))


def read_items(path: Path, take: Callable[[Mapping[str, Any], str, str, str, str], Iterable[_T]]) -> list[_T]:
    """The results of `take` for each official segment of a file of WMT26.

    Args:
        take: gets a line's object, and the language pair, domain, document and place that its item_id names.
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
            yield SubmissionRow(lp, system, document, int(place), place, annotation, score, domain)

    return read_items(path, rows)


#: Name -> format.
SUBMISSION_FORMATS: Mapping[str, Format] = {
    "wmt25-task1": Format("WMT25, scores", False, _write_wmt25_scores, _read_wmt25),
    "wmt25-task2": Format("WMT25, spans", True, _write_wmt25_spans, _read_wmt25),
    "wmt26": Format("WMT26, spans, scores, and error-free or not", True, _write_wmt26, _read_wmt26),
}


def read_spans(starts: str, ends: str, severities: str, *, length: int | None = None) -> Annotation:
    """Error spans as words separated by blanks, half-open; "-1 -1 no-error" where there is none.

    A span without characters is one of the annotation's points, an error without a place ("missing") is one of its
    `unplaced` omissions. Neutral errors are left out. A span that passes the end of the translation is cut there, where
    its length is known.
    """
    errors = [
        {"severity": word, **({} if first == MISSING else {"start": _offset(first), "end": _offset(last)})}
        for first, last, word in span_columns(starts, ends, severities)
    ]
    return _annotation(errors, length)


def _offset(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"offset {word!r}: each has to be a whole number") from None


def _annotation(errors: Iterable[Mapping[str, Any]], length: int | None = None) -> Annotation:
    """The annotation of errors with start and end, or of omissions with neither."""
    marked = []
    for error in errors:
        severity = str(error["severity"])
        if fold_severity(severity) is None and severity.lower() != "neutral":
            raise InputError(f"severity {severity!r}; the task has major and minor")
        if "start" not in error:
            marked.append(MqmError(severity, None, "source"))
            continue
        start, end = int(error["start"]), int(error["end"])
        end = end if length is None else min(end, length)
        marked.append(MqmError(severity, error.get("category"), "target" if 0 <= start <= end else None, start, end))
    return annotation_of_errors(marked)


def write_spans(spans: Annotation) -> tuple[str, str, str]:
    """Starts, ends and severities as `read_spans` reads them. Omissions have no place there."""
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
    return (row.document, row.label, source, target, "official", row.system)


def _needed(row: SubmissionRow, value: _T | None, what: str) -> _T:
    if value is None:
        raise InputError(f"no {what} of system {row.system} in {row.lp}")
    return value


def cell_text(text: str) -> str:
    """`text` without tabs and line ends, of the same length."""
    return one_line(text).replace("\t", " ")
