"""Files of human and metric error spans in mt-metrics-eval's layout, and the span sets of a test set."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.ratings import MqmError, annotation_of_errors
from mbr_esd_metric.adapters.wmt.layout import read_blocks, write_lines
from mbr_esd_metric.core.annotation import Annotation, Side
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.files.untrusted import parse_strict_json
from mbr_esd_metric.messages import number_of
from mbr_esd_metric.prompting.parse import is_omission


def read_ratings(path: Path, outputs: Mapping[str, Sized] | None = None) -> dict[str, list[Annotation | None]]:
    """System -> the annotation of each segment, None if unrated; for `outputs`, see `layout.read_blocks`.

    Annotations have the major and minor errors of both sides, including duplicates. A stored score in [0, 1] is a
    span's confidence. Errors of the translation without characters become points. Errors of the source itself are
    dropped: source-side errors only count if their category is an omission, and are `unplaced` without a position.

    Raises:
        InputError: a line that does not consist of a system, a rating and optionally a rater, separated by tabs (with
            the line).
    """
    return read_blocks(path, _rating, outputs)


def _rating(line: str) -> tuple[str, Annotation | None]:
    cells = line.strip().split("\t")
    if len(cells) not in (2, 3):
        raise InputError(f"{len(cells)} columns; give system, rating and perhaps rater")
    if cells[1] == "None":
        return cells[0], None
    return cells[0], annotation_of_errors(map(_stored, parse_strict_json(cells[1])["errors"]))


def write_ratings(
    path: Path,
    ratings: Mapping[str, Sequence[Annotation | Sequence[MqmError] | None]],
    raters: Mapping[str, Sequence[str | None]] | None = None,
) -> None:
    """Write a block of ratings for each system, sorted by name.

    Args:
        ratings: system -> for each segment an annotation of both sides, or the errors that a rater marked, or None if
            unrated. Errors without a position are dropped, because the format does not support them; omissions without
            a position become empty spans in the source.
        raters: system -> rater of each segment, to be included in the lines.
    """
    lines = []
    for system, row in sorted(ratings.items()):
        for rating, rater in zip(row, raters[system] if raters else [None] * len(row), strict=True):
            errors = _errors(rating) if isinstance(rating, Annotation) else rating
            content = None if errors is None else json.dumps({"errors": [_json(e) for e in errors if e.side]})
            lines.append(f"{system}\t{content}" + (f"\t{rater}" if rater and content else ""))
    write_lines(path, lines)


def _errors(annotation: Annotation) -> list[MqmError]:
    """The errors of an annotation; source-side errors get the category of omissions, to distinguish them from errors of
    the source."""
    errors = []
    for span in annotation:
        category = span.category
        if span.side == "source" and not is_omission(category):
            category = f"{category}/omission" if category else "omission"
        errors.append(MqmError(span.severity, category, span.side, span.start, span.end, span.confidence))
    errors += [MqmError(severity, "", "translation", at, at) for at, severity in annotation.points]
    return errors + [MqmError(severity, "omission", "source") for severity in annotation.unplaced]


def _json(error: MqmError) -> dict[str, Any]:
    return {
        "start": error.start,
        "end": error.end,
        "category": error.category,
        "severity": error.severity,
        # The toolkit requires a float, not an integer.
        "score": None if error.confidence is None else float(error.confidence),
        "is_source_error": error.side == "source",
    }


def _stored(error: Mapping[str, Any]) -> MqmError:
    """The error of an object in a file; errors of the source itself have no position."""
    score, category = error.get("score"), error.get("category")
    confidence = float(score) if score is not None and 0 <= score <= 1 else None
    side: Side | None = "translation"
    if error.get("is_source_error", False):
        side = "source" if is_omission(category) else None
    return MqmError(error.get("severity") or "", category, side, error["start"], error["end"], confidence)


@dataclass(frozen=True, eq=False)
class SpanSet:
    """A set of error spans of the test set: of one rater, such as "mqm.rater3", merged from several raters, or of a
    metric.

    Attributes:
        both: system -> spans of each segment in translation and source, None if unrated.
    """

    name: str
    both: Mapping[str, tuple[Annotation | None, ...]]

    @classmethod
    def fitting(
        cls,
        name: str,
        rows: Mapping[str, Sequence[Annotation | None]],
        outputs: Mapping[str, Sequence[str | None]],
        faults: Counter[str],
        systems: Collection[str] = (),
    ) -> SpanSet:
        """The annotations of each system (or only of `systems`), clipped to its translations; `faults` counts
        repairs."""
        return cls(
            name,
            {
                system: tuple(
                    fit_to_text(annotation, len(text or ""), faults) if system in systems or not systems else annotation
                    for annotation, text in zip(row, outputs[system], strict=True)
                )
                for system, row in rows.items()
            },
        )

    @cached_property
    def annotations(self) -> dict[str, tuple[Annotation | None, ...]]:
        """System -> spans of each segment in the translation."""
        return {s: tuple(None if one is None else one.on("translation") for one in row) for s, row in self.both.items()}

    def both_of(self, system: str, segment: int) -> Annotation | None:
        """The spans of one translation; None if unrated."""
        return self.both[system][segment] if system in self.both else None

    def both_sides(self, systems: Sequence[str], segments: int) -> list[list[Annotation | None]]:
        """The annotations of translations and sources, systems x segments; systems without an entry are unrated."""
        return [list(self.both.get(system, (None,) * segments)) for system in systems]

    def of(self, systems: Sequence[str], segments: int, *, omissions: bool = False) -> list[list[Annotation | None]]:
        """The annotations of the translations, or their omissions in the source, systems x segments; systems without an
        entry are unrated."""
        rows = self.annotations
        if omissions:
            rows = {
                s: tuple(None if one is None else one.on("source").with_unplaced(one.unplaced) for one in row)
                for s, row in self.both.items()
            }
        return [list(rows.get(system, (None,) * segments)) for system in systems]


def choose_ratings(existing: Collection[str], gold: str, names: Sequence[str] = ()) -> list[str]:
    """The names of the gold span sets: the given ones (raises `OptionError` for an unknown one), or else the merged
    set, or else every rater's. If there are several kinds, such as MQM and ESA, those matching the gold scores."""
    for name in names:
        if name not in existing:
            raise unknown("set of human ratings", name, existing)
    merged = f"{gold}.merged"
    if names or merged in existing:
        return list(names) or [merged]
    alike = sorted(name for name in existing if name.startswith((f"{gold}.", f"{gold}-")))
    return alike or sorted(existing)


#: Faults of error spans, as described in a note.
_CUT = "end past the translation and are cut there"
_NO_SPAN = "begin past it or have no characters and are not spans"
_REPEATED = "repeat others; f1-wmt25-corpus and MPP count them, measures of sets do not"


def fit_to_text(annotation: Annotation | None, length: int, faults: Counter[str] | None = None) -> Annotation | None:
    """The spans that start inside a text of this length, clipped at its end; `faults` counts the repairs for
    `fault_note`. A span that starts at the end of the text becomes a point. Source-side spans are unchanged.
    """
    if annotation is None:
        return None
    spans = annotation.on("translation")
    if faults is not None:
        faults["translations"] += 1
        faults[_CUT] += sum(span.start < length < span.end for span in spans)
        faults[_NO_SPAN] += len(spans.points) + sum(span.start >= length for span in spans)
        faults[_REPEATED] += len(spans) - len(spans.key)
    if all(span.end <= length for span in spans) and all(at <= length for at, _ in annotation.points):
        return annotation
    inside = [replace(span, end=min(span.end, length)) for span in spans if span.start < length]
    points = [point for point in annotation.points if point[0] <= length]
    points += [(length, span.severity) for span in spans if span.start == length]
    cut = Annotation.of_rater([*inside, *annotation.on("source")])
    return cut.with_points(points).with_unplaced(annotation.unplaced)


def fault_note(name: str, faults: Counter[str], *, of_people: bool = False) -> tuple[str, ...]:
    """One line about the faults of a set of error spans, if there are any. Human duplicates are not a fault, because
    annotators may mark the same characters for two reasons."""
    kinds = (_CUT, _NO_SPAN) if of_people else (_CUT, _NO_SPAN, _REPEATED)
    notes = ", ".join(f"{faults[kind]} {kind}" for kind in kinds if faults[kind])
    return (f"error spans of {name} in {number_of(faults['translations'], 'translation')}: {notes}",) if notes else ()
