"""Files of candidates and of decisions: JSON lines, plain, gzip (`.gz`) or Zstandard (`.zst`) by suffix.

Candidates, a line a segment::

    {"id": "7", "system": "A", "src": "...", "mt": "...", "candidates": [{"text": "...", "logprob": -9.1}, ...]}

`system` may be absent. ``"lp": "en-de"`` is the language pair that the prompt named. ``"decision": {"rule": "mbr",
"score": "expected", ...}`` names the options by which the candidates are decided, unless others are given. ``"format":
"compact"`` beside `mt` names the answer format of the texts; where nothing says it, they are JSON, or what the reader
is told. A candidate may have ``"truncated": true``, those of several models ``"model": NAME``, an only candidate
``"tokens": [[bytes, log-probability], ...]``, of which confidences of its spans are made, and those of `format=marked`
``"expected": [minor, major, missing, words, surprisal]``, the numbers of error spans that the model expected and what
goes with them (`ExpectedSpans`; the last three may be absent), of which `score=conditional` is made. The `*.gen.json`
of the authors' released code, one object ``{system: [[[text, logprob, mt, src], ...], ...]}``, is read as well.
Decisions, a line a segment::

    {"id", "system"?, "index", "score", "mqm", "mqm_sd"?, "spans": [{"start", "end", "severity", "category", "text",
     "confidence"}], "omissions"?, "unplaced"?, "expected_utility", "valid", "distinct", "invalid"}

`score` is in [0, 1] and `mqm` in [-25, 0]; in a line without `mqm`, `score` is the latter.

`omissions` are spans with offsets into the source, where there are any; `unplaced` are the severities of omissions
without a place, where they count. `expected_utility` is that of the chosen candidate. Readers stream: memory is that
of one segment.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mbr_esd_metric.core.annotation import SIDES, Annotation, Severity, fold_severity
from mbr_esd_metric.core.candidate import Candidate, CandidateColumns, ExpectedSpans, TokenLogprobs
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.mqm import unit_score
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.gen_json import released_items, released_segment
from mbr_esd_metric.files.join import SegmentKey
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import json_text, open_binary, whole_file
from mbr_esd_metric.files.untrusted import decoded, finite


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """The candidates of one segment, as they stand in a file.

    Attributes:
        id: names the segment; in a released-code file its number in its system, from 1.
        src, mt: source and translation.
        columns: what is known of the candidates: each has a text, and all or none a model.
        system: whose translation it is, if the file says.
        decision: option -> value, by which the candidates are decided; None if the file does not say it.
        lp: the language pair that the prompt named, such as "en-de", if the file says.
    """

    id: str
    src: str
    mt: str
    columns: CandidateColumns
    system: str | None = None
    decision: Mapping[str, str] | None = None
    lp: str | None = None

    @property
    def texts(self) -> Sequence[str]:
        """What the model wrote, one for each candidate."""
        return cast("Sequence[str]", self.columns.texts)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The same as `Candidate` values."""
        said, nothing = self.columns, (None,) * len(self.columns)
        models, expected = said.models or nothing, said.expected or nothing
        return tuple(
            Candidate(text, None, logprob, cut, model, said.token_logprobs, spans, said.format)
            for text, logprob, cut, model, spans in zip(
                said.texts, said.logprobs, said.truncated, models, expected, strict=True
            )
        )

    @property
    def place(self) -> SegmentKey:
        """The translation that it belongs to."""
        return SegmentKey(self.system or "", self.src, self.mt)

    @property
    def label(self) -> str:
        """How messages name the segment."""
        return f"segment {self.id!r}" + (f" of system {self.system!r}" if self.system is not None else "")

    @classmethod
    def from_json(cls, value: object) -> CandidateRecord:
        """The record of one decoded line.

        Raises:
            InputError: says which key is wrong and what belongs there.
        """
        if not isinstance(value, dict):
            raise InputError(f"give one JSON object a segment, not {_kind(value)}")
        if "candidates" not in value and "spans" in value:
            raise InputError("this is a decision; give the file of the candidates that it was chosen from")
        src, mt = _text(value, "src"), _text(value, "mt")
        candidates = value.get("candidates")
        if not isinstance(candidates, list):
            raise InputError(_wrong(value, "candidates", "a list of {text, logprob}"))
        for number, candidate in enumerate(candidates, 1):
            if not isinstance(candidate, dict):
                raise InputError(f"candidate {number} is {_kind(candidate)}; give an object with text and logprob")
        texts = tuple([candidate.get("text") for candidate in candidates])
        logprobs = tuple([candidate.get("logprob") for candidate in candidates])
        truncated = tuple([candidate.get("truncated", False) for candidate in candidates])
        if not set(map(type, texts)) <= {str}:
            index = next(i for i, text in enumerate(texts) if not isinstance(text, str))
            raise InputError(f"candidate {index + 1}: {_wrong(candidates[index], 'text', 'a string')}")
        if not set(map(type, truncated)) <= {bool}:
            raise InputError('"truncated" of a candidate is true or false')
        _check_logprobs(logprobs)
        for key in ("system", "lp"):
            if value.get(key) is not None and not isinstance(value[key], str):
                raise InputError(_wrong(value, key, "a string"))
        by_token = _token_logprobs(candidates[0].get("tokens"), texts[0]) if len(candidates) == 1 else None
        models = None
        if candidates and "model" in candidates[0]:
            models = tuple([candidate.get("model") for candidate in candidates])
            if not set(map(type, models)) <= {str}:
                raise InputError('"model" is the name of a candidate\'s model; give it for all candidates or for none')
        expected = None
        if any("expected" in candidate for candidate in candidates):
            expected = tuple([_expected(number, candidate) for number, candidate in enumerate(candidates, 1)])
        identifier, form = _identifier(value), _format(value.get("format"))
        columns = CandidateColumns(texts, logprobs, truncated, None, models, by_token, expected, form)
        decision = _decision(value.get("decision"))
        return cls(identifier, src, mt, columns, value.get("system"), decision, value.get("lp"))

    def to_json(self) -> dict[str, Any]:
        """The object of one line."""
        columns = self.columns
        system = {} if self.system is None else {"system": self.system}
        form = {} if columns.format is None else {"format": columns.format}
        lp = {} if self.lp is None else {"lp": self.lp}
        candidates: list[dict[str, Any]] = [
            {"text": text, "logprob": logprob} | ({"truncated": True} if cut else {})
            for text, logprob, cut in zip(columns.texts, columns.logprobs, columns.truncated, strict=True)
        ]
        for candidate, model in zip(candidates, columns.models or (), strict=False):
            candidate["model"] = model
        for candidate, spans in zip(candidates, columns.expected or (), strict=False):
            if spans is not None:
                measured = [spans.missing, spans.words, spans.surprisal]
                candidate["expected"] = [spans.minor, spans.major, *(measured if any(measured) else ())]
        if columns.token_logprobs is not None and len(candidates) == 1:
            by_token = zip(columns.token_logprobs.sizes, columns.token_logprobs.logprobs, strict=True)
            candidates[0]["tokens"] = [[size, round(logprob, 6)] for size, logprob in by_token]
        decision = {} if self.decision is None else {"decision": dict(self.decision)}
        texts = {"src": self.src, "mt": self.mt, **lp}
        return {"id": self.id, **system, **texts, **form, **decision, "candidates": candidates}


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """The decision for one segment, as it stands in a file.

    Attributes:
        id, system: of the candidates' record.
        index: of the chosen candidate; None if the annotation is no candidate's.
        score: in [0, 1].
        mqm: the MQM score, in [-25, 0]; of the annotation, or the mean over the candidates.
        annotation: the error spans, with confidence and category.
        texts: the words of each span.
        expected_utility: of the annotation; NaN if it is unknown (null in the file).
        valid, distinct, invalid: counts of candidates.
        mqm_sd: standard deviation of the candidates' MQM scores, where `mqm` is their mean.
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

    @classmethod
    def of(cls, record: CandidateRecord, decision: Decision) -> DecisionRecord:
        """What the file says of a decision."""
        sides = {"translation": record.mt, "source": record.src}
        return cls(
            record.id,
            decision.index,
            decision.score,
            decision.mqm,
            decision.annotation,
            tuple(sides[span.side][span.start : span.end] for span in decision.annotation),
            decision.expected_utility,
            decision.valid,
            decision.distinct,
            decision.invalid,
            record.system,
            decision.mqm_sd,
        )

    @classmethod
    def from_json(cls, value: object) -> DecisionRecord:
        """The record of one decoded line.

        Raises:
            InputError: says which key is wrong and what belongs there.
        """
        if not isinstance(value, dict):
            raise InputError(f"give one JSON object a segment, not {_kind(value)}")
        spans = value.get("spans")
        if not isinstance(spans, list):
            raise InputError(_wrong(value, "spans", "a list"))
        omissions = value.get("omissions", [])
        if not isinstance(omissions, list) or not all(isinstance(one, dict) for one in omissions):
            raise InputError(_wrong(value, "omissions", "a list of objects"))
        annotation = Annotation([*spans, *({**one, "side": "source"} for one in omissions)])
        for key, kinds in (("system", str), ("mqm_sd", int | float)):
            if value.get(key) is not None and (not isinstance(value[key], kinds) or isinstance(value[key], bool)):
                raise InputError(_wrong(value, key, "a string" if kinds is str else "a number"))
        annotation = annotation.missing(_severities(value.get("unplaced", [])))
        texts = {("translation", s.get("start"), s.get("end")): s.get("text", "") for s in spans}
        texts |= {("source", s.get("start"), s.get("end")): s.get("text", "") for s in omissions}
        unknown = {key for key in ("index", "expected_utility") if key in value and value[key] is None}
        of_mqm = "mqm" if "mqm" in value else "score"
        for key in ("score", of_mqm, "expected_utility"):
            if key not in unknown and (isinstance(value.get(key), bool) or not isinstance(value.get(key), int | float)):
                raise InputError(_wrong(value, key, "a number"))
        for key in ("index", "valid", "distinct", "invalid"):
            if key not in unknown and type(value.get(key)) is not int:
                raise InputError(_wrong(value, key, "a whole number"))
        return cls(
            _identifier(value),
            value["index"],
            finite(value["score"]) if of_mqm == "mqm" else unit_score(finite(value["score"])),
            finite(value[of_mqm]),
            annotation,
            tuple(str(texts[span.side, span.start, span.end]) for span in annotation),
            math.nan if value["expected_utility"] is None else finite(value["expected_utility"]),
            value["valid"],
            value["distinct"],
            value["invalid"],
            value.get("system"),
            value.get("mqm_sd"),
        )

    def to_json(self) -> dict[str, Any]:
        """The object of one line."""
        system = {} if self.system is None else {"system": self.system}
        deviation = {} if self.mqm_sd is None else {"mqm_sd": self.mqm_sd}
        spans: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
        for span, text in zip(self.annotation, self.texts, strict=True):
            said = {"start": span.start, "end": span.end, "severity": span.severity, "category": span.category}
            spans[span.side].append({**said, "text": text, "confidence": span.confidence})
        omissions = {"omissions": spans["source"]} if spans["source"] else {}
        unplaced = {"unplaced": list(self.annotation.unplaced)} if self.annotation.unplaced else {}
        return {
            "id": self.id,
            **system,
            "index": self.index,
            "score": self.score,
            "mqm": self.mqm,
            **deviation,
            "spans": spans["translation"],
            **omissions,
            **unplaced,
            "expected_utility": None if math.isnan(self.expected_utility) else self.expected_utility,
            "valid": self.valid,
            "distinct": self.distinct,
            "invalid": self.invalid,
        }


def read_candidates(path: str | Path) -> Iterator[CandidateRecord]:
    """The records of a candidates file, JSON lines or the released code's `*.gen.json`, in order.

    Raises:
        InputError: names the file, the line (or system and segment), and what is wrong.
    """
    for where, value in raw_records(path):
        yield candidate_record(where, value)


def candidate_record(where: str, value: bytes | list[Any]) -> CandidateRecord:
    """The record of one item of `raw_records`.

    Raises:
        InputError: begins with `where`.
    """
    try:
        if isinstance(value, bytes):
            return CandidateRecord.from_json(decoded(value))
        system, number, candidates = value
        return _released(system, number, candidates)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def raw_records(path: str | Path) -> Iterator[tuple[str, bytes | list[Any]]]:
    """The place of each record ("FILE, line 3"), and its content, which `candidate_record` still has to check.

    Reading and checking are separate, so that several processes can share the checking.

    Raises:
        InputError: the file has one JSON value over several lines, as COMET writes it.
    """
    if plain_name(path).endswith(".gen.json"):
        for system, number, candidates in released_items(path):
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
    """The records of a decisions file, in order.

    Raises:
        InputError: names the file, the line and what is wrong.
    """
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield DecisionRecord.from_json(decoded(line))
                except InputError as error:
                    raise InputError(f"{path}, line {number}: {error}") from None


def write_records(path: str | Path, records: Iterable[CandidateRecord | DecisionRecord]) -> None:
    """Write records as JSON lines; compressed by suffix, and whole or not at all."""
    with whole_file(path) as file:
        for record in records:
            file.write(json_line(record.to_json()))


def json_line(value: Mapping[str, Any]) -> bytes:
    """One line of JSON, as `json_text`."""
    return json_text(value).encode() + b"\n"


def _released(system: str, number: int, candidates: object) -> CandidateRecord:
    src, mt, texts, logprobs = released_segment(candidates)
    _check_logprobs(logprobs)
    return CandidateRecord(str(number), src, mt, CandidateColumns(texts, logprobs, (False,) * len(texts)), system)


def _check_logprobs(values: tuple[object, ...]) -> None:
    # NaN alone does not equal itself.
    if not set(map(type, values)) <= {float, int, type(None)} or not all(map(operator.eq, values, values)):
        raise InputError("a candidate's logprob is a number, or null where unknown")
    if {math.inf, -math.inf} & set(values):
        raise InputError("a candidate's logprob is infinite; give a finite number, or null where unknown")


def _token_logprobs(tokens: object, text: str) -> TokenLogprobs | None:
    if tokens is None:
        return None
    pairs: list[Any] = tokens if isinstance(tokens, list) else [None]
    if not all(isinstance(pair, list) and [*map(type, pair)] in ([int, float], [int, int]) for pair in pairs):
        raise InputError('"tokens" of a candidate is a list of [bytes, log-probability], one for each token')
    sizes, logprobs = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    if min(sizes, default=0) < 0 or sum(sizes) != len(text.encode("utf-8", "surrogatepass")):
        raise InputError('"tokens" of a candidate do not have as many bytes as its text')
    if not all(-math.inf < value <= 1e-3 for value in logprobs):
        raise InputError('"tokens" of a candidate have a log-probability that is no finite number of at most 0')
    return TokenLogprobs(sizes, logprobs)


def _expected(number: int, candidate: Mapping[str, Any]) -> ExpectedSpans | None:
    counts = candidate.get("expected")
    if counts is None:
        return None
    numbers = isinstance(counts, list) and len(counts) in (2, 5) and {*map(type, counts)} <= {float, int}
    if not numbers or not all(0 <= count < math.inf for count in counts):
        raise InputError(
            f'candidate {number}: "expected" is {json.dumps(counts)}, not the numbers of minor and of major error '
            "spans that the model expected, such as [0.8, 0.1], with or without those in the source, the words, and "
            "their surprisal behind them"
        )
    minor, major, *measured = counts
    missing, words, surprisal = measured or (0.0, 0, 0.0)
    return ExpectedSpans(float(minor), float(major), float(missing), int(words), float(surprisal))


def _severities(values: object) -> list[Severity]:
    folded = (
        [fold_severity(one) if isinstance(one, str) else None for one in values] if isinstance(values, list) else [None]
    )
    if None in folded:
        raise InputError('"unplaced" is the list of the severities of omissions without a place')
    return cast("list[Severity]", folded)


def _decision(value: object) -> Mapping[str, str] | None:
    if value is None or (isinstance(value, dict) and set(map(type, value.values())) <= {str}):
        return value
    raise InputError('"decision" is an object of options and their values, such as {"rule": "mbr"}')


def _format(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise InputError(f'"format" is {_kind(name)}; give the name of an answer format')
    try:
        return get_format(name).name
    except OptionError as error:
        raise InputError(f'"format": {error}') from None


def _identifier(value: Mapping[str, Any]) -> str:
    identifier = value.get("id")
    if isinstance(identifier, str) or type(identifier) is int:
        return str(identifier)
    raise InputError(_wrong(value, "id", "a string or a whole number"))


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    if not isinstance(text, str):
        raise InputError(_wrong(value, key, "a string"))
    return text


def _wrong(value: Mapping[str, Any], key: str, wanted: str) -> str:
    return f'"{key}" is {_kind(value[key])}, not {wanted}' if key in value else f'no "{key}"; give {wanted}'


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
