"""A decision rule."""

from __future__ import annotations

from mbr_esd_metric.core.decision_problem import DecisionProblem
from mbr_esd_metric.core.rules import SegmentRule


class Longest(SegmentRule):
    """The annotation with the most error spans; ties go to the likelier, then to the first."""

    name = "example-longest"
    description = "the most error spans"

    def choose(self, problem: DecisionProblem) -> int:
        import numpy as np

        return problem.hypotheses.best(np.array([len(a) for a in problem.hypotheses.annotations], dtype=float))
