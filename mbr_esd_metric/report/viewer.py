"""The viewer: one self-contained HTML file with its data, style sheet and script.

The content security policy of the page allows only the style sheet and the script with the given hashes, and no
connections, whatever the data contain.

The data are stored by column, as gzipped JSON in base64, which cannot contain a closing script tag. Offsets are in code
points; the script converts them to UTF-16 code units for display. Numbers are written in full precision, so that the
page computes the same values as Python.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.annotation import weights_of
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Comparability, comparability
from mbr_esd_metric.messages import encodable
from mbr_esd_metric.metric.cards import limits
from mbr_esd_metric.report.inputs import AnnotationCount, CandidateInput, JudgedColumn, JudgedTable


def render_page(table: JudgedTable, title: str) -> str:
    """The report as one self-contained HTML document."""
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


#: The files of the script, in the order in which they are concatenated into one function.
_SCRIPTS = ("measures.js", "data.js", "segments.js", "overview.js", "page.js")


def _asset(name: str) -> str:
    return (files("mbr_esd_metric.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def payload(table: JudgedTable) -> dict[str, Any]:
    """The data of the page as plain lists. Texts are made `encodable`: JavaScript would combine two unpaired surrogates
    into one character, which would shift offsets."""
    system_at = {name: at for at, name in enumerate(dict.fromkeys(text.system for text in table.rows))}
    source_at = {source: at for at, source in enumerate(dict.fromkeys(text.source for text in table.rows))}
    categories: dict[str, int] = {"": 0}
    return {
        "weights": asdict(weights_of("paper")),
        "systems": [encodable(name) for name in system_at],
        "sources": [encodable(source) for source in source_at],
        "ids": [encodable(text.label) for text in table.rows],
        "system": [system_at[text.system] for text in table.rows],
        "src": [source_at[text.source] for text in table.rows],
        "mt": [encodable(text.translation) for text in table.rows],
        "columns": [
            _column(column, categories) | {"intervals": _intervals(column, table.rows, system_at)}
            for column in table.columns
        ],
        "notes": [encodable(note) for note in _notes(table)],
        "candidates": [_candidates(column) for column in table.candidates],
        "categories": [encodable(category) for category in categories],
    }


def _notes(table: JudgedTable) -> list[str]:
    """Notes on the scores: per metric, whether they are comparable across systems; and the limits of the models."""
    notes = []
    for column in table.columns:
        found = _comparability(column)
        notes += [f"{column.name}: {found.problem} cannot be compared"] if found.problem else []
        notes += [f"{column.name}: {note}" for note in found.notes]
    ratings = [one for column in table.columns for one in column.judged if one is not None]
    return [*notes, *limits(one.settings.title for one in ratings)]


def _comparability(column: JudgedColumn) -> Comparability:
    """Whether all scores of a metric are from one model with the same settings."""
    return comparability(rating.settings for rating in column.judged if rating is not None and not column.human)


def _intervals(
    column: JudgedColumn, rows: Sequence[Segment], systems: Iterable[str]
) -> list[tuple[float, float] | None]:
    """The 95% confidence interval of each system's mean score, computed as in `mbr-esd compare`; None if a system has
    fewer than two scores or the scores are not comparable."""
    from mbr_esd_metric.metaeval.comparison import SampledScore, mean_score

    scores: dict[str, list[SampledScore]] = {system: [] for system in systems}
    for text, rating in zip(rows, column.judged, strict=True):
        if rating is not None and rating.score is not None:
            scores[text.system].append(SampledScore(rating.score, 0.0))
    comparable = _comparability(column).problem is None
    return [mean_score(each).interval if comparable and len(each) > 1 else None for each in scores.values()]


def encode_payload(data: dict[str, Any]) -> str:
    """`data` as base64 of gzipped JSON; deterministic."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("ascii"), compresslevel=6, mtime=0)).decode("ascii")


#: The fields of a span, in order.
_SPAN = ("start", "length", "major", "category", "confidence", "source")


def _column(column: JudgedColumn, categories: dict[str, int]) -> dict[str, Any]:
    """The data of a metric or a rater; optional keys without a value are omitted."""
    count: list[int | None] = []
    spans: list[tuple[Any, ...]] = []
    names = ("parts", "instead", "corrected", "unsure", "estimated", "warning")
    optional: dict[str, dict[int, Any]] = {name: {} for name in names}
    for row, rating in enumerate(column.judged):
        if rating is None or rating.annotation is None:
            count.append(None)
            continue
        before = len(spans)
        for one in rating.annotation:
            if one.correction is not None:
                optional["instead"][len(spans)] = [
                    encodable(one.correction),
                    encodable(one.reason or ""),
                    one.agreement,
                ]
            category = categories.setdefault(one.category or "", len(categories))
            place = one.start, one.end - one.start
            spans.append((*place, int(one.severity == "major"), category, one.confidence, int(one.side == "source")))
        for severity in rating.annotation.unplaced:  # written as an empty span of the source
            category = categories.setdefault("omission", len(categories))
            spans.append((0, 0, int(severity == "major"), category, None, 1))
        count.append(len(spans) - before)
        if rating.data_warning is not None:
            optional["warning"][row] = encodable(rating.data_warning)
        if rating.estimated:
            optional["estimated"][row] = 1
        if rating.unsure:
            optional["unsure"][row] = UNSURE
        if rating.parts:
            optional["parts"][row] = [(one.start, one.end, one.score) for one in rating.parts]
        if runs := rating.corrections:
            optional["corrected"][row] = [(sign, encodable(run)) for sign, run in runs]
    own = [rating and rating.input_score for rating in column.judged]
    mqm = [rating and rating.stored_mqm for rating in column.judged]
    return {
        "name": encodable(column.name),
        "human": column.human,
        "count": count,
        **{name: values for name, values in optional.items() if values},
        "own": own if any(score is not None for score in own) else None,
        "mqm": mqm if any(score is not None for score in mqm) else None,
        **{name: [span[at] for span in spans] for at, name in enumerate(_SPAN)},
    }


def _candidates(column: CandidateInput) -> dict[str, Any]:
    each, counts = column.distributions, {"n": "valid", "distinct": "distinct", "invalid": "invalid"}
    return {
        "name": encodable(column.name),
        **{name: [getattr(d, of) if d else 0 for d in each] for name, of in counts.items()},
        "runs": [list(d.runs) if d else [] for d in each],
        "top": [[_counted(one) for one in d.annotations] if d else [] for d in each],
    }


def _counted(one: AnnotationCount) -> list[Any]:
    sides = [one.annotation.on("translation"), one.annotation.on("source")]
    spans = [[(s.start, s.end - s.start, int(s.severity == "major")) for s in side] for side in sides]
    return [one.count, one.logprob, *(spans if spans[1] else spans[:1])]
