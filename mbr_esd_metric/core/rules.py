"""Decision rules: which of the candidate annotations is the answer (paper, Section 3).

A new rule is one class here, or one that another package offers by an entry point, and is found by its name. What
computes is imported when a rule chooses: naming and describing the rules loads no numpy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.plugins import Catalog

if TYPE_CHECKING:
    from mbr_esd_metric.core.corpus_choice import CorpusChoice, Shortlist
    from mbr_esd_metric.core.decision_problem import DecisionProblem
    from mbr_esd_metric.core.kernels import Floats


class Rule(ABC):
    """A choice of one annotation for a segment."""

    #: The name in options.
    name: ClassVar[str]
    #: A few words for `--help`.
    description: ClassVar[str]
    #: What it chooses from: "samples" of a model, "one" candidate decoded at temperature 0, or "none" if it ignores
    #: the candidates.
    candidates: ClassVar[Literal["samples", "one", "none"]] = "samples"
    #: Whether it needs the candidates' log-probabilities.
    needs_logprobs: ClassVar[bool] = False
    #: Whether its supports are human annotations.
    needs_references: ClassVar[bool] = False
    #: Whether the choice depends on the utility and the weights of the supports. Other rules only report them.
    by_utility: ClassVar[bool] = False
    #: The similarity that it always maximises; None if `utility` names it.
    fixed_utility: ClassVar[str | None] = None
    #: Whether `n=auto` can work with it: the rule takes the candidate with the highest mean utility.
    stops_early: ClassVar[bool] = False

    def check(self, problem: DecisionProblem) -> None:
        """Raise `InputError` if the segment lacks what the rule needs."""
        if self.needs_references and not problem.has_external_supports:
            raise InputError(f"the rule {self.name!r} needs human annotations as references")
        number = len(problem.hypotheses.hypothesis_of_candidate)
        if self.candidates == "one" and number > 1:
            raise InputError(
                f"the rule {self.name!r} takes one candidate, decoded at temperature 0, not {number}; "
                "use 'map' for the likeliest of several"
            )
        if self.needs_logprobs and not (problem.hypotheses.logprobs > -math.inf).any():
            raise InputError(f"the rule {self.name!r} needs the candidates' log-probabilities; choose another")

    def __str__(self) -> str:
        return self.name


class SegmentRule(Rule):
    """A rule that looks at one segment at a time."""

    @abstractmethod
    def choose(self, problem: DecisionProblem) -> int | Annotation:
        """The hypothesis that is the answer, or an annotation that need not be a candidate's. `Hypotheses.best`
        resolves ties."""


class CorpusRule(Rule):
    """A rule that chooses for all segments of a test set together. A segment enters by a few numbers of each possible
    answer, its *statistics*, so that the texts need not stay in memory."""

    @abstractmethod
    def statistics(self, problem: DecisionProblem) -> Floats:
        """The numbers of each hypothesis, shape (n, k)."""

    @abstractmethod
    def shortlist(self, problem: DecisionProblem, statistics: Floats) -> Shortlist:
        """The answers that may be chosen at all."""

    @abstractmethod
    def settle(self, statistics: Sequence[Floats]) -> CorpusChoice:
        """The choice for the test set, given the statistics of each segment's shortlist, in that order."""

    @abstractmethod
    def values(self, statistics: Floats, choice: CorpusChoice) -> Floats:
        """Expected utilities that a decision reports, one for each row of `statistics`."""


class Mbr(SegmentRule):
    """Minimum Bayes risk: the candidate with the highest expected utility (paper, Section 3),

        argmax over h of U(h),    U(h) = sum over supports s of w(s) u(h, s),    sum of w = 1

    where u is a similarity and the supports are the candidates themselves, h included, unless others are given.
    """

    name = "mbr"
    description = "the highest mean utility to all candidates"
    by_utility = True
    stops_early = True

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.expected)


class Oracle(Mbr):
    """MBR whose supports are the human annotations; with several raters, their mean counts."""

    name = "oracle"
    description = "the highest similarity to the human annotations"
    needs_references = True
    stops_early = False


class Map(SegmentRule):
    """The candidate with the highest log-probability under the model (maximum a posteriori)."""

    name = "map"
    description = "the highest log-probability"
    needs_logprobs = True

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.hypotheses.logprobs)


class Majority(SegmentRule):
    """The most frequent annotation."""

    name = "majority"
    description = "the most frequent annotation"

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.hypotheses.weights())


class Greedy(SegmentRule):
    """The only candidate, decoded at temperature 0."""

    name = "greedy"
    description = "the one candidate, decoded at temperature 0"
    candidates = "one"

    def choose(self, problem: DecisionProblem) -> int:
        return 0


class Empty(SegmentRule):
    """The annotation without any span: a baseline that is hard to beat in mean SoftF1."""

    name = "empty"
    description = "no error, whatever the candidates"
    candidates = "none"

    def choose(self, problem: DecisionProblem) -> Annotation:
        return EMPTY


class MbrCorpus(CorpusRule):
    """The choice over a whole test set that maximises the ratio behind the corpus softdice; the statistics of a
    hypothesis are its a and b (see `core.corpus_choice`)."""

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
    """The same among all annotations, exactly: a threshold on the share of supports that mark an interval."""

    name = "consensus-corpus"
    description = "the highest expected corpus softdice among all annotations, over the whole test set"

    def shortlist(self, problem: DecisionProblem, statistics: Floats) -> Shortlist:
        from mbr_esd_metric.core import corpus_choice

        return corpus_choice.annotations_front(problem)


#: Entry points of other packages: ``mbr_esd_metric.rules``.
RULES = Catalog("rule", "rules", __name__, Rule)


@cache
def get_rule(name: str) -> Rule:
    """The rule of that name. Raises `OptionError` with the nearest names if there is none."""
    return RULES.get(name)()


def rules(*, references: bool = True) -> dict[str, Rule]:
    """Name -> rule, this package's first; without `references`, only rules that need no human annotations."""
    every = {name: get_rule(name) for name in RULES.all()}
    return {name: rule for name, rule in every.items() if references or not rule.needs_references}
