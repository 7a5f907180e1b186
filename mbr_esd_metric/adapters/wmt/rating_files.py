"""Files of error spans in mt-metrics-eval's layout, people's and metrics', and the spans of a test set in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from mbr_esd_metric.adapters.ratings import MqmError
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


_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Ratings:
    """One set of error spans over the test set: a rater's, several raters' merged, or a metric's.

    Attributes:
        name: such as "mqm.merged", "mqm.rater3" or "XCOMET-src".
        annotations: system -> for each segment its spans, None if it is unrated.
        raters: system -> for each segment who rated it, None if nobody did.
        omissions: system -> for each segment what the translation leaves out of the source, None if it is unrated.
    """

    name: str
    annotations: Mapping[str, tuple[Annotation | None, ...]]
    raters: Mapping[str, tuple[str | None, ...]]
    omissions: Mapping[str, tuple[Annotation | None, ...]] = field(default_factory=dict)

    def of(self, systems: Sequence[str], segments: int) -> list[list[Annotation | None]]:
        """The annotations, systems x segments, in this order; systems without an entry are unrated."""
        unrated: tuple[Annotation | None, ...] = (None,) * segments
        return [list(self.annotations.get(system, unrated)) for system in systems]

    def both_of(self, system: str, segment: int) -> Annotation | None:
        """Annotation and omissions of one translation in one; None if it is unrated."""
        row = self.annotations.get(system)
        annotation = None if row is None else row[segment]
        missing = self.omissions[system][segment] if system in self.omissions else None
        return annotation if annotation is None or missing is None else annotation.with_omissions(missing)

    def omissions_of(self, systems: Sequence[str], segments: int) -> list[list[Annotation | None]]:
        """The omissions in the same form."""
        unrated: tuple[Annotation | None, ...] = (None,) * segments
        return [list(self.omissions.get(system, unrated)) for system in systems]


class RatingsReader:
    """Reads sets of error spans that fit a test set. Those of systems that are not evaluated are not checked.

    Args:
        outputs: every system -> its translations.
        systems: those that are evaluated.
        repeats: whether a note says how many spans repeat others; people mark one place for two reasons.
    """

    def __init__(
        self,
        outputs: Mapping[str, tuple[str | None, ...]],
        systems: Sequence[str],
        *,
        repeats: bool = False,
    ) -> None:
        self._outputs, self._systems, self._repeats = outputs, set(systems), repeats
        self._cut = self._left_out = self._repeated = self._rated = 0

    def read(self, name: str, path: Path) -> Ratings:
        """The set in a file.

        Raises:
            InputError: what `read_ratings` raises, and blocks that do not fit.
        """
        stored = read_ratings(path)
        check_blocks(path, stored, self._outputs, len(next(iter(self._outputs.values()))))
        annotations: dict[str, tuple[Annotation | None, ...]] = {}
        for system, entries in stored.items():
            lengths = [len(text or "") for text in self._outputs[system]]
            annotations[system] = tuple(
                None if rating is None else self._fitted(system, rating, length)
                for (_, rating), length in zip(entries, lengths, strict=True)
            )
        raters = {s: tuple((r.rater or name) if r else None for _, r in entries) for s, entries in stored.items()}
        missing = {s: tuple(r.omissions if r else None for _, r in entries) for s, entries in stored.items()}
        return Ratings(name, annotations, raters, missing)

    def notes(self, whose: str) -> tuple[str, ...]:
        """One line if spans were cut, left out or repeated; otherwise nothing."""
        said = []
        if self._cut:
            said.append(f"{self._cut} end past the translation and are cut there")
        if self._left_out:
            said.append(f"{self._left_out} begin past it or have no characters and are no spans")
        if self._repeats and self._repeated:
            said.append(f"{self._repeated} repeat others; f1-wmt25-corpus and MPP count them, measures of sets do not")
        return (f"error spans of {whose} in {self._rated} translations: {', '.join(said)}",) if said else ()

    def _fitted(self, system: str, rating: Rating, length: int) -> Annotation:
        if system not in self._systems:
            return rating.annotation
        self._rated += 1
        self._left_out += len(rating.annotation.points) + sum(span.start >= length for span in rating.annotation)
        self._repeated += len(rating.annotation) - len(set(rating.annotation.key))
        self._cut += sum(span.start < length < span.end for span in rating.annotation)
        return fitted(rating.annotation, length)


def fitted(annotation: Annotation, length: int) -> Annotation:
    """The spans that begin inside a text of that length, cut at its end.

    A span that begins at the end of the text has no character left, and becomes a point. Spans of the source stay.
    """
    here = annotation.on("translation")
    if all(span.end <= length for span in here) and all(at <= length for at, _ in annotation.points):
        return annotation
    inside = [replace(span, end=min(span.end, length)) for span in here if span.start < length]
    points = [point for point in annotation.points if point[0] <= length]
    points += [(length, span.severity) for span in here if span.start == length]
    cut = Annotation.of_rater([*inside, *annotation.on("source")])
    return cut.pointing(points).missing(annotation.unplaced)


def check_blocks(
    path: Path, blocks: Mapping[str, Sequence[tuple[int, _T]]], outputs: Mapping[str, object], segments: int
) -> None:
    """Check that every block of (line, entry) belongs to a known system and has an entry for each segment."""
    for system, entries in blocks.items():
        where = f"{path}, line {entries[-1][0]}"
        if system not in outputs:
            raise InputError(f"{where}: the folder has no translations of system {system}")
        if len(entries) != segments:
            raise InputError(f"{where}: {len(entries)} entries for system {system}, but {segments} segments")
