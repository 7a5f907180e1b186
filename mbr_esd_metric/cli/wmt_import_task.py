"""`mbr-esd wmt import-task`: the test set of one of WMT's tasks, before there is gold, to score and submit."""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.data import add_import_arguments, import_target


def configure(parser: argparse.ArgumentParser) -> None:
    """Which file, where to."""
    parser.add_argument(
        "file", metavar="FILE", help="mteval-task1-test25.tsv, mteval-task2-test25.tsv or mteval-test26.jsonl"
    )
    parser.add_argument("--direction", nargs="+", default=[], metavar="D", help="(default: all that are there)")
    add_import_arguments(parser, "such as wmt26", "the texts")
    parser.add_argument("--quoted", action="store_true", help="fields of a .tsv are quoted as in CSV")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt import-task mteval-test26.jsonl --test-set wmt26 --direction eng_Latn-deu_Latn --data data\n"
        "  mbr-esd wmt score --data data --test-set wmt26 --direction eng_Latn-deu_Latn "
        "--model 'mbr-esd-llama?lp=en-de'\n"
        "  mbr-esd wmt submit --data data --test-set wmt26 --direction eng_Latn-deu_Latn --format wmt26 "
        "--metric mbr-esd-llama -o out.jsonl"
    )


def run(args: argparse.Namespace) -> int:
    """Write each direction."""
    from mbr_esd_metric.adapters.wmt.importing_task import import_task, read_task
    from mbr_esd_metric.files.paths import check_folder

    check_folder(args.data)
    segments = read_task(args.file, quoted=args.quoted)
    for direction in args.direction or sorted({segment.direction for segment in segments}):
        print(import_task(segments, import_target(args, direction)))
    return 0
