"""Synthetic edits of human annotations: the share after which a similarity to the original falls.

    python research/synthetic.py --data DATA --test-set wmt23 --lp en-de --similarity softf1 f1

Add puts a new error into a stretch without errors; delete removes one. Up to six edits a translation, each on top of
the last. A similarity that does not fall cannot tell the annotation with the error from the one without it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import running

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import Progress
from mbr_esd_metric.metaeval.synthetic import EDITS, decline_ratio
from mbr_esd_metric.report.tables import TABLE_FORMATS, Column, TableRow, render_all, table_of


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
        with Progress(f"{edit}, {test_set.lp}") as bar:
            for found in decline_ratio(annotations, lengths, edit, similarities, 6, seed, bar.done):
                both = found.clean + found.marked
                tallies = {"clean": found.clean, "marked": found.marked, "all": both}
                titles = {"clean": "no error", "marked": "some errors", "all": "all"}
                shown = {Column(k, titles[k]): t.ratio if t.edits else None for k, t in tallies.items()}
                named = {Column("similarity", "similarity"): found.similarity, Column("edit", "edit"): found.edit}
                rows.append({**named, **shown, Column("edits", "edits"): both.edits})
    return rows


def main() -> None:
    """Print one table for each language pair."""
    parser = argparse.ArgumentParser(description="Does a similarity fall with every error that is added or deleted?")
    parser.add_argument("--data", metavar="DATA", help="as for `mbr-esd leaderboard`")
    parser.add_argument("--test-set", required=True, metavar="T")
    parser.add_argument("--lp", required=True, nargs="+", metavar="LP")
    parser.add_argument("--raters", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--similarity", nargs="+", default=["softf1", "f1", "softdice", "mpp", "scoresim"])
    parser.add_argument("--seed", type=int, default=0, help="of the edits (%(default)s)")
    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text", help="of the tables (%(default)s)")
    args = parser.parse_args()
    tables = []
    for lp in args.lp:
        test_set = load_test_set(args.data, args.test_set, lp)
        rows = rows_of(test_set, args.similarity, args.raters, args.seed)
        notes = ("for originals without and with errors", *test_set.notes)
        tables.append(table_of(f"decline ratio, {args.test_set} {lp}, seed {args.seed}", rows, notes))
    sys.stdout.write(render_all(tables, args.table))


if __name__ == "__main__":
    running.run(main)
