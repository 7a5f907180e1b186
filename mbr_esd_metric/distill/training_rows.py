"""Rows of TRL training data: preference pairs of stored candidates, and supervised examples.

A preference pair (paper, Section 6) consists of the best and the worst MBR candidate of a segment. For valid candidates
with expected utilities U under MBR,

    chosen = argmax U,    rejected = argmin U

On both sides, ties are broken by the higher log-probability, then by the lower index. A segment yields no pair if all
candidates have the same annotation, or if the utilities are equal (within `core.decision_problem.TIE`).

Supervised examples are human annotations or MBR decisions, written in the answer format. Most of them contain errors:
with the natural share of error-free translations, a small model learns to always answer "no error". Errors that the
format cannot express are omitted: an error is located at the first occurrence of its text, so that, for example, an
error in the third of several commas cannot be expressed.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.decision_problem import TIE
from mbr_esd_metric.core.kernels import BETA, GAMMA
from mbr_esd_metric.core.rules import SegmentRule
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, labelled
from mbr_esd_metric.files.records import CandidateRecord
from mbr_esd_metric.messages import first_of, number_of
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.prompt import Prompt

#: Reasons why a segment yields no pair.
NO_VALID = "no valid candidate"
ONE_ANNOTATION = "all candidates have the same annotation"
EQUAL_UTILITY = "all candidates have the same utility"
#: Annotations with more errors, or with a longer span (in characters), are not used as examples.
MAX_ERRORS, MAX_SPAN = 6, 80
#: Translations with more characters are not used as examples.
MAX_CHARACTERS = 350


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A row of the data set: its columns, and its source, by which rows are split into training and validation."""

    source: str
    content: Mapping[str, Any]


def _question(prompt: Prompt, source: str, translation: str, lp: str | None) -> list[dict[str, str]]:
    """The prompt for a translation, as chat messages."""
    turns = [*prompt.turns, ("user", prompt.render(source, translation, lp))]
    return [{"role": role, "content": content} for role, content in turns]


def question_of(card: ModelCard) -> Prompt:
    """The prompt of a trainable model. Raises `OptionError` for a model without weights, with few-shot examples, or
    with an answer format that requires another engine."""
    if not card.model:
        raise OptionError(f"--model {card.name} has no weights to train; use one with weights, such as mbr-esd-llama")
    if card.shots is not None:
        raise OptionError("--model has few-shot examples (shots=), which a trained model does not use; remove shots=")
    answers = get_format(card.decision.format)
    if answers.engine:
        raise OptionError(
            f"--model has format={answers.name}, which only engine={answers.engine} supports and TRL cannot "
            "train; use format=json or compact"
        )
    return answers.prompt(card.prompt)


@dataclass(frozen=True, slots=True)
class PreferenceData:
    """The pairs of a corpus, in the order of the segments.

    Attributes:
        report: a summary with the number of pairs, the reasons for segments without a pair, and the reasons for invalid
            candidates.
    """

    rows: Sequence[TrainingRow]
    report: str


def make_pairs(records: Iterable[CandidateRecord], card: ModelCard) -> PreferenceData:
    """The pairs of all segments, in order.

    Args:
        records: candidates. The prompt names the language pair of a record, if it has one.
        card: the model that the candidates were sampled from, with its sampling settings; its rule and utility rank the
            candidates.

    Raises:
        InputError: no segment yields a pair.
        OptionError: the rule does not maximise expected utility, or the model cannot be trained.
    """
    rule = card.decision.rule_instance
    if not (rule.by_utility and isinstance(rule, SegmentRule)):
        raise OptionError(f"pairs need a rule that maximises expected utility, not {rule.name!r}; use ?rule=mbr")
    prompt = question_of(card)
    rows: list[TrainingRow] = []
    without: Counter[str] = Counter()
    unread: Counter[str] = Counter()
    example = ""
    for record in records:
        if others := {*record.columns.different_formats} - {None, card.decision.format}:
            raise InputError(
                f"{record.label}: its candidates have the format {first_of(sorted(map(str, others)))}, but pairs have "
                f"{card.decision.format}; use candidates in one format"
            )
        try:
            decision = _decision(record, card)
        except NoValidCandidateError as error:
            example = example or str(error)
            without[NO_VALID] += 1
            continue
        unread.update(decision.reasons)
        row = preference(record, decision, prompt)
        if isinstance(row, str):
            without[row] += 1
        else:
            rows.append(row)
    if not rows:
        why = [f"{number_of(count, 'segment')}: {reason}" for reason, count in without.most_common()] or ["no segments"]
        raise InputError(
            f"no preference pairs ({', '.join(why)}{example and f'; {example}'}); sample more candidates or raise the "
            "temperature, and check that the candidates belong to these translations"
        )
    pairs = [row.content for row in rows]
    lines = [f"{number_of(len(pairs), 'pair')} of {number_of(len(pairs) + without.total(), 'segment')}"]
    lps = Counter(pair["lp"] or "no language pair" for pair in pairs)
    lines += ["  " + ", ".join(f"{lp}: {count}" for lp, count in sorted(lps.items()))] if len(lps) > 1 else []
    for reason, count in sorted(without.items()):
        lines.append(f"  {count:>6}  no pair: {reason}{f' ({example})' if reason == NO_VALID else ''}")
    lines += [f"  {number_of(n, 'candidate')} invalid: {why}" for why, n in unread.most_common()]
    gap = statistics.fmean(pair["chosen_utility"] - pair["rejected_utility"] for pair in pairs)
    chosen, rejected = (statistics.fmean(len(p[of][0]["content"]) for p in pairs) for of in ("chosen", "rejected"))
    lines.append(f"  means: utility gap {gap:.4g}; {chosen:.4g} characters chosen, {rejected:.4g} rejected")
    return PreferenceData(rows, "\n".join(lines))


def _decision(record: CandidateRecord, card: ModelCard) -> Decision:
    """The decision for a segment. Raises the exceptions of `decide`, with the label of the segment."""
    with labelled(record.label):
        return decide_segment(record.columns, record.segment.translation, card.decision, source=record.segment.source)


def preference(record: CandidateRecord, decision: Decision, prompt: Prompt) -> TrainingRow | str:
    """The pair of one segment in TRL's conversational preference format, with the expected utility of each answer
    (higher is better); or the reason why there is none (`ONE_ANNOTATION`, `EQUAL_UTILITY`)."""
    if decision.distinct == 1:
        return ONE_ANNOTATION
    utilities = decision.expected_utilities
    lowest = min(value for value in utilities if value == value)  # invalid candidates have NaN
    if decision.expected_utility - lowest <= TIE:
        return EQUAL_UTILITY
    if decision.index is None:
        raise OptionError("pairs need a rule that selects one of the candidates")
    logprobs = [-math.inf if one is None else one for one in record.columns.logprobs]
    rejected = max((i for i, value in enumerate(utilities) if value <= lowest + TIE), key=logprobs.__getitem__)
    content = {
        "prompt": _question(prompt, record.segment.source, record.segment.translation, record.lp),
        "chosen": [{"role": "assistant", "content": record.texts[decision.index]}],
        "rejected": [{"role": "assistant", "content": record.texts[rejected]}],
        "chosen_utility": decision.expected_utility,
        "rejected_utility": utilities[rejected],
        "id": record.segment.label,
        "system": record.segment.system or None,
        "lp": record.lp,
    }
    return TrainingRow(record.segment.source, content)


def pairs_signature(card: ModelCard) -> Signature:
    """The signature of the pairs, which does not depend on language pairs."""
    decision = card.decision
    fields = {} if decision.rule == "mbr" else {"d": decision.rule}
    fields |= {"u": decision.effective_utility, "w": str(decision.weights), "b": f"{BETA:g}", "g": f"{GAMMA:g}"}
    fields |= {} if decision.format == "json" else {"f": decision.format}
    fields |= {"prompt": question_of(card).version, "loc": decision.location}
    return Signature.of("mbr-esd-pairs", fields, __version__)


@dataclass(frozen=True, slots=True)
class AnnotatedSegment:
    """An annotation of one segment, by a rater or a model, to learn from.

    Categories are as published ("Accuracy/Mistranslation"). Of several spans with the same characters and severity,
    only the first is kept. `lp` is "" if it is unknown.
    """

    segment: Segment
    annotation: Annotation
    lp: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "annotation", self.annotation.with_spans(self.annotation))


@dataclass(frozen=True, slots=True)
class Examples:
    """Supervised examples.

    Attributes:
        clean: the number of rows without an error.
        inexpressible: the number of errors omitted because they have no location, or because their text occurs earlier
            in the translation.
    """

    rows: Sequence[TrainingRow]
    clean: int
    inexpressible: int


def choices(records: Iterable[CandidateRecord], card: ModelCard) -> list[AnnotatedSegment]:
    """The annotation that the model's rule selects for each segment; segments without a valid candidate are omitted.
    Raises the exceptions of `decide`, with the label of the segment, and `InputError` if no segment has a valid
    candidate."""
    chosen, why = [], ""
    for record in records:
        try:
            decision = _decision(record, card)
        except NoValidCandidateError as error:
            why = str(error)
            continue
        chosen.append(AnnotatedSegment(record.segment, decision.annotation, record.lp or ""))
    if why and not chosen:
        raise InputError(f"no segment has a valid candidate; {why}")
    return chosen


def select(
    annotations: Iterable[AnnotatedSegment],
    card: ModelCard,
    examples: int | None = None,
    clean_share: float | None = 0.1,
    max_characters: int = MAX_CHARACTERS,
) -> Examples:
    """Select examples, in the prompt and format of the model to train. The selection is deterministic and independent
    of the order of the annotations.

    Args:
        annotations: the annotations to select from.
        card: the model to train.
        examples: the maximum number of examples; None for all.
        clean_share: the share of examples without an error, in [0, 1); None for the natural share.
        max_characters: the maximum length of a translation.

    Raises:
        InputError: no annotation is within the limits.
        OptionError: the model cannot be trained.
    """
    prompt, answers = question_of(card), get_format(card.decision.format)
    with_errors: list[tuple[str, TrainingRow]] = []
    clean: list[tuple[str, TrainingRow]] = []
    inexpressible = 0
    for item in annotations:
        source, translation, annotation = item.segment.source, item.segment.translation, item.annotation
        if not 0 < len(translation) <= max_characters or len(annotation) > MAX_ERRORS:
            continue
        if any(span.end - span.start > MAX_SPAN for span in annotation):
            continue
        text, lost = answers.answer(annotation, translation, source)
        inexpressible += lost + len(annotation.points) + len(annotation.unplaced)
        if lost == len(annotation) and not annotation.clean:
            continue  # do not teach that a translation with errors is clean
        question = _question(prompt, source, translation, item.lp or None)
        answer = [{"role": "assistant", "content": text}]
        row = TrainingRow(source, {"prompt": question, "completion": answer, "lp": item.lp or None})
        digest = hashlib.sha256(f"{question}\0{text}".encode()).hexdigest()
        (with_errors if annotation else clean).append((digest, row))
    if not with_errors and not clean:
        raise InputError(
            f"no annotation is within the limits: at most {max_characters} characters in the translation, and at most "
            f"{MAX_ERRORS} errors"
        )
    share = len(clean) / (len(with_errors) + len(clean)) if clean_share is None else clean_share
    digest_of = itemgetter(0)
    chosen = sorted(with_errors, key=digest_of)[: None if examples is None else round(examples * (1 - share))]
    count = len(clean) if share == 1 else round(len(chosen) * share / (1 - share))
    chosen_clean = sorted(clean, key=digest_of)[:count]
    rows = [row for _, row in sorted(chosen + chosen_clean, key=digest_of)]
    return Examples(rows, len(chosen_clean), inexpressible)


def examples_signature(card: ModelCard) -> Signature:
    """The signature of the examples."""
    fields = {"f": card.decision.format, "prompt": question_of(card).version}
    return Signature.of("mbr-esd-examples", fields, __version__)
