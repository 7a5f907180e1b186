"""A decision: which of N candidate annotations is the answer for a segment, and facts about the choice.

The rules that choose are in `core.rules`. Ties (within `core.decision_problem.TIE` of the best) go to the
higher log-probability, then to the lower index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mbr_esd_metric.core.annotation import Annotation

if TYPE_CHECKING:
    pass

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
