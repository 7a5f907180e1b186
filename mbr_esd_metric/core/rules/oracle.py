"""The rule `oracle`: MBR whose supports are the human annotations; with several raters, their mean counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.rule import SegmentRule

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem


class Oracle(SegmentRule):
    """The candidate that is most similar to the human annotations."""

    name: ClassVar[str] = "oracle"
    description: ClassVar[str] = "the highest similarity to the human annotations"
    needs_references: ClassVar[bool] = True
    by_utility: ClassVar[bool] = True

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.expected)
