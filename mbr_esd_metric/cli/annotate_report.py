"""`mbr-esd annotate report`: the systems compared by people, and what pre-filled spans did."""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.shared_options import add_table


def configure(parser: argparse.ArgumentParser) -> None:
    """The ratings, and how the tables look."""
    parser.add_argument("ratings", nargs="+", metavar="RATINGS", help="what `mbr-esd annotate import` wrote")
    add_table(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    parser.epilog = "example:\n  mbr-esd annotate report ratings.jsonl"


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    from mbr_esd_metric.adapters.ratings import read_person_ratings
    from mbr_esd_metric.files.paths import check_distinct
    from mbr_esd_metric.report.people import people_tables
    from mbr_esd_metric.report.tables import render_all

    check_distinct(args.ratings, "ratings")
    ratings = [one for path in args.ratings for one in read_person_ratings(path)]
    print(render_all(people_tables(ratings, args.ratings, args.seed), args.table), end="")
    return 0
