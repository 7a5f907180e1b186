"""Sets of error spans over a test set, read from a file and fitted to the translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from mbr_esd_metric.adapters.wmt.rating_files import Rating, read_ratings
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError

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
        strict: whether a span that does not fit is an error.
        repeats: whether a note says how many spans repeat others; people mark one place for two reasons.
    """

    def __init__(
        self,
        outputs: Mapping[str, tuple[str | None, ...]],
        systems: Sequence[str],
        *,
        strict: bool,
        repeats: bool = False,
    ) -> None:
        self._outputs, self._systems, self._strict, self._repeats = outputs, set(systems), strict, repeats
        self._cut = self._left_out = self._repeated = self._rated = 0

    def read(self, name: str, path: Path) -> Ratings:
        """The set in a file.

        Raises:
            InputError: what `read_ratings` raises, blocks that do not fit, and if strict a span that does not.
        """
        stored = read_ratings(path)
        check_blocks(path, stored, self._outputs, len(next(iter(self._outputs.values()))))
        annotations: dict[str, tuple[Annotation | None, ...]] = {}
        for system, entries in stored.items():
            lengths = [len(text or "") for text in self._outputs[system]]
            annotations[system] = tuple(
                None if rating is None else self._fitted(system, rating, length, f"{path}, line {line}")
                for (line, rating), length in zip(entries, lengths, strict=True)
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

    def _fitted(self, system: str, rating: Rating, length: int, where: str) -> Annotation:
        if system not in self._systems:
            return rating.annotation
        if self._strict:
            try:
                rating.annotation.check_length(length)
            except InputError as error:
                raise InputError(f"{where}: system {system}: {error}; without --strict it is cut") from None
            if rating.annotation.points:
                raise InputError(f"{where}: system {system}: an empty error span; without --strict it is left out")
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
