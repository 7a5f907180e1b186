"""Files of candidates and decisions: JSON lines, plain or, by suffix, compressed with gzip (`.gz`) or Zstandard
(`.zst`).

Candidates, one segment per line::

    {"id": "7", "system"?, "lp"?, "src": "...", "mt": "...", "format"?, "decision"?: {"rule": "mbr", ...},
     "candidates": [{"text": "...", "logprob": -9.1, "truncated"?, "tokens"?, "annotator"?, "format"?}, ...]}

`lp` is the language pair in the prompt, `format` the answer format of the texts (default: JSON), and `decision` the
decision options. A candidate may have an `annotator`, the model or person that produced it, and its own `format`;
instead of a text, it may have the `error_spans` and `omissions` of a decision, with offsets. A single candidate may
have ``"tokens": [[bytes, log-probability], ...]``, for the confidences of its spans. The `*.gen.json` of the paper's
released code, one object ``{system: [[[text, logprob, mt, src], ...], ...]}``, is also supported. Decisions, one
segment per line::

    {"id", "system"?, "index", "score", "mqm", "mqm_sd"?, "error_spans": [{"start", "end", "severity", "category",
     "text", "confidence", "correction"?, "reason"?, "agreement"?, "ambiguous"?}], "corrected"?, "omissions"?,
     "expected_utility", "valid", "distinct", "invalid", "unsure"?, "signature"?}

`score` is in [0, 1] and `mqm` in [-25, 0]. `omissions` are spans with offsets into the source, `corrected` the
translation with its corrections. `expected_utility` is that of the chosen candidate. JSON lines are read one segment at
a time, a `*.gen.json` completely.

Segment ids differ between files, so records are matched to translations by source and translation, ignoring trailing
white space, and by system:

* If the other side has the record's system, the record only matches the translation of this system.
* A record without a system, or with one that the other side lacks (such as a file name), matches every translation with
  the same texts, unless there is a record for the translation's own system.
* If a system has the same pair of texts several times, the k-th pair gets the k-th record, and later pairs the last.
"""

from __future__ import annotations

import json
import math
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from mbr_esd_metric.core.annotation import SIDES, Annotation, as_annotation
from mbr_esd_metric.core.corrections import corrected
from mbr_esd_metric.core.decision import Candidate, CandidateColumns, Decision, TokenLogprobs
from mbr_esd_metric.core.recalibration import Recalibration
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.judged import JudgedSegment, Place
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import json_text, open_binary, whole_file, write_whole
from mbr_esd_metric.files.untrusted import finite, parse_strict_json, read_json, reading
from mbr_esd_metric.prompting.formats import get_format

_T = TypeVar("_T")


class Join(Generic[_T]):
    """The records of one side, by translation; `systems` are the systems of the other side."""

    def __init__(self, records: Iterable[tuple[Segment, _T]], systems: Collection[str]) -> None:
        self._records: dict[tuple[str, str, str], list[_T]] = {}
        names = set(systems)
        for place, record in records:
            system = place.system if place.system in names else ""
            self._records.setdefault((system, *place.compared_texts), []).append(record)

    def all_of(self, place: Segment) -> Sequence[_T]:
        """All records that match a translation, in order."""
        return self._records.get((place.system, *place.compared_texts)) or self._records.get(
            ("", *place.compared_texts), []
        )

    def find(self, places: Iterable[Segment]) -> list[_T | None]:
        """The record of each translation, or None."""
        before: Counter[tuple[str, str, str]] = Counter()
        found = []
        for place in places:
            records, key = self.all_of(place), (place.system, *place.compared_texts)
            found.append(records[min(before[key], len(records) - 1)] if records else None)
            before[key] += 1
        return found


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """The candidates of one segment, as in a file.

    Attributes:
        segment: its label is the id in the file; for the released code's files, its number in its system, from 1.
        columns: the candidates, each with a text or an annotation.
        decision, lp: None if the file does not contain them.
    """

    segment: Segment
    columns: CandidateColumns
    decision: Mapping[str, str] | None = None
    lp: str | None = None

    @property
    def texts(self) -> Sequence[str]:
        """The text of each candidate; raises `InputError` for one that has error spans instead."""
        if None in self.columns.texts:
            raise InputError(f"{self.label} has a candidate with error spans; a model's answers are required")
        return cast("Sequence[str]", self.columns.texts)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The same as `Candidate` values."""
        return self.columns.candidates

    @property
    def label(self) -> str:
        """The segment's name for messages."""
        segment = self.segment
        return f"segment {segment.label!r}" + (f" of system {segment.system!r}" if segment.system else "")

    @classmethod
    def from_json(cls, value: object) -> CandidateRecord:
        """The record of one decoded line. Raises `InputError` with the wrong key and the expected value."""
        record = _object(value)
        if "candidates" not in record and "error_spans" in record:
            raise InputError("this is a decision; pass the file with its candidates")
        source, translation = _typed(record, "src", str), _typed(record, "mt", str)
        candidates = _typed(record, "candidates", list)
        for number, candidate in enumerate(candidates, 1):
            if not isinstance(candidate, dict):
                raise InputError(f"candidate {number} is {_kind(candidate)}; give an object with text and logprob")
        texts = tuple([candidate.get("text") for candidate in candidates])
        logprobs = tuple([candidate.get("logprob") for candidate in candidates])
        truncated = tuple([candidate.get("truncated", False) for candidate in candidates])
        if not set(map(type, truncated)) <= {bool}:
            raise InputError('"truncated" of a candidate must be true or false')
        _check_logprobs(logprobs)
        form = _format(_typed(record, "format", str, True))
        more = {"annotator", "format", "error_spans"} & set().union(*candidates)
        several = []
        for number, candidate in enumerate(candidates if more or not set(map(type, texts)) <= {str} else (), 1):
            with reading(f"candidate {number}"):
                several.append(_candidate(candidate, form))
        columns = CandidateColumns.of(several) if several else CandidateColumns(texts, logprobs, truncated, format=form)
        if len(candidates) == 1 and texts[0] is not None:
            columns = replace(columns, token_logprobs=_token_logprobs(candidates[0].get("tokens"), texts[0]))
        system, lp = _typed(record, "system", str, True), _typed(record, "lp", str, True)
        segment = Segment(source, translation, _identifier(record), system or "")
        return cls(segment, columns, _decision(record.get("decision")), lp)

    def to_json(self) -> dict[str, Any]:
        """The object of one line."""
        columns = self.columns
        candidates: list[dict[str, Any]] = [
            {"text": text, "logprob": logprob} | ({"truncated": True} if cut else {})
            for text, logprob, cut in zip(columns.texts, columns.logprobs, columns.truncated, strict=True)
        ]
        for name, each in (("annotator", columns.annotators), ("format", columns.formats)):
            for candidate, one in zip(candidates, each or (), strict=False):
                candidate |= {} if one is None else {name: one}
        for candidate, annotation in zip(candidates, columns.annotations or (), strict=False):
            if annotation is not None:
                del candidate["text"]
                spans = as_annotation(annotation)
                candidate |= _spans_json(spans, _words(spans, self.segment))
        if columns.token_logprobs is not None and len(candidates) == 1:
            by_token = zip(columns.token_logprobs.sizes, columns.token_logprobs.logprobs, strict=True)
            candidates[0]["tokens"] = [[size, round(logprob, 6)] for size, logprob in by_token]
        value: dict[str, Any] = {
            "id": self.segment.label,
            "system": self.segment.system or None,
            "src": self.segment.source,
            "mt": self.segment.translation,
            "lp": self.lp,
        }
        decision = None if self.decision is None else dict(self.decision)
        value |= {"format": columns.format, "decision": decision, "candidates": candidates}
        return {key: one for key, one in value.items() if one is not None}


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """The decision for one segment, as stored in a file. In addition to fields of `Decision`:

    Attributes:
        id, system: those of the candidates' record.
        texts: the text of each span.
        corrected: the corrected translation; None if no span has a correction.
        signature: the signature of the decision; absent in older files.
    """

    id: str
    index: int | None
    score: float
    mqm: float
    annotation: Annotation
    texts: tuple[str, ...]
    expected_utility: float
    valid: int
    distinct: int
    invalid: int
    system: str | None = None
    mqm_sd: float | None = None
    corrected: str | None = None
    unsure: bool = False
    signature: Signature | None = None

    @classmethod
    def of(cls, record: CandidateRecord, decision: Decision, signature: Signature | None = None) -> DecisionRecord:
        """The record of a decision for a candidates record."""
        segment = record.segment
        texts = _words(decision.annotation, segment)
        same = {field.name: getattr(decision, field.name) for field in fields(cls) if hasattr(decision, field.name)}
        if any(span.correction is not None for span in decision.annotation):
            same["corrected"] = corrected(segment.translation, decision.annotation)
        return cls(id=segment.label, system=segment.system or None, texts=texts, signature=signature, **same)

    @classmethod
    def from_json(cls, value: object) -> DecisionRecord:
        """The record of one decoded line. Raises `InputError` with the wrong key and the expected value."""
        record = _object(value)
        spans, omissions = _typed(record, "error_spans", list), _typed(record, "omissions", list, True) or ()
        annotation = _annotation(record)
        words = {
            (side, one.get("start"), one.get("end")): str(one.get("text", ""))
            for side, each in zip(SIDES, (spans, omissions), strict=True)
            for one in each
        }
        utility, index = record.get("expected_utility", ""), record.get("index", "")
        values: dict[str, Any] = {name: finite(_typed(record, name, float)) for name in ("score", "mqm")}
        values |= {name: _typed(record, name, int) for name in ("valid", "distinct", "invalid")}
        optional = {"system": str, "mqm_sd": float, "corrected": str, "signature": str}
        values |= {name: _typed(record, name, kind, True) for name, kind in optional.items()}
        values["unsure"] = bool(_typed(record, "unsure", bool, True))
        values["signature"] = Signature.parse(values["signature"]) if values["signature"] else None
        return cls(
            id=_identifier(record),
            index=None if index is None else _typed(record, "index", int),
            annotation=annotation,
            texts=tuple(words[span.side, span.start, span.end] for span in annotation),
            expected_utility=math.nan if utility is None else finite(_typed(record, "expected_utility", float)),
            **values,
        )

    def to_json(self) -> dict[str, Any]:
        """The object of one line."""
        first = ("id", "system", "index", "score", "mqm", "mqm_sd", "corrected")
        value = {name: getattr(self, name) for name in first} | _spans_json(self.annotation, self.texts)
        value["expected_utility"] = None if math.isnan(self.expected_utility) else self.expected_utility
        value |= {name: getattr(self, name) for name in ("valid", "distinct", "invalid")}
        value["unsure"] = self.unsure or None
        value["signature"] = self.signature and str(self.signature)
        return {key: one for key, one in value.items() if one is not None or key in ("index", "expected_utility")}


def read_candidates(path: str | Path) -> Iterator[CandidateRecord]:
    """The records of a candidates file, JSON lines or the released code's `*.gen.json`, in order. Raises `InputError`
    with the file, the line (or system and segment), and the problem."""
    for where, value in raw_records(path):
        yield candidate_record(where, value)


def candidate_record(where: str, value: bytes | list[Any]) -> CandidateRecord:
    """The record of one item of `raw_records`; `InputError` messages start with `where`."""
    with reading(where):
        return CandidateRecord.from_json(parse_strict_json(value)) if isinstance(value, bytes) else _released(*value)


def raw_records(path: str | Path) -> Iterator[tuple[str, bytes | list[Any]]]:
    """The place of each record ("FILE, line 3") and its content, which `candidate_record` validates later, possibly in
    another process. Raises `InputError` for a JSON value over several lines, as written by COMET, or a malformed
    `*.gen.json`."""
    if plain_name(path).endswith(".gen.json"):
        systems = read_json(path)
        if not isinstance(systems, dict) or not all(isinstance(segments, list) for segments in systems.values()):
            raise InputError(f"{path}: give the released code's {{system: [[[text, logprob, mt, src], ...], ...]}}")
        for system, segments in systems.items():
            for number, candidates in enumerate(segments, 1):
                yield f"{path}, system {system!r}, segment {number}", [system, number, candidates]
        return
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.strip() in (b"{", b"["):
                raise InputError(
                    f"{path}: one JSON value over several lines, as `comet-score --to_json` writes; candidates are "
                    "JSON lines, which `mbr-esd sample` writes"
                )
            if line.strip():
                yield f"{path}, line {number}", line


def read_decisions(path: str | Path) -> Iterator[DecisionRecord]:
    """The records of a decisions file, in order. Raises `InputError` with the file, the line and the problem."""
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                with reading(f"{path}, line {number}"):
                    record = DecisionRecord.from_json(parse_strict_json(line))
                yield record


def read_decided(path: Path, texts: Mapping[tuple[str, str], Segment], elsewhere: str) -> list[JudgedSegment]:
    """The judged translations of a decisions file, which does not contain the texts; `texts` has them by system and id.

    Raises:
        InputError: a decision whose translation is not in `texts` (the message ends with `elsewhere`), or whose error
            spans do not fit it.
    """
    result = []
    for record in read_decisions(path):
        where = f"{path}: segment {record.id}" + (f" of {record.system}" if record.system else "")
        text = texts.get((record.system or "", record.id))
        if text is None:
            raise InputError(f"{where} is in {elsewhere}")
        if misplaced := (marked := _misplaced(record, text)) and _misplaced(record, text.without_marks):
            raise InputError(f"{where}: {misplaced}; give the candidates file that the decisions were made from")
        text = text.without_marks if marked else text
        settings = Settings(signature=record.signature, file=str(path))
        place, values = Place(str(path), record.id), (record.annotation, record.score, record.mqm)
        result.append(JudgedSegment(text, *values, place, settings, unsure=record.unsure))
    return result


def _misplaced(record: DecisionRecord, text: Segment) -> str | None:
    """A message about the first error span of a decision that does not match the text at its offsets, or None."""
    for span, words in zip(record.annotation, record.texts, strict=True):
        if words and words != span.text_in(text.source, text.translation):
            whole = text.translation if span.side == "translation" else text.source
            return f"the error span {words!r} is not at offset {span.start} of {whole[:60]!r}"
    return None


def write_records(path: str | Path, records: Iterable[CandidateRecord | DecisionRecord]) -> None:
    """Write records as JSON lines, compressed by suffix, atomically."""
    with whole_file(path) as file:
        for record in records:
            file.write(json_line(record.to_json()))


def json_line(value: Mapping[str, Any]) -> bytes:
    """One line of JSON; see `json_text`."""
    return json_text(value).encode() + b"\n"


def read_recalibration(path: str | Path) -> Recalibration:
    """The recalibration in a file such as a model folder's `calibration.json`."""
    value = read_json(Path(path).expanduser())
    with reading(str(path)):
        return Recalibration.from_json(value)


def write_recalibration(path: str | Path, recalibration: Recalibration) -> None:
    """Write a recalibration atomically."""
    write_whole(path, json.dumps(recalibration.to_json(), indent=1) + "\n")


def _released(system: str, number: int, candidates: object) -> CandidateRecord:
    if not isinstance(candidates, list) or not candidates:
        raise InputError("give a list of [text, logprob, mt, src] that is not empty")
    for place, item in enumerate(candidates, 1):
        if not isinstance(item, list) or len(item) != 4 or not all(isinstance(item[i], str) for i in (0, 2, 3)):
            raise InputError(f"candidate {place} is not [text, logprob, mt, src]")
        if item[2:] != candidates[0][2:]:
            raise InputError(f"candidate {place} has a different mt or src from candidate 1")
    mt, src = candidates[0][2:]
    texts, logprobs = tuple(item[0] for item in candidates), tuple(item[1] for item in candidates)
    _check_logprobs(logprobs)
    columns = CandidateColumns(texts, logprobs, (False,) * len(texts))
    return CandidateRecord(Segment(src, mt, str(number), system), columns, {"location": "first"})  # as released


def _check_logprobs(values: tuple[object, ...]) -> None:
    # Only NaN differs from itself.
    if not set(map(type, values)) <= {float, int, type(None)} or not all(map(operator.eq, values, values)):
        raise InputError("a candidate's logprob must be a number, or null if unknown")
    if {math.inf, -math.inf} & set(values):
        raise InputError("a candidate's logprob is infinite; give a finite number, or null if unknown")


def _token_logprobs(tokens: object, text: str) -> TokenLogprobs | None:
    if tokens is None:
        return None
    pairs: list[Any] = tokens if isinstance(tokens, list) else [None]
    if not all(isinstance(pair, list) and [*map(type, pair)] in ([int, float], [int, int]) for pair in pairs):
        raise InputError('"tokens" of a candidate must be a list of [bytes, log-probability], one for each token')
    sizes, logprobs = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    if min(sizes, default=0) < 0 or sum(sizes) != len(text.encode("utf-8", "surrogatepass")):
        raise InputError('"tokens" of a candidate do not have as many bytes as its text')
    if not all(-math.inf < value <= 1e-3 for value in logprobs):
        raise InputError('"tokens" of a candidate have a log-probability that is not a finite number of at most 0')
    return TokenLogprobs(sizes, logprobs)


def _candidate(value: Mapping[str, Any], form: str | None) -> Candidate:
    """A candidate, optionally with annotator and format, and with error spans instead of a text."""
    spans = "error_spans" in value
    if spans and "text" in value:
        raise InputError('both "text" and "error_spans" are present; give only one')
    return Candidate(
        None if spans else _typed(value, "text", str),
        _annotation(value) if spans else None,
        value.get("logprob"),
        value.get("truncated", False),
        format=_format(_typed(value, "format", str, True)) or form,
        annotator=_typed(value, "annotator", str, True),
    )


def _annotation(value: Mapping[str, Any]) -> Annotation:
    """The annotation of "error_spans" and "omissions"."""
    omissions = [{**_object(one), "side": "source"} for one in _typed(value, "omissions", list, True) or ()]
    return Annotation([*_typed(value, "error_spans", list), *omissions])


def _words(annotation: Annotation, segment: Segment) -> tuple[str, ...]:
    """The text of each span."""
    return tuple(span.text_in(segment.source, segment.translation) for span in annotation)


def _spans_json(annotation: Annotation, words: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The "error_spans" of an annotation, and its "omissions" if it has any."""
    spans: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for span, text in zip(annotation, words, strict=True):
        place = {"start": span.start, "end": span.end, "severity": span.severity, "category": span.category}
        spans[span.side].append({**place, "text": text, "confidence": span.confidence, **span.correction_fields})
    omissions = {"omissions": spans["source"]} if spans["source"] else {}
    return {"error_spans": spans["translation"], **omissions}


def _decision(value: object) -> Mapping[str, str] | None:
    if value is None or (isinstance(value, dict) and set(map(type, value.values())) <= {str}):
        return value
    raise InputError('"decision" must be an object of options and values, such as {"rule": "mbr"}')


def _format(name: str | None) -> str | None:
    try:
        return None if name is None else get_format(name).name
    except OptionError as error:
        raise InputError(f'"format": {error}') from None


def _identifier(value: Mapping[str, Any]) -> str:
    identifier = value.get("id")
    return str(identifier) if type(identifier) is int else str(_typed(value, "id", str))


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"give a JSON object, not {_kind(value)}")
    return value


_KINDS = {str: "a string", int: "a whole number", float: "a number", list: "a list", bool: "true or false"}


def _typed(value: Mapping[str, Any], key: str, kind: type, optional: bool = False) -> Any:
    """The value of a key, which must have this type (an int is also a float); None if an optional key is missing."""
    one = value.get(key)
    if (one is None and optional) or type(one) is kind or (kind is float and type(one) is int):
        return one
    right = _KINDS[kind]
    raise InputError(f'"{key}" is {_kind(one)}, not {right}' if key in value else f'no "{key}"; give {right}')


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
