"""Files of ``comet-score --to_json``: for each system a list of objects with src, mt, COMET and, of some, errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.core.annotation import Annotation, Point, fold_severity, mqm_score, unit_score
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import short_names
from mbr_esd_metric.files.records import SegmentKey
from mbr_esd_metric.files.untrusted import finite, read_json, reading


@dataclass(frozen=True, slots=True)
class CometRow:
    """One translation of the file.

    Attributes:
        place: system, by `paths.short_names` of its file, source and translation.
        id: of the segment in its system: its number from 1, or what the file calls it.
        annotation: error spans, with every repeat; an error without characters is one of its points. None where the
            row has no list of errors, or a translation was left out.
        score: the row's, or that of its spans, (25 + Score(E)) / 25; None without either.
        mqm: the MQM score beside it, in [-25, 0], if there is one.
        model: that wrote the row, where it says so.
        parts: the sentences that were judged one by one, with scores in [0, 1]; () where it was judged at once.
    """

    place: SegmentKey
    id: str
    annotation: Annotation | None
    score: float | None
    mqm: float | None = None
    data_warning: str | None = None
    reference: bool = False
    parts: tuple[ScoredPart, ...] = ()
    model: str | None = None


def read_comet_json(path: Path) -> list[CometRow]:
    """Every translation of a file. A segment without a list of errors has a score alone."""
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
            place = SegmentKey(system, str(row.get("src", "")), row["mt"])
            warning, model = (None if row.get(key) is None else str(row[key]) for key in ("data_warning", "model"))
            name, reference = str(row.get("id", number)), bool(row.get("ref"))
            result.append(CometRow(place, name, annotation, score, mqm, warning, reference, parts, model))
    return result


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
