"""What a decision rule is: it chooses an annotation, and says what it needs.

A new rule is one file NAME.py in this folder with a subclass of `SegmentRule` or `CorpusRule`; `decide`, the option
`rule` of model names, evaluation and command line then find it by its name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from mbr_esd_metric.core.decision_problem import DecisionProblem
    from mbr_esd_metric.core.kernels import Floats


class Rule(ABC):
    """How one annotation is chosen for a segment."""

    #: The name in options: `decide(..., rule=NAME)`, `--rule NAME`, `?rule=NAME`.
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
    own_utility: ClassVar[str | None] = None
    #: Whether `n=auto` can work with it: the rule takes the candidate with the highest mean utility.
    stops_early: ClassVar[bool] = False

    def check(self, problem: DecisionProblem) -> None:
        """Raise `InputError` if the segment lacks what the rule needs."""
        if self.needs_references and not problem.apart:
            raise InputError(f"the rule {self.name!r} needs human annotations as references")
        if self.candidates == "one" and len(problem.hypotheses.of) > 1:
            raise InputError(
                f"the rule {self.name!r} takes one candidate, decoded at temperature 0, not "
                f"{len(problem.hypotheses.of)}; use 'map' for the likeliest of several"
            )
        if self.needs_logprobs and not (problem.hypotheses.logprobs > -math.inf).any():
            raise InputError(f"the rule {self.name!r} needs the candidates' log-probabilities")

    def __str__(self) -> str:
        return self.name


class SegmentRule(Rule):
    """A rule that looks at one segment at a time."""

    @abstractmethod
    def choose(self, problem: DecisionProblem) -> int | Annotation:
        """The hypothesis that is the answer, or an annotation that need not be a candidate's.

        `DecisionProblem.expected` holds the expected utilities, `Hypotheses.best` resolves ties.
        """


@dataclass(frozen=True)
class CorpusChoice:
    """What a `CorpusRule` chose for a whole test set.

    Attributes:
        chosen: for each segment, the position of the choice in its shortlist.
        ratios: what the rule maximises, after each pass; it never falls, and the last value is the result.
    """

    chosen: npt.NDArray[np.intp]
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """What the rule maximises, at the end."""
        return self.ratios[-1]


@dataclass(frozen=True)
class Shortlist:
    """What a `CorpusRule` may choose for one segment, in the order in which ties are resolved; at least one.

    Attributes:
        answers: hypotheses, or annotations that need not be a candidate's.
        statistics: of each of them, shape (options, k).
    """

    answers: Sequence[int | Annotation]
    statistics: Floats


class CorpusRule(Rule):
    """A rule that chooses for all segments of a test set together.

    A segment enters by a few numbers of each possible answer, its *statistics*, so that the texts need not stay in
    memory.
    """

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
        """What a decision reports as expected utility, one for each row of `statistics`."""
