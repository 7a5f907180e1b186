"""`mbr-esd show --plot`: expected utility against log-probability, for one segment, as a table, PNG and SVG."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.data import given_of
from mbr_esd_metric.cli.report import input_paths, read_inputs, reading_options
from mbr_esd_metric.errors import InputError, OptionError, useless

if TYPE_CHECKING:
    from mbr_esd_metric.core.annotation import Annotation
    from mbr_esd_metric.core.candidate import Candidate
    from mbr_esd_metric.report.curves import Point

#: Options of `show` that choose among several segments.
_OF_SEVERAL = ("--worst", "--limit", "--metric")


def add_plot_arguments(parser: argparse.ArgumentParser) -> None:
    """--plot, and what belongs to it."""
    group = parser.add_argument_group("expected utility against log-probability, for one segment")
    group.add_argument("--plot", metavar="OUT.png", help="print the table, and write OUT.png and OUT.svg")
    group.add_argument("--utility", help="the utility (default: softf1)")
    group.add_argument(
        "--model", metavar="NAME", help="also ask this model, in process, how probable the human annotations are to it"
    )


def without_plot(args: argparse.Namespace) -> None:
    """Raise `OptionError` for an option that belongs to ``--plot``."""
    if option := given_of(args, "--utility", "--model"):
        raise useless(option, "segments without --plot")


def plot(args: argparse.Namespace) -> int:
    """Print the table of a segment, and write its plot."""
    from mbr_esd_metric.report.curves import human_points, likelihood_points
    from mbr_esd_metric.report.plots import check_plot, plot_likelihood, save

    check_plot(args.plot, input_paths(args))
    if option := given_of(args, *_OF_SEVERAL):
        raise useless(option, "--plot, which is of one segment")
    if len(args.id) > 1:
        raise OptionError(f"--id {' --id '.join(args.id)}: a plot is of one segment")
    name = args.id[0] if args.id else None
    if args.system is not None and name is None:
        raise OptionError("--system is the system of the segment that --id names; give both")
    options = reading_options(args, "utility")
    segments = _judged(args)
    key = (args.system or "", name) if name is not None else next(iter(segments), None)
    if key not in segments:
        names = ", ".join(" ".join(one).strip() for one in list(segments)[:5])
        raise InputError(f"no candidates for segment {name!r}; there are: {names} ... (--system names the system)")
    src, mt, candidates, humans = segments[key]
    if args.model and not humans:
        raise useless("--model", "a segment that has no human annotation")
    points = likelihood_points(mt, candidates, humans, options)
    if args.model and mt:  # no model is asked about an empty translation
        logprobs = _log_likelihoods(args.model, src, mt, humans)
    else:
        sampled = {point.annotation: point.logprob for point in points}
        logprobs = [sampled.get(human) for human in humans]
    raters = human_points(mt, candidates, humans, logprobs, options)
    _print_points(mt, [*points, *raters])
    paths = save(plot_likelihood(points, raters, options.maximised), Path(args.plot))
    print("written: " + ", ".join(str(path) for path in paths))
    return 0


def _log_likelihoods(name: str, src: str, mt: str, humans: list[Annotation]) -> list[float | None]:
    """log M of each human annotation, written as an answer; None, with a note, if the model cannot write it.

    The grammar is that of the model's samples, so the numbers can be compared. Grounded spans never begin or end
    inside a word.
    """
    from mbr_esd_metric.elicit.formats import get_format
    from mbr_esd_metric.generation.likelihood import LikelihoodEngine
    from mbr_esd_metric.metric.card import with_options
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.metric.pipeline import Segment, plan

    card = with_options(load_card(name), {"engine": "transformers"})
    (request,) = plan(card, [Segment(src, mt, "the segment")]).requests.values()
    answers = get_format(card.decision.format)
    if request.walk is not None:
        raise OptionError(f"only an answer of free text has a log-probability here, not one of format={answers.name}")
    engine = LikelihoodEngine(card.engine_options("transformers"))

    def of(human: Annotation, label: str) -> float | None:
        answer, lost = answers.answer(human, mt)
        if lost:
            why = f"no answer can say {lost} of its errors: their text occurs earlier in the translation"
        else:
            try:
                return engine.log_likelihood(request, answer)
            except InputError as error:
                why = f"{error}; a model name with grounded=false admits any text" if card.grounded else str(error)
        print(f"note: {label} has no log-probability: {why}", file=sys.stderr)
        return None

    try:
        return [of(human, f"human {number}") for number, human in enumerate(humans, 1)]
    finally:
        engine.close()


def _judged(
    args: argparse.Namespace,
) -> dict[tuple[str, str], tuple[str, str, tuple[Candidate, ...], list[Annotation]]]:
    """(system, id) -> source, translation, candidates, human annotations of the segments that have candidates.

    Raises:
        OptionError: not exactly one candidates file among the inputs.
    """
    from mbr_esd_metric.elicit.formats import get_format
    from mbr_esd_metric.files.records import read_candidates
    from mbr_esd_metric.report.inputs import Source, kind_of

    sources = [Source.parse(text) for text in args.inputs]
    files = [source.path for source in sources if kind_of(source.path) == "candidates"]
    if len(files) != 1:
        raise OptionError(f"give one candidates file; there are {len(files)} among the inputs")
    sheet = read_inputs(args, None)
    by_text = {
        (row.system, row.source, row.translation): [
            opinion.annotation.on("translation")
            for column in sheet.columns
            if column.human and (opinion := column.opinions[at]) is not None and opinion.annotation is not None
        ]
        for at, row in enumerate(sheet.rows)
    }
    anywhere = {key[1:]: humans for key, humans in by_text.items() if humans}
    found = {}
    for record in read_candidates(files[0]):
        if get_format(record.format or "json").both_sides:
            raise OptionError(
                f"{files[0]}: --plot shows errors of the translation alone, and not format={record.format}"
            )
        texts = (record.src, record.mt)
        humans = by_text.get((record.system or "", *texts)) or anywhere.get(texts, [])
        found[record.system or "", record.id] = (record.src, record.mt, record.candidates, humans)
    return found


def _print_points(mt: str, points: list[Point]) -> None:
    from mbr_esd_metric.report.terminal import mark

    print(f"{'log-prob.':>10} {'count':>6} {'utility':>8} {'human':>6}  annotation")
    for point in points:
        logprob = "-" if point.logprob is None else f"{point.logprob:.2f}"
        human = "-" if point.human is None else f"{point.human:.3f}"
        chosen = f"  <- {', '.join(point.chosen)}" if point.chosen else ""
        shown = mark(mt, point.annotation, color=False)
        print(f"{logprob:>10} {point.count:>6} {point.utility:>8.3f} {human:>6}  {shown}{chosen}")
