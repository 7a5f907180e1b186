"""`mbr-esd calibrate`: how often do humans confirm a span of a given confidence?

`mbr-esd lambda-sweep --precision-recall` asks another question: how a span measure changes with the threshold.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mbr_esd_metric.cli.report import add_inputs, input_paths, read_inputs
from mbr_esd_metric.cli.shared_options import add_table
from mbr_esd_metric.errors import InputError, OptionError

_EPILOG = """\
examples:
  comet-score -s src.txt -t A.txt --model Unbabel/XCOMET-XXL --to_json xcomet.json
  mbr-esd calibrate xcomet.json OURS=decisions.jsonl candidates.jsonl ratings.tsv --plot calibration.png
  mbr-esd calibrate --data DATA --test-set wmt24 --lp en-de
  mbr-esd calibrate dev.json ratings.tsv --save FOLDER/calibration.json
  mbr-esd calibrate test.json test-ratings.tsv --apply FOLDER/calibration.json

Human ratings are among the inputs (TSV), or those of the test set. A span is confirmed by the share of its characters
that a human marks; severity plays no part (lambda-sweep --precision-recall: curves of span measures, with severity).
The line `calibration: calibration.json` in hparams.yaml makes a model folder recalibrate its confidences.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Inputs, tables, plot, and the recalibration."""
    add_inputs(parser)
    parser.add_argument("--metric", nargs="+", default=[], metavar="NAME", help="stored metrics (default: all)")
    add_table(parser)
    parser.add_argument("--plot", metavar="OUT.png", help="reliability, precision and recall, risk and coverage")
    parser.add_argument("--save", metavar="FILE", help="learn a monotone recalibration on one metric, and write it")
    parser.add_argument("--apply", metavar="FILE", help="show the error after this recalibration, learnt elsewhere")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Print the tables; plot and learn where that is asked for."""
    from mbr_esd_metric.core.recalibration import Recalibration
    from mbr_esd_metric.files.paths import check_output
    from mbr_esd_metric.files.recalibration_file import read_recalibration, write_recalibration
    from mbr_esd_metric.report.calibration_tables import (
        calibration_plot,
        calibration_table,
        reliability_tables,
        sheet_predicted,
    )
    from mbr_esd_metric.report.plots import check_plot, save
    from mbr_esd_metric.report.tables import render_all

    if args.plot:
        check_plot(args.plot, input_paths(args))
    if args.save:
        check_output(args.save, input_paths(args))
    by = read_recalibration(args.apply) if args.apply else None
    sheet = read_inputs(args, args.metric)
    found = sheet_predicted(sheet)
    if not any(column.human for column in sheet.columns):
        raise InputError(
            "there are no human annotations among the inputs; add their TSV, or name a test set that has any"
        )
    if not found:
        raise InputError(
            "no metric among the inputs has error spans with a confidence on a translation that a human rated"
        )
    tables = [calibration_table(sheet, by), *reliability_tables(sheet)]
    print(render_all(tables, args.table), end="")
    if args.plot:
        save(calibration_plot(sheet), Path(args.plot))
    if args.save:
        if len(found) > 1:
            raise OptionError(f"--save learns from one metric, and there are {', '.join(found)}; give one")
        ((name, predicted),) = found.items()
        learnt = f"{len(predicted)} spans of {name}"
        write_recalibration(args.save, Recalibration.fit(predicted.confidence, predicted.confirmed, learnt_on=learnt))
        print(f"{args.save}: learnt on {learnt}", file=sys.stderr)
    return 0
