"""Preference pairs from stored candidates (paper, Section 6): the best MBR candidate against the worst.

Per segment, of N candidates with expected utilities U under MBR,

    chosen = argmax U,    rejected = argmin U

Ties go to the likelier candidate, then to the lower index, on both sides. A segment gives no pair where the two are
the same annotation or their utilities are equal (within `core.decision_problem.TIE`): neither is better. Invalid
candidates are neither chosen nor rejected.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.decision_problem import TIE
from mbr_esd_metric.core.kernels import BETA, GAMMA
from mbr_esd_metric.core.rules import SegmentRule
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.distill.training_folder import TrainingRow, answer, messages, question_of
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, labelled
from mbr_esd_metric.files.records import CandidateRecord
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting.prompt import Prompt

#: Why a segment gives no pair.
NO_VALID = "no valid candidate"
ONE_ANNOTATION = "all candidates are one annotation"
EQUAL_UTILITY = "all candidates have one utility"


@dataclass(frozen=True, slots=True)
class PreferenceData:
    """The pairs of a corpus.

    Attributes:
        rows: in the order of the segments, as of `preference`.
        without: why segments gave no pair, and how many for each reason.
    """

    rows: Sequence[TrainingRow]
    without: Mapping[str, int] = field(default_factory=dict)

    def report(self) -> str:
        """Pairs, language pairs, why segments gave none, utility gap and lengths, as lines of text."""
        pairs = [row.content for row in self.rows]
        lines = [f"{len(pairs)} pairs of {len(pairs) + sum(self.without.values())} segments"]
        lps = Counter(pair["lp"] or "no language pair" for pair in pairs)
        if len(lps) > 1:
            lines.append("  " + ", ".join(f"{lp}: {count}" for lp, count in sorted(lps.items())))
        lines += [f"  {count:>6}  no pair: {reason}" for reason, count in sorted(self.without.items())]
        for name, values in (
            ("utility gap", [pair["chosen_utility"] - pair["rejected_utility"] for pair in pairs]),
            ("characters chosen", [len(pair["chosen"][0]["content"]) for pair in pairs]),
            ("characters rejected", [len(pair["rejected"][0]["content"]) for pair in pairs]),
        ):
            low, middle, high = min(values), statistics.median(values), max(values)
            mean = statistics.fmean(values)
            lines.append(f"  {name}: mean {mean:.4g}, min {low:.4g}, median {middle:.4g}, max {high:.4g}")
        return "\n".join(lines)


def pairs_signature(card: ModelCard) -> str:
    """The signature of the pairs, whatever the language pairs of the segments."""
    decision = card.decision
    fields: dict[str, object] = {
        **({} if decision.rule == "mbr" else {"d": decision.rule}),
        "u": decision.effective_utility,
        "w": decision.weights,
        "b": f"{BETA:g}",
        "g": f"{GAMMA:g}",
        **({} if decision.format == "json" else {"f": decision.format}),
        "prompt": question_of(card).version,
        "loc": decision.location,
        "v": __version__,
    }
    return "mbr-esd-pairs|" + "|".join(f"{key}:{value}" for key, value in fields.items())


def preference(record: CandidateRecord, prompt: Prompt, card: ModelCard) -> TrainingRow | str:
    """The pair of one segment in TRL's conversational preference format, with the expected utilities of both answers
    (higher is better); or why there is none (`NO_VALID`, `ONE_ANNOTATION`, `EQUAL_UTILITY`).

    Raises:
        InputError: as `decide`, with the segment; or its answers are not in the format of the model.
    """
    options = card.decision
    form = record.columns.format
    if form not in (None, options.format):
        raise InputError(
            f"{record.label}: its candidates are in the format {form}, and the pairs are in {options.format}; give "
            "candidates in one format"
        )
    try:
        with labelled(record.label):
            decision = decide_segment(record.columns, record.mt, options, source=options.source_of(record.src))
    except NoValidCandidateError:
        return NO_VALID
    if decision.distinct == 1:
        return ONE_ANNOTATION
    utilities = decision.expected_utilities
    lowest = min(value for value in utilities if value == value)  # invalid candidates have NaN
    if decision.expected_utility - lowest <= TIE:
        return EQUAL_UTILITY
    if decision.index is None:
        raise OptionError(f"pairs need a rule that chooses a candidate, not {options.rule!r}")
    logprobs = [-math.inf if one is None else one for one in record.columns.logprobs]
    rejected = max((i for i, value in enumerate(utilities) if value <= lowest + TIE), key=logprobs.__getitem__)
    content = {
        "prompt": messages(prompt, record.src, record.mt, record.lp),
        "chosen": answer(record.texts[decision.index]),
        "rejected": answer(record.texts[rejected]),
        "chosen_utility": decision.expected_utility,
        "rejected_utility": utilities[rejected],
        "id": record.id,
        "system": record.system,
        "lp": record.lp,
    }
    return TrainingRow(record.src, content)


def make_pairs(records: Iterable[CandidateRecord], card: ModelCard) -> PreferenceData:
    """The pairs of all segments, in order.

    Args:
        records: candidates, whose language pair, if there is one, was named in the question.
        card: the model that they were sampled from, as it was sampled; its rule and utility say what is better.

    Raises:
        InputError: no segment gives a pair.
        OptionError: the rule does not go by expected utility, or the model cannot be trained.
    """
    rule = card.decision.rule_instance
    if not (rule.by_utility and isinstance(rule, SegmentRule)):
        raise OptionError(f"pairs go by expected utility, as the rule 'mbr' does, not {rule.name!r}; give ?rule=mbr")
    prompt = question_of(card)
    rows: list[TrainingRow] = []
    without: Counter[str] = Counter()
    for record in records:
        row = preference(record, prompt, card)
        if isinstance(row, str):
            without[row] += 1
        else:
            rows.append(row)
    if not rows:
        why = ", ".join(f"{count} segments: {reason}" for reason, count in without.most_common()) or "no segments"
        raise InputError(
            f"there is no preference pair ({why}); sample more candidates, at a higher temperature, or check that the "
            "candidates belong to these translations"
        )
    return PreferenceData(rows, dict(without))
