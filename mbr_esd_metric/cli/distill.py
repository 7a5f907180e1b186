"""`mbr-esd distill`: data sets, configurations and model folders for training with TRL."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.verbs import Verb, add_verbs
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import check_distinct, check_folder, check_output
from mbr_esd_metric.messages import number_of

if TYPE_CHECKING:
    from mbr_esd_metric.distill.training_folder import Method
    from mbr_esd_metric.distill.training_rows import TrainingRow
    from mbr_esd_metric.files.records import CandidateRecord
    from mbr_esd_metric.metric.card import ModelCard


def configure(parser: argparse.ArgumentParser) -> None:
    """Add its subcommands."""
    verbs = (
        Verb(
            "pairs",
            "build preference pairs (chosen and rejected by MBR) from candidates, for `trl dpo`",
            f"{__name__}:pairs",
        ),
        Verb("sft", "build SFT examples from human annotations or MBR decisions, for `trl sft`", f"{__name__}:sft"),
    )
    add_verbs(parser, verbs)


def configure_pairs(parser: argparse.ArgumentParser) -> None:
    """Add the candidates and the output."""
    _add_common(parser, "candidates (JSON lines or .gen.json)")
    parser.epilog = (
        "example:\n  mbr-esd distill pairs en-de.jsonl zh-en.jsonl --model mbr-esd-llama -o distilled\n"
        "  trl dpo --config distilled/dpo.yaml --accelerate_config zero3\n"
        "  mbr-esd score -s src.txt -t mt.txt --model distilled/model"
    )


def configure_sft(parser: argparse.ArgumentParser) -> None:
    """Add annotations or candidates, and the number of examples."""
    _add_common(parser, "MQM TSV, a table of WMT's QE task, ratings as JSON lines, or candidates")
    parser.add_argument("--examples", type=int, metavar="N", help="maximum number of human annotations per file")
    parser.add_argument(
        "--clean-share",
        type=float,
        default=0.1,
        metavar="X",
        help="share of error-free human annotations (default: 0.1)",
    )
    parser.epilog = (
        "example:\n  mbr-esd distill sft en-de=mqm_ted_ende.tsv --model mbr-esd-llama -o started\n"
        "  trl sft --config started/sft.yaml --accelerate_config zero3"
    )


def _add_common(parser: argparse.ArgumentParser, files: str) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="[LP=]FILE",
        help=f"{files}; prefix the language pair (en-de=FILE) if the file does not contain it",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FOLDER",
        help="output folder for the data set, configurations and model folders",
    )
    parser.add_argument(
        "--model",
        default="mbr-esd-llama",
        help="model to train; for candidates, the model name used for sampling (default: %(default)s)",
    )


def run_pairs(args: argparse.Namespace) -> int:
    """Write the training data of `trl dpo`."""
    from mbr_esd_metric.distill.training_rows import make_pairs, pairs_signature

    card, inputs = _checked(args)
    for first in islice(_records(inputs), 1):
        card = replace(card, decision=replace(card.decision, format=first.columns.format or card.decision.format))
    pairs = make_pairs(_records(inputs), card)
    print(pairs.report)
    return _write(args, "dpo", pairs.rows, card, pairs_signature(card), greedy=True)


def run_sft(args: argparse.Namespace) -> int:
    """Write the training data of `trl sft`."""
    from mbr_esd_metric.adapters.file_kinds import kind_of_input
    from mbr_esd_metric.adapters.rating_formats import read_mqm
    from mbr_esd_metric.distill.training_rows import AnnotatedSegment, choices, examples_signature, select

    card, inputs = _checked(args)
    if not 0 <= args.clean_share < 1:
        raise OptionError(f"--clean-share must be in [0, 1), got {args.clean_share:g}")
    if args.examples is not None and args.examples < 1:
        raise OptionError(f"--examples must be at least 1, got {args.examples}")
    parts = []
    by_people = False
    for path, lp in inputs:
        if kind_of_input(Path(path)) == "candidates":
            parts.append(select(choices(_records([(path, lp)]), card), card, clean_share=None))
            continue
        by_people, ratings = True, read_mqm(path)
        if lp is None and any(rating.lp is None for rating in ratings):
            raise InputError(f"{path} does not contain its language pair; prefix it, as in en-de={path}")
        annotations = [
            AnnotatedSegment(r.segment, r.annotation, r.lp or lp or "")
            for r in ratings
            if r.annotation or not r.errors  # an error without a place must not become an example of "no error"
        ]
        parts.append(select(annotations, card, args.examples, args.clean_share))
    for part in parts:
        print(
            f"{number_of(len(part.rows), 'annotation')} to learn from; {part.clean} of them without an error; "
            f"{number_of(part.inexpressible, 'error')} without a place, or whose text occurs earlier in the "
            "translation, left out"
        )
    rows = [row for part in parts for row in part.rows]
    return _write(args, "sft", rows, card, examples_signature(card), greedy=not by_people)


def _checked(args: argparse.Namespace) -> tuple[ModelCard, list[tuple[str, str | None]]]:
    """The model, and each input with its given language pair; checks all arguments first."""
    from mbr_esd_metric.distill.training_rows import question_of
    from mbr_esd_metric.files.paths import NamedPath
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.prompting.languages import language_pair

    card = load_card(args.model)
    question_of(card)
    inputs: list[tuple[str, str | None]] = []
    for source in map(NamedPath.parse, args.inputs):
        if source.name is not None:
            language_pair(source.name)
        inputs.append((str(source.path), source.name or card.lp))
    paths = [path for path, _ in inputs]
    check_distinct(paths)
    check_folder(args.output)
    for part in ("train", "validation"):
        if (path := Path(args.output, f"{part}.jsonl")).exists():
            check_output(path, paths)
    return card, inputs


def _records(inputs: Iterable[tuple[str, str | None]]) -> Iterator[CandidateRecord]:
    """The candidates, each with its language pair: the one in the file, otherwise the given one."""
    from mbr_esd_metric.files.records import read_candidates

    for path, lp in inputs:
        for record in read_candidates(path):
            if lp is not None and record.lp not in (None, lp):
                raise InputError(
                    f"{path}, {record.label}: its language pair is {record.lp}, not {lp}; remove the prefix {lp}="
                )
            yield record if record.lp is not None else replace(record, lp=lp)


def _write(
    args: argparse.Namespace,
    method: Method,
    rows: Sequence[TrainingRow],
    card: ModelCard,
    signature: Signature,
    greedy: bool,
) -> int:
    from mbr_esd_metric.distill.training_folder import held_out, write_training_folder

    held = held_out([row.source for row in rows])
    print(f"{held.count(False)} to train on, {held.count(True)} for validation, of other sources")
    folder = Path(args.output)
    for path in write_training_folder(folder, method, rows, held, card, signature, greedy=greedy):
        print(f"written: {path}")
    print(f"train:   trl {method} --config {folder / f'{method}.yaml'} --accelerate_config zero3")
    print(f"score:   --model {folder / 'model'}")
    print(f"signature: {signature}")
    return 0
