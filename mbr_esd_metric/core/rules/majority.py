"""The rule `majority`: the annotation that most candidates have."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.rule import SegmentRule

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem


class Majority(SegmentRule):
    """The most frequent annotation; of several models, the one with the highest mean share."""

    name: ClassVar[str] = "majority"
    description: ClassVar[str] = "the most frequent annotation"

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.hypotheses.weights())
