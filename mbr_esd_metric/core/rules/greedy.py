"""The rule `greedy`: the only candidate, decoded at temperature 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from mbr_esd_metric.core.rule import SegmentRule

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem


class Greedy(SegmentRule):
    """The only candidate."""

    name: ClassVar[str] = "greedy"
    description: ClassVar[str] = "the one candidate, decoded at temperature 0"
    candidates: ClassVar[Literal["samples", "one", "none"]] = "one"

    def choose(self, problem: DecisionProblem) -> int:
        return 0
