"""`mbr-esd wmt import-submission`: a submission to one of WMT's tasks as a metric of a test set."""

from __future__ import annotations

import argparse

from mbr_esd_metric.cli.data import add_data_arguments, load_test_sets
from mbr_esd_metric.cli.wmt_submit import add_format
from mbr_esd_metric.errors import number_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Which file, as which metric."""
    parser.add_argument("submission", metavar="FILE", help="file; for wmt25-task1 also its folder")
    add_data_arguments(parser)
    add_format(parser)
    parser.add_argument("--name", required=True, metavar="NAME", help="of the metric, such as GemSpanEval")
    parser.add_argument("--uses-reference", action="store_true", help="the metric saw the standard reference")
    parser.add_argument("--overwrite", action="store_true", help="replace a metric of that name")
    parser.epilog = (
        "example:\n  mbr-esd wmt import-submission predictions.tsv --format wmt25-task2 --name GemSpanEval "
        "--data data --test-set wmt25 --direction en-cs_CZ"
    )


def run(args: argparse.Namespace) -> int:
    """Read the file into each direction."""
    from mbr_esd_metric.adapters.wmt.submitting import take_submission

    for test_set in load_test_sets(args, blind=True):
        suffix = test_set.info.standard_reference if args.uses_reference else "src"
        done = take_submission(
            args.submission, args.format, test_set, f"{args.name}-{suffix}", overwrite=args.overwrite
        )
        what = "scores and error spans" if done.spans else "scores"
        left_out = f"; left out: {number_of(done.left_out, 'row')} of other translations" if done.left_out else ""
        print(
            f"{test_set.name} {test_set.direction}: {done.name}, {what} of "
            f"{number_of(done.translations, 'translation')} by {number_of(done.systems, 'system')}{left_out}"
        )
    return 0
