"""The rule `consensus`: the annotation of the highest expected utility among all annotations, not only the candidates.

See `core.consensus_search` for what is searched, and how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.annotation import Judged
from mbr_esd_metric.core.rule import SegmentRule

if TYPE_CHECKING:
    from mbr_esd_metric.core.case import Case


class ConsensusRule(SegmentRule):
    """MBR over all annotations on the candidates' grid."""

    name: ClassVar[str] = "consensus"
    description: ClassVar[str] = "the highest mean utility to all candidates, among all annotations"
    by_utility: ClassVar[bool] = True
    makes_annotations: ClassVar[bool] = True

    def choose(self, case: Case) -> Judged:
        from mbr_esd_metric.core.consensus_search import find_consensus

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
