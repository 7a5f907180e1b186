"""Synthetic edits (paper, Section 6): does a similarity notice every single error that is added or deleted?

    python scripts/paper/synthetic.py --test-set data/wmt23 --lp en-de --similarity softf1 f1

Add puts a new error into a stretch of the translation that no error covers; delete removes one. Up to six edits of one
kind are made, each on top of the last and further from the original, so a similarity to that should fall with each. Its
decline ratio is the share of edits after which it is strictly lower.
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
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import progress_bar
from mbr_esd_metric.report.tables import TABLE_FORMATS, Column, TableRow, render_all, table_of

Edit = Literal["add", "delete"]
EDITS: tuple[Edit, ...] = ("add", "delete")

SEVERITY_NAMES: tuple[Severity, ...] = ("major", "minor")

#: The length of a new error is drawn from 1 to at least this, even in a shorter stretch; it is then cut to the stretch.
_LONGEST = 8


@dataclass(frozen=True, slots=True)
class Declines:
    """Numbers of edits, and of those after which a similarity fell.

    Attributes:
        edits: the number of edits.
        falls: the number of edits after which the similarity was strictly lower than before.
    """

    edits: int
    falls: int

    @property
    def ratio(self) -> float:
        """Falls per edit; NaN if no edit was possible."""
        return self.falls / self.edits if self.edits else float("nan")

    def __add__(self, other: Declines) -> Declines:
        return Declines(self.edits + other.edits, self.falls + other.falls)


@dataclass(frozen=True, slots=True)
class DeclineRatio:
    """Decline ratio of one similarity under one kind of edit.

    Attributes:
        similarity, edit: their names.
        clean: over translations that had no error.
        marked: over translations that had some.
        by_severity: severity of the error that was added or deleted -> the same two.
    """

    similarity: str
    edit: Edit
    clean: Declines
    marked: Declines
    by_severity: Mapping[Severity, tuple[Declines, Declines]]

    @property
    def ratio(self) -> float:
        """Over all translations."""
        return (self.clean + self.marked).ratio


def decline_ratio(
    annotations: Sequence[AnnotationLike],
    lengths: Sequence[int],
    edit: Edit,
    similarities: Sequence[str] = ("softf1", "f1"),
    edits: int = 6,
    seed: int = 0,
    progress: bool = False,
) -> list[DeclineRatio]:
    """The decline ratio of several similarities under the same edits.

    Args:
        annotations: the originals, such as human ratings.
        lengths: characters of each translation.
        edit: "add" or "delete".
        similarities: names, or means of them.
        edits: the most edits of a translation; there are fewer if no free stretch, or no error, is left.
        seed: of the edits.
        progress: show a bar on standard error.

    Returns:
        One result for each similarity.

    Raises:
        InputError: an annotation ends past its length.
        OptionError: an unknown similarity.
    """
    measures = [get_similarity(similarity) for similarity in similarities]
    rng = np.random.default_rng(seed)
    # For each similarity: (severity, whether there were errors) -> tally.
    tallies = [{(s, m): Declines(0, 0) for s in SEVERITY_NAMES for m in (False, True)} for _ in measures]
    pairs = progress_bar(edit, iterable=list(zip(annotations, lengths, strict=True)), shown=progress)
    for number, (spans, length) in enumerate(pairs, 1):
        original = as_annotation(spans).on("translation")
        try:
            original.check_length(length)
        except InputError as error:
            raise InputError(f"annotation {number}: {error}") from None
        chain = list(_edited(original, length, edit, edits, rng))
        majors = [annotation.count("major") for annotation in (original, *chain)]
        edited: list[Severity] = ["minor" if before == after else "major" for before, after in pairwise(majors)]
        for tally, measure in zip(tallies, measures, strict=True):
            values = [measure.scalar(annotation, original, length) for annotation in (original, *chain)]
            for severity, before, after in zip(edited, values, values[1:], strict=False):
                tally[severity, len(original) > 0] += Declines(1, int(after < before))
    results = []
    for measure, tally in zip(measures, tallies, strict=True):
        by_severity = {severity: (tally[severity, False], tally[severity, True]) for severity in SEVERITY_NAMES}
        clean, marked = (sum((pair[i] for pair in by_severity.values()), Declines(0, 0)) for i in (0, 1))
        results.append(DeclineRatio(str(measure), edit, clean, marked, by_severity))
    return results


def _edited(
    annotation: Annotation, length: int, edit: Edit, edits: int, rng: np.random.Generator
) -> Iterator[Annotation]:
    """The annotation after one edit, two edits, and so on, as long as an edit is possible."""
    for _ in range(edits):
        following = add_error(annotation, length, rng) if edit == "add" else delete_error(annotation, rng)
        if following is None:
            return
        annotation = following
        yield annotation


def add_error(annotation: Annotation, length: int, rng: np.random.Generator) -> Annotation | None:
    """The annotation with one more error, in a stretch without errors; None if there is no such stretch.

    The stretch, the place in it and the severity are drawn uniformly. The length is drawn from 1 to the longer of 8 and
    the stretch, and then cut to the stretch.
    """
    stretches = free_stretches(annotation, length)
    if not stretches:
        return None
    start, end = stretches[rng.integers(len(stretches))]
    size = min(int(rng.integers(1, max(_LONGEST, end - start) + 1)), end - start)
    first = int(rng.integers(start, end - size + 1))
    severity: Literal["major", "minor"] = "major" if rng.integers(2) else "minor"
    return Annotation.of_rater([*annotation, ErrorSpan(first, first + size, severity)])


def delete_error(annotation: Annotation, rng: np.random.Generator) -> Annotation | None:
    """The annotation without one of its errors, drawn uniformly; None if it has none."""
    if not len(annotation):
        return None
    removed = int(rng.integers(len(annotation)))
    return Annotation.of_rater(span for number, span in enumerate(annotation) if number != removed)


def free_stretches(annotation: Annotation, length: int) -> list[tuple[int, int]]:
    """The maximal stretches [start, end) of the translation that no error covers, in order."""
    stretches = []
    at = 0
    for span in annotation:  # by start
        if span.start > at:
            stretches.append((at, span.start))
        at = max(at, span.end)
    if at < length:
        stretches.append((at, length))
    return stretches


def rated(test_set: TestSet, raters: Sequence[str] = ()) -> tuple[list[Annotation], list[int]]:
    """Every rater's annotation of every translation, and the translation's length.

    Raises:
        InputError: there is none.
    """
    pairs = [
        (annotation, int(test_set.lengths[system, segment]))
        for matrix in test_set.human(raters).values()
        for system, row in enumerate(matrix)
        for segment, annotation in enumerate(row)
        if annotation is not None
    ]
    if not pairs:
        raise InputError(f"{test_set.layout.human_rating('*')}: no human annotations; `mbr-esd wmt import` makes them")
    return [annotation for annotation, _ in pairs], [length for _, length in pairs]


def rows_of(test_set: TestSet, similarities: Sequence[str], raters: Sequence[str], seed: int) -> list[TableRow]:
    """One row for each similarity and kind of edit."""
    annotations, lengths = rated(test_set, raters)
    rows: list[TableRow] = []
    for edit in EDITS:
        for decline in decline_ratio(annotations, lengths, edit, similarities, 6, seed, True):
            both = decline.clean + decline.marked
            tallies = {"clean": decline.clean, "marked": decline.marked, "all": both}
            titles = {"clean": "no error", "marked": "some errors", "all": "all"}
            shown = {Column(k, titles[k]): t.ratio if t.edits else None for k, t in tallies.items()}
            named = {Column("similarity", "similarity"): decline.similarity, Column("edit", "edit"): decline.edit}
            rows.append({**named, **shown, Column("edits", "edits"): both.edits})
    return rows


def main() -> None:
    """Print one table for each language pair."""
    parser = argparse.ArgumentParser(description="Does a similarity fall with every error that is added or deleted?")
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
