"""The rule `map`: the candidate with the highest model log-probability (maximum a posteriori)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.rule import SegmentRule

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem


class Map(SegmentRule):
    """The likeliest candidate."""

    name: ClassVar[str] = "map"
    description: ClassVar[str] = "the highest log-probability"
    needs_logprobs: ClassVar[bool] = True

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.hypotheses.logprobs)
