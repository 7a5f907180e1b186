"""`mbr-esd distill`: the data sets, configurations and cards that TRL trains with."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import check_distinct, check_folder, check_output

if TYPE_CHECKING:
    from mbr_esd_metric.distill.training_folder import Method, TrainingRow
    from mbr_esd_metric.files.records import CandidateRecord
    from mbr_esd_metric.metric.card import ModelCard

#: An example of each step, in order.
_EXAMPLES = {
    "pairs": "mbr-esd distill pairs en-de.jsonl zh-en.jsonl --model mbr-esd-llama -o distilled\n"
    "  trl dpo --config distilled/dpo.yaml --accelerate_config zero3\n"
    "  mbr-esd score -s src.txt -t mt.txt --model distilled/model",
    "sft": "mbr-esd distill sft mqm_ted_ende.tsv --lp en-de --model mbr-esd-llama -o started\n"
    "  trl sft --config started/sft.yaml --accelerate_config zero3",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's own verbs and their arguments."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    pairs = steps.add_parser("pairs", help="candidates -> preference pairs, chosen and rejected by MBR, for `trl dpo`")
    pairs.add_argument("inputs", nargs="+", metavar="CANDIDATES", help="JSON lines or .gen.json")
    pairs.set_defaults(run_step=_pairs)
    sft = steps.add_parser("sft", help="human annotations, or MBR's choices of candidates -> examples, for `trl sft`")
    sft.add_argument(
        "inputs",
        nargs="+",
        metavar="FILE",
        help="Google's MQM TSV, a table of WMT's QE task, ratings as JSON lines; or candidates",
    )
    sft.add_argument("--examples", type=int, metavar="N", help="at most so many human annotations a file")
    sft.add_argument(
        "--clean-share", type=float, default=0.1, metavar="X", help="of human ones without errors (default: 0.1)"
    )
    sft.set_defaults(run_step=_sft)
    for step, one in (("pairs", pairs), ("sft", sft)):
        one.add_argument("-o", "--output", required=True, metavar="FOLDER", help="data set, configurations and cards")
        one.add_argument(
            "--model", default="mbr-esd-llama", help="to train; of candidates, as it was sampled (default: %(default)s)"
        )
        one.add_argument(
            "--lp", nargs="+", default=[], help="language pair such as en-de, or one a FILE, where files do not say it"
        )
        one.add_argument(
            "--split", choices=["source", "random"], default="source", help="hold out a tenth: whole sources, or rows"
        )
        one.formatter_class = argparse.RawDescriptionHelpFormatter
        one.epilog = f"example:\n  {_EXAMPLES[step]}"


def run(args: argparse.Namespace) -> int:
    """Run one step."""
    return int(args.run_step(args))


def _pairs(args: argparse.Namespace) -> int:
    from mbr_esd_metric.distill.preferences import make_pairs, pairs_signature

    card, lps = _checked(args)
    for first in islice(_records([(args.inputs[0], None)]), 1):
        card = replace(card, decision=replace(card.decision, format=first.columns.format or card.decision.format))
    pairs = make_pairs(_records(zip(args.inputs, lps, strict=True)), card)
    print(pairs.report())
    return _write(args, "dpo", pairs.rows, card, pairs_signature(card), greedy=True)


def _sft(args: argparse.Namespace) -> int:
    from mbr_esd_metric.adapters.rating_formats import read_mqm
    from mbr_esd_metric.distill.supervision import HumanAnnotation, Limits, choices, examples_signature, select
    from mbr_esd_metric.report.inputs import kind_of_input

    card, lps = _checked(args)
    limits = Limits(args.examples, args.clean_share)
    parts = []
    by_people = False
    for path, lp in zip(args.inputs, lps, strict=True):
        if kind_of_input(Path(path)) == "candidates":
            parts.append(select(choices(_records([(path, lp)]), card), card, Limits(None, None)))
            continue
        by_people, ratings = True, read_mqm(path)
        if lp is None and any(rating.lp is None for rating in ratings):
            raise InputError(f"{path} does not say its language pair; give it with --lp, for instance --lp en-de")
        annotations = [
            HumanAnnotation(r.source, r.target, r.lp or lp or "", r.annotation)
            for r in ratings
            if r.annotation or not r.errors  # errors without a place are none to be taught as "no error"
        ]
        parts.append(select(annotations, card, limits))
    print(*(part.report() for part in parts), sep="\n")
    rows = [row for part in parts for row in part.rows]
    return _write(args, "sft", rows, card, examples_signature(card), greedy=not by_people)


def _checked(args: argparse.Namespace) -> tuple[ModelCard, list[str | None]]:
    """The model, and the language pair of each input where it is given; arguments are checked before any work."""
    from mbr_esd_metric.distill.training_folder import question_of
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.prompting.languages import language_names

    card = load_card(args.model)
    question_of(card)
    check_distinct(args.inputs, "files")
    check_folder(args.output)
    for part in ("train", "validation"):
        if (path := Path(args.output, f"{part}.jsonl")).exists():
            check_output(path, args.inputs)
    lps: list[str | None] = args.lp or [card.lp]
    for lp in lps:
        language_names(lp)
    if len(lps) not in (1, len(args.inputs)):
        raise OptionError(
            f"--lp {' '.join(args.lp)}: give one language pair, or one for each of {len(args.inputs)} files"
        )
    return card, lps * len(args.inputs) if len(lps) == 1 else lps


def _records(inputs: Iterable[tuple[str, str | None]]) -> Iterator[CandidateRecord]:
    """The candidates, each with its language pair: that of the file, or else the given one."""
    from mbr_esd_metric.files.records import read_candidates

    for path, lp in inputs:
        for record in read_candidates(path):
            if lp is not None and record.lp not in (None, lp):
                raise InputError(f"{path}, {record.label}: its language pair is {record.lp}, not {lp}; leave --lp out")
            yield record if record.lp is not None else replace(record, lp=lp)


def _write(
    args: argparse.Namespace, method: Method, rows: Sequence[TrainingRow], card: ModelCard, signature: str, greedy: bool
) -> int:
    from mbr_esd_metric.distill.training_folder import held_out, write_training_folder

    held = held_out([row.source for row in rows], args.split)
    print(f"{held.count(False)} to train on, {held.count(True)} for validation, split by {args.split}")
    signature += f"|split:{args.split}"
    folder = Path(args.output)
    for path in write_training_folder(folder, method, rows, held, card, signature, greedy=greedy):
        print(f"written: {path}")
    print(f"train:   trl {method} --config {folder / f'{method}.yaml'} --accelerate_config zero3")
    print(f"score:   --model {folder / 'model'}")
    print(f"signature: {signature}")
    return 0
