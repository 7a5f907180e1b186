"""What `mbr-esd score` writes beside scores and JSON: marked files, errors, the gate, shares without error."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.cli.score_inputs import Texts
from mbr_esd_metric.cli.shared_options import Check, close_gate
from mbr_esd_metric.core.annotation import CORRECTION, Annotation
from mbr_esd_metric.errors import logger, number_of, printable
from mbr_esd_metric.metric.cards import limits
from mbr_esd_metric.prompting.text import is_blank
from mbr_esd_metric.report.tables import Column, Table, TableRow, table_of

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.error_free import ErrorFreeModel

#: Scores are rounded; one at the limit passes, as equal ones do in `compare`.
_TOLERANCE = 1e-6
#: What a summary shows of errors, and of how many.
_SHOWN = ("text", "severity", "category", "correction", "reason")
_MOST = 50

#: A segment as it is written: src, mt, COMET, and errors and omissions where there are any.
WrittenSegment = Mapping[str, Any]


def write_errors_of(
    texts: Texts, data: Mapping[str, Sequence[WrittenSegment]], table: str | None, output: str | None
) -> str:
    """Write one error a row, and the translator's file with its errors; returns what there is to say of it."""
    if table:
        from mbr_esd_metric.adapters.documents.table import write_errors

        errors = list(_errors(texts, data))
        more = [name for name in CORRECTION if any(name in error for *_, error in errors)]
        names = ("severity", "category", "side", "start", "end", "text", "confidence")
        rows = []
        for path, name, row, error in errors:
            cells = [*map(error.get, names), row["src"], row["mt"], *map(error.get, more)]
            plain = ("" if one is None else round(one, 6) if isinstance(one, float) else one for one in cells)
            rows.append([printable(path), name, *plain])
        write_errors(table, rows, more)
    if texts.document is None or not output:
        return ""
    from mbr_esd_metric.adapters.documents import Checked

    [segments] = data.values()
    checked = [None if "refused" in row else Checked(Annotation(errors_of(row)), row["COMET"]) for row in segments]
    texts.document.mark(checked, Path(output))
    return f"{output}: {number_of(sum(len(one.annotation) for one in checked if one), 'error')} marked"


def _errors(
    texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]
) -> Iterator[tuple[str, str, WrittenSegment, dict[str, Any]]]:
    """Each error, behind its system, the name of its segment, and the segment."""
    for path, rows in data.items():
        for name, row in zip(texts.ids, rows, strict=True):
            for error in errors_of(row):
                yield path, name, row, error


def error_table(texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]) -> Table:
    """The first errors for people; texts stand as code, as nobody vouches for them."""
    rows: list[TableRow] = []
    for path, name, _, error in _errors(texts, data):
        shown = ({"system": path} if len(data) > 1 else {}) | {"segment": name}
        shown |= {key: text for key in _SHOWN if (text := error.get(key)) is not None}
        rows.append({Column(key, key): _as_code(text) for key, text in shown.items()})
    notes = [f"and {number_of(len(rows) - _MOST, 'error')} more"] if len(rows) > _MOST else []
    return table_of("errors", rows[:_MOST], notes)


def _as_code(text: str) -> str:
    """A text as Markdown shows it letter by letter; an empty one, which deletes what it corrects, as a dash."""
    return f"`{printable(text).replace('`', chr(39))}`" if text else "\N{EM DASH}"


def errors_of(row: WrittenSegment) -> list[dict[str, Any]]:
    """The errors of both sides."""
    omissions = ({**error, "side": "source"} for error in row.get("omissions") or ())
    return [*({"side": "translation", **error} for error in row.get("errors") or ()), *omissions]


def error_free_shares(
    model: ErrorFreeModel, data: Mapping[str, Sequence[dict[str, Any]]], lp: str | None
) -> dict[str, float]:
    """The share of segments without error of each system; rows get "error_free". A blank translation is not."""
    from mbr_esd_metric.metaeval.error_free import ScoredTranslation

    shares = {}
    for system, rows in data.items():
        scored, judged = [], []
        for row in rows:
            row["error_free"] = False
            if not is_blank(row["mt"]) and not math.isnan(row["COMET"]):
                annotation = Annotation(errors_of(row)) if "errors" in row else None
                scored.append(row)
                judged.append(ScoredTranslation(row["COMET"], annotation, len(row["mt"]), lp or ""))
        for row, clean in zip(scored, model.clean(judged).tolist() if scored else (), strict=True):
            row["error_free"] = clean
        shares[system] = sum(row["error_free"] for row in rows) / max(1, len(rows))
    return shares


def close_score_gate(
    args: argparse.Namespace,
    texts: Texts,
    judged: Mapping[str, Sequence[dict[str, Any]]],
    scores: Mapping[str, float],
    shares: Mapping[str, float],
    warning: str | None,
) -> int:
    """Write summary and JUnit XML of the systems' scores, and return the exit status."""
    checks = [
        check(path, values[path], least, wording, sum("refused" in row for row in rows))
        for values, least, wording in (
            (scores, args.fail_under, " scores {:.4f}"),
            (shares, args.fail_share, ": {:.4f} of the segments are without error"),
        )
        if least is not None
        for path, rows in judged.items()
    ]
    notes = [texts.changed] if texts.changed else []
    if checks:  # what the model can decide
        decides = limits(row["model"] for rows in judged.values() for row in rows)
        for decided in decides:
            logger.warning(decided)
        notes += decides
    elif not judged and (args.fail_under is not None or args.fail_share is not None):
        checks = [Check(f"{args.document}: {texts.changed}", None)]
    rows = [_system_row(path, segments, scores[path]) for path, segments in judged.items()]
    errors = error_table(texts, judged)
    return close_gate(
        args, "score", [table_of("scores", rows, notes), *([errors] if errors.rows else [])], checks, warning
    )


def check(name: str, value: float, least: float, wording: str, refused: int = 0) -> Check:
    """Whether a value is at least so high; the `wording` of the value follows the name. NaN does not pass, nor a system
    with segments that a server refused."""
    if refused:
        return Check(name, f"{name}: {number_of(refused, 'segment')} without a score")
    return Check(name, None if value >= least - _TOLERANCE else f"{name}{wording.format(value)}, less than {least:g}")


def _system_row(path: str, segments: Sequence[WrittenSegment], score: float) -> TableRow:
    """A system's score, and its error spans."""
    severities = [error["severity"] for row in segments for error in row.get("errors", ())]
    row: dict[Column, Any] = {
        Column("system", "system"): path,
        Column("segments", "segments"): len(segments),
        Column("score", "score", digits=4): score,
        Column("major", "major spans"): severities.count("major"),
        Column("minor", "minor spans"): severities.count("minor"),
    }
    if any("omissions" in one for one in segments):
        row[Column("omissions", "omitted")] = sum(len(one.get("omissions") or ()) for one in segments)
    return row
