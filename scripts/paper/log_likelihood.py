"""The log-likelihood of human annotations under a model, compared with MAP and MBR decisions (paper, Table 1).

    python scripts/paper/log_likelihood.py ratings.tsv candidates.jsonl --model 'mbr-esd-demo?grounded=true'

MAP is only optimal if the most probable annotation is the best one. Here, the annotation of each rater is written in
the answer format, and its log-likelihood is computed by teacher forcing: the sum of log M over the tokens of the answer
and the end token, at temperature 1 and without the grammar. ratings.tsv has Google's MQM format; candidates.jsonl is
the output of `mbr-esd sample` for the same translations.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.files.records import CandidateRecord, read_candidates
from mbr_esd_metric.generation.embedded import with_weights
from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS, EngineOptions, Request
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.sources import Pair, Sampled, build_requests, pair_of
from mbr_esd_metric.prompting.formats import AnswerFormat, get_format
from mbr_esd_metric.report.tables import TABLE_FORMATS, Column, TableRow, render_all, table_of

HUMAN = "human"


@dataclass(frozen=True)
class Answer:
    """An annotation in the answer format: its author, request, text, and mean similarity to the raters."""

    by: str
    request: Request
    text: str
    similarity: float


@dataclass(frozen=True)
class Likelihood:
    """log M of an answer in nats, and its number of tokens."""

    tokens: int
    value: float


#: The requests of segments.
Requester = Callable[[Sequence[Segment]], Mapping[Pair, Request]]


def answers_of(
    ratings: str, candidates: str, requested: Requester, answer_format: AnswerFormat, utility: str
) -> list[Answer]:
    """The answers of humans, MAP and MBR, and "no error", for the translations in both files.

    Raises `InputError` if there is no common translation, or an annotation cannot be expressed in the answer format.
    """
    human: dict[tuple[str, str], list[Annotation]] = defaultdict(list)
    for rating in read_mqm_tsv(ratings):
        pair = rating.segment.source.strip(), rating.segment.translation.strip()
        human[pair].append(Annotation(rating.annotation))
    records = {(r.segment.source.strip(), r.segment.translation.strip()): r for r in read_candidates(Path(candidates))}
    both = [pair for pair in human if pair in records and pair[1]]
    if not both:
        raise InputError(f"{ratings} and {candidates} have no translation in common")
    segments = [replace(r.segment, label=r.label) for r in map(records.__getitem__, both)]
    requests = requested(segments)
    similarity = get_similarity(utility).scalar
    answers = []
    for pair, segment in zip(both, segments, strict=True):
        record, raters = records[pair], human[pair]
        texts = segment.translation, segment.source
        written = [(HUMAN, one, answer_format.answer(one, *texts)[0]) for one in raters]
        written += [("no error", EMPTY, answer_format.answer(EMPTY, *texts)[0])]
        for name, rule in (("MAP", "map"), (f"MBR-{utility}", "mbr")):
            written.append((name, *_chosen(record, rule, utility)))
        for name, annotation, text in written:
            others = [one for one in raters if name != HUMAN or one is not annotation]
            alike = [similarity(annotation, one, len(segment.translation)) for one in others]
            answers.append(Answer(name, requests[pair_of(segment)], text, float(np.mean(alike)) if alike else np.nan))
    return answers


def _chosen(record: CandidateRecord, rule: str, utility: str) -> tuple[Annotation, str]:
    """The annotation that a rule selects among the candidates, and its answer."""
    options = DecisionOptions(rule, utility, location="first")
    with labelled(record.label):
        decision = decide_segment(record.columns, record.segment.translation, options, source=record.segment.source)
    assert decision.index is not None
    return Annotation(decision.annotation), record.texts[decision.index]


def tokens_of(tokenizer: Any, answer: Answer) -> tuple[list[int], list[int]]:
    """The tokens of the prompt, and of the answer with the end token."""
    text = tokenizer.apply_chat_template(
        answer.request.messages, add_generation_prompt=True, tokenize=False, **CHAT_TEMPLATE_ARGUMENTS
    )
    prompt, tokens = (list(tokenizer(part, add_special_tokens=False)["input_ids"]) for part in (text, answer.text))
    return prompt, [*tokens, tokenizer.eos_token_id]


def likelihoods_of(options: EngineOptions, answers: Sequence[Answer]) -> Iterator[Likelihood]:
    """The log-likelihoods, computed with transformers, one forward pass per answer."""
    import torch

    from mbr_esd_metric.generation.pretrained import load_merged

    model, tokenizer = load_merged(options)
    model.set_attn_implementation("sdpa")
    for answer in answers:
        prompt, tokens = tokens_of(tokenizer, answer)
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + tokens], device=model.device)).logits[0].float()
        logits = logits[len(prompt) - 1 : -1]
        targets = torch.tensor(tokens, device=logits.device)[:, None]
        yield Likelihood(len(tokens), float((logits.gather(1, targets)[:, 0] - logits.logsumexp(1)).sum()))


def table(answers: Sequence[Answer], likelihoods: Sequence[Likelihood], utility: str) -> list[TableRow]:
    """One row for each kind of answer."""
    both = list(zip(answers, likelihoods, strict=True))
    likeliest: dict[str, float] = {}
    for answer, one in both:
        if answer.by == HUMAN:
            likeliest[answer.request.key] = max(likeliest.get(answer.request.key, -np.inf), one.value)
    rows: list[TableRow] = []
    for by in dict.fromkeys(answer.by for answer in answers):
        of_kind = [pair for pair in both if pair[0].by == by]
        alike = [a.similarity for a, _ in of_kind if not np.isnan(a.similarity)]
        likelier = [one.value > likeliest[a.request.key] for a, one in of_kind]
        row: dict[Column, float | int | str | None] = {
            Column("by", "annotation"): by,
            Column("answers", "answers"): len(of_kind),
            Column("tokens", "tokens", digits=1): float(np.mean([one.tokens for _, one in of_kind])),
            Column("log_likelihood", "log M", digits=2): float(np.mean([one.value for _, one in of_kind])),
            Column("likelier", "likelier than people", digits=2): None if by == HUMAN else float(np.mean(likelier)),
            Column("similarity", f"{utility} to people"): float(np.mean(alike)) if alike else None,
        }
        rows.append(row)
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratings", metavar="RATINGS.tsv")
    parser.add_argument("candidates", metavar="CANDIDATES")
    parser.add_argument("--model", required=True, help="the model that sampled the candidates, with its options")
    parser.add_argument("--utility", default="softf1")
    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text")
    args = parser.parse_args()
    card = load_card(f"{args.model}{'&' if '?' in args.model else '?'}engine=transformers")
    source = Sampled(card)
    requested = partial(build_requests, card, source.engine.identity)
    answer_format = get_format(card.decision.format)
    answers = answers_of(args.ratings, args.candidates, requested, answer_format, args.utility)
    likelihoods = list(likelihoods_of(with_weights(card.engine_options), answers))
    translations = len({answer.request.key for answer in answers})
    note = (
        f"{translations} translations; log M: nats, the mean over answers; likelier than people: the share of "
        "translations in which it is likelier than every rater's annotation"
    )
    shown = table_of(f"log-likelihood under {args.model}", table(answers, likelihoods, args.utility), (note,))
    sys.stdout.write(render_all([shown], args.table))


if __name__ == "__main__":
    main()
