"""Rules that decide all segments of a test set together; the computations are in `core.corpus_choice`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mbr_esd_metric.core.rules import Choice, Rule

if TYPE_CHECKING:
    from mbr_esd_metric.core.corpus_choice import CorpusChoice, Shortlist
    from mbr_esd_metric.core.decision_problem import DecisionProblem
    from mbr_esd_metric.core.kernels import Floats


class CorpusRule(Rule):
    """A rule for whole test sets. A segment is represented by a few numbers per possible answer, its *statistics*, so
    texts need not stay in memory."""

    @abstractmethod
    def statistics(self, problem: DecisionProblem) -> Floats:
        """The statistics of each hypothesis, shape (n, k)."""

    @abstractmethod
    def shortlist(self, problem: DecisionProblem, statistics: Floats) -> Shortlist:
        """The answers that can be chosen."""

    @abstractmethod
    def settle(self, statistics: Sequence[Floats]) -> CorpusChoice:
        """The decision for the test set, given the statistics of each segment's shortlist, in order."""

    @abstractmethod
    def values(self, statistics: Floats, choice: CorpusChoice) -> Floats:
        """Expected utilities reported by a decision, one per row of `statistics`."""

    def decide(self, problems: Sequence[DecisionProblem]) -> list[Choice]:
        if not problems:
            return []
        statistics = [self.statistics(problem) for problem in problems]
        shortlists = [self.shortlist(*one) for one in zip(problems, statistics, strict=True)]
        choice = self.settle([one.statistics for one in shortlists])
        return [
            Choice(
                shortlist.answers[at],
                self.values(hypotheses, choice),
                float(self.values(shortlist.statistics, choice)[at]),
                choice.ratios,
            )
            for hypotheses, shortlist, at in zip(statistics, shortlists, choice.chosen.tolist(), strict=True)
        ]


class MbrCorpus(CorpusRule):
    """The candidates with the highest expected corpus softdice; the statistics of a hypothesis are its a and b."""

    name = "mbr-corpus"
    description = "the highest expected corpus softdice, over the whole test set"
    by_utility = True
    fixed_utility = "softdice"

    def statistics(self, problem: DecisionProblem) -> Floats:
        from mbr_esd_metric.core import corpus_choice

        return corpus_choice.overlap_and_size(problem)

    def shortlist(self, problem: DecisionProblem, statistics: Floats) -> Shortlist:
        from mbr_esd_metric.core import corpus_choice

        return corpus_choice.candidates_front(problem, statistics)

    def settle(self, statistics: Sequence[Floats]) -> CorpusChoice:
        from mbr_esd_metric.core import corpus_choice

        return corpus_choice.maximise_ratio(statistics)

    def values(self, statistics: Floats, choice: CorpusChoice) -> Floats:
        values: Floats = statistics[:, 0] - choice.ratios[-1] * statistics[:, 1]
        return values


class ConsensusCorpus(MbrCorpus):
    """The same over all annotations, exactly, by a threshold on the share of supports that mark an interval."""

    name = "consensus-corpus"
    description = "the highest expected corpus softdice among all annotations, over the whole test set"

    def shortlist(self, problem: DecisionProblem, statistics: Floats) -> Shortlist:
        from mbr_esd_metric.core import corpus_choice

        return corpus_choice.annotations_front(problem)
