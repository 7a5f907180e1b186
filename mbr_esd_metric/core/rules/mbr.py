"""The rule `mbr`: the candidate with the highest expected utility (paper, Section 3),

    argmax over h of U(h),    U(h) = sum over supports s of w(s) u(h, s),    sum of w = 1

where u is a similarity and the supports are the candidates themselves, h included, unless other supports are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.rule import SegmentRule

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem


class Mbr(SegmentRule):
    """Minimum Bayes risk."""

    name: ClassVar[str] = "mbr"
    description: ClassVar[str] = "the highest mean utility to all candidates"
    by_utility: ClassVar[bool] = True
    stops_early: ClassVar[bool] = True

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.expected)
