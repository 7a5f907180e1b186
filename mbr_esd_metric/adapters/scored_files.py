"""What a metric wrote for each translation: files of ``comet-score --to_json``, and decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from mbr_esd_metric.core.annotation import Annotation, Point, fold_severity, mqm_score, unit_score, weights_of
from mbr_esd_metric.core.corrections import corrected
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import short_names
from mbr_esd_metric.files.records import DecisionRecord, compared_texts, read_decisions
from mbr_esd_metric.files.streams import MARK
from mbr_esd_metric.files.untrusted import finite, read_json, reading
from mbr_esd_metric.prompting.pieces import pieces
from mbr_esd_metric.prompting.text import is_untranslated


@dataclass(frozen=True, slots=True)
class SegmentRating:
    """The rating of one translation by an input.

    Attributes:
        annotation: its error spans; None if the input has only a score, or left the translation out.
        input_score: the score that came with it; higher is better. Our models and COMET's give one in [0, 1].
        input_mqm: the MQM score that came with it, in [-25, 0].
        data_warning: what the pair was warned of, such as "equal to its source".
        parts: the sentences that were judged one by one, with scores in [0, 1]; () where it was judged at once.
        reference: whether the metric had a reference.
        unsure: as in `Decision`.
        settings: model and signature, where the row has them.
        file, line: where the translation stands, as the row and its system say; "" and None where they do not.
    """

    segment: Segment
    annotation: Annotation | None
    input_score: float | None = None
    input_mqm: float | None = None
    data_warning: str | None = None
    parts: tuple[ScoredPart, ...] = ()
    reference: bool = False
    unsure: bool = False
    settings: Settings = Settings()
    file: str = ""
    line: int | None = None

    def of(self, segment: Segment) -> SegmentRating:
        """The rating of a segment whose texts have a byte order mark that those of the rating lack, or the other way
        round: what has a place is moved. Of any other segment the same rating."""
        moves = {
            "translation": segment.translation.startswith(MARK) - self.segment.translation.startswith(MARK),
            "source": segment.source.startswith(MARK) - self.segment.source.startswith(MARK),
        }
        if not any(moves.values()) or compared_texts(segment) != compared_texts(self.segment):
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
        """The words of the translation and of the corrected one in their order, as runs: "=" of both, "-" of the
        translation alone, "+" of the corrected one alone; none where no span has a correction."""
        if self.annotation is None or all(span.correction is None for span in self.annotation):
            return []
        old, new = _pieces(self.segment.translation), _pieces(corrected(self.segment.translation, self.annotation))
        runs: list[tuple[str, str]] = []
        for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            some = (("=", old[i:j]),) if kind == "equal" else (("-", old[i:j]), ("+", new[k:m]))
            runs += [(sign, "".join(words)) for sign, words in some if words]
        return runs

    @property
    def blank(self) -> bool:
        """Whether nothing is translated although there is something to translate."""
        return is_untranslated(self.segment.source, self.segment.translation)

    @property
    def stored_mqm(self) -> float | None:
        """The MQM score that does not come from spans: the input's own, or the lowest one for a blank translation whose
        score is 0, as it has no character to mark."""
        lowest = self.input_score == 0 and self.blank and not self.annotation
        return weights_of("paper").floor if self.input_mqm is None and lowest else self.input_mqm

    @property
    def mqm(self) -> float | None:
        """The MQM score that came with it, or that of its spans; None without either."""
        if self.stored_mqm is not None:
            return self.stored_mqm
        return None if self.annotation is None else mqm_score(self.annotation)

    @property
    def estimated(self) -> bool:
        """Whether the MQM score is not that of the spans, as where a model states it, or it is a mean over the
        candidates; means over sentences, which are shown one by one, and blank translations aside."""
        if self.input_mqm is None or self.annotation is None or self.parts or self.blank:
            return False
        readings = self.annotation, self.annotation.with_spans(self.annotation)  # a span given twice counts once
        scores = [mqm_score(spans, name) for spans in readings for name in ("paper", "google")]
        return all(abs(self.input_mqm - score) > 1e-6 for score in scores)

    @property
    def score(self) -> float | None:
        """The score that came with it, or that of its spans, in [0, 1]; None without either."""
        if self.input_score is not None:
            return self.input_score
        return None if self.mqm is None else unit_score(self.mqm)


def read_comet_json(path: Path) -> list[SegmentRating]:
    """Every translation of a file with, for each system, a list of objects with src, mt, COMET and, of some, errors;
    the system is named by `paths.short_names` of its file. A row without a score has that of its spans,
    (25 + Score(E)) / 25; no list of errors, or a translation that was left out, is not an annotation. An error without
    characters is a point."""
    data = read_json(path)
    if not isinstance(data, Mapping) or not all(isinstance(rows, list) for rows in data.values()):
        raise InputError(f"{path}: give a file of comet-score --to_json, an object with a list of segments a system")
    names = short_names(data)  # comet-score names a system by its file
    result = []
    for system, (key, rows) in zip(names, data.items(), strict=True):
        for number, row in enumerate(rows, 1):
            where = f"{path}, system {key}, segment {number}"
            if not isinstance(row, Mapping) or not isinstance(row.get("mt"), str):
                raise InputError(f"{where}: give an object with src, mt and COMET")
            with reading(where):
                parts = tuple(
                    ScoredPart(one["start"], one["end"], finite(one["score"])) for one in row.get("sentences") or ()
                )
                score, mqm = (None if row.get(key) is None else finite(row[key]) for key in ("COMET", "mqm"))
                left_out = row.get("COMET", 0) is None and not row.get("errors")
                annotation = None
                if "errors" in row and not left_out:
                    annotation = _annotation(row["errors"], row.get("omissions", ()))
                if score is None and annotation is not None:
                    mqm = mqm_score(annotation.with_spans(annotation))  # a span given twice counts once
                    score = unit_score(mqm)
            text = Segment(str(row.get("src", "")), row["mt"], str(row.get("id", number)), system)
            warning, model, signature = (
                None if row.get(key) is None else str(row[key]) for key in ("data_warning", "model", "signature")
            )
            settings = Settings(model, Signature.parse(signature) if signature else None, str(path))
            reference, unsure = bool(row.get("ref")), row.get("unsure") is True
            line = row["line"] if isinstance(row.get("line"), int) else None
            result.append(
                SegmentRating(text, annotation, score, mqm, warning, parts, reference, unsure, settings, key, line)
            )
    return result


def read_decided(path: Path, texts: Mapping[tuple[str, str], Segment], elsewhere: str) -> list[SegmentRating]:
    """The translations of a file of decisions, which does not repeat them; `texts` has them by system and name.

    Raises:
        InputError: a decision without its translation in `texts`, with the words `elsewhere` that say what to give; or
            with error spans that do not fit it.
    """
    result = []
    for record in read_decisions(path):
        where = f"{path}: segment {record.id}" + (f" of {record.system}" if record.system else "")
        text = texts.get((record.system or "", record.id))
        if text is None:
            raise InputError(f"{where} is in {elsewhere}")
        if misplaced := (marked := _misplaced(record, text)) and _misplaced(record, _unmarked(text)):
            raise InputError(f"{where}: {misplaced}; give the candidates file that the decisions were made from")
        text = _unmarked(text) if marked else text
        settings = Settings(signature=record.signature, file=str(path))
        rating = SegmentRating(
            text, record.annotation, record.score, record.mqm, unsure=record.unsure, settings=settings
        )
        result.append(rating)
    return result


def _unmarked(segment: Segment) -> Segment:
    """The same without byte order marks."""
    source, translation = segment.source.removeprefix(MARK), segment.translation.removeprefix(MARK)
    return replace(segment, source=source, translation=translation)


def _misplaced(record: DecisionRecord, text: Segment) -> str | None:
    """Which error span of a decision does not stand in the text where it says."""
    for span, words in zip(record.annotation, record.texts, strict=True):
        whole = text.translation if span.side == "translation" else text.source
        if words and words != whole[span.start : span.end]:
            return f"the error span {words!r} is not at offset {span.start} of {whole[:60]!r}"
    return None


def _annotation(errors: Any, omissions: Any) -> Annotation:
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
    """The words, marks and white space of a text, with numbers such as 4.500 whole."""
    parts = re.split(r"(\d+(?:[.,]\d+)+)", text)
    return [piece for i, part in enumerate(parts) for piece in ([part] if i % 2 else pieces(part))]
