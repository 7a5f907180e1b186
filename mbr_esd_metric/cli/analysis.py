"""What the analyses share: their arguments, and where their tables go."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.data import add_data_arguments, add_raters, test_set_folder
from mbr_esd_metric.cli.shared_options import add_mqm_option, add_table
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.metaeval.spans import RATERS

if TYPE_CHECKING:
    from mbr_esd_metric.report.evaluations import Measuring
    from mbr_esd_metric.report.tables import Table

#: Characters of a line of text; a table of several language pairs is cut between them where it is wider.
WIDTH = 130


def add_rater_arguments(parser: argparse.ArgumentParser) -> None:
    """The test set, which of its raters, and the form of the output."""
    add_data_arguments(parser)
    add_raters(parser)
    add_table(parser)
    parser.add_argument("--columns", nargs="+", default=[], metavar="NAME", help="only these, such as spa softf1 major")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of printing")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """--metric, of names and files."""
    parser.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="[NAME=]METRIC",
        help="only these: stored metrics by full or base name, and files that comet-score or mbr-esd score wrote with "
        "--to_json (default: all stored)",
    )


def add_measure_arguments(parser: argparse.ArgumentParser, default: str = " ".join(DEFAULT_MEASURES)) -> None:
    """Those of `add_rater_arguments`, how error spans are measured, and which SPA."""
    add_rater_arguments(parser)
    parser.add_argument(
        "--rater-aggregation", choices=list(RATERS), default="mean", help="what several raters count (%(default)s)"
    )
    parser.add_argument(
        "--measures",
        nargs="+",
        action=_Measures,
        metavar="NAME",
        help="of error spans; NAME-precision and NAME-recall are parts of one, NAME-parts is all three "
        f"(default: {default})",
    )
    parser.add_argument(
        "--missing",
        choices=["pairs", "toolkit"],
        default="pairs",
        help="SPA, where systems are rated on different segments: each pair of systems on those that both have; or as "
        "mt-metrics-eval, which needs equal numbers and compares different segments (%(default)s)",
    )
    parser.add_argument(
        "--spa",
        choices=["toolkit", "exact"],
        default="toolkit",
        help="1000 permutations, which depend on the order of the systems, as mt-metrics-eval; or infinitely many, "
        "which do not (%(default)s)",
    )


class _Measures(argparse.Action):
    """Names of span measures; a name for several measures is expanded."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        from mbr_esd_metric.metaeval.span_measures import expanded

        assert isinstance(values, list)
        setattr(namespace, self.dest, list(expanded(values)))


def add_evaluation_arguments(parser: argparse.ArgumentParser, default: str = " ".join(DEFAULT_MEASURES)) -> None:
    """Those of `add_measure_arguments`, and how scores are made of spans."""
    add_measure_arguments(parser, default)
    add_mqm_option(parser, "of Score(E) (%(default)s)")


def measuring_of(args: argparse.Namespace, measures: Sequence[str] = DEFAULT_MEASURES) -> Measuring:
    """What `add_measure_arguments` or `add_evaluation_arguments` read; `measures` are those where none is named."""
    from mbr_esd_metric.report.evaluations import Measuring

    return Measuring(
        tuple(args.raters),
        tuple(measures if args.measures is None else args.measures),
        args.rater_aggregation,
        getattr(args, "mqm", "paper"),
        args.missing,
        args.spa == "exact",
    )


def check_outputs(args: argparse.Namespace, *inputs: str | Path) -> None:
    """Check ``--output`` and ``--plot`` before any work; the test set's files and ``--metric FILE`` are inputs, too."""
    from mbr_esd_metric.files.paths import check_output
    from mbr_esd_metric.report.inputs import Source

    metrics = [Source.parse(text).path for text in getattr(args, "metric", ())]
    read = [*inputs, *(path for path in metrics if path.is_file()), test_set_folder(args)]
    if args.output:
        check_output(args.output, read)
    if getattr(args, "plot", None):
        from mbr_esd_metric.report.plots import check_plot

        check_plot(args.plot, read)


def put_out(args: argparse.Namespace, tables: Sequence[Table]) -> None:
    """Print the tables, or write them to ``--output``."""
    from mbr_esd_metric.files.streams import write_whole
    from mbr_esd_metric.report.tables import blocks, render_all, with_columns

    if args.columns:
        tables = [with_columns(table, args.columns) for table in tables]
    if args.table in ("text", "latex"):
        tables = [block for table in tables for block in blocks(table, WIDTH)]
    text = render_all(tables, args.table)
    if args.output:
        write_whole(Path(args.output), text)
    else:
        print(text, end="")
