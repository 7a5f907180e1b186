"""`mbr-esd annotate`: campaigns for people, their ratings, and the effect of pre-filled error spans."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.adapters.pearmut.campaign import CampaignPlan, Item, Output, Screen, attention_checks, campaign
from mbr_esd_metric.cli.shared_options import add_table, add_verbs, folder_and_name, run_verb
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, OptionError, number_of, printable, unknown
from mbr_esd_metric.files.paths import check_distinct, check_output, file_name
from mbr_esd_metric.files.streams import json_text, read_segments, write_whole
from mbr_esd_metric.report.tables import render_all

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt import TestSet
    from mbr_esd_metric.report.rating_table import RatingInput, RatingTable

run = run_verb


def configure(parser: argparse.ArgumentParser) -> None:
    """Add its verbs."""
    add_verbs(
        parser,
        {
            "export": ("annotate:export", "a campaign for Pearmut, with error spans to begin from"),
            "import": ("annotate:import", "what annotators gave back, as ratings that every verb reads"),
            "report": ("annotate:report", "the systems compared by people, and what pre-filled spans did"),
        },
    )
    parser.epilog = "example:\n  mbr-esd annotate export --help"


_EXPORT = """\
examples:
  mbr-esd score -s src.txt -t A.txt B.txt --to_json out.json
  mbr-esd annotate export out.json --lp en-de --annotators anna ben --checks 2 -o campaign.json
  pearmut add campaign.json && pearmut run

A file is what `mbr-esd score` and comet-score write, candidates, or decisions and their candidates. Systems have no
names for annotators.
"""


def configure_export(parser: argparse.ArgumentParser) -> None:
    """Inputs, what is marked before people begin, and who sees what."""
    parser.add_argument("inputs", nargs="*", metavar="[NAME=]FILE", help="scored or decided translations")
    parser.add_argument("--test-set", metavar="T", help="instead of files: the folder of one, such as data/wmt24")
    parser.add_argument("--lp", required=True, metavar="LP", help="the language pair, such as en-de")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT.json", help="the campaign; its name is the file's"
    )
    parser.add_argument("--protocol", choices=["ESA", "MQM"], default="ESA", help="spans and a score, or categories")
    parser.add_argument("--annotators", nargs="+", default=["1"], metavar="N", help="how many, or their names")
    parser.add_argument("--each", type=int, default=1, metavar="K", help="annotators of each document (%(default)s)")
    parser.add_argument("--documents", metavar="FILE", help="a document name a source line (default: each line is one)")
    parser.add_argument("--budget", type=int, metavar="N", help="only so many segments, at random, with all systems")
    parser.add_argument("--prefill", metavar="NAME", help="the input whose spans are marked beforehand, or none")
    parser.add_argument("--min-confidence", type=float, metavar="P", help="mark only spans at least this sure")
    parser.add_argument("--bare", type=float, default=0.0, metavar="SHARE", help="of the documents without any span")
    parser.add_argument("--checks", type=int, default=0, metavar="N", help="attention checks for each annotator")
    parser.epilog = _EXPORT


def run_export(args: argparse.Namespace) -> int:
    """Write the campaign."""
    from mbr_esd_metric.report.inputs import Source, read_table

    sources = [Source.parse(text) for text in args.inputs]
    check_output(args.output, [*(source.path for source in sources), args.documents])
    if bool(sources) == bool(args.test_set):
        raise OptionError("give files with translations, or --test-set")
    if not 0 <= args.bare <= 1:
        raise OptionError(f"--bare {args.bare}: give a share from 0 to 1")
    if args.budget is not None and args.budget < 1:
        raise OptionError(f"--budget {args.budget}: give 1 or more segments")
    if args.checks < 0:
        raise OptionError(f"--checks {args.checks}: give 0 or more")
    name = file_name(Path(args.output).name.partition(".")[0], "the campaign")
    test_set = None
    if args.test_set:  # all its systems but the standard reference; nothing need be rated yet
        from mbr_esd_metric.adapters.wmt import load_test_set
        from mbr_esd_metric.adapters.wmt.layout import SystemChoice

        choice = SystemChoice(outliers=True)
        test_set = load_test_set(*folder_and_name(args.test_set), args.lp, choice=choice, blind=True)
    table = read_table(sources, test_set)
    annotations = _prefilled_spans(table, _prefilling(table, args.prefill), args.min_confidence)
    rng = random.Random(0)
    documents = _documents(table, annotations, args, test_set, rng)
    annotators = _annotators(args.annotators)
    checks = attention_checks(documents, args.checks * len(annotators), rng)
    bare = {d.name for d in rng.sample(documents, round(args.bare * len(documents)))}
    documents = [_without_spans(document) if document.name in bare else document for document in documents]
    plan = CampaignPlan(name, args.lp, annotators, args.each, args.protocol)
    write_whole(args.output, json_text(campaign(documents, checks, plan), indent=1))
    items = [item for document in documents for item in document.items]
    spans = sum(len(output.spans or ()) for item in items for output in item.outputs.values())
    print(
        f"{args.output}: {number_of(len(items), 'segment')} of "
        f"{number_of(len({name for item in items for name in item.outputs}), 'system')} in "
        f"{number_of(len(documents), 'document')}, {number_of(spans, 'span')} marked beforehand, "
        f"{number_of(len(annotators), 'annotator')}, {number_of(len(checks), 'attention check')}"
    )
    print(f"next: pearmut add {printable(args.output)} && pearmut run", file=sys.stderr)
    return 0


def _prefilling(table: RatingTable, name: str | None) -> RatingInput | None:
    """The column whose spans are marked beforehand."""
    if name == "none":
        return None
    columns = {
        column.name: column
        for column in table.columns
        if any(rating is not None and rating.annotation is not None for rating in column.ratings)
    }
    if name is not None:
        if name not in columns:
            raise unknown("input with error spans", name, columns)
        return columns[name]
    if len(columns) > 1:
        raise OptionError(f"there are error spans of {', '.join(columns)}; name one with --prefill, or --prefill none")
    return next(iter(columns.values()), None)


def _prefilled_spans(
    table: RatingTable, column: RatingInput | None, least: float | None
) -> Sequence[Annotation | None]:
    """The spans of each row that are marked beforehand."""
    if column is None:
        if least is not None:
            raise OptionError("--min-confidence changes nothing where no span is marked beforehand")
        return [None] * len(table.rows)
    annotations: list[Annotation | None] = []
    for text, rating in zip(table.rows, column.ratings, strict=True):
        annotation = None if rating is None else rating.annotation
        if annotation is not None and least is not None:
            if any(span.confidence is None for span in annotation):
                raise InputError(
                    f"{column.name}, segment {text.id}: a span has no confidence, which --min-confidence needs"
                )
            annotation = Annotation(span for span in annotation if (span.confidence or 0.0) >= least)
        annotations.append(annotation)
    return annotations


def _documents(
    table: RatingTable,
    annotations: Sequence[Annotation | None],
    args: argparse.Namespace,
    test_set: TestSet | None,
    rng: random.Random,
) -> list[Screen]:
    """The segments with all their outputs, in the order of the test set or the first input, whose segments are joined
    by their sources."""
    rows: dict[object, list[int]] = defaultdict(list)
    times: Counter[tuple[str, str]] = Counter()
    if test_set is not None:
        for row in sorted(range(len(table.rows)), key=lambda row: int(table.rows[row].id)):
            rows[table.rows[row].id].append(row)
        labels = [str(key) for key in rows]
        names = [test_set.documents[int(label) - 1][1] for label in labels]
    else:
        inputs: dict[tuple[str, str], set[str]] = {}
        for row, text in enumerate(table.rows):
            of_row = {column.name for column in table.columns if column.ratings[row] is not None}
            first = inputs.setdefault((text.system, text.source), of_row)
            if first and of_row and first.isdisjoint(of_row):
                raise InputError(
                    f"segment {text.id}: two files have a system {text.system or 'without a name'}, with two "
                    "translations; give one of the systems another name"
                )
            rows[text.source, times[text.system, text.source]].append(row)
            times[text.system, text.source] += 1
        labels = names = [str(n) for n in range(1, len(rows) + 1)]
    if args.documents is not None:
        names = [line.split("\t")[-1] for line in read_segments(args.documents)]
        if len(names) != len(rows):
            raise InputError(
                f"{args.documents} names the documents of {len(names)} segments, and there are {len(rows)}"
            )
    segments = list(rows.values())
    numbers: Sequence[int] = range(len(segments))
    if args.budget is not None and args.budget < len(segments):
        numbers = sorted(rng.sample(numbers, args.budget))
    grouped: dict[str, list[Item]] = defaultdict(list)
    for number in numbers:
        texts = [(table.rows[row], annotations[row]) for row in segments[number]]
        outputs = {text.system or "system": Output(text.translation, annotation) for text, annotation in texts}
        grouped[names[number]].append(Item(labels[number], texts[0][0].source, outputs))
    return [Screen(name, tuple(items)) for name, items in grouped.items()]


def _annotators(names: Sequence[str]) -> tuple[str, ...]:
    """The names, or as many as the only one says."""
    if len(names) == 1 and names[0].isdigit():
        if int(names[0]) < 1:
            raise OptionError(f"--annotators {names[0]}: give 1 or more, or names")
        return tuple(f"annotator{number + 1}" for number in range(int(names[0])))
    if len(set(names)) < len(names):
        raise OptionError(f"--annotators {' '.join(names)}: a name is there twice")
    return tuple(names)


def _without_spans(document: Screen) -> Screen:
    items = tuple(
        replace(item, outputs={name: replace(output, spans=None) for name, output in item.outputs.items()})
        for item in document.items
    )
    return replace(document, items=items)


_IMPORT = """\
examples:
  mbr-esd annotate import campaign.json annotations.json -o ratings.jsonl    Pearmut's download
  mbr-esd annotate import FOLDER -o ratings.jsonl                            the folder in which it runs
  mbr-esd report out.json ratings.jsonl -o report.html

`report`, `show`, `calibrate` and `wmt` read the ratings. Attention checks are left out.
"""


def configure_import(parser: argparse.ArgumentParser) -> None:
    """The campaign, its annotations, and where the ratings go."""
    parser.add_argument("campaign", metavar="CAMPAIGN", help="the campaign's file, or the folder where Pearmut runs")
    parser.add_argument("annotations", nargs="?", metavar="ANNOTATIONS", help="the download, where that is a file")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.jsonl", help="the ratings")
    parser.add_argument("--lp", metavar="LP", help="the language pair, where the campaign was not made here")
    parser.add_argument("--campaign", dest="name", metavar="NAME", help="which one, if there are several")
    parser.epilog = _IMPORT


def run_import(args: argparse.Namespace) -> int:
    """Write the ratings, and say who passed the attention checks."""
    from mbr_esd_metric.adapters.pearmut.annotations import Campaign, ratings_of, read_campaign, read_log
    from mbr_esd_metric.adapters.ratings import write_person_ratings

    check_output(args.output, [args.campaign, args.annotations])
    made, log = read_campaign(args.campaign, args.name)
    if args.annotations is not None:
        log = read_log(args.annotations, str(made["campaign_id"]))
    if log is None:
        raise InputError(
            f"{args.campaign} is the campaign alone; give the annotations that Pearmut's page downloads too"
        )
    answers = ratings_of(Campaign.of(made, args.lp), log)
    if not answers.ratings:
        raise InputError(f"{args.campaign}: nobody has finished a screen of {made['campaign_id']} yet")
    write_person_ratings(args.output, answers.ratings)
    people = number_of(len({one.rating.rater for one in answers.ratings}), "annotator")
    print(f"{printable(args.output)}: {number_of(len(answers.ratings), 'rating')} of {people}")
    for reason, count in answers.left_out.items():
        print(f"  {count} left out: {reason}")
    for person, (passed, shown) in answers.checks.items():
        if shown:
            print(f"  {printable(person)} passed {passed} of {number_of(shown, 'attention check')}")
    return 0


def configure_report(parser: argparse.ArgumentParser) -> None:
    """The ratings, and how the tables look."""
    parser.add_argument("ratings", nargs="+", metavar="RATINGS", help="what `mbr-esd annotate import` wrote")
    add_table(parser)
    parser.epilog = "example:\n  mbr-esd annotate report ratings.jsonl"


def run_report(args: argparse.Namespace) -> int:
    """Print the tables."""
    from mbr_esd_metric.adapters.ratings import read_person_ratings
    from mbr_esd_metric.report.people import people_tables

    check_distinct(args.ratings, "ratings")
    ratings = [one for path in args.ratings for one in read_person_ratings(path)]
    print(render_all(people_tables(ratings, args.ratings), args.table), end="")
    return 0
