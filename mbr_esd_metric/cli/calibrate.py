"""`mbr-esd calibrate`: calibration of span confidences against human ratings.

With --error-free: a classifier of error-free translations. For span measures as a function of the confidence
threshold, see `mbr-esd leaderboard --view precision-recall`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mbr_esd_metric.cli.shared_options import add_inputs, add_table, input_paths, load_optional_test_set, read_inputs
from mbr_esd_metric.errors import InputError, OptionError, no_effect_error
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import number_of, printable
from mbr_esd_metric.report.plots import check_plot, save
from mbr_esd_metric.report.tables import render_all

#: Recommended number of spans: with 100 in each of ten bins, the standard error of a share is at most .05.
_ENOUGH = 1000

_EPILOG = """\
examples:
  comet-score -s src.txt -t A.txt --model Unbabel/XCOMET-XXL --to_json xcomet.json
  mbr-esd calibrate xcomet.json OURS=decisions.jsonl candidates.jsonl ratings.tsv --plot calibration.png
  mbr-esd calibrate --test-set data/wmt24 --lp en-de
  mbr-esd calibrate dev.json ratings.tsv --save FOLDER/calibration.json
  mbr-esd calibrate out.json --error-free ratings.jsonl --precision 0.95 --save error-free.json

Human ratings come from one of the inputs (TSV) or from the test set. The confirmation of a span is the share of its
characters that a human marks, regardless of severity (for curves with severity: leaderboard --view precision-recall).
A model folder with the file calibration.json recalibrates the confidences of that model.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add inputs, tables, the plot, and the recalibration."""
    add_inputs(parser)
    add_table(parser)
    parser.add_argument("--plot", metavar="OUT.png", help="plot reliability, precision and recall, risk and coverage")
    parser.add_argument(
        "--save", metavar="FILE", help="fit an isotonic recalibration to one metric, and write it to this file"
    )
    parser.add_argument(
        "--error-free",
        nargs="*",
        metavar="RATINGS",
        help="fit a classifier of error-free translations to these ratings, or to the test set's gold (with one "
        "--metric)",
    )
    parser.add_argument(
        "--precision", type=float, metavar="P", help="target precision of --error-free (default: maximize MCC)"
    )
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Print the tables; plot and fit on request."""
    from mbr_esd_metric.core.recalibration import Recalibration
    from mbr_esd_metric.files.records import write_recalibration
    from mbr_esd_metric.report.evaluations import calibration_plot, calibration_tables, predicted_of

    if args.plot:
        check_plot(args.plot, input_paths(args))
    if args.save:
        check_output(args.save, input_paths(args))
    if args.error_free is not None:
        return _error_free(args)
    if args.precision is not None:
        raise no_effect_error(f"--precision {args.precision}", "a run without --error-free")
    table = read_inputs(args)
    metrics = predicted_of(table)
    if not any(column.human for column in table.columns):
        raise InputError(
            "no human annotations among the inputs; add a TSV file of them, or use a test set that has them"
        )
    if not metrics:
        raise InputError("no metric has error spans with confidences on human-rated translations")
    print(render_all(calibration_tables(table), args.table), end="")
    if args.plot:
        save(calibration_plot(table), Path(args.plot))
    if args.save:
        if len(metrics) > 1:
            raise OptionError(f"--save fits one metric, but the inputs have {', '.join(metrics)}; specify one of them")
        ((name, predicted),) = metrics.items()
        learnt = f"{number_of(len(predicted), 'span')} of {name}"
        if len(predicted) < _ENOUGH:
            logger.warning(
                f"--save is fitted to only {learnt}; at least {_ENOUGH} are recommended (100 for each tenth of the "
                "confidence range, for a standard error of at most .05)"
            )
        write_recalibration(args.save, Recalibration.fit(predicted.confidence, predicted.confirmed, learnt_on=learnt))
        print(f"{printable(args.save)}: fitted to {learnt}", file=sys.stderr)
    return 0


def _error_free(args: argparse.Namespace) -> int:
    """Fit a classifier of error-free translations, print its cross-validated accuracy, and save it on request."""
    from mbr_esd_metric.metaeval.error_free import ErrorFreeModel, cross_validated, write_error_free
    from mbr_esd_metric.report.evaluations import learning_table
    from mbr_esd_metric.report.inputs import scored_of_files, scored_of_test_set

    if args.plot:
        raise no_effect_error("--plot", "--error-free")
    if args.precision is not None and not 0 < args.precision < 1:
        raise OptionError(f"--precision {args.precision}: must be between 0 and 1")
    if bool(args.test_set) == bool(args.error_free) or bool(args.inputs) == bool(args.test_set):
        raise OptionError("specify a metric's files and --error-free RATINGS, or --test-set, --metric and --error-free")
    if args.test_set:
        if len(args.metric) != 1:
            raise OptionError("--error-free fits one metric; choose it with --metric")
        test_set = load_optional_test_set(args)
        assert test_set is not None
        judged, labels = scored_of_test_set(test_set, args.metric[0])
        name = f"{args.metric[0]}, {test_set.name} {test_set.lp}"
    else:
        judged, labels = scored_of_files(args.inputs, args.error_free)
        name = ", ".join(Path(path).name for path in args.inputs)
    tried, probabilities = cross_validated(judged, labels, args.precision)
    print(render_all([learning_table(name, tried, labels, args.precision)], args.table), end="")
    if args.save:
        learnt_on = f"{number_of(len(judged), 'translation')} of {name}"
        write_error_free(args.save, ErrorFreeModel.fit(judged, labels, args.precision, learnt_on, probabilities))
        print(f"{printable(args.save)}: fitted to {learnt_on}", file=sys.stderr)
    return 0
