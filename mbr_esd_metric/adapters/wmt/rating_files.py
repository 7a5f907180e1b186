"""Files of error spans in mt-metrics-eval's layout: people's and metrics', a JSON object for each translation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.mqm_tsv import MqmError
from mbr_esd_metric.adapters.wmt.layout import write_lines
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan, Point, Severity, Side, fold_severity
from mbr_esd_metric.elicit.parse import is_omission
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.files.untrusted import decoded


@dataclass(frozen=True, slots=True)
class Rating:
    """The stored error spans of one translation, and who marked them.

    Attributes:
        annotation: the target side's spans, major and minor; a stored score in [0, 1] is a span's confidence. Errors
            without characters are its points.
        rater: None if the line names nobody; the name of the file then tells.
        omissions: spans of the source's side that say what the translation leaves out: those whose category says so, as
            others are errors of the source itself. Omissions without a place are its `unplaced`.
    """

    annotation: Annotation
    rater: str | None
    omissions: Annotation = EMPTY

    @property
    def both(self) -> Annotation:
        """Annotation and omissions in one."""
        return self.annotation.with_omissions(self.omissions)


def read_ratings(path: Path) -> dict[str, list[tuple[int, Rating | None]]]:
    """System -> (line, rating) of each of its entries, in order; None if a segment is unrated.

    Spans that are repeated are kept.

    Raises:
        InputError: a line that is not a system, a rating and perhaps a rater, separated by tabs; names the line.
    """
    ratings: dict[str, list[tuple[int, Rating | None]]] = {}
    for number, line in numbered_lines(path):
        cells = line.strip().split("\t")
        if len(cells) not in (2, 3):
            raise InputError(f"{path}, line {number}: {len(cells)} columns; give system, rating and perhaps rater")
        rater = cells[2] if len(cells) == 3 else None
        try:
            rating = None if cells[1] == "None" else _rating(cells[1], rater)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, InputError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}, line {number}: not a rating in JSON ({reason})") from None
        ratings.setdefault(cells[0], []).append((number, rating))
    return ratings


def write_ratings(
    path: Path,
    ratings: Mapping[str, Sequence[Annotation | Sequence[MqmError] | None]],
    raters: Mapping[str, Sequence[str | None]],
) -> None:
    """Write a block of ratings for each system, sorted by name.

    Args:
        path: the file.
        ratings: system -> for each segment an annotation of both sides, or the errors that a rater marked (errors
            without a place are left out, because the format cannot hold them; but an omission without a place is an
            empty span of the source), or None if unrated.
        raters: system -> who rated each segment.
    """
    lines = []
    for system in sorted(ratings):
        for rating, rater in zip(ratings[system], raters[system], strict=True):
            if rating is None:
                lines.append(f"{system}\tNone")
                continue
            errors = [_error(error) for error in rating if _has_place(error)]
            if isinstance(rating, Annotation):
                errors += [_error(MqmError(severity, "", "target", at, at)) for at, severity in rating.points]
                errors += [_error(MqmError(severity, "omission", "source")) for severity in rating.unplaced]
            content = json.dumps({"errors": errors})
            lines.append(f"{system}\t{content}" + (f"\t{rater}" if rater else ""))
    write_lines(path, lines)


def _has_place(error: ErrorSpan | MqmError) -> bool:
    return isinstance(error, ErrorSpan) or error.side is not None


def _error(error: ErrorSpan | MqmError) -> dict[str, Any]:
    confidence = error.confidence if isinstance(error, ErrorSpan) else None
    return {
        "start": error.start,
        "end": error.end,
        "category": _named_omission(error) if isinstance(error, ErrorSpan) else error.category,
        "severity": error.severity,
        # The toolkit takes no whole number where it expects a float.
        "score": None if confidence is None else float(confidence),
        "is_source_error": error.side == "source",
    }


def _named_omission(span: ErrorSpan) -> str | None:
    """A span's category, which says of one in the source that it is no error of the source."""
    if span.side == "translation" or is_omission(span.category):
        return span.category
    return f"{span.category}/omission" if span.category else "omission"


def _rating(text: str, rater: str | None) -> Rating:
    """A stored rating; a score in [0, 1] is a span's confidence."""
    spans: list[ErrorSpan] = []
    points: list[Point] = []
    unplaced: list[Severity] = []
    for error in decoded(text)["errors"]:
        severity, category = fold_severity(error.get("severity") or ""), error.get("category")
        side: Side = "source" if error.get("is_source_error", False) else "translation"
        if severity is None or (side == "source" and not is_omission(category)):
            continue
        if error["start"] == error["end"]:
            if side == "source":
                unplaced.append(severity)
            else:
                points.append((int(error["start"]), severity))
            continue
        score = error.get("score")
        confidence = float(score) if score is not None and 0 <= score <= 1 else None
        spans.append(ErrorSpan(error["start"], error["end"], severity, category, confidence, side))
    both = Annotation.of_rater(spans)
    return Rating(both.on("translation").pointing(points), rater, both.on("source").missing(unplaced))
