"""`mbr-esd leaderboard`: every metric of a WMT test set by its agreement with human judgement."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import Any

from mbr_esd_metric.cli.analysis import (
    add_measure_arguments,
    add_spa,
    check_outputs,
    missing_notes,
    put_out,
)
from mbr_esd_metric.cli.data import load_test_sets


def configure(parser: argparse.ArgumentParser) -> None:
    """What to rank and how to test."""
    add_measure_arguments(parser)
    parser.add_argument("--metric", nargs="+", default=[], metavar="NAME", help="only these (default: all stored)")
    parser.add_argument(
        "--against",
        default="",
        metavar="NAMES",
        help="rivals for daggers, separated by commas: metrics, or rules such as map,majority",
    )
    parser.add_argument("--k", type=int, default=1000, help="draws of the tests; 0 tests nothing (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the tests (%(default)s)")
    add_spa(parser)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="threads (%(default)s)")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd leaderboard --data data --test-set wmt21.tedtalks --direction en-de\n"
        "  mbr-esd leaderboard --test-set wmt24 --direction en-de en-es ja-zh --against map,majority --format latex"
    )


def run(args: argparse.Namespace) -> int:
    """Compute the leaderboard and print it."""
    from mbr_esd_metric.adapters.wmt.contestants import contestants
    from mbr_esd_metric.metaeval.leaderboard import Settings, compute_leaderboard
    from mbr_esd_metric.report.leaderboard import leaderboard_table

    check_outputs(args)
    settings = Settings(
        draws=args.k,
        seed=args.seed,
        measures=tuple(args.measures),
        several=args.several,
        against=tuple(name.strip() for name in args.against.split(",") if name.strip()),
        missing=args.missing,
        workers=args.workers,
        exact=args.spa == "exact",
        order="name",
    )
    directions = []
    for test_set in load_test_sets(args):
        found = contestants(test_set, args.metric, args.raters)
        directions.append(replace(found, notes=(*found.notes, *missing_notes(test_set, args.missing))))
    with _Bar() as bar:
        board = compute_leaderboard(args.test_set, directions, settings, bar.done)
    put_out(args, [leaderboard_table(board, "column" if args.format in ("tsv", "json") else "notes")])
    return 0


class _Bar:
    """Shows the progress of the tests and the time left on standard error, if that is a terminal."""

    def __enter__(self) -> _Bar:
        self._bar: Any = None
        return self

    def done(self, more: int, total: int) -> None:
        """So many draws more, of so many."""
        from tqdm import tqdm

        if self._bar is None:
            # A test that stops early counts as all its draws.
            form = "{l_bar}{bar}| {elapsed}, {remaining} left"
            self._bar = tqdm(total=total, desc="testing", bar_format=form, disable=None, file=sys.stderr)
        self._bar.update(more)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
