"""Decision rules, which select the answer from the candidate annotations (paper, Section 3).

A new rule is one class here, or in another package with an entry point, and is looked up by name. Rules for a whole
test set are in `core.corpus_rules`. Listing and describing rules does not load numpy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.plugins import Catalog

if TYPE_CHECKING:
    from mbr_esd_metric.core.decision_problem import DecisionProblem
    from mbr_esd_metric.core.kernels import Floats


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of a rule for a segment.

    Attributes:
        answer: a hypothesis, or any other annotation.
        values: expected utilities of the hypotheses, shape (n,), for the decision.
        value: the expected utility of an answer that is not a hypothesis.
        ratios: for a rule over a whole test set, the maximised value after each iteration.
    """

    answer: int | Annotation
    values: Floats
    value: float | None = None
    ratios: tuple[float, ...] = ()


class Rule(ABC):
    """A rule that chooses one annotation per segment."""

    #: The name in options.
    name: ClassVar[str]
    #: A short description for `--help`.
    description: ClassVar[str]
    #: Its input: "samples" of a model, "one" candidate decoded at temperature 0, or "none".
    candidates: ClassVar[Literal["samples", "one", "none"]] = "samples"
    #: Whether it requires the candidates' log-probabilities.
    needs_logprobs: ClassVar[bool] = False
    #: Whether its supports are human annotations.
    needs_references: ClassVar[bool] = False
    #: Whether the choice depends on the utility and the weights of the supports. Other rules only report the expected
    #: utility.
    by_utility: ClassVar[bool] = False
    #: The similarity that it always maximises; None if it uses `utility`.
    fixed_utility: ClassVar[str | None] = None

    def check(self, problem: DecisionProblem) -> None:
        """Raise `InputError` if the segment lacks input that the rule requires."""
        if self.needs_references and not problem.has_external_supports:
            raise InputError(f"the rule {self.name!r} needs human annotations as references")
        number = len(problem.hypotheses.hypothesis_of_candidate)
        if self.candidates == "one" and number > 1:
            raise InputError(
                f"the rule {self.name!r} needs exactly one candidate, decoded at temperature 0, not {number}; "
                "use 'map' for the most probable of several"
            )
        if self.needs_logprobs and not (problem.hypotheses.logprobs > -math.inf).any():
            raise InputError(f"the rule {self.name!r} needs the candidates' log-probabilities; choose another")

    @abstractmethod
    def decide(self, problems: Sequence[DecisionProblem]) -> list[Choice]:
        """The choice for each segment."""


class SegmentRule(Rule):
    """A rule that decides each segment separately."""

    @abstractmethod
    def choose(self, problem: DecisionProblem) -> int | Annotation:
        """The chosen hypothesis, or any other annotation. `Hypotheses.best` breaks ties."""

    def decide(self, problems: Sequence[DecisionProblem]) -> list[Choice]:
        return [Choice(self.choose(problem), problem.expected) for problem in problems]


class Mbr(SegmentRule):
    """Minimum Bayes risk: the candidate h with the highest expected utility (paper, Section 3),

        U(h) = sum over supports s of w(s) u(h, s),    sum of w = 1

    with a similarity u; by default, the supports are the candidates themselves, including h.
    """

    name = "mbr"
    description = "the highest mean utility to all candidates"
    by_utility = True

    def choose(self, problem: DecisionProblem) -> int:
        return problem.hypotheses.best(problem.expected)


class Oracle(Mbr):
    """MBR with the human annotations as supports; with several raters, it maximises the mean."""

    name = "oracle"
    description = "the highest similarity to the human annotations"
    needs_references = True


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


#: Entry point group for other packages: ``mbr_esd_metric.rules``.
RULES = Catalog("rule", "rules", __name__, Rule, dict.fromkeys(("mbr-corpus", "consensus-corpus"), "corpus_rules"))  # type: ignore[type-abstract]


@cache
def get_rule(name: str) -> Rule:
    """The rule with this name. Raises `OptionError` with the closest names if there is none."""
    return RULES.get(name)()


def rules(*, references: bool = True) -> dict[str, Rule]:
    """Name -> rule, with this package's first; without `references`, only rules that need no human annotations."""
    every = {name: get_rule(name) for name in RULES.all()}
    return {name: rule for name, rule in every.items() if references or not rule.needs_references}
