"""`mbr-esd wmt submit`: a stored metric, or people's gold, in the format of one of WMT's tasks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS
from mbr_esd_metric.cli.data import add_data_arguments, every_system, load_test_sets
from mbr_esd_metric.errors import InputError, OptionError, number_of, useless

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.error_free import ErrorFreeModel


def configure(parser: argparse.ArgumentParser) -> None:
    """Which metric of which test sets, in which format."""
    add_data_arguments(parser)
    described = "; ".join(f"{name}: {form.description}" for name, form in SUBMISSION_FORMATS.items())
    parser.add_argument("--task", required=True, choices=list(SUBMISSION_FORMATS), help=described)
    parser.add_argument("--metric", metavar="NAME", help="a metric stored in the folder; or --people")
    parser.add_argument("--people", action="store_true", help="people's annotations (the gold) in place of a metric's")
    parser.add_argument("--raters", metavar="NAME", help="with --people, which set of human ratings")
    parser.add_argument("--rated", action="store_true", help="only translations that have a gold score")
    parser.add_argument(
        "--range",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="with wmt26: lowest and highest score, which become 0 and 100 (default: -25 0 for a metric with spans)",
    )
    parser.add_argument(
        "--error-free",
        metavar="SCORE|FILE",
        help="with wmt26: without error from this score on, of 0 to 100, or as `mbr-esd calibrate --error-free` learnt "
        "it (default: without error spans)",
    )
    parser.add_argument("-o", "--output", required=True, metavar="PATH", help="file; for wmt25-task1 a folder")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt submit --task wmt25-task2 --test-set wmt25 --lp cs-de_DE --metric M -o out.tsv\n"
        "  mbr-esd wmt submit --task wmt25-task2 --test-set wmt25 --lp en-cs_CZ --people -o task2_refs.tsv\n\n"
        "All systems but the standard reference are written; --systems, --exclude and --human leave some out."
    )


def run(args: argparse.Namespace) -> int:
    """Write the file."""
    from mbr_esd_metric.adapters.wmt.submitting import write_submission

    if bool(args.metric) == args.people:
        raise OptionError("give one of --metric NAME and --people")
    if args.raters and not args.people:
        raise useless("--raters", "--metric")
    for option in ("range", "error_free"):
        if getattr(args, option) is not None and args.task != "wmt26":
            raise useless(f"--{option.replace('_', '-')}", f"--task {args.task}")
    low_high = None if args.range is None else (args.range[0], args.range[1])
    written = write_submission(
        args.output,
        args.task,
        list(load_test_sets(args, blind=True)),
        args.metric,
        raters=args.raters,
        rated=args.rated,
        score_range=low_high,
        choice=every_system(args),
        error_free=_error_free(args.error_free),
    )
    print(f"{args.output}: {number_of(written, 'translation')} in the format {args.task}")
    return 0


def _error_free(text: str | None) -> ErrorFreeModel | float | None:
    """A score, or the model in a file.

    Raises:
        InputError: no number, and no such file.
    """
    from mbr_esd_metric.files.untrusted import finite
    from mbr_esd_metric.metaeval.error_free import read_error_free

    if text is None:
        return None
    try:
        return finite(text)
    except InputError:
        return read_error_free(text)
