"""Submissions to WMT's evaluation tasks, written from a stored metric and read into one.

    qe2023        WMT23 quality estimation, task 2 (predictions.txt): three lines on the model (bytes on disk,
                  parameters, models in the ensemble), then language pair, method, number, translation, starts, ends and
                  severities between tabs
    wmt25-task1   WMT25 evaluation, scores (a folder with segments.tsv and systems.tsv): one row a segment and system,
                  and one for each system, the score in the column overall
    wmt25-task2   WMT25 evaluation, error spans (predictions.tsv): the rows of the test set with start_indices,
                  end_indices and error_types; what is left out of the source has "missing" for its indices
    wmt26         WMT26 evaluation, all tasks in one file (.jsonl), an object a segment: item_id, and by system
                  task1_pred (error spans, and the severity of what is left out; of a fault against the instructions,
                  which has no place either, nothing is kept), task2_pred (a score from 0 to 100) and task3_pred (1:
                  without error)

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

from mbr_esd_metric.adapters.qe_tsv import span_columns, unquoted
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Point, Severity, fold_severity
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines, write_whole
from mbr_esd_metric.files.untrusted import finite, json_objects, reading, text_of

_T = TypeVar("_T")

#: What WMT25 has for the place of an omission.
MISSING = "missing"
#: Separator of the parts of an identifier of WMT26.
SEPARATOR = "_###_"

_IDENTITY = ("doc_id", "segment_id", "source_lang", "target_lang", "set_id", "system_id")
_TEXTS = ("source_segment", "hypothesis_segment", "reference_segment")
_SPANS = ("start_indices", "end_indices", "error_types")


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """One row of a submission: what it says of one translation.

    Attributes:
        language pair, system: such as "en-de" and "ONLINE-A".
        document: None if the format does not say.
        place: of the segment in its document, from 0; without a document, of the row in its language pair.
        number, index: of the segment and of the row in their language pair, from 0; 0 in rows that were read.
        label: the task's number of the segment, if it is known.
        line: of the file that it was read from, from 1; 0 if unknown.
        dropped: what in the row no annotation holds: errors without a penalty, and that an instruction was not followed
            (WMT26) where no span says so.
        spans: None if the format has none.
        score: None if the format has none.
        domain, source, translation, reference: of the translation, if they are known.
        method: the kind of gold, such as "MQM" or "ESA".
        clean: whether it is said to be without error; None where spans or score decide.
    """

    lp: str
    system: str
    document: str | None
    place: int
    spans: Annotation | None = None
    score: float | None = None
    domain: str = "all"
    source: str = ""
    translation: str | None = None
    reference: str | None = None
    method: str = ""
    number: int = 0
    index: int = 0
    label: str | None = None
    line: int = 0
    dropped: tuple[str, ...] = ()
    clean: bool | None = None


@dataclass(frozen=True, slots=True)
class About:
    """What a format says about a model, besides its answers.

    Attributes:
        method: its name.
        disk, parameters, models: bytes on disk, number of parameters, models in an ensemble.
        systems: (language pair, system) -> the metric's score of the system.
        error_free: the least score of a translation that counts as without error; if None, its spans decide.
        gold: whether this is not a submission but people's annotations, for the task's scorer.
    """

    method: str
    disk: int = 0
    parameters: int = 0
    models: int = 1
    systems: Mapping[tuple[str, str], float] | None = None
    error_free: float | None = None
    gold: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """A task's format: a few words for `--help`, whether it has spans and scores, and what writes and reads it."""

    description: str
    spans: bool
    scores: bool
    write: Callable[[Path, Sequence[SubmissionRow], About], None]
    read: Callable[[Path], list[SubmissionRow]]


def _write_qe2023(path: Path, rows: Sequence[SubmissionRow], about: About) -> None:
    lines = [str(about.disk), str(about.parameters), str(about.models)]
    if about.gold:
        lines = ["\t".join(("lp", "method", "number", "translation", *_SPANS))]
    for row in rows:
        fields = (row.lp, about.method, str(row.index), _one_line(row.translation or ""))
        lines.append("\t".join((*fields, *write_spans(_spans_of(row)))))
    write_whole(path, "".join(f"{line}\n" for line in lines))


def _read_qe2023(path: Path) -> list[SubmissionRow]:
    rows = []
    for number, line in numbered_lines(path):
        fields = line.split("\t")
        if (number <= 3 and len(fields) == 1) or (number == 1 and fields[0] == "lp"):
            continue
        if len(fields) == 8 and not fields[-1].strip():
            fields.pop()  # some of the task's participants ended their lines with a tab
        if len(fields) != 7:
            raise InputError(f"{path}, line {number}: {len(fields)} fields between tabs, not the 7 of qe2023")
        lp, _, place, translation, *columns = fields
        translation = unquoted(translation)
        try:
            if not place.isdigit():
                raise ValueError(f"{place!r} is no number of a segment")
            unknown = sorted({*columns[2].split()} - {"major", "minor", "no-error"})
            if unknown:
                raise ValueError(f"severity {unknown[0]!r}; the task has major, minor and no-error")
            spans = read_spans(*columns, length=len(translation))
            rows.append(SubmissionRow(lp, "", None, int(place), spans, translation=translation, line=number))
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return rows


def _write_wmt25_scores(path: Path, rows: Sequence[SubmissionRow], about: About) -> None:
    header = (*_IDENTITY, "domain_name", "method", "overall")
    segments = [(*_identity(row), row.domain, row.method, repr(_score_of(row))) for row in rows]
    path.mkdir(parents=True, exist_ok=True)
    _write_plain(path / "segments.tsv", [header, *segments])
    systems = []
    for (lp, system), score in sorted((about.systems or {}).items()):
        source, target = lp.split("-", 1)
        systems.append(("all", "all", source, target, "official", system, "all", "", repr(score)))
    _write_plain(path / "systems.tsv", [header, *systems])


def _write_wmt25_spans(path: Path, rows: Sequence[SubmissionRow], about: About) -> None:
    header = (*_IDENTITY, *_TEXTS, "domain_name", "method", *_SPANS)
    lines = []
    for row in rows:
        texts = (row.source, row.translation or "", "NaN" if row.reference is None else row.reference)
        spans = write_spans(_both_sides_of(row))
        lines.append((*_identity(row), *map(_one_line, texts), row.domain, row.method, *spans))
    # The task's scorer reads with pandas's defaults: a quote inside a field has to be quoted.
    out = io.StringIO()
    csv.writer(out, delimiter="\t", lineterminator="\n").writerows([header, *lines])
    write_whole(path, out.getvalue())


def _read_wmt25(path: Path) -> list[SubmissionRow]:
    if path.is_dir():
        path = path / "segments.tsv"
    lines = numbered_lines(path)
    header = next(lines, (1, ""))[1].split("\t")
    scores = "overall" in header
    missing = [name for name in (*_IDENTITY, *(() if scores else _SPANS)) if name not in header]
    if missing:
        raise InputError(f"{path}, line 1: no column {', '.join(missing)} in the header; is it a table of WMT25?")
    # The table of spans is read with pandas's defaults by the task's scorer, where a field may be quoted.
    split = ((n, line.split("\t")) for n, line in lines) if scores else _csv_rows(lines)
    rows = []
    places: Counter[tuple[str, str, str]] = Counter()
    for number, fields in split:
        if len(fields) != len(header):
            raise InputError(f"{path}, line {number}: {len(fields)} columns, and {len(header)} in the header")
        cell = dict(zip(header, fields, strict=True))
        if cell["set_id"] != "official":
            continue
        lp = f"{cell['source_lang']}-{cell['target_lang']}"
        key = (lp, cell["system_id"], cell["doc_id"])
        text, label = cell.get("hypothesis_segment"), cell["segment_id"]
        row = SubmissionRow(*key, places[key], translation=text, label=label, line=number)
        try:
            if scores:
                rows.append(replace(row, score=finite(cell["overall"])))
            else:
                columns = [cell[name] for name in _SPANS]
                dropped = _without_penalty(severity for *_, severity in span_columns(*columns))
                rows.append(replace(row, spans=read_spans(*columns, length=_length(text)), dropped=dropped))
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
        places[key] += 1
    return rows


def _write_wmt26(path: Path, rows: Sequence[SubmissionRow], about: About) -> None:
    items: dict[str, dict[str, Any]] = {}
    for row in rows:
        source, target = row.lp.split("-", 1)
        identifier = SEPARATOR.join(
            ["official", source, target, row.domain, row.document or "", row.label or str(row.place)]
        )
        item = items.setdefault(
            identifier, {"item_id": identifier, "task1_pred": {}, "task2_pred": {}, "task3_pred": {}}
        )
        both, score = _both_sides_of(row), _score_of(row)
        errors = [
            {"start": s.start, "end": s.end, "severity": s.severity, "category": s.category or "other"}
            for s in both.on("translation")
        ]
        errors += [{"start": at, "end": at, "severity": s, "category": "other"} for at, s in both.points]
        left_out = {*both.unplaced, *(span.severity for span in both.on("source"))}
        fault = {error["severity"] for error in errors if _is_fault(error)}
        item["task1_pred"][row.system] = {
            "errors": errors,
            "omission": min(left_out, default=None),  # "major" is before "minor"
            "instruction_fault": min(fault, default=None),
        }
        item["task2_pred"][row.system] = score
        clean = row.clean
        if clean is None:
            clean = both.clean if about.error_free is None else score >= about.error_free
        item["task3_pred"][row.system] = int(clean)
    write_whole(path, "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items.values()))


def read_items(path: Path, take: Callable[[Mapping[str, Any], str, str, str, str], Iterable[_T]]) -> list[_T]:
    """What `take` makes of each official segment of a file of WMT26.

    Args:
        path: JSON lines, plain or compressed, each with an item_id.
        take: gets a line's object, and the language pair, domain, document and place that its item_id names.

    Raises:
        InputError: a line that is not such an object, or that `take` refuses; names the line.
    """
    found: list[_T] = []
    for where, _, item in json_objects(path):
        with reading(where):
            parts = text_of(item, "item_id").split(SEPARATOR)
            if parts[0] == "official":
                _, source, target, domain, *document, place = parts
                found += take(item, f"{source}-{target}", domain, SEPARATOR.join(document), place)
    return found


def _read_wmt26(path: Path) -> list[SubmissionRow]:
    def rows(item: Mapping[str, Any], lp: str, domain: str, document: str, place: str) -> Iterator[SubmissionRow]:
        spans_of, scores = item.get("task1_pred") or {}, item.get("task2_pred") or {}
        for system in dict.fromkeys([*spans_of, *scores]):
            said = spans_of.get(system)
            spans = None if said is None else _json_spans(said)
            score = None if scores.get(system) is None else finite(scores[system])
            dropped = () if said is None else _dropped(said)
            yield SubmissionRow(lp, system, document, int(place), spans, score, domain, label=place, dropped=dropped)

    return read_items(path, rows)


#: Name -> format.
SUBMISSION_FORMATS: Mapping[str, Format] = {
    "qe2023": Format("WMT23's quality estimation, task 2: spans", True, False, _write_qe2023, _read_qe2023),
    "wmt25-task1": Format("WMT25, scores", False, True, _write_wmt25_scores, _read_wmt25),
    "wmt25-task2": Format("WMT25, spans", True, False, _write_wmt25_spans, _read_wmt25),
    "wmt26": Format("WMT26, spans, scores, and error-free or not", True, True, _write_wmt26, _read_wmt26),
}


def read_spans(starts: str, ends: str, severities: str, *, length: int | None = None) -> Annotation:
    """Error spans as words separated by blanks, half-open; "-1 -1 no-error" where there is none.

    A span without characters is one of the annotation's points, an error without a place ("missing") is one of its
    `unplaced` omissions. Errors without a penalty are left out. A span that passes the end of the translation is cut
    there.

    Args:
        starts, ends, severities: equally many words in each.
        length: of the translation, where it is known.

    Raises:
        ValueError: not equally many, or no numbers.
    """
    spans: list[ErrorSpan] = []
    points: list[Point] = []
    unplaced: list[Severity] = []
    for first, last, word in span_columns(starts, ends, severities):
        severity = fold_severity(word)
        if severity is None:
            continue
        if first == MISSING:
            unplaced.append(severity)
            continue
        try:
            start, end = int(first), int(last)
        except ValueError:
            raise ValueError(f"offsets {first!r} and {last!r}: each has to be a whole number") from None
        if length is not None:
            end = min(end, length)
        if 0 <= start < end:
            spans.append(ErrorSpan(start, end, severity))
        elif 0 <= start == end:
            points.append((start, severity))
    return Annotation.of_rater(spans).pointing(points).missing(unplaced)


def _without_penalty(severities: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"error of severity {word!r}" for word in severities if fold_severity(word) is None)


def _dropped(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Of what WMT26 has of one translation, what no annotation holds."""
    without = _without_penalty(str(error["severity"]) for error in said["errors"])
    if said.get("instruction_fault") and not any(_is_fault(error) for error in said["errors"]):
        return (*without, "instruction fault without a span")
    return without


def _is_fault(error: Mapping[str, Any]) -> bool:
    """Whether an error of WMT26 is that an instruction was not followed."""
    return "instruction" in str(error.get("category")).lower()


def _json_spans(said: Mapping[str, Any]) -> Annotation:
    """What WMT26 has of one translation: errors, and how bad what it leaves out is, if it does."""
    spans: list[ErrorSpan] = []
    points: list[Point] = []
    for error in said["errors"]:
        severity = fold_severity(str(error["severity"]))
        start, end = int(error["start"]), int(error["end"])
        if severity is not None and start < end:
            spans.append(ErrorSpan(start, end, severity, error.get("category")))
        elif severity is not None:
            points.append((start, severity))
    omission = fold_severity(str(said["omission"])) if said.get("omission") else None
    return Annotation.of_rater(spans).pointing(points).missing([omission] if omission else [])


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
    return (row.document or "", row.label or str(row.number + 1), source, target, "official", row.system)


def _spans_of(row: SubmissionRow) -> Annotation:
    """Those of the translation."""
    return _both_sides_of(row).on("translation")


def _both_sides_of(row: SubmissionRow) -> Annotation:
    if row.spans is None:
        raise InputError(f"no error spans of system {row.system} in {row.lp}")
    return row.spans


def _score_of(row: SubmissionRow) -> float:
    if row.score is None:
        raise InputError(f"no score of system {row.system} in {row.lp}")
    return row.score


def _length(text: str | None) -> int | None:
    return None if text is None else len(text)


def _one_line(text: str) -> str:
    """`text` without tabs and line ends, of the same length."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


def _write_plain(path: Path, rows: Iterable[Sequence[str]]) -> None:
    write_whole(path, "".join("\t".join(map(_one_line, row)) + "\n" for row in rows))


def _csv_rows(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for _, line in lines), delimiter="\t")
    return ((reader.line_num + 1, row) for row in reader)
