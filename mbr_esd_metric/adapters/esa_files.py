"""Error span annotation (ESA) as WMT publishes it: errors marked minor or major, and a score from 0 to 100.

Five formats are read. The file's name and its first record tell them apart:

    .jsonl with "scores"     one segment a line, all systems: wmt25-genmt-humeval.jsonl, wmt24-genmt-humeval.jsonl;
                             annotations of protocol "MQM" have errors alone
    .jsonl with "esa_spans"  one annotation a line: wmt24_esa.jsonl
    .jsonl with "rater"      one annotation a line, as `mbr-esd annotate import` writes it
    .tsv                     one annotation a row, with doc_id, segment_id, source_lang, target_lang, system_id,
                             hypothesis_segment ... and overall, or start_indices, end_indices and error_types: the
                             tables of wmt25-mteval
    .csv                     Appraise's export: esa_generalMT2024_wave*.csv; the texts are in a folder beside it

In Appraise's export (the .csv, and the .jsonl made from it) an error's end is its last character; read as one past it,
three in four of WMT24's spans would end inside a word. In the tables the end is one past the last character, as the
tasks' scorer reads it. They were made from the same export without that step, so their spans are a character short.
An omission has no place in the translation. Tutorials and attention checks are not ratings. If a person rated a
translation of WMT24 several times in one file, the last rating counts, as at WMT.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mbr_esd_metric.adapters.mqm_tsv import MqmError
from mbr_esd_metric.adapters.qe_tsv import span_columns
from mbr_esd_metric.adapters.ratings import PersonRating
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.elicit.parse import is_omission
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines, table_rows
from mbr_esd_metric.files.untrusted import decoded, finite, json_objects, reading, text_of

#: Separator of language pair, domain, document and segment in the identifiers of WMT24 and WMT25.
_SEPARATOR = "_#_"

#: Columns of the tables that are needed.
_COLUMNS = ("doc_id", "segment_id", "source_lang", "target_lang", "system_id", "source_segment", "hypothesis_segment")

#: Names in Appraise's export that mark documents which are not ratings.
_NO_RATING = ("#bad", "#dup", "#incomplete")

#: Language codes of Appraise's export.
_LANGUAGES = {
    "ces": "cs",
    "deu": "de",
    "eng": "en",
    "hin": "hi",
    "hrv": "hr",
    "isl": "is",
    "jpn": "ja",
    "plk": "pl",
    "rus": "ru",
    "spa": "es",
    "ukr": "uk",
    "zho": "zh",
}


_Key = tuple[str, str, str]

#: How an error's end is read, see `read_esa`.
Ends = Literal["auto", "last", "past"]


@dataclass(frozen=True, slots=True)
class EsaAnnotation:
    """One person's annotation of one translation.

    Attributes:
        errors: in the order of the file; errors without a place have no side. None: nobody was asked for them.
        score: from 0 to 100, higher is better; None if only errors are given, as in MQM.
        annotator: None if the file does not say.
    """

    errors: tuple[MqmError, ...] | None
    score: float | None = None
    annotator: str | None = None


@dataclass(slots=True)
class EsaSegment:
    """One source segment with its translations and their annotations.

    Attributes:
        lp: such as "en-cs".
        domain, document, number: identify the segment.
        source: its text.
        outputs: system or reference -> translation, whether rated or not.
        annotations: system -> annotations, in the file's order.
    """

    lp: str
    domain: str
    document: str
    number: str
    source: str
    outputs: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, list[EsaAnnotation]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EsaData:
    """The segments of one or several files.

    Attributes:
        segments: in order of first appearance.
        left_out: language pair -> reason -> how often something was left out.
        documents: language pair -> what is known of its documents besides their texts, in order.
    """

    segments: tuple[EsaSegment, ...]
    left_out: Mapping[str, Mapping[str, int]]
    documents: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def lps(self) -> tuple[str, ...]:
        """The language pairs with an annotation, sorted."""
        return tuple(sorted({segment.lp for segment in self.segments if segment.annotations}))


def read_esa(
    paths: Sequence[str | Path], texts: str | Path | None = None, *, quoted: bool = False, ends: Ends = "auto"
) -> EsaData:
    """Read one or several files of annotations, which may be of the same segments.

    Args:
        paths: the files, plain or compressed.
        texts: for Appraise's export, the folder with sources, system-outputs, references and documents.
        quoted: fields of a .tsv are quoted as in CSV.
        ends: an error's end is its "last" character, or one "past" it; "auto" means "past" in a .tsv and "last"
            elsewhere.

    Raises:
        InputError: a file in another format, a malformed line (the message names it), or no annotation at all.
    """
    found = _Found({}, defaultdict(Counter))
    for path in map(Path, paths):
        found.past = ends == "past" or (ends == "auto" and plain_name(path).endswith(".tsv"))
        found.times.clear()
        _reader(path, texts, quoted)(found)
    if not any(segment.annotations for segment in found.segments.values()):
        raise InputError(f"{', '.join(map(str, paths))}: no annotation in these files")
    return EsaData(tuple(found.segments.values()), dict(found.left_out))


@dataclass(slots=True)
class _Found:
    """What has been read so far, and whether an end is one past the last character in the file that is being read."""

    segments: dict[_Key, EsaSegment]
    left_out: dict[str, Counter[str]]
    past: bool = False
    #: Segment, system and annotator -> when an annotation of the file that is being read was given, and its number.
    times: dict[tuple[_Key, str, str], tuple[float, int]] = field(default_factory=dict)


_Reader = Callable[[_Found], None]


def _reader(path: Path, texts: str | Path | None, quoted: bool) -> _Reader:
    name = plain_name(path)
    if name.endswith(".csv"):
        if texts is None:
            raise InputError(f"{path}: Appraise's export has no texts; name their folder with --texts")
        folder = Path(texts)
        return lambda found: _read_appraise(path, folder, found)
    if name.endswith(".tsv"):
        return lambda found: _read_table(path, quoted, found)
    if name.endswith((".jsonl", ".json")):
        return lambda found: _read_lines(path, found)
    raise InputError(f"{path}: ESA is read from .jsonl, .tsv or .csv")


def _read_lines(path: Path, found: _Found) -> None:
    for where, _, item in json_objects(path):
        with reading(where):
            if "scores" in item:
                _unified(item, found)
            elif "rater" in item:
                _person(item, found)
            else:
                _single(item, found)


def _unified(item: Mapping[str, Any], found: _Found) -> None:
    """One segment with all systems."""
    parts = text_of(item, "doc_id").split(_SEPARATOR)
    if len(parts) != 4:
        raise ValueError(
            f"doc_id {item['doc_id']!r} is not language pair, domain, document and segment between {_SEPARATOR}"
        )
    lp, domain, document, number = parts
    segment = _segment(found.segments, lp, domain, document, number, text_of(item, "src_text"))
    for system in item["tgt_text"]:
        _put_text(segment, system, text_of(item["tgt_text"], system))
    for system, given in item["scores"].items():
        if given and system not in segment.outputs:
            raise ValueError(f"system {system} has scores and no text")
        for one in _waves(given) if isinstance(given, Mapping) else given:
            score = None if one.get("protocol") == "MQM" else one["score"]
            _add(segment, system, one["errors"], score, one.get("annotator"), found)


def _waves(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Annotations in the first form of WMT25's file: human1, errors1, annotator1, human2 ..."""
    numbers = sorted(int(key.removeprefix("human")) for key in given if key.startswith("human"))
    return [
        {"score": given[f"human{n}"], "errors": given[f"errors{n}"], "annotator": given.get(f"annotator{n}")}
        for n in numbers
    ]


def _single(item: Mapping[str, Any], found: _Found) -> None:
    """One annotation of WMT24."""
    segment = _segment(found.segments, *(text_of(item, key) for key in ("langs", "domain", "doc_id", "line_id", "src")))
    system = text_of(item, "system")
    _put_text(segment, system, text_of(item, "tgt"))
    when = finite(item["times"][1]) if item.get("times") else None
    _add(segment, system, item["esa_spans"], item["esa_score"], item.get("annotator"), found, when)


def _person(item: Mapping[str, Any], found: _Found) -> None:
    """One annotation of an annotation tool; see `ratings`."""
    rating = PersonRating.from_json(item)
    one = rating.rating
    segment = _segment(found.segments, str(one.lp), "all", one.doc, one.segment, one.source)
    if segment.source != one.source:
        raise InputError(
            f"another source of segment {one.segment} of {one.doc} than in an earlier line; import each campaign "
            "into a test set of its own"
        )
    _put_text(segment, one.system, one.target)
    errors = one.errors if rating.marked else None
    segment.annotations.setdefault(one.system, []).append(EsaAnnotation(errors, rating.score, one.rater))


def read_table_segments(path: str | Path, *, quoted: bool = False) -> tuple[EsaSegment, ...]:
    """The segments of a task's table, with or without annotations, in the order of the file.

    Raises:
        InputError: as for `read_esa`.
    """
    found = _Found({}, defaultdict(Counter), True)
    _read_table(Path(path), quoted, found, rated=False)
    return tuple(found.segments.values())


def _read_table(path: Path, quoted: bool, found: _Found, *, rated: bool = True) -> None:
    rows = table_rows(path, "\t", quoted)
    header = next(rows, (1, []))[1]
    missing = [name for name in _COLUMNS if name not in header]
    if missing or (rated and not {"overall", "error_types"} & set(header)):
        raise InputError(f"{path}, line 1: no column {', '.join(missing) or 'overall or error_types'} in the header")
    for number, row in rows:
        where = f"{path}, line {number}"
        if len(row) != len(header):
            raise InputError(f"{where}: {len(row)} columns, and {len(header)} in the header; perhaps --quoted")
        cell = dict(zip(header, row, strict=True))
        lp = f"{cell['source_lang']}-{cell['target_lang']}"
        if cell.get("set_id", "official") != "official":
            found.left_out[lp]["row of a challenge set"] += 1
            continue
        domain, document = cell.get("domain_name") or "all", cell["doc_id"]
        segment = _segment(found.segments, lp, domain, document, cell["segment_id"], cell["source_segment"])
        with reading(where):
            _put_text(segment, cell["system_id"], cell["hypothesis_segment"])
            if cell.get("reference_segment") not in (None, "", "NaN"):
                segment.outputs.setdefault("refA", cell["reference_segment"])
            if not rated:
                continue
            errors = _table_errors(cell) if "error_types" in cell else []
            score = finite(cell["overall"]) if cell.get("overall") not in (None, "", "NaN") else None
            _add(segment, cell["system_id"], errors, score, cell.get("annotator"), found)


def _table_errors(cell: Mapping[str, str]) -> list[dict[str, Any]]:
    columns = span_columns(cell["start_indices"], cell["end_indices"], cell["error_types"])
    return [{"start_i": start, "end_i": end, "severity": severity} for start, end, severity in columns]


def _read_appraise(path: Path, folder: Path, found: _Found) -> None:
    texts: dict[str, _Texts] = {}
    for number, row in table_rows(path, ","):
        where = f"{path}, line {number}"
        if len(row) != 12:
            raise InputError(f"{where}: {len(row)} columns; Appraise's export has 12")
        annotator, system, line, kind, source, target, score, document, _, spans, _, ended = row
        lp = f"{_LANGUAGES.get(source, source)}-{_LANGUAGES.get(target, target)}"
        if kind == "BAD" or "-tutorial" in document or document.endswith(_NO_RATING):
            found.left_out[lp]["attention check, tutorial or repeated item, not a rating"] += 1
            continue
        if lp not in texts:
            texts[lp] = _Texts.read(folder, lp)
            texts[lp].put_into(found.segments)
        with reading(where):
            segment = found.segments[texts[lp].key(int(line), document)]
            if system not in segment.outputs:
                raise ValueError(f"{folder}: no translation of system {system}")
            _add(segment, system, decoded(spans, writable=True), finite(score), annotator, found, finite(ended))


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts of one language pair in a folder of WMT's: documents, sources, references, system-outputs."""

    lp: str
    documents: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
    outputs: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, folder: Path, lp: str) -> _Texts:
        def lines(path: Path) -> tuple[str, ...]:
            return tuple(line for _, line in numbered_lines(path))

        documents = [line.split("\t") for line in lines(folder / "documents" / f"{lp}.docs")]
        outputs = {path.stem: lines(path) for path in sorted((folder / "system-outputs" / lp).glob("*.txt"))}
        for path in sorted((folder / "references").glob(f"{lp}.*.txt")):
            outputs[path.stem.removeprefix(f"{lp}.")] = lines(path)
        sources = lines(folder / "sources" / f"{lp}.txt")
        for name, texts in {"documents": documents, **outputs}.items():
            if len(texts) != len(sources):
                raise InputError(f"{folder}: {len(texts)} lines of {name} in {lp}, and {len(sources)} sources")
        return cls(lp, tuple((parts[0], parts[1]) for parts in documents), sources, outputs)

    def key(self, line: int, document: str) -> _Key:
        if line < 0 or self.documents[line][1] != document:
            raise ValueError(f"segment {line} is not in document {document}")
        return (self.lp, document, str(line))

    def put_into(self, segments: dict[_Key, EsaSegment]) -> None:
        for line, (domain, document) in enumerate(self.documents):
            segment = _segment(segments, self.lp, domain, document, str(line), self.sources[line])
            for system, texts in self.outputs.items():
                segment.outputs.setdefault(system, texts[line])


def _segment(
    segments: dict[_Key, EsaSegment], lp: str, domain: str, document: str, number: str, source: str
) -> EsaSegment:
    return segments.setdefault((lp, document, number), EsaSegment(lp, domain, document, number, source))


def _put_text(segment: EsaSegment, system: str, text: str) -> None:
    if segment.outputs.setdefault(system, text) != text:
        raise InputError(f"another text of system {system} for segment {segment.number} of {segment.document}")


def _add(
    segment: EsaSegment,
    system: str,
    errors: Iterable[Mapping[str, Any]],
    score: Any,
    annotator: str | None,
    found: _Found,
    when: float | None = None,
) -> None:
    length = len(segment.outputs[system])
    kept = [one for error in errors if (one := _error(error, length, found, segment.lp)) is not None]
    number = None if score is None else finite(score)
    annotation = EsaAnnotation(tuple(kept), number, annotator)
    there = segment.annotations.setdefault(system, [])
    if when is not None and annotator:
        key = ((segment.lp, segment.document, segment.number), system, annotator)
        if key in found.times:
            before, at = found.times[key]
            found.left_out[segment.lp]["annotation that the same person gave anew: the last one counts"] += 1
            if when >= before:
                there[at] = annotation
                found.times[key] = (when, at)
            return
        found.times[key] = (when, len(there))
    there.append(annotation)


def _error(error: Mapping[str, Any], length: int, found: _Found, lp: str) -> MqmError | None:
    severity = str(error["severity"]).lower()
    category = str(error.get("category") or error.get("error_type") or "")
    if fold_severity(severity) is None:
        found.left_out[lp][f"error of severity {severity!r}: left out, it is no span and has no penalty"] += 1
        return None
    if "missing" in (error["start_i"], error["end_i"]):
        found.left_out[lp]["error that is missing from the translation: has no span"] += 1
        return MqmError(severity, category if is_omission(category) else "omission", "source")
    start, end = int(error["start_i"]), min(int(error["end_i"]) + (not found.past), length)
    if not 0 <= start < end or start >= length:
        found.left_out[lp]["error span without characters, or past the translation: has no place"] += 1
        return MqmError(severity, category)
    return MqmError(severity, category, "target", start, end)
