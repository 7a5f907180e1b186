"""`mbr-esd reproduce synthetic`: does a similarity fall with every error that is added or deleted?"""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.analysis import add_rater_arguments, check_outputs, put_out
from mbr_esd_metric.cli.data import load_test_sets
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.progress import Progress

#: At most so many a translation.
_EDITS = 6


def configure(parser: argparse.ArgumentParser) -> None:
    """Which similarities, which edits."""
    add_rater_arguments(parser)
    parser.add_argument(
        "--similarity",
        nargs="+",
        default=["softf1", "f1", "softdice", "mpp", "scoresim"],
        metavar="NAME",
        help="similarities, or means such as softf1+scoresim (default: softf1 f1 softdice mpp scoresim)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the edits (%(default)s)")
    parser.epilog = "example:\n  mbr-esd reproduce synthetic --data data --test-set wmt21.tedtalks --lp en-de"


def run(args: argparse.Namespace) -> int:
    """Edit every human annotation and print the decline ratios."""
    from mbr_esd_metric.metaeval.synthetic import EDITS, DeclineRatio, decline_ratio
    from mbr_esd_metric.report.tables import Cell, Column, Table

    check_outputs(args)
    columns = [Column("similarity", "similarity", label=True), Column("edit", "edit", label=True)]
    results = []
    repaired: list[str] = []
    for test_set in load_test_sets(args):
        repaired += test_set.notes
        annotations, lengths = [], []
        for matrix in test_set.human(args.raters).values():
            for row, cells in enumerate(matrix):
                for segment, annotation in enumerate(cells):
                    if annotation is not None:
                        annotations.append(annotation)
                        lengths.append(int(test_set.lengths[row, segment]))
        if not annotations:
            raise InputError(
                f"{test_set.layout.human_rating('*')}: no human annotations to edit; import them with: "
                "mbr-esd wmt import"
            )
        declines: list[DeclineRatio] = []
        for edit in EDITS:
            with Progress(f"{edit}, {test_set.lp}") as bar:
                options = (args.similarity, _EDITS, args.seed, bar.done)
                declines += decline_ratio(annotations, lengths, edit, *options)
        results.append(declines)
        for key, title in (("clean", "no error"), ("marked", "some errors"), ("all", "all")):
            columns.append(Column(key, title, test_set.lp))
        columns.append(Column("edits", "edits", test_set.lp))
    rows = []
    for lps in zip(*results, strict=True):
        shown = [Cell(lps[0].similarity), Cell(lps[0].edit)]
        for found in lps:
            both = found.clean + found.marked
            shown += [Cell(tally.ratio if tally.edits else None) for tally in (found.clean, found.marked, both)]
            shown.append(Cell(both.edits))
        rows.append(tuple(shown))
    notes = (
        "share of edits after which the similarity to the original falls, for originals without and with errors",
        f"up to {_EDITS} edits a translation, each on top of the last, seed {args.seed}",
        *repaired,
    )
    put_out(args, [Table(f"decline ratio, {args.test_set}", tuple(columns), tuple(rows), notes)])
    return 0
