"""`mbr-esd sample`: sample candidates from models, and write them to a file for other commands."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.score_inputs import read_plain
from mbr_esd_metric.cli.shared_options import (
    DEFAULT_MODEL,
    add_dry_run,
    add_test_set,
    load_optional_test_set,
    print_estimates,
    test_set_folder,
    used_option,
)
from mbr_esd_metric.errors import InputError, OptionError, no_effect_error
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import number_of, printable
from mbr_esd_metric.metric.cards import load_card

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt import TestSet
    from mbr_esd_metric.core.decision import Candidate
    from mbr_esd_metric.core.segment import Segment
    from mbr_esd_metric.decoding.options import DecisionOptions
    from mbr_esd_metric.files.records import CandidateRecord
    from mbr_esd_metric.generation.engine import Refused
    from mbr_esd_metric.metric.card import ModelCard


def configure(parser: argparse.ArgumentParser) -> None:
    """Add texts or a test set, the model, and the output."""
    parser.add_argument("-s", "--sources", metavar="SRC", help="source file, one segment per line")
    parser.add_argument(
        "-t", "--translations", nargs="+", default=[], metavar="MT", help="translation files, one per system"
    )
    add_test_set(parser, optional=True)
    parser.add_argument(
        "--model", action="append", help=f"model name with options; repeatable (default: {DEFAULT_MODEL})"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="output file (JSON lines); the suffixes .gz and .zst compress it",
    )
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="print no progress bar")
    parser.epilog = (
        "With --test-set, translations that have a gold score are sampled.\n\n"
        "examples:\n"
        "  mbr-esd sample -s src.txt -t mt.txt --lp en-de --model 'mbr-esd-llama?n=256' -o llama.jsonl.gz\n"
        "  mbr-esd sample --test-set wmt24 --lp en-de --model mbr-esd-llama -o llama.en-de.jsonl.gz\n"
        "  mbr-esd sample -s src.txt -t mt.txt --model A --model B --model C -o panel.jsonl.gz"
    )


def run(args: argparse.Namespace) -> int:
    """Sample the candidates missing from the store, then write the file."""
    from mbr_esd_metric.files.records import write_records
    from mbr_esd_metric.metric.card import with_pair
    from mbr_esd_metric.metric.run import refusals
    from mbr_esd_metric.metric.units import units_of

    pair = next(iter(args.lp), None)
    models = args.model or [DEFAULT_MODEL]
    cards = [with_pair(load_card(one), pair, of_test_set=args.test_set is not None) for one in models]
    files = [card.candidates for card in cards]
    check_output(args.output, [args.sources, *args.translations, *files, test_set_folder(args)])
    if args.test_set and (option := used_option(args, "--sources", "--translations")):
        raise no_effect_error(option, "--test-set")
    test_set = load_optional_test_set(args)
    if test_set is not None:
        named = _from_test_set(test_set)
    elif args.sources and args.translations:
        texts = read_plain(args.sources, args.translations)
        named = list(zip([one.id for places in texts.places.values() for one in places], texts.segments, strict=True))
    else:
        raise OptionError("specify what to sample: -s SRC -t MT, or --test-set T --lp LP")
    if not named:
        raise InputError("no segments to sample")
    segments = [segment for _, segment in named]
    if args.dry_run is not None:
        return max(print_estimates(card, segments, args.dry_run) for card in cards)
    divided = sum(map(bool, units_of(cards[0], segments).parts))
    if divided:
        logger.info(
            f"note: {number_of(divided, 'segment')} with several sentences: `score` would score them by sentence, but "
            "these candidates annotate whole segments, so `decide` may give a different score"
        )
    counts: Counter[str] = Counter()
    refused: list[tuple[str, str]] = []
    write_records(args.output, _records(_by_annotator(cards, models), named, not args.quiet, counts, refused))
    each = number_of(sum(card.samples for card in cards), "candidate")
    whole = 0 if test_set is None else test_set.gold.size
    part = f" (those with gold, of {whole})" if len(named) < whole else ""
    print(f"{printable(args.output)}: {number_of(counts['segments'], 'segment')}{part}, {each} each")
    if counts["cut"]:
        limit = max(card.max_tokens for card in cards)
        shorter = ", or format=compact" if cards[0].decision.format == "json" else ""
        logger.warning(
            f"{number_of(counts['cut'], 'candidate')} of {counts['candidates']} cut at max_tokens={limit}: cut "
            f"candidates count as invalid; use max_tokens={2 * limit}{shorter}"
        )
    if refused:
        logger.warning(f"omitted, because the server rejected the request: {refusals(refused)}")
    return 1 if refused else 0


#: Decision options that a candidates file always records.
_STORED = ("rule", "utility", "score", "mqm")
#: (Segment id in its system, segment).
_Named = tuple[str, "Segment"]


def _by_annotator(cards: Sequence[ModelCard], models: Sequence[str]) -> dict[str | None, ModelCard]:
    """Annotator name -> card: the model's name, or the user's name for it if two models have the same; None for a
    single model. Raises `OptionError` for a duplicate model."""
    if len(cards) == 1:
        return {None: cards[0]}
    for names in ([card.title for card in cards], models):
        if len({*names}) == len(names):
            return dict(zip(names, cards, strict=True))
    raise OptionError("duplicate --model; use n=N to sample one model several times")


def _records(
    cards: Mapping[str | None, ModelCard],
    named: Sequence[_Named],
    progress: bool,
    counts: Counter[str],
    refused: list[tuple[str, str]],
) -> Iterator[CandidateRecord]:
    """The record of each segment, with the candidates of all models that answered. Counts the "segments", the
    "candidates" and the candidates "cut" by the length limit, and adds requests rejected by a server to `refused`."""
    from mbr_esd_metric.core.decision import CandidateColumns
    from mbr_esd_metric.files.records import CandidateRecord
    from mbr_esd_metric.generation.engine import Refused

    segments, first = [segment for _, segment in named], next(iter(cards.values()))
    decision = _stored_options(first.decision)
    sampled = [sample(card, segments, progress=progress) for card in cards.values()]
    # To load one model at a time, sample all models except the last completely before it.
    answers = zip(*[iter([*one]) for one in sampled[:-1]], sampled[-1], strict=True)
    for (name, segment), each in zip(named, answers, strict=True):
        candidates: list[Candidate] = []
        for annotator, (_, of_model) in zip(cards, each, strict=True):
            if isinstance(of_model, Refused):
                refused.append((segment.label + (f" by {annotator}" if annotator else ""), of_model.reason))
            else:
                candidates += [replace(one, annotator=annotator) for one in of_model]
        if not candidates:
            continue
        counts.update(segments=1, candidates=len(candidates), cut=sum(one.truncated for one in candidates))
        columns = CandidateColumns.of(candidates)
        yield CandidateRecord(replace(segment, label=name), columns, decision, first.lp)


def sample(
    card: ModelCard, segments: Sequence[Segment], *, progress: bool = False
) -> Iterator[tuple[Segment, list[Candidate] | Refused]]:
    """Sample missing candidates, and yield each segment with its candidates or the reason why it has none, in order.
    Each candidate records its answer format, unless it is JSON. A blank translation gets N answers without errors.
    Raises the exceptions of `annotate`."""
    from mbr_esd_metric.core.decision import CandidateColumns
    from mbr_esd_metric.generation.engine import Refused
    from mbr_esd_metric.metric.run import candidate_source, candidates_of

    if card.unit == "sentence" or card.context == "document":
        raise OptionError(
            "candidates files contain whole segments; remove unit=sentence and context=document, or use them with "
            "`score`"
        )
    source = candidate_source(card)
    form = None if source.card.decision.format == "json" else source.card.decision.format
    waiting: dict[int, list[Candidate] | Refused] = {}
    following = 0
    for numbers, candidates in candidates_of(source, segments, progress):
        if not isinstance(candidates, Refused):
            candidates = [replace(one, format=form) for one in CandidateColumns.of(candidates).candidates]
        waiting |= dict.fromkeys(numbers, candidates)
        while following in waiting:
            yield segments[following], waiting.pop(following)
            following += 1


def _stored_options(options: DecisionOptions) -> dict[str, str]:
    """Option -> value for a candidates file: the `_STORED` options, and options not at their defaults. Excludes the
    answer format, which is a separate key there, and the utility if the rule fixes it."""
    from mbr_esd_metric.decoding.options import FIELDS

    left_out = ("format", "utility") if options.rule_instance.fixed_utility else ("format",)
    values = {name: str(getattr(options, name)) for name in FIELDS if name not in left_out}
    return {name: value for name, value in values.items() if name in _STORED or value != FIELDS[name].default}


def _from_test_set(test_set: TestSet) -> list[_Named]:
    """The translations with a gold score."""
    import numpy as np

    from mbr_esd_metric.core.segment import Segment

    named: list[_Named] = []
    for at, number in np.argwhere(~np.isnan(test_set.gold)).tolist():
        system, label = test_set.systems[at], f"segment {number + 1} of {test_set.systems[at]}"
        text = test_set.outputs[system][number] or ""
        named.append((str(number + 1), Segment(test_set.sources[number], text, label, system)))
    return named
