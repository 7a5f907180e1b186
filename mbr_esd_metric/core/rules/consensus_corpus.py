"""The rule `consensus-corpus`: over a whole test set, the annotations whose corpus softdice is expected to be highest.

What `mbr-corpus` finds among the candidates, this finds among all annotations, exactly: a threshold on the share of
supports that mark an interval. `core.level_shares` derives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.rule import Shortlist
from mbr_esd_metric.core.rules.mbr_corpus import MbrCorpus

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem
    from mbr_esd_metric.core.kernels import Floats


class ConsensusCorpus(MbrCorpus):
    """The highest ratio of expected sums among all annotations."""

    name: ClassVar[str] = "consensus-corpus"
    description: ClassVar[str] = "the highest expected corpus softdice among all annotations, over the whole test set"

    def shortlist(self, problem: DecisionProblem, statistics: Floats) -> Shortlist:
        """The annotations that are best at some F in [0, 1], those that mark less first."""
        from mbr_esd_metric.core.corpus_choice import annotations_front

        return annotations_front(problem)
