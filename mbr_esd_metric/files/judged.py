"""Judged segments: translations with the annotation and score of a model or person, and their JSON format.

The output of `score --to_json`, like that of ``comet-score --to_json``, is one object; systems are named by file::

    {"mt.txt": [{"id", "line"?, "src", "mt", "ref"?, "COMET", "model", "signature", "corrected"?, "mqm"?,
                 "errors"?: [{"text", "confidence", "severity", "start", "end", "category", ...}], "refused"?,
                 "unsure"?, "data_warning"?, "omissions"?, "sentences"?, "error_free"?}, ...]}

"COMET" is the score, null for a skipped translation; "errors" is absent for a metric without error spans. Decisions of
`decide` do not contain the texts; see `records.read_decided`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from mbr_esd_metric.core.annotation import (
    EMPTY,
    Annotation,
    ErrorSpan,
    Point,
    Side,
    fold_severity,
    mqm_score,
    unit_score,
    weights_of,
)
from mbr_esd_metric.core.decision import Decision, ScoredPart
from mbr_esd_metric.core.segment import MARK, Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import short_names
from mbr_esd_metric.files.streams import json_text, write_whole
from mbr_esd_metric.files.untrusted import finite, read_json, reading
from mbr_esd_metric.messages import printable
from mbr_esd_metric.prompting.pieces import pieces
from mbr_esd_metric.prompting.text import is_untranslated


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a segment: its file, its id in the file (or its number from 1), and its line if known."""

    file: str
    id: str
    line: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return f"{self.file}, segment {self.id}"
        return f"{self.file}, {'' if self.id == str(self.line) else f'unit {self.id}, '}line {self.line}"


@dataclass(frozen=True, slots=True)
class JudgedSegment:
    """A translation, with the annotation and score of a model or person.

    Attributes:
        annotation: its error spans; None if there is only a score, or the translation was skipped.
        input_score: the given score; higher is better. Scores of our models and COMET's are in [0, 1].
        input_mqm: the given MQM score, in [-25, 0].
        place: the location of the translation, with empty names if it is not from a file.
        settings: model and signature, if known.
        data_warning: the data warning of the pair, such as "equal to its source".
        parts: the sentences, with scores in [0, 1], if they were annotated separately; otherwise ().
        corrected: the corrected translation; None if the model does not correct.
        marks_source: whether the model marks omissions in the source.
        unsure: as in `Decision`.
        refused: the message of a server that rejected the request.
        reference: the reference that the metric used.
        error_free: whether it was classified as error-free; None if no classifier was applied.
        raw_errors: the error spans returned by a COMET checkpoint, which are written unchanged.
    """

    segment: Segment
    annotation: Annotation | None
    input_score: float | None = None
    input_mqm: float | None = None
    place: Place = Place("", "")
    settings: Settings = Settings()
    data_warning: str | None = None
    parts: tuple[ScoredPart, ...] = ()
    corrected: str | None = None
    marks_source: bool = False
    unsure: bool = False
    refused: str | None = None
    reference: str | None = None
    error_free: bool | None = None
    raw_errors: Sequence[Mapping[str, Any]] | None = None

    @classmethod
    def of_decision(cls, segment: Segment, decision: Decision, **others: Any) -> JudgedSegment:
        """The segment with its decision, without a score if the translation was skipped; `others` are further
        fields."""
        values: dict[str, Any] = {"parts": decision.parts, "unsure": decision.unsure, **others}
        if math.isnan(decision.score):
            return cls(segment, None, **values)
        return cls(segment, decision.annotation, decision.score, decision.mqm, **values)

    @property
    def errors(self) -> Annotation:
        """The error spans; a skipped translation has none."""
        return EMPTY if self.annotation is None else self.annotation

    @property
    def name(self) -> str:
        """The id of the segment in its file."""
        return self.place.id or self.segment.label

    @property
    def score_or_nan(self) -> float:
        """The given score; NaN if there is none."""
        return math.nan if self.input_score is None else self.input_score

    def words(self, span: ErrorSpan) -> str:
        """The text of an error span."""
        return span.text_in(self.segment.source, self.segment.translation)

    def spans_json(self, side: Side = "translation") -> list[dict[str, Any]]:
        """The error spans of a text in xCOMET's format: text, confidence, severity, start and end; then the category,
        and correction, reason and agreement if the model corrects."""
        return [span_json(span, self.words(span)) for span in self.errors.on(side)]

    def to_json(self) -> dict[str, Any]:
        """The object in a file."""
        segment, left_out = self.segment, self.annotation is None and self.input_score is None
        texts = {"src": segment.source, "mt": segment.translation, "ref": self.reference}
        origin = {"model": self.settings.model, "signature": self.settings.signature and str(self.settings.signature)}
        row: dict[str, Any] = {"id": self.place.id or None, "line": self.place.line}
        row = {key: one for key, one in {**row, **texts}.items() if one is not None} | {"COMET": self.input_score}
        row |= {key: one for key, one in {**origin, "corrected": self.corrected}.items() if one is not None}
        if self.input_mqm is not None or left_out:
            row["mqm"] = self.input_mqm
        if self.annotation is not None or left_out:
            row["errors"] = self.spans_json() if self.raw_errors is None else self.raw_errors
        some = {"refused": self.refused, "unsure": self.unsure, "data_warning": self.data_warning}
        row |= {key: one for key, one in some.items() if one}
        if self.marks_source:
            row["omissions"] = self.spans_json("source")
        if self.parts:
            row["sentences"] = [asdict(part) for part in self.parts]
        return row if self.error_free is None else row | {"error_free": self.error_free}

    @classmethod
    def from_json(cls, row: Mapping[str, Any], number: int, file: str, system: str, path: Path) -> JudgedSegment:
        """The segment of an object, the `number`-th of its system. The score defaults to that of its spans, (25 +
        Score(E)) / 25. An error without characters becomes a point. Raises the exceptions that `untrusted.reading`
        handles."""
        score, mqm = (None if row.get(key) is None else finite(row[key]) for key in ("COMET", "mqm"))
        annotation = None
        if "errors" in row and (row["errors"] or row.get("COMET", 0) is not None):
            annotation = annotation_of(row["errors"], row.get("omissions", ()))
        if score is None and annotation is not None:
            mqm = mqm_score(annotation.with_spans(annotation))  # a span given twice counts once
            score = unit_score(mqm)
        parts = tuple(ScoredPart(one["start"], one["end"], finite(one["score"])) for one in row.get("sentences") or ())
        texts = ("id", "model", "signature", "data_warning", "corrected", "refused", "ref")
        words = {key: None if row.get(key) is None else str(row[key]) for key in texts}
        place = Place(file, words["id"] or str(number), row["line"] if isinstance(row.get("line"), int) else None)
        signature = Signature.parse(words["signature"]) if words["signature"] else None
        return cls(
            Segment(str(row.get("src", "")), row["mt"], place.id, system),
            annotation,
            score,
            mqm,
            place,
            Settings(words["model"], signature, str(path)),
            parts=parts,
            marks_source="omissions" in row,
            unsure=row.get("unsure") is True,
            error_free=row["error_free"] if isinstance(row.get("error_free"), bool) else None,
            reference=words["ref"] or None,
            data_warning=words["data_warning"],
            corrected=words["corrected"],
            refused=words["refused"],
        )

    def of(self, segment: Segment) -> JudgedSegment:
        """The rating applied to a segment whose texts may differ by a byte order mark: offsets are shifted. Otherwise
        unchanged."""
        moves = {
            "translation": segment.translation.startswith(MARK) - self.segment.translation.startswith(MARK),
            "source": segment.source.startswith(MARK) - self.segment.source.startswith(MARK),
        }
        if not any(moves.values()) or segment.compared_texts != self.segment.compared_texts:
            return self
        annotation, along = self.annotation, moves["translation"]
        if annotation is not None:
            moved = [(span, max(span.start + moves[span.side], 0), span.end + moves[span.side]) for span in annotation]
            points = [(max(at + along, 0), severity) for at, severity in annotation.points]
            spans = [replace(span, start=start, end=end) for span, start, end in moved if start < end]
            annotation = annotation.with_spans(spans).with_points(points)
        parts = tuple(replace(one, start=max(one.start + along, 0), end=one.end + along) for one in self.parts)
        return replace(self, segment=segment, annotation=annotation, parts=parts)

    @property
    def corrections(self) -> list[tuple[str, str]]:
        """The word diff of the translation and the corrected translation: runs of common words ("="), deleted words
        ("-") and inserted words ("+"); empty if no span has a correction."""
        if self.annotation is None or all(span.correction is None for span in self.annotation):
            return []
        from mbr_esd_metric.core.corrections import corrected  # imports numpy

        old, new = _pieces(self.segment.translation), _pieces(corrected(self.segment.translation, self.annotation))
        runs: list[tuple[str, str]] = []
        for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            some = (("=", old[i:j]),) if kind == "equal" else (("-", old[i:j]), ("+", new[k:m]))
            runs += [(sign, "".join(words)) for sign, words in some if words]
        return runs

    @property
    def blank(self) -> bool:
        """Whether the translation is blank and the source is not."""
        return is_untranslated(self.segment.source, self.segment.translation)

    @property
    def stored_mqm(self) -> float | None:
        """The MQM score that is not derived from spans: the given one, or the lowest one for a blank translation with
        score 0, which has no characters to mark."""
        lowest = self.input_score == 0 and self.blank and not self.annotation
        return weights_of("paper").floor if self.input_mqm is None and lowest else self.input_mqm

    @property
    def mqm(self) -> float | None:
        """The given MQM score, or that of its spans; None without both."""
        if self.stored_mqm is not None:
            return self.stored_mqm
        return None if self.annotation is None else mqm_score(self.annotation)

    @property
    def estimated(self) -> bool:
        """Whether the MQM score differs from that of the spans, because it is stated by the model or a mean over
        candidates; False for scores of separately annotated sentences and for blank translations."""
        if self.input_mqm is None or self.annotation is None or self.parts or self.blank:
            return False
        readings = self.annotation, self.annotation.with_spans(self.annotation)  # a span given twice counts once
        scores = [mqm_score(spans, name) for spans in readings for name in ("paper", "google")]
        return all(abs(self.input_mqm - score) > 1e-6 for score in scores)

    @property
    def score(self) -> float | None:
        """The given score, or that of its spans, in [0, 1]; None without both."""
        if self.input_score is not None:
            return self.input_score
        return None if self.mqm is None else unit_score(self.mqm)


def span_json(span: ErrorSpan, words: str) -> dict[str, Any]:
    """The JSON object of an error span with its text. The category is text of the model, which COMET prints and writes
    unchanged, so characters that UTF-8 cannot encode are removed here."""
    return {
        "text": words,
        "confidence": span.confidence,
        "severity": span.severity,
        "start": span.start,
        "end": span.end,
        "category": span.category and printable(span.category),
        **span.correction_fields,
    }


def write_judged(path: str | Path, systems: Mapping[str, Iterable[JudgedSegment]]) -> None:
    """Write the segments of each system, by file, atomically."""
    write_whole(path, json_text({file: [one.to_json() for one in rows] for file, rows in systems.items()}, indent=4))


def read_judged(path: Path) -> list[JudgedSegment]:
    """The segments in an output of `score` or ``comet-score``, system by system; systems get the `paths.short_names` of
    their files. Raises `InputError` with file, system and segment."""
    data = read_json(path)
    if not isinstance(data, Mapping) or not all(isinstance(rows, list) for rows in data.values()):
        raise InputError(f"{path}: give a file of comet-score --to_json, an object with a list of segments a system")
    judged = []
    for system, (file, rows) in zip(short_names(data), data.items(), strict=True):
        for number, row in enumerate(rows, 1):
            where = f"{path}, system {file}, segment {number}"
            if not isinstance(row, Mapping) or not isinstance(row.get("mt"), str):
                raise InputError(f"{where}: give an object with src, mt and COMET")
            with reading(where):
                judged.append(JudgedSegment.from_json(row, number, file, system, path))
    return judged


def annotation_of(errors: Any, omissions: Any = ()) -> Annotation:
    """The annotation from JSON objects of error spans and omissions; an error without characters becomes a point."""
    spans: list[Any] = [{**one, "side": "source"} for one in omissions or ()]
    points: list[Point] = []
    for error in errors or ():
        severity = fold_severity(str(error.get("severity"))) if isinstance(error, Mapping) else None
        if severity is not None and isinstance(error.get("start"), int) and error["start"] == error.get("end"):
            points.append((error["start"], severity))
        else:
            spans.append(error)
    return Annotation.of_rater(spans).with_points(points)


def _pieces(text: str) -> list[str]:
    """The tokens of a text: words, punctuation and white space; numbers such as 4.500 are one token."""
    parts = re.split(r"(\d+(?:[.,]\d+)+)", text)
    return [piece for i, part in enumerate(parts) for piece in ([part] if i % 2 else pieces(part))]
