"""The rule `empty`: no error, whatever the candidates say. A baseline that is hard to beat in mean SoftF1."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.rule import SegmentRule

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem


class Empty(SegmentRule):
    """The annotation without any span."""

    name: ClassVar[str] = "empty"
    description: ClassVar[str] = "no error, whatever the candidates"
    candidates: ClassVar[Literal["samples", "one", "none"]] = "none"

    def choose(self, problem: DecisionProblem) -> Annotation:
        return EMPTY
