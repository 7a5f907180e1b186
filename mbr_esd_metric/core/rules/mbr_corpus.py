"""The rule `mbr-corpus`: the choice over a whole test set that maximises the ratio behind the corpus softdice.

See `core.corpus_choice` for what is maximised, and how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.rule import CorpusChoice, CorpusRule, Shortlist

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem
    from mbr_esd_metric.core.kernels import Floats


class MbrCorpus(CorpusRule):
    """The highest ratio of expected sums; the statistics of a hypothesis are its a and b."""

    name: ClassVar[str] = "mbr-corpus"
    description: ClassVar[str] = "the highest expected corpus softdice, over the whole test set"
    by_utility: ClassVar[bool] = True
    own_utility: ClassVar[str | None] = "softdice"

    def statistics(self, problem: DecisionProblem) -> Floats:
        """(a, b) of each hypothesis, shape (n, 2)."""
        from mbr_esd_metric.core.corpus_choice import overlap_and_size

        return overlap_and_size(problem)

    def shortlist(self, problem: DecisionProblem, statistics: Floats) -> Shortlist:
        """The Pareto front of the hypotheses, in the order of ties."""
        from mbr_esd_metric.core.corpus_choice import candidates_front

        return candidates_front(problem, statistics)

    def settle(self, statistics: Sequence[Floats]) -> CorpusChoice:
        """Dinkelbach's iteration. If no annotation has a span, the ratio is 1."""
        from mbr_esd_metric.core.corpus_choice import maximise_ratio

        return maximise_ratio([part[:, 0] for part in statistics], [part[:, 1] for part in statistics])

    def values(self, statistics: Floats, choice: CorpusChoice) -> Floats:
        """``a - F b``."""
        values: Floats = statistics[:, 0] - choice.ratio * statistics[:, 1]
        return values
