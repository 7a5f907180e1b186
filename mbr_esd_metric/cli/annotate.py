"""`mbr-esd annotate`: Pearmut campaigns, their ratings, and the effect of pre-filled error spans."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.adapters.pearmut.campaign import Item, Output, Screen, attention_checks, campaign
from mbr_esd_metric.cli.score_inputs import document_names
from mbr_esd_metric.cli.shared_options import folder_and_name
from mbr_esd_metric.cli.verbs import Verb, add_verbs
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import check_distinct, check_output, file_name
from mbr_esd_metric.files.streams import json_text, write_whole
from mbr_esd_metric.messages import number_of, printable
from mbr_esd_metric.prompting.languages import language_pair
from mbr_esd_metric.report.tables import render_all

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt import TestSet
    from mbr_esd_metric.report.inputs import JudgedTable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add its subcommands."""
    verbs = (
        Verb("export", "create a Pearmut campaign, optionally with pre-filled error spans", f"{__name__}:export"),
        Verb("import", "convert Pearmut's annotations to ratings that the other commands read", f"{__name__}:import"),
        Verb(
            "report",
            "compare systems by human ratings, and measure the effect of pre-filled spans",
            f"{__name__}:report",
        ),
    )
    add_verbs(parser, verbs)
    parser.epilog = "example:\n  mbr-esd annotate export --help"


_EXPORT = """\
examples:
  mbr-esd score -s src.txt -t A.txt B.txt --to_json out.json
  mbr-esd annotate export out.json --lp en-de --annotators anna ben --checks 2 -o campaign.json
  pearmut add campaign.json && pearmut run

Inputs are the output of `mbr-esd score --to_json` or comet-score --to_json, candidates, or decisions with their
candidates. Annotators do not see system names.
"""


def configure_export(parser: argparse.ArgumentParser) -> None:
    """Add inputs, pre-filled spans, and the assignment of documents to annotators."""
    parser.add_argument("inputs", nargs="*", metavar="[NAME=]FILE", help="scored or decided translations")
    parser.add_argument(
        "--test-set", metavar="T", help="read this test set instead of files: its folder, such as data/wmt24"
    )
    parser.add_argument("--lp", required=True, metavar="LP", help="language pair, such as en-de")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT.json", help="campaign file; the campaign gets the file's name"
    )
    parser.add_argument(
        "--protocol",
        choices=["ESA", "MQM"],
        default="ESA",
        help="protocol: spans and a score, or spans with categories",
    )
    parser.add_argument(
        "--annotators", nargs="+", default=["1"], metavar="N", help="number of annotators, or their names"
    )
    parser.add_argument(
        "--each", type=int, default=1, metavar="K", help="number of annotators per document (%(default)s)"
    )
    parser.add_argument(
        "--documents",
        metavar="FILE",
        help="file with the document name of each source line (default: every line is its own document)",
    )
    parser.add_argument("--budget", type=int, metavar="N", help="sample N segments at random, each with all systems")
    parser.add_argument("--prefill", metavar="NAME", help="pre-fill the spans of this input, or none")
    parser.add_argument(
        "--min-confidence", type=float, metavar="P", help="pre-fill only spans with at least this confidence"
    )
    parser.add_argument("--checks", type=int, default=0, metavar="N", help="number of attention checks per annotator")
    parser.epilog = _EXPORT


def run_export(args: argparse.Namespace) -> int:
    """Write the campaign."""
    from mbr_esd_metric.files.paths import NamedPath
    from mbr_esd_metric.report.inputs import read_table

    sources = [NamedPath.parse(text) for text in args.inputs]
    check_output(args.output, [*(source.path for source in sources), args.documents])
    if bool(sources) == bool(args.test_set):
        raise OptionError("specify files with translations, or --test-set")
    if args.checks < 0:
        raise OptionError(f"--checks {args.checks}: must be 0 or more")
    if args.min_confidence is not None and not 0 <= args.min_confidence <= 1:
        raise OptionError(f"--min-confidence {args.min_confidence}: must be between 0 and 1")
    if args.budget is not None and args.budget < 1:
        raise OptionError(f"--budget {args.budget}: must be 1 or more")
    language_pair(args.lp)
    name = file_name(Path(args.output).name.partition(".")[0], "the campaign")
    test_set = None
    if args.test_set:  # all systems except the standard reference; gold scores may be missing
        from mbr_esd_metric.adapters.wmt import load_test_set
        from mbr_esd_metric.adapters.wmt.layout import SystemChoice

        choice = SystemChoice(outliers=True)
        test_set = load_test_set(*folder_and_name(args.test_set), args.lp, choice=choice, blind=True)
    table = read_table(sources, test_set)
    prefilled = _prefilled(table, args.prefill, args.min_confidence)
    documents = _documents(table, prefilled, test_set, args)
    annotators = _annotators(args.annotators)
    checks = attention_checks(documents, args.checks * len(annotators), random.Random(0))
    made = campaign(documents, checks, name, args.lp, annotators, each=args.each, protocol=args.protocol)
    write_whole(args.output, json_text(made, indent=1))
    items = [item for document in documents for item in document.items]
    systems = len({name for item in items for name in item.outputs})
    spans = sum(len(output.spans or ()) for item in items for output in item.outputs.values())
    print(
        f"{args.output}: {number_of(len(items), 'segment')} of {number_of(systems, 'system')} in "
        f"{number_of(len(documents), 'document')}, {number_of(spans, 'span')} pre-filled, "
        f"{number_of(len(annotators), 'annotator')}, {number_of(len(checks), 'attention check')}"
    )
    print(f"next: pearmut add {printable(args.output)} && pearmut run", file=sys.stderr)
    return 0


def _prefilled(table: JudgedTable, name: str | None, least: float | None) -> Sequence[Annotation | None]:
    """The pre-filled spans of each row: those of the input `name`, or of the only input with spans."""
    from mbr_esd_metric.report.inputs import column_named

    columns = [column for column in table.columns if any(one and one.annotation is not None for one in column.judged)]
    names = [column.name for column in columns]
    if name is None and len(columns) > 1:
        raise OptionError(
            f"several inputs have error spans ({', '.join(names)}); choose one with --prefill, or use --prefill none"
        )
    name = name or next(iter(names), "none")
    if name == "none":
        if least is not None:
            raise OptionError("--min-confidence has no effect without pre-filled spans")
        return [None] * len(table.rows)
    judged = column_named(columns, name, "input with error spans").judged
    annotations = [None if one is None else one.annotation for one in judged]
    if least is None:
        return annotations
    for text, annotation in zip(table.rows, annotations, strict=True):
        if any(span.confidence is None for span in annotation or ()):
            raise InputError(f"{name}, segment {text.label}: a span has no confidence; --min-confidence needs one")
    return [each and Annotation(span for span in each if (span.confidence or 0.0) >= least) for each in annotations]


def _documents(
    table: JudgedTable, annotations: Sequence[Annotation | None], test_set: TestSet | None, args: argparse.Namespace
) -> list[Screen]:
    """The segments (with ``--budget``, a random sample) with all their outputs, grouped by document, in the order of
    the test set or of the first input; inputs are joined by source."""
    rows: dict[object, list[int]] = defaultdict(list)
    if test_set is not None:
        for row in sorted(range(len(table.rows)), key=lambda row: int(table.rows[row].label)):
            rows[table.rows[row].label].append(row)
        labels = [str(key) for key in rows]
        names = [test_set.documents[int(label) - 1][1] for label in labels]
    else:
        times: Counter[tuple[str, str]] = Counter()
        inputs: dict[tuple[str, str], set[str]] = {}
        for row, text in enumerate(table.rows):
            of_row = {column.name for column in table.columns if column.judged[row] is not None}
            first = inputs.setdefault((text.system, text.source), of_row)
            if first and of_row and first.isdisjoint(of_row):
                raise InputError(
                    f"segment {text.label}: two files have a system {text.system or 'without a name'}, with two "
                    "translations; give one of the systems another name"
                )
            rows[text.source, times[text.system, text.source]].append(row)
            times[text.system, text.source] += 1
        labels = names = [str(n) for n in range(1, len(rows) + 1)]
    if args.documents is not None:
        names = document_names(args.documents, "the campaign", len(rows))
    grouped: dict[str, list[Item]] = defaultdict(list)
    segments = list(zip(names, labels, rows.values(), strict=True))
    if args.budget is not None and args.budget < len(segments):
        segments = [segments[at] for at in sorted(random.Random(0).sample(range(len(segments)), args.budget))]
    for name, label, numbers in segments:
        texts = [(table.rows[row], annotations[row]) for row in numbers]
        outputs = {text.system or "system": Output(text.translation, annotation) for text, annotation in texts}
        grouped[name].append(Item(label, texts[0][0].source, outputs))
    return [Screen(name, tuple(items)) for name, items in grouped.items()]


def _annotators(names: Sequence[str]) -> tuple[str, ...]:
    """The annotators' names; generated names if only a number is given."""
    if len(names) == 1 and names[0].isdigit():
        if int(names[0]) < 1:
            raise OptionError(f"--annotators {names[0]}: must be 1 or more, or a list of names")
        return tuple(f"annotator{number + 1}" for number in range(int(names[0])))
    if len(set(names)) < len(names):
        raise OptionError(f"--annotators {' '.join(names)}: duplicate name")
    return tuple(names)


_IMPORT = """\
examples:
  mbr-esd annotate import campaign.json annotations.json -o ratings.jsonl    Pearmut's download
  mbr-esd annotate import FOLDER -o ratings.jsonl                            Pearmut's working folder
  mbr-esd report out.json ratings.jsonl -o report.html

`report`, `show`, `calibrate` and `wmt` read the ratings. Attention checks are left out.
"""


def configure_import(parser: argparse.ArgumentParser) -> None:
    """Add the campaign, its annotations, and the output."""
    parser.add_argument("campaign", metavar="CAMPAIGN", help="campaign file, or Pearmut's working folder")
    parser.add_argument(
        "annotations",
        nargs="?",
        metavar="ANNOTATIONS",
        help="annotations downloaded from Pearmut; required if CAMPAIGN is a file",
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT.jsonl", help="ratings file to write")
    parser.add_argument("--lp", metavar="LP", help="language pair, for campaigns that mbr-esd did not create")
    parser.epilog = _IMPORT


def run_import(args: argparse.Namespace) -> int:
    """Write the ratings, and print the attention checks that each annotator passed."""
    from mbr_esd_metric.adapters.pearmut.annotations import Campaign, answers_of, ratings_of, read_campaign, read_log
    from mbr_esd_metric.adapters.ratings import write_rating_lines

    check_output(args.output, [args.campaign, args.annotations])
    made, log = read_campaign(args.campaign)
    if args.annotations is not None:
        log = read_log(args.annotations, str(made["campaign_id"]))
    if log is None:
        raise InputError(f"{args.campaign} is only the campaign; also specify the annotations downloaded from Pearmut")
    campaign = Campaign.of(made, args.lp)
    answers = answers_of(campaign, log)
    ratings = ratings_of(campaign, answers)
    if not ratings:
        raise InputError(f"{args.campaign}: no annotator has completed a screen of {made['campaign_id']} yet")
    write_rating_lines(args.output, ratings)
    people = number_of(len({one.rater for one in ratings}), "annotator")
    print(f"{printable(args.output)}: {number_of(len(ratings), 'rating')} of {people}")
    for reason, count in answers.left_out.items():
        print(f"  {count} left out: {reason}")
    for person, checks in answers.checks.items():
        if checks:
            print(f"  {printable(person)} passed {sum(checks.values())} of {number_of(len(checks), 'attention check')}")
    return 0


def configure_report(parser: argparse.ArgumentParser) -> None:
    """Add the ratings."""
    parser.add_argument("ratings", nargs="+", metavar="RATINGS", help="output of `mbr-esd annotate import`")
    parser.epilog = "example:\n  mbr-esd annotate report ratings.jsonl"


def run_report(args: argparse.Namespace) -> int:
    """Print the tables."""
    from mbr_esd_metric.adapters.ratings import read_rating_lines
    from mbr_esd_metric.report.people import people_tables

    check_distinct(args.ratings)
    ratings = [one for path in args.ratings for one in read_rating_lines(path)]
    print(render_all(people_tables(ratings, args.ratings), "text"), end="")
    return 0
