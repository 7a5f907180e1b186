"""`mbr-esd wmt import-esa`: ESA annotations of WMT24 and WMT25 into mt-metrics-eval's data layout."""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.data import add_import_arguments, add_name_arguments, import_target
from mbr_esd_metric.cli.options import add_mqm_option


def configure(parser: argparse.ArgumentParser) -> None:
    """Which files, where to."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="wmt25-genmt-humeval.jsonl, wmt24_esa.jsonl, a table of wmt25-mteval (.tsv), or Appraise's export "
        "(esa_generalMT2024_wave*.csv, with --texts); plain or compressed",
    )
    parser.add_argument(
        "--direction", nargs="+", default=[], metavar="D", help="such as cs-uk_UA (default: all that are rated)"
    )
    add_import_arguments(parser, "such as wmt25", "the texts and human scores")
    add_name_arguments(parser)
    parser.add_argument("--texts", metavar="DIR", help="with .csv: folder with sources, system-outputs, documents")
    parser.add_argument(
        "--ends",
        choices=["auto", "last", "past"],
        default="auto",
        help="what an error's end is: its last character, as Appraise exports it, or one past it (auto: past it in "
        "a .tsv, the last elsewhere)",
    )
    add_mqm_option(parser, "of annotations without a score, as MQM's", "google")
    parser.add_argument("--quoted", action="store_true", help="fields of a .tsv are quoted as in CSV")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt import-esa wmt25-genmt-humeval.jsonl --test-set wmt25 --direction cs-uk_UA --data data\n"
        "  mbr-esd wmt import-esa esa_generalMT2024_wave*.csv --texts txt --test-set wmt24 --data data"
    )


def run(args: argparse.Namespace) -> int:
    """Read all files once, and write each direction."""
    from mbr_esd_metric.adapters.esa import read_esa
    from mbr_esd_metric.adapters.wmt.importing_esa import import_esa
    from mbr_esd_metric.files.paths import check_folder

    check_folder(args.data)
    human = read_esa(args.files, args.texts, quoted=args.quoted, ends=args.ends)
    for direction in args.direction or human.directions:
        done = import_esa(human, import_target(args, direction))
        print(done)
    for note in done.notes:
        print(f"  {note}")
    return 0
