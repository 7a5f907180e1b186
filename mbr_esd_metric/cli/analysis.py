"""What the analyses share: arguments, the human side of a test set, files joined to its translations, tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mbr_esd_metric.cli.data import add_data_arguments, add_raters, test_set_folder
from mbr_esd_metric.cli.options import add_decision_options, add_mqm_option, decision_options
from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.errors import InputError, useless
from mbr_esd_metric.metaeval.choosing import choosing_rules
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.metaeval.spans import RATERS
from mbr_esd_metric.report.tables import FORMATS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from mbr_esd_metric.adapters.wmt.test_set import Ratings, StoredMetric, TestSet
    from mbr_esd_metric.metaeval.choosing import Sampled
    from mbr_esd_metric.metaeval.evaluation import Evaluation, Evaluator
    from mbr_esd_metric.metaeval.spans import AnnotationMatrix
    from mbr_esd_metric.report.tables import Cell, Column, Table

_T = TypeVar("_T")


#: Field of `DecisionOptions` that says how candidates are read.
_READING = ("format",)
#: Characters of a line of text; a table of several directions is cut between them where it is wider.
WIDTH = 130


def add_rater_arguments(parser: argparse.ArgumentParser) -> None:
    """The test set, which of its raters, and the form of the output."""
    add_data_arguments(parser)
    add_raters(parser)
    _add_output(parser)


def add_score_arguments(parser: argparse.ArgumentParser) -> None:
    """The test set, which of its metrics, and the form of the output."""
    add_data_arguments(parser)
    parser.add_argument("--metric", nargs="+", default=[], metavar="NAME", help="only these (default: all stored)")
    add_spa(parser)
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=list(FORMATS), default="text", help="(%(default)s)")
    parser.add_argument("--columns", nargs="+", default=[], metavar="NAME", help="only these, such as spa softf1 major")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of printing")


def add_measure_arguments(parser: argparse.ArgumentParser, measures: Sequence[str] = DEFAULT_MEASURES) -> None:
    """Those of `add_rater_arguments`, and how error spans are measured."""
    add_rater_arguments(parser)
    parser.add_argument(
        "--several", choices=list(RATERS), default="mean", help="what several raters count (%(default)s)"
    )
    parser.add_argument(
        "--measures",
        nargs="+",
        action=_Measures,
        default=list(measures),
        metavar="NAME",
        help="of error spans; NAME-precision and NAME-recall are parts of one, NAME-parts is all three "
        f"(default: {' '.join(measures)})",
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


def add_evaluation_arguments(parser: argparse.ArgumentParser, measures: Sequence[str] = DEFAULT_MEASURES) -> None:
    """Those of `add_measure_arguments`, and how scores are made of spans and compared."""
    add_measure_arguments(parser, measures)
    add_mqm_option(parser, "of Score(E)")
    add_spa(parser)


def add_spa(parser: argparse.ArgumentParser) -> None:
    """--missing and --spa: which SPA."""
    parser.add_argument(
        "--missing",
        choices=["toolkit", "common", "auto"],
        default="auto",
        help="SPA, where systems are rated on different segments: as mt-metrics-eval, which needs equal numbers; on "
        "the segments that all have; or the first where it can be, else the second (%(default)s)",
    )
    parser.add_argument(
        "--spa",
        choices=["toolkit", "exact"],
        default="toolkit",
        help="1000 permutations, which depend on the order of the systems, as mt-metrics-eval; or infinitely many, "
        "which do not (%(default)s)",
    )


def without_spa(args: argparse.Namespace, beside: str) -> None:
    """Raise `OptionError` for an option of `add_spa`, where `beside` has no SPA."""
    for option, default in (("missing", "auto"), ("spa", "toolkit")):
        if (value := getattr(args, option)) != default:
            raise useless(f"--{option} {value}", beside)


def exact_notes(args: argparse.Namespace) -> list[str]:
    """A line that says so where SPA is exact."""
    return ["SPA: exact, of infinitely many permutations"] if args.spa == "exact" else []


def missing_notes(test_set: TestSet, missing: str) -> list[str]:
    """A line that says which segments SPA uses, if systems have different numbers of ratings.

    Raises:
        InputError: with "toolkit", which cannot compare such systems.
    """
    import numpy as np

    rated = ~np.isnan(test_set.gold)
    counts = rated.sum(axis=1)
    if (counts == counts[0]).all():
        return []
    most, least = int(np.argmax(counts)), int(np.argmin(counts))
    said = (
        f"in {test_set.direction} system {test_set.systems[least]} has {counts[least]} rated segments and "
        f"{test_set.systems[most]} has {counts[most]}"
    )
    if missing == "toolkit":
        raise InputError(
            f"{said}, and mt-metrics-eval's SPA needs equal numbers; leave systems out with --exclude, or give "
            "--missing common"
        )
    return [f"{said}: SPA is computed on the {rated.all(axis=0).sum()} segments that all systems have"]


def add_choice_arguments(parser: argparse.ArgumentParser, rules: Sequence[str], *, least: str) -> None:
    """Stored candidates, those of `add_evaluation_arguments`, and which rules choose.

    Args:
        parser: gets them.
        rules: that are used if none is named.
        least: "+" for at least one rule, "*" for any number.
    """
    parser.add_argument("candidates", metavar="CANDIDATES", help="candidates file, as `mbr-esd decide` reads it")
    add_decision_options(parser, _READING)
    add_evaluation_arguments(parser)
    parser.add_argument(
        "--rules",
        nargs=least,
        default=list(rules),
        metavar="RULE",
        help=f"{', '.join(choosing_rules())} (default: {' '.join(rules)})",
    )


def human_of(args: argparse.Namespace, test_set: TestSet) -> dict[str, AnnotationMatrix]:
    """The requested human ratings by name. Empty if the test set has none and none were named."""
    ratings = test_set.human_ratings(args.raters) if args.raters or test_set.ratings else ()
    return {rating.name: rating.of(test_set.systems, test_set.segments) for rating in ratings}


def metrics_with_spans(args: argparse.Namespace, test_set: TestSet) -> Iterator[tuple[str, StoredMetric, Ratings]]:
    """The chosen metrics that are stored with error spans: full name, metric and spans.

    Raises:
        InputError: a metric that was named has no error spans.
    """
    for name in test_set.find_metrics(args.metric):
        metric = test_set.metric(name)
        if metric.ratings is not None:
            yield name, metric, metric.ratings
        elif args.metric:
            raise InputError(f"{test_set.layout.metric_rating(name)}: no such file; {name} has no error spans")


def evaluator_of(
    args: argparse.Namespace,
    test_set: TestSet,
    human: Sequence[AnnotationMatrix],
    gold: npt.NDArray[np.float64] | None = None,
) -> Evaluator:
    """Evaluates predictions against these raters, as the arguments say; with `gold` instead of the test set's
    gold."""
    from mbr_esd_metric.metaeval.evaluation import Evaluator

    return Evaluator(
        test_set.gold if gold is None else gold,
        human,
        test_set.lengths,
        args.measures,
        args.several,
        args.mqm,
        args.missing,
        args.spa == "exact",
    )


def evaluation_columns(args: argparse.Namespace, group: str) -> list[Column]:
    """Columns for `evaluation_cells`."""
    from mbr_esd_metric.report.leaderboard import MEASURE_TITLES
    from mbr_esd_metric.report.tables import Column

    measures = ("spa", "acc_eq", *args.measures)
    return [
        *(Column(name, MEASURE_TITLES.get(name, name), group, best="max") for name in measures),
        Column("major", "major", group),
        Column("minor", "minor", group),
    ]


def evaluation_cells(args: argparse.Namespace, evaluation: Evaluation) -> list[Cell]:
    """SPA, acc_eq, the span measures (empty without human ratings) and numbers of spans."""
    from mbr_esd_metric.report.tables import Cell

    spans = evaluation.spans.values if evaluation.spans else {}
    values = [evaluation.spa, evaluation.acc_eq, *(spans.get(name) for name in args.measures)]
    return [*map(Cell, values), Cell(evaluation.major), Cell(evaluation.minor)]


def evaluation_curves(args: argparse.Namespace, evaluations: Sequence[Evaluation]) -> dict[str, tuple[float, ...]]:
    """Panel of a plot -> the value of each evaluation: SPA, acc_eq, and the span measures if all have them."""
    from mbr_esd_metric.report.leaderboard import MEASURE_TITLES

    values = {"spa": tuple(e.spa for e in evaluations), "acc_eq": tuple(e.acc_eq for e in evaluations)}
    spans = [e.spans.values for e in evaluations if e.spans]
    if len(spans) == len(evaluations):
        values |= {name: tuple(one[name] for one in spans) for name in args.measures}
    return {MEASURE_TITLES.get(name, name): value for name, value in values.items()}


def constant_notes(test_set: TestSet, evaluations: Mapping[str, Evaluation], spa: str) -> list[str]:
    """A line for each metric with one score for everything; `spa` is the value of the option."""
    from mbr_esd_metric.metaeval.spa import constant_note

    return [
        constant_note(name, test_set.direction, spa == "exact") for name, found in evaluations.items() if found.constant
    ]


def answers_of(args: argparse.Namespace) -> str:
    """The answer format of candidates that do not say theirs."""
    return decision_options(args, _READING).format


def read_sampled(
    test_set: TestSet, path: str, choosing: Sequence[str] = (), answers: str = "json"
) -> list[list[Sampled | None]]:
    """A file of candidates, joined to the translations. Error spans are located in the texts of the test set.

    Args:
        test_set: its translations.
        path: of the file.
        choosing: names of the rules that will choose.
        answers: the answer format of candidates that do not say theirs.

    Raises:
        InputError: a line that cannot be read or belongs to no translation; a translation whose candidates have no
            log-probability, which one of the rules needs.
    """
    from mbr_esd_metric.adapters.wmt.joining import joined
    from mbr_esd_metric.files.records import read_candidates
    from mbr_esd_metric.metaeval.choosing import Sampled

    records = (replace(one, format=one.format or answers) for one in read_candidates(path))
    rows = joined(test_set, ((record.place, record.candidates) for record in records), path)
    sampled = [
        [
            None if found is None else Sampled(translation or "", found, f"segment {number} of {system}")
            for number, (found, translation) in enumerate(zip(row, test_set.outputs[system], strict=True), 1)
        ]
        for system, row in zip(test_set.systems, rows, strict=True)
    ]
    without = [name for name, rule in rules().items() if not rule.needs_logprobs]
    needing = [name for name in choosing if name in rules() and name not in without]
    for cell in (cell for row in sampled for cell in row if cell is not None) if needing else ():
        if all(candidate.logprob is None for candidate in cell.candidates):
            left = [name for name in choosing if name not in needing] or ["mbr", "majority"]
            raise InputError(
                f"{path}: {cell.label} has no log-probabilities, which the rule {needing[0]} needs; leave the rule "
                f"out: --rules {' '.join(left)}"
            )
    return sampled


def check_outputs(args: argparse.Namespace, *inputs: str | Path) -> None:
    """Check ``--output`` and ``--plot`` before any work; the files of the test set are inputs, too."""
    from mbr_esd_metric.files.paths import check_output

    read = [*inputs, test_set_folder(args)]
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
    if args.format == "text":
        tables = [block for table in tables for block in blocks(table, WIDTH)]
    text = render_all(tables, args.format)
    if args.output:
        write_whole(Path(args.output), text)
    else:
        print(text, end="")
