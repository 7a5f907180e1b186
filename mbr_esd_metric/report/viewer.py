"""The viewer: one HTML file with its data, style and program. It loads nothing.

The page's content security policy names the hashes of its one style table and one program: the browser runs nothing
else, whatever is in the data, and opens no connection.

The data are columns of numbers, compressed, in an alphabet that cannot end a script: JSON, column by column, then gzip,
then base64. Offsets stay code points; the page turns them into JavaScript's units when it draws. Numbers are written in
full, so that the page computes with exactly the same values as Python.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.annotation import Annotation, weights_of
from mbr_esd_metric.report.rating_table import AnnotationCount, CandidateInput, RatingInput, RatingTable


def render_page(table: RatingTable, title: str) -> str:
    """The page as one self-contained HTML document."""
    style = _asset("viewer.css")
    script = '(() => {\n"use strict";\n' + "\n".join(_asset(name) for name in _SCRIPTS) + "})();\n"
    parts = {
        "title": html.escape(title),
        "version": __version__,
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": encode_payload(payload(table)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda hole: parts[hole[1]], _asset("viewer.html"))


#: The parts of the page's program, in order; together they are one function.
_SCRIPTS = ("measures.js", "data.js", "segments.js", "overview.js", "page.js")


def _asset(name: str) -> str:
    return (files("mbr_esd_metric.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


#: A lone surrogate is no character. Two of them would become one character in JavaScript, and offsets would move.
_LONE = re.compile("[\ud800-\udfff]")


def payload(table: RatingTable) -> dict[str, Any]:
    """The page's data as plain lists."""
    system_at = {name: at for at, name in enumerate(dict.fromkeys(text.system for text in table.rows))}
    source_at = {source: at for at, source in enumerate(dict.fromkeys(text.source for text in table.rows))}
    categories: dict[str, int] = {"": 0}
    return {
        "weights": asdict(weights_of("paper")),
        "systems": [_clean(name) for name in system_at],
        "sources": [_clean(source) for source in source_at],
        "ids": [_clean(text.id) for text in table.rows],
        "system": [system_at[text.system] for text in table.rows],
        "src": [source_at[text.source] for text in table.rows],
        "mt": [_clean(text.translation) for text in table.rows],
        "columns": [_column(column, categories) for column in table.columns],
        "candidates": [_candidates(column) for column in table.candidates],
        "categories": [_clean(category) for category in categories],
    }


def encode_payload(data: dict[str, Any]) -> str:
    """`data` as base64 of gzipped JSON; the same data gives the same text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("ascii"), compresslevel=6, mtime=0)).decode("ascii")


def _clean(text: str) -> str:
    return _LONE.sub("\ufffd", text)


def _column(column: RatingInput, categories: dict[str, int]) -> dict[str, Any]:
    count: list[int | None] = []
    parts = {
        row: [(one.start, one.end, one.score) for one in rating.parts]
        for row, rating in enumerate(column.ratings)
        if rating is not None and rating.parts
    }
    runs = {
        row: [(sign, _clean(run)) for sign, run in rating.corrections]
        for row, rating in enumerate(column.ratings)
        if rating is not None and rating.corrections
    }
    stated = [None if rating is None else rating.input_score for rating in column.ratings]
    mqm = [None if rating is None else rating.stored_mqm for rating in column.ratings]
    spans: list[tuple[Any, ...]] = []
    instead: dict[int, list[Any]] = {}
    for rating in column.ratings:
        if rating is None or rating.annotation is None:
            count.append(None)
            continue
        for at, s in enumerate(rating.annotation, len(spans)):
            if s.correction is not None:
                instead[at] = [_clean(s.correction), _clean(s.reason or ""), s.agreement]
        marks = [(s.start, s.end, s.severity, s.category, s.confidence, s.side) for s in rating.annotation]
        # An omission without a place is an empty span of the source.
        marks += [(0, 0, severity, "omission", None, "source") for severity in rating.annotation.unplaced]
        count.append(len(marks))
        for start, end, severity, category, confidence, side in marks:
            number = categories.setdefault(category or "", len(categories))
            spans.append((start, end - start, int(severity == "major"), number, confidence, int(side == "source")))
    names = ("start", "length", "major", "category", "confidence", "source")
    by_name = {name: [span[at] for span in spans] for at, name in enumerate(names)}
    if not any(by_name["source"]):
        del by_name["source"]
    return {
        "name": _clean(column.name),
        "human": column.human,
        "count": count,
        **({"parts": parts} if parts else {}),
        **({"instead": instead, "corrected": runs} if runs else {}),
        "own": stated if any(score is not None for score in stated) else None,
        "mqm": mqm if any(score is not None for score in mqm) else None,
        **by_name,
    }


def _candidates(column: CandidateInput) -> dict[str, Any]:
    return {
        "name": _clean(column.name),
        "n": [d.valid if d else 0 for d in column.distributions],
        "distinct": [d.distinct if d else 0 for d in column.distributions],
        "invalid": [d.invalid if d else 0 for d in column.distributions],
        "runs": [list(d.runs) if d else [] for d in column.distributions],
        "top": [[_counted(s) for s in d.annotations] if d else [] for d in column.distributions],
    }


def _counted(one: AnnotationCount) -> list[Any]:
    missing = one.annotation.on("source")
    return [one.count, one.logprob, _spans(one.annotation.on("translation")), *([_spans(missing)] if missing else [])]


def _spans(annotation: Annotation) -> Sequence[tuple[int, int, int]]:
    return [(span.start, span.end - span.start, int(span.severity == "major")) for span in annotation]
