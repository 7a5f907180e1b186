"""Synthetic edits (paper, Section 6): the sensitivity of similarities to single added or deleted errors.

    python scripts/paper/synthetic.py --test-set data/wmt23 --lp en-de --similarity softf1 f1

"Add" inserts an error into a part of the translation without errors; "delete" removes an error. Up to six edits of one
kind are applied cumulatively, each of which should decrease the similarity to the original. The decline ratio is the
share of edits after which the similarity is strictly lower.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.cli.shared_options import folder_and_name
from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, ErrorSpan, Severity, as_annotation
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.log import progress_bar
from mbr_esd_metric.report.tables import TABLE_FORMATS, Column, TableRow, render_all, table_of

Edit = Literal["add", "delete"]
EDITS: tuple[Edit, ...] = ("add", "delete")
SEVERITY_NAMES: tuple[Severity, ...] = ("major", "minor")

#: The maximum length of a new error is at least this, even in a shorter part, to which the error is then cut.
_LONGEST = 8


@dataclass(frozen=True, slots=True)
class Declines:
    """The numbers of edits, and of edits after which the similarity was strictly lower."""

    edits: int = 0
    falls: int = 0

    @property
    def ratio(self) -> float:
        """The share of edits with a lower similarity; NaN without edits."""
        return self.falls / self.edits if self.edits else float("nan")


@dataclass(frozen=True, slots=True)
class DeclineRatio:
    """The edits of one kind, for one similarity, by the severity of the error and by whether the original has
    errors."""

    similarity: str
    edit: Edit
    declines: Mapping[tuple[Severity, bool], Declines]

    def of(self, *, marked: bool | None = None, severity: Severity | None = None) -> Declines:
        """The counts of all edits, or of those for originals with or without errors, and for one severity."""
        some = [d for (s, m), d in self.declines.items() if marked in (m, None) and severity in (s, None)]
        return Declines(sum(d.edits for d in some), sum(d.falls for d in some))


def decline_ratio(
    annotations: Sequence[AnnotationLike],
    lengths: Sequence[int],
    edit: Edit,
    similarities: Sequence[str] = ("softf1", "f1"),
    edits: int = 6,
    seed: int = 0,
    progress: bool = False,
) -> list[DeclineRatio]:
    """One result for each similarity, all under the same edits of the originals, whose translations have these lengths.

    There are fewer than `edits` edits of an original if no free stretch, or no error, is left.

    Raises:
        InputError: an annotation ends past its length.
        OptionError: an unknown similarity.
    """
    measures = [get_similarity(similarity) for similarity in similarities]
    rng = np.random.default_rng(seed)
    tallies = [{(s, m): Declines() for s in SEVERITY_NAMES for m in (False, True)} for _ in measures]
    pairs = progress_bar(edit, iterable=list(zip(annotations, lengths, strict=True)), shown=progress)
    for number, (spans, length) in enumerate(pairs, 1):
        original = as_annotation(spans).on("translation")
        with labelled(f"annotation {number}"):
            original.check_length(length)
        chain = [original, *_edited(original, length, edit, edits, rng)]
        majors = [annotation.count("major") for annotation in chain]
        edited: list[Severity] = ["minor" if before == after else "major" for before, after in pairwise(majors)]
        for tally, measure in zip(tallies, measures, strict=True):
            values = pairwise(measure.scalar(annotation, original, length) for annotation in chain)
            for severity, (before, after) in zip(edited, values, strict=True):
                seen = tally[severity, len(original) > 0]
                tally[severity, len(original) > 0] = Declines(seen.edits + 1, seen.falls + (after < before))
    return [DeclineRatio(str(measure), edit, tally) for measure, tally in zip(measures, tallies, strict=True)]


def _edited(
    annotation: Annotation, length: int, edit: Edit, edits: int, rng: np.random.Generator
) -> Iterator[Annotation]:
    """The annotation after one edit, two edits, and so on, while an edit is possible."""
    for _ in range(edits):
        following = add_error(annotation, length, rng) if edit == "add" else delete_error(annotation, rng)
        if following is None:
            return
        annotation = following
        yield annotation


def add_error(annotation: Annotation, length: int, rng: np.random.Generator) -> Annotation | None:
    """The annotation with one more error, in a stretch without errors; None if there is no such stretch.

    The stretch, the place in it and the severity are drawn uniformly.
    """
    stretches = free_stretches(annotation, length)
    if not stretches:
        return None
    start, end = stretches[rng.integers(len(stretches))]
    size = min(int(rng.integers(1, max(_LONGEST, end - start) + 1)), end - start)
    first = int(rng.integers(start, end - size + 1))
    severity: Severity = "major" if rng.integers(2) else "minor"
    return Annotation.of_rater([*annotation, ErrorSpan(first, first + size, severity)])


def delete_error(annotation: Annotation, rng: np.random.Generator) -> Annotation | None:
    """The annotation without one of its errors, drawn uniformly; None if it has no errors."""
    if not len(annotation):
        return None
    removed = int(rng.integers(len(annotation)))
    return Annotation.of_rater(span for number, span in enumerate(annotation) if number != removed)


def free_stretches(annotation: Annotation, length: int) -> list[tuple[int, int]]:
    """The maximal intervals [start, end) of the translation without errors, in order."""
    stretches, at = [], 0
    for start, end in [*((span.start, span.end) for span in annotation), (length, length)]:  # by start
        if start > at:
            stretches.append((at, start))
        at = max(at, end)
    return stretches


def rated(test_set: TestSet, raters: Sequence[str] = ()) -> tuple[list[Annotation], list[int]]:
    """Every rater's annotation of every translation, and its length. Raises `InputError` if there is none."""
    pairs = [
        (annotation, int(test_set.lengths[system, segment]))
        for matrix in test_set.human(raters)
        for system, row in enumerate(matrix)
        for segment, annotation in enumerate(row)
        if annotation is not None
    ]
    if not pairs:
        raise InputError(
            f"{test_set.layout.human_file('*', 'seg.rating')}: no human annotations; `mbr-esd wmt import` makes them"
        )
    return [annotation for annotation, _ in pairs], [length for _, length in pairs]


def rows_of(test_set: TestSet, similarities: Sequence[str], raters: Sequence[str], seed: int) -> list[TableRow]:
    """The table with one row per similarity and kind of edit."""
    annotations, lengths = rated(test_set, raters)
    groups = {"clean": ("no error", False), "marked": ("some errors", True), "all": ("all", None)}
    rows: list[TableRow] = []
    for edit in EDITS:
        for result in decline_ratio(annotations, lengths, edit, similarities, 6, seed, True):
            tallies = {Column(key, title): result.of(marked=marked) for key, (title, marked) in groups.items()}
            named = {Column("similarity", "similarity"): result.similarity, Column("edit", "edit"): edit}
            shown = {column: tally.ratio if tally.edits else None for column, tally in tallies.items()}
            rows.append({**named, **shown, Column("edits", "edits"): result.of().edits})
    return rows


def main() -> None:
    """Print one table per language pair."""
    parser = argparse.ArgumentParser(description="How often do similarities fall when an error is added or deleted?")
    parser.add_argument("--test-set", required=True, metavar="T", help="as for `mbr-esd leaderboard`")
    parser.add_argument("--lp", required=True, nargs="+", metavar="LP")
    parser.add_argument("--raters", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--similarity", nargs="+", default=["softf1", "f1", "softdice", "mpp", "scoresim"])
    parser.add_argument("--seed", type=int, default=0, help="of the edits (%(default)s)")
    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text", help="of the tables (%(default)s)")
    args = parser.parse_args()
    tables = []
    for lp in args.lp:
        test_set = load_test_set(*folder_and_name(args.test_set), lp)
        rows = rows_of(test_set, args.similarity, args.raters, args.seed)
        notes = ("for originals without and with errors", *test_set.notes)
        tables.append(table_of(f"decline ratio, {test_set.name} {lp}, seed {args.seed}", rows, notes))
    sys.stdout.write(render_all(tables, args.table))


if __name__ == "__main__":
    main()
