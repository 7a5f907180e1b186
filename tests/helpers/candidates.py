"""Candidates as a model writes them, and their records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.files.records import CandidateRecord
from mbr_esd_metric.prompting.formats.json import render_answer


def answer(*words: str | tuple[str, str], severity: str = "major") -> str:
    """The answer, in JSON, that marks these words, each with its own severity where it has one."""
    errors = [(word, severity) if isinstance(word, str) else word for word in words]
    kind = {"category": "accuracy", "sub_category": "mistranslation"}
    return render_answer([{"error_span": word, **kind, "severity": level} for word, level in errors])


def with_segment(record: CandidateRecord, **fields: str) -> CandidateRecord:
    """The record with other fields of its segment, such as its source or translation."""
    return replace(record, segment=replace(record.segment, **fields))


def record(source: str, translation: str, *texts: str, number: object = 1, **more: Any) -> CandidateRecord:
    """The record of these answers, each of log-probability -1; `more` are further fields, or the answers' format."""
    n, form = len(texts), more.pop("format", None)
    columns = CandidateColumns(texts, (-1.0,) * n, (False,) * n, format=form)
    return CandidateRecord(Segment(source, translation, str(number), more.pop("system", "")), columns, **more)
