"""A decision: which of N candidate annotations is the answer for a segment, and facts about the choice.

The rules that choose are in `core.rules`. Ties (within `core.decision_problem.TIE` of the best) go to the
higher log-probability, then to the lower index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import mul
from typing import TYPE_CHECKING

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.mqm import MqmWeights, mqm_score, unit_score

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem
    from mbr_esd_metric.core.kernels import Floats
    from mbr_esd_metric.core.rules import SegmentRule

#: What a decision's score is: that of the chosen annotation, or the mean over the supports of their scores, of the
#: scores that the model expects at each word given their prefixes, or of those that the answers state themselves.
SCORES = ("chosen", "expected", "given")


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """The characters ``[start, end)`` of a translation that were judged by themselves, and their score."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The annotation chosen for one segment.

    Attributes:
        index: of the chosen candidate; if it has duplicates, of the likeliest, then of the first. None if the answer
            is no candidate.
        annotation: its error spans; each one's confidence is the mean over its characters of the weighted
            share of supports that mark the character as an error, in [0, 1]; of a single answer whose tokens'
            log-probabilities are known, the probability of its words and severity (see `decoding.segment`).
        score: `mqm` on the scale of [0, 1], ``(25 + mqm) / 25``; NaN where a translation is left out.
        mqm: MQM score of the annotation, in [-25, 0]; or the mean of the supports' scores, where that was asked for.
        expected_utilities: the expected utility of each candidate; NaN for an invalid one. `mbr` and `oracle` choose by
            it, and the other rules report it.
        expected_utility: that of the annotation.
        valid, distinct, invalid: numbers of valid candidates, of different annotations among them, and of invalid
            candidates.
        dropped: error spans of the valid candidates that could not be located in the translation, or in the source.
        reasons: why candidates are invalid, and how many for each reason.
        mqm_sd: standard deviation of the supports' scores, where `mqm` is their mean; else None.
        unplaced: how many of those dropped are omissions.
        inexact: how many of those located stand in the text with other blanks, quotation marks, hyphens or the like.
        located: error spans of the valid candidates that could be located, each candidate's counted.
        unmarked: valid candidates without an error span.
        parts: of a segment whose sentences were decided one by one, each of them; else empty.
    """

    index: int | None
    annotation: Annotation
    score: float
    mqm: float
    expected_utilities: tuple[float, ...]
    expected_utility: float
    valid: int
    distinct: int
    invalid: int
    dropped: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    mqm_sd: float | None = None
    unplaced: int = 0
    inexact: int = 0
    located: int = 0
    unmarked: int = 0
    parts: tuple[ScoredPart, ...] = ()


def choose(
    problem: DecisionProblem, rule: SegmentRule, mqm: str | MqmWeights = "paper", score: str = "chosen"
) -> Decision:
    """The decision of a rule for one segment. Raises `InputError` if the rule or the score lacks what it needs."""
    rule.check(problem)
    return decided(problem, rule.choose(problem), problem.expected, mqm, score)


def decided(
    problem: DecisionProblem,
    chosen: int | Annotation,
    values: Floats,
    mqm: str | MqmWeights = "paper",
    score: str = "chosen",
    value: float | None = None,
) -> Decision:
    """The decision for the choice of a rule.

    Args:
        problem: candidates and supports.
        chosen: a hypothesis, or an annotation that need not be one.
        values: reported as expected utility of each hypothesis, shape (n,).
        mqm: weights of the score.
        score: one of `SCORES`.
        value: reported for an annotation that is no hypothesis; None for the expected utility.
    """
    hypotheses = problem.hypotheses
    by_hypothesis = [*values.tolist(), math.nan]
    if isinstance(chosen, Annotation):
        chosen = next((h for h, one in enumerate(hypotheses.annotations) if one == chosen), chosen)
    index: int | None
    if isinstance(chosen, Annotation):
        index = None
        annotation, value = problem.evaluate_external(chosen, value)
    else:
        index = hypotheses.index[chosen]
        value, annotation = by_hypothesis[chosen], problem.with_confidence(chosen)
    mean, deviation = (mqm_score(annotation, mqm), None) if score == "chosen" else problem.score(score, mqm)
    invalid = hypotheses.hypothesis_of_candidate.count(-1)
    sizes = [*map(len, hypotheses.annotations)]
    counts: list[int] = hypotheses.counts.tolist()
    return Decision(
        index=index,
        annotation=annotation,
        score=unit_score(mean, mqm),
        mqm=mean,
        expected_utilities=tuple([by_hypothesis[h] for h in hypotheses.hypothesis_of_candidate]),
        expected_utility=value,
        valid=len(hypotheses.hypothesis_of_candidate) - invalid,
        distinct=len(hypotheses),
        invalid=invalid,
        located=sum(map(mul, counts, sizes)),
        unmarked=sum(many for many, size in zip(counts, sizes, strict=True) if not size),
        mqm_sd=deviation,
    )
