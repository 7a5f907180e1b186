"""The rule `consensus`: the annotation of the highest expected utility among all annotations, not only the candidates.

See `core.consensus` for what is searched, and how.
"""

from __future__ import annotations

from typing import ClassVar

from mbr_esd_metric.core.case import Case, Judged
from mbr_esd_metric.core.consensus import find_consensus
from mbr_esd_metric.core.rules.base import SegmentRule


class ConsensusRule(SegmentRule):
    """MBR over all annotations on the candidates' grid."""

    name: ClassVar[str] = "consensus"
    description: ClassVar[str] = "the highest mean utility to all candidates, among all annotations"
    by_utility: ClassVar[bool] = True
    makes_annotations: ClassVar[bool] = True

    def choose(self, case: Case) -> Judged:
        best = case.hypotheses.best(case.expected)
        found = find_consensus(
            case.table,
            case.columns,
            case.weights,
            case.utility,
            case.hypotheses.annotations[best],
            float(case.expected[best]),
            case.span_cost,
        )
        return Judged(found.annotation, found.value)
