"""Error span annotations (ESA) in WMT's formats: minor and major errors, and a score from 0 to 100.

Four formats are supported, and detected by the file's extension and content:

    .jsonl with "scores"     one segment a line, all systems: wmt25-genmt-humeval.jsonl, wmt24-genmt-humeval.jsonl;
                             annotations of protocol "MQM" have errors alone
    .jsonl with "esa_spans"  one annotation a line: wmt24_esa.jsonl
    .jsonl with "rater"      one annotation a line, as `mbr-esd annotate import` writes it
    .tsv                     one annotation a row, with doc_id, segment_id, source_lang, target_lang, system_id,
                             hypothesis_segment ... and overall, or start_indices, end_indices and error_types: the
                             tables of wmt25-mteval

In .jsonl files, an error's end is its last character; in the tables it is one past, as in the tasks' scorer. An
omission has no position in the translation. If a person rated a translation of WMT24 several times in one file, the
last rating counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.qe_tsv import span_columns
from mbr_esd_metric.adapters.ratings import LeftOut, MqmError, Rating, RatingData
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.tables import table_cells
from mbr_esd_metric.files.untrusted import finite, json_objects, reading, text_of
from mbr_esd_metric.prompting.parse import is_omission

#: Separator of language pair, domain, document and segment in the identifiers of WMT24 and WMT25.
_SEPARATOR = "_#_"
#: Required columns of the tables.
_COLUMNS = ("doc_id", "segment_id", "source_lang", "target_lang", "system_id", "source_segment", "hypothesis_segment")


@dataclass(slots=True)
class SourceSegment:
    """One source segment of a test set; system or reference -> translation."""

    lp: str
    domain: str
    document: str
    number: str
    source: str
    outputs: dict[str, str] = field(default_factory=dict)

    def put(self, system: str, text: str) -> None:
        """Add a translation; raise `InputError` if the system already has a different one."""
        if self.outputs.setdefault(system, text) != text:
            raise InputError(f"a different text of system {system} for segment {self.number} of {self.document}")

    def translated_by(self, system: str) -> Segment:
        """The segment with the translation of a system."""
        return Segment(self.source, self.outputs[system], self.number, system, self.document)


@dataclass(frozen=True, slots=True)
class TestSetTexts:
    """The texts of a test set in one or several language pairs, and human ratings of them.

    Attributes:
        human: the ratings of each file; empty if only the texts were read.
        documents: language pair -> metadata of its documents, in order.
    """

    segments: tuple[SourceSegment, ...]
    human: tuple[RatingData, ...] = ()
    documents: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def lps(self) -> tuple[str, ...]:
        """The language pairs with a rating, sorted; all if nothing is rated."""
        rated = {lp for data in self.human for lp in data.lps}
        return tuple(sorted(rated or {segment.lp for segment in self.segments}))


def read_esa(paths: Sequence[str | Path], *, rated: bool = True) -> TestSetTexts:
    """Read annotation files, plain or compressed, possibly of the same segments; if not `rated`, only the texts of a
    task's table.

    Raises:
        InputError: a file in another format, a malformed line (the message names it), or no annotation at all.
    """
    reader = _Reader()
    human = tuple(reader.read(path, rated) for path in map(Path, paths))
    if rated and not any(human):
        raise InputError(f"{', '.join(map(str, paths))}: no annotation in these files")
    return TestSetTexts(tuple(reader.segments.values()), human)


class _Reader:
    """Collects the segments of several files, and the ratings of each; `line` is the current line number."""

    def __init__(self) -> None:
        self.segments: dict[tuple[str, str, str], SourceSegment] = {}
        self.ratings: list[Rating] = []
        self.left_out: list[LeftOut] = []
        self.line = 0

    def read(self, path: Path, rated: bool) -> RatingData:
        """The ratings of one file; empty if not `rated`."""
        self.ratings, self.left_out = [], []
        if plain_name(path).endswith(".tsv") or not rated:
            self._table(path, rated)
        elif plain_name(path).endswith((".jsonl", ".json")):
            self._lines(path)
        else:
            raise InputError(f"{path}: ESA is read from .jsonl or .tsv")
        return RatingData(path, tuple(self.ratings), tuple(self.left_out))

    def _lines(self, path: Path) -> None:
        """The annotations of a .jsonl file, in one of three formats."""
        #: (Segment, system, rater) -> time of the annotation, and its index.
        times: dict[tuple[int, str, str], tuple[float, int]] = {}
        for where, self.line, item in json_objects(path):
            with reading(where):
                if "scores" in item:
                    self._unified(item)
                elif "rater" in item:
                    self._person(item)
                else:
                    self._single(item, times)

    def _table(self, path: Path, rated: bool) -> None:
        """The rows of a .tsv file, and their annotations if `rated`."""
        for self.line, cell in table_cells(path, "\t", _COLUMNS):
            if rated and not {"overall", "error_types"} & {*cell}:
                raise InputError(f"{path}, line 1: no column overall or error_types in the header")
            lp = f"{cell['source_lang']}-{cell['target_lang']}"
            if cell.get("set_id", "official") != "official":
                self._leave_out("row of a challenge set", lp)
                continue
            domain, system = cell.get("domain_name") or "all", cell["system_id"]
            segment = self._segment(lp, domain, cell["doc_id"], cell["segment_id"], cell["source_segment"])
            with reading(f"{path}, line {self.line}"):
                segment.put(system, cell["hypothesis_segment"])
                if cell.get("reference_segment") not in (None, "", "NaN"):
                    segment.outputs.setdefault("refA", cell["reference_segment"])
                if not rated:
                    continue
                columns = [cell.get(name, "") for name in ("start_indices", "end_indices", "error_types")]
                errors = [
                    {"start_i": start, "end_i": end if end == "missing" else int(end) - 1, "severity": severity}
                    for start, end, severity in span_columns(*columns)
                ]
                score = None if cell.get("overall") in (None, "", "NaN") else cell["overall"]
                self._add(segment, system, errors, score, cell.get("annotator"))

    def _unified(self, item: Mapping[str, Any]) -> None:
        """One segment with all systems."""
        parts = text_of(item, "doc_id").split(_SEPARATOR)
        if len(parts) != 4:
            raise ValueError(
                f"doc_id {item['doc_id']!r} is not language pair, domain, document and segment between {_SEPARATOR}"
            )
        lp, domain, document, number = parts
        segment = self._segment(lp, domain, document, number, text_of(item, "src_text"))
        for system in item["tgt_text"]:
            segment.put(system, text_of(item["tgt_text"], system))
        for system, ratings in item["scores"].items():
            if ratings and system not in segment.outputs:
                raise ValueError(f"system {system} has scores but no text")
            for one in ratings:
                score = None if one.get("protocol") == "MQM" else one["score"]
                self._add(segment, system, one["errors"], score, one.get("annotator"))

    def _single(self, item: Mapping[str, Any], times: dict[tuple[int, str, str], tuple[float, int]]) -> None:
        """One annotation of WMT24."""
        segment = self._segment(*(text_of(item, key) for key in ("langs", "domain", "doc_id", "line_id", "src")))
        system, rater = text_of(item, "system"), item.get("annotator")
        segment.put(system, text_of(item, "tgt"))
        self._add(segment, system, item["esa_spans"], item["esa_score"], rater)
        if rater and item.get("times"):
            time = finite(item["times"][1])
            before, at = times.setdefault((id(segment), system, rater), (time, len(self.ratings) - 1))
            if at < len(self.ratings) - 1:
                self._leave_out("repeated annotation by the same person: the last one counts", segment.lp)
                last = self.ratings.pop()
                if time >= before:
                    self.ratings[at], times[id(segment), system, rater] = last, (time, at)

    def _person(self, item: Mapping[str, Any]) -> None:
        """One annotation of an annotation tool; see `ratings`."""
        one = Rating.from_json(item, self.line, [])
        rated = one.segment
        segment = self._segment(str(one.lp), "all", rated.document, rated.label, rated.source)
        if segment.source != rated.source:
            raise InputError(
                f"a different source of segment {rated.label} of {rated.document} than in an earlier line; import each "
                "campaign into a test set of its own"
            )
        segment.put(rated.system, rated.translation)
        self.ratings.append(one)

    def _segment(self, lp: str, domain: str, document: str, number: str, source: str) -> SourceSegment:
        return self.segments.setdefault((lp, document, number), SourceSegment(lp, domain, document, number, source))

    def _leave_out(self, reason: str, lp: str) -> None:
        self.left_out.append(LeftOut(self.line, reason, lp))

    def _add(
        self, segment: SourceSegment, system: str, errors: Iterable[Mapping[str, Any]], score: Any, rater: str | None
    ) -> None:
        """Add a rating; an error's end is its last character."""
        lp, rated = segment.lp, segment.translated_by(system)
        length = len(rated.translation)
        placed: list[MqmError] = []
        for error in errors:
            severity = str(error["severity"]).lower()
            category = str(error.get("category") or error.get("error_type") or "")
            if fold_severity(severity) is None:
                self._leave_out(f"error of severity {severity!r}: left out, it is not a span and has no penalty", lp)
                continue
            if "missing" in (error["start_i"], error["end_i"]):
                self._leave_out("error of text missing from the translation: has no span", lp)
                placed.append(MqmError(severity, category if is_omission(category) else "omission", "source"))
                continue
            start, end = int(error["start_i"]), min(int(error["end_i"]) + 1, length)
            if not 0 <= start < end or start >= length:
                self._leave_out("error span without characters, or past the translation: has no position", lp)
                placed.append(MqmError(severity, category))
            else:
                placed.append(MqmError(severity, category, "translation", start, end))
        score = None if score is None else finite(score)
        self.ratings.append(Rating(rated, rater or "", tuple(placed), lp, self.line, score))
