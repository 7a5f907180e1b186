"""`mbr-esd annotate export`: a campaign for Pearmut from any scored or decided translations."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import InputError, OptionError, number_of, unknown, useless

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.pearmut.campaign import Item, Output, Screen
    from mbr_esd_metric.adapters.wmt import TestSet
    from mbr_esd_metric.core.annotation import Annotation
    from mbr_esd_metric.core.recalibration import Recalibration
    from mbr_esd_metric.report.rating_table import RatingColumn, RatingTable

_EPILOG = """\
examples:
  mbr-esd score -s src.txt -t A.txt B.txt --to_json out.json
  mbr-esd annotate export out.json --lp en-de --annotators anna ben --checks 2 -o campaign.json
  pearmut add campaign.json && pearmut run

A file is what `mbr-esd score` and comet-score write, or decisions and the candidates that they were made from.
"""


#: Names of `annotation_priority.STRATEGIES`, without loading numpy.
_STRATEGIES = ("random", "errors", "metrics", "disagreement")


def configure(parser: argparse.ArgumentParser) -> None:
    """Inputs, what is marked before people begin, and who sees what."""
    parser.add_argument("inputs", nargs="*", metavar="[NAME=]FILE", help="scored or decided translations")
    parser.add_argument("--test-set", metavar="T", help="instead of files: one in the layout of mt-metrics-eval")
    parser.add_argument("--data", metavar="DATA", help="its folder (default: that of mt-metrics-eval)")
    parser.add_argument("--lp", required=True, metavar="LP", help="the language pair, such as en-de")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT.json", help="the campaign; its name is the file's"
    )
    parser.add_argument("--protocol", choices=["ESA", "MQM"], default="ESA", help="spans and a score, or categories")
    parser.add_argument("--annotators", nargs="+", default=["1"], metavar="N", help="how many, or their names")
    parser.add_argument("--each", type=int, default=1, metavar="K", help="annotators of each document (%(default)s)")
    parser.add_argument("--documents", metavar="FILE", help="a document name a source line (default: each line is one)")
    parser.add_argument("--budget", type=int, metavar="N", help="only so many segments, with all their systems")
    parser.add_argument("--by", choices=_STRATEGIES, default="random", help="how --budget chooses them (%(default)s)")
    parser.add_argument("--prefill", metavar="NAME", help="the input whose spans are marked beforehand, or none")
    parser.add_argument("--min-confidence", type=float, metavar="P", help="mark only spans at least this sure")
    parser.add_argument("--calibration", metavar="FILE", help="of these confidences, from `mbr-esd calibrate --save`")
    parser.add_argument("--bare", type=float, default=0.0, metavar="SHARE", help="of the documents without any span")
    parser.add_argument("--checks", type=int, default=0, metavar="N", help="attention checks for each annotator")
    parser.add_argument("--names", action="store_true", help="show the systems' names (default: blind)")
    parser.add_argument("--seed", type=int, default=0, help="of every draw (%(default)s)")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Write the campaign."""
    from pathlib import Path

    from mbr_esd_metric.adapters.pearmut.campaign import CampaignPlan, campaign
    from mbr_esd_metric.files.paths import check_output, file_name
    from mbr_esd_metric.files.records import read_recalibration
    from mbr_esd_metric.files.streams import json_text, write_whole
    from mbr_esd_metric.report.inputs import Source, read_sheet

    sources = [Source.parse(text) for text in args.inputs]
    check_output(args.output, [*(source.path for source in sources), args.documents, args.calibration])
    if bool(sources) == bool(args.test_set):
        raise OptionError("give files with translations, or --test-set")
    if args.data and not args.test_set:
        raise useless(f"--data {args.data}", "files")
    if not 0 <= args.bare <= 1:
        raise OptionError(f"--bare {args.bare}: give a share from 0 to 1")
    if args.budget is not None and args.budget < 1:
        raise OptionError(f"--budget {args.budget}: give 1 or more segments")
    if args.budget is None and args.by != "random":
        raise useless(f"--by {args.by}", "a campaign without --budget")
    if args.checks < 0:
        raise OptionError(f"--checks {args.checks}: give 0 or more")
    name = file_name(Path(args.output).name.partition(".")[0], "the campaign")
    test_set = _test_set(args)
    sheet = read_sheet(sources, test_set)
    by = read_recalibration(args.calibration) if args.calibration else None
    column = _prefilling(sheet, args.prefill)
    annotations = _marked(sheet, column, by, args.min_confidence)
    documents = _documents(sheet, annotations, args, test_set)
    annotators = _annotators(args.annotators)
    rng = random.Random(args.seed)
    checks = _checks(documents, args.lp, args.checks * len(annotators), rng)
    bare = {d.name for d in rng.sample(documents, round(args.bare * len(documents)))}
    documents = [_without_spans(document) if document.name in bare else document for document in documents]
    plan = CampaignPlan(name, args.lp, annotators, args.each, args.protocol, args.names, args.seed)
    write_whole(args.output, json_text(campaign(documents, checks, plan), indent=1))
    items = [item for document in documents for item in document.items]
    spans = sum(len(output.spans or ()) for item in items for output in item.outputs.values())
    print(
        f"{args.output}: {number_of(len(items), 'segment')} of "
        f"{number_of(len({name for item in items for name in item.outputs}), 'system')} in "
        f"{number_of(len(documents), 'document')}, {number_of(spans, 'span')} marked beforehand, "
        f"{number_of(len(annotators), 'annotator')}, {number_of(len(checks), 'attention check')}"
    )
    print(f"next: pearmut add {args.output} && pearmut run", file=sys.stderr)
    return 0


def _test_set(args: argparse.Namespace) -> TestSet | None:
    """All its systems but the standard reference; nothing need be rated yet."""
    if not args.test_set:
        return None
    from mbr_esd_metric.adapters.wmt import load_test_set
    from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice

    return load_test_set(args.data, args.test_set, args.lp, choice=SystemChoice(outliers=True), blind=True)


def _prefilling(sheet: RatingTable, name: str | None) -> RatingColumn | None:
    """The column whose spans are marked beforehand."""
    if name == "none":
        return None
    columns = {
        column.name: column
        for column in sheet.columns
        if any(opinion is not None and opinion.annotation is not None for opinion in column.ratings)
    }
    if name is not None:
        if name not in columns:
            raise unknown("input with error spans", name, columns)
        return columns[name]
    if len(columns) > 1:
        raise OptionError(f"there are error spans of {', '.join(columns)}; name one with --prefill, or --prefill none")
    return next(iter(columns.values()), None)


def _marked(
    sheet: RatingTable, column: RatingColumn | None, by: Recalibration | None, least: float | None
) -> Sequence[Annotation | None]:
    """The spans of each row that are marked beforehand."""
    from mbr_esd_metric.core.annotation import Annotation

    if column is None:
        if by is not None or least is not None:
            raise OptionError("--min-confidence and --calibration change nothing where no span is marked beforehand")
        return [None] * len(sheet.rows)
    found: list[Annotation | None] = []
    for text, opinion in zip(sheet.rows, column.ratings, strict=True):
        annotation = None if opinion is None else opinion.annotation
        if annotation is not None and by is not None:
            annotation = by.annotation(annotation)
        if annotation is not None and least is not None:
            if any(span.confidence is None for span in annotation):
                raise InputError(
                    f"{column.name}, segment {text.id}: a span has no confidence, which --min-confidence needs"
                )
            annotation = Annotation(span for span in annotation if (span.confidence or 0.0) >= least)
        found.append(annotation)
    return found


def _documents(
    sheet: RatingTable, annotations: Sequence[Annotation | None], args: argparse.Namespace, test_set: TestSet | None
) -> list[Screen]:
    """The segments with all their outputs, in the order of the test set or the first input, whose segments are joined
    by their sources."""
    from mbr_esd_metric.adapters.pearmut.campaign import Item, Output, Screen
    from mbr_esd_metric.files.streams import read_segments
    from mbr_esd_metric.report.annotation_priority import prioritised

    rows: dict[object, list[int]] = defaultdict(list)
    times: Counter[tuple[str, str]] = Counter()
    if test_set is not None:
        for row in sorted(range(len(sheet.rows)), key=lambda row: int(sheet.rows[row].id)):
            rows[sheet.rows[row].id].append(row)
        labels = [str(key) for key in rows]
        names = [test_set.documents[int(label) - 1][1] for label in labels]
    else:
        for row, text in enumerate(sheet.rows):
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
    wanted: Sequence[int] = range(len(segments))
    if args.budget is not None:
        wanted = prioritised(segments, args.budget, args.by, sheet, annotations, args.seed)
    grouped: dict[str, list[Item]] = defaultdict(list)
    for number in wanted:
        own = [(sheet.rows[row], annotations[row]) for row in segments[number]]
        outputs = {text.system or "system": Output(text.translation, annotation) for text, annotation in own}
        grouped[names[number]].append(Item(labels[number], own[0][0].source, outputs))
    return [Screen(name, tuple(items)) for name, items in grouped.items()]


def _annotators(given: Sequence[str]) -> tuple[str, ...]:
    if len(given) == 1 and given[0].isdigit():
        if int(given[0]) < 1:
            raise OptionError(f"--annotators {given[0]}: give 1 or more, or names")
        return tuple(f"annotator{number + 1}" for number in range(int(given[0])))
    if len(set(given)) < len(given):
        raise OptionError(f"--annotators {' '.join(given)}: a name is there twice")
    return tuple(given)


def _checks(documents: Sequence[Screen], lp: str, wanted: int, rng: random.Random) -> list[Screen]:
    """Segments again, with an error planted in a translation in which no span is marked."""
    from mbr_esd_metric.adapters.pearmut.campaign import Screen
    from mbr_esd_metric.core.annotation import EMPTY
    from mbr_esd_metric.distill.planted import Planter
    from mbr_esd_metric.distill.supervision import HumanAnnotation

    if not wanted:
        return []
    clean = [
        (HumanAnnotation(item.source, output.text, lp, EMPTY), item, system)
        for document in documents
        for item in document.items
        for system, output in item.outputs.items()
        if not output.spans
    ]
    planter = Planter(example for example, _, _ in clean)
    found: list[Screen] = []
    # One in each translation first; a second round plants another error, where there is room for one.
    for example, item, system in rng.sample(clean, len(clean)) * 3:
        if len(found) == wanted:
            break
        one = planter.plant(example, rng)
        planted = one.annotation.spans[0] if one is not None else None
        # A missing word has no place to mark, and a wrong form is a matter of taste.
        if one is None or planted is None or planted.severity != "major" or planted.category == "planted/omission":
            continue
        output = replace(item.outputs[system], text=one.translation, check=planted)
        outputs: Mapping[str, Output] = {**item.outputs, system: output}
        check: Item = replace(item, outputs=outputs)
        found.append(Screen(f"check {len(found) + 1}", (check,)))
    if len(found) < wanted:
        raise InputError(
            f"errors can be planted in {len(found)} translations without marked spans, and {wanted} attention checks "
            "are wanted; lower --checks, or give more segments"
        )
    return found


def _without_spans(document: Screen) -> Screen:
    items = tuple(
        replace(item, outputs={name: replace(output, spans=None) for name, output in item.outputs.items()})
        for item in document.items
    )
    return replace(document, items=items)
