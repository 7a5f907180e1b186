"""Adaptive sampling (`n=auto`): draw in rounds of 16, 32, 64, ... candidates and stop when the decision is settled.

The idea comes from adaptive consistency (Aggarwal et al. 2023, arXiv 2305.11860), which stops a majority vote when its
posterior is sharp, and from confidence-based pruning for MBR (Cheng and Vlachos 2023, arXiv 2311.14919), which judges
candidates by a bootstrap over supports. Here the question is how much expected utility is lost by stopping. With n
candidates drawn, h* the chosen one, and w ~ Dirichlet(counts) the hypotheses' weights in the Bayesian bootstrap (Rubin
1981),

    loss(n) = E_w[ max_h sum_s w_s u(h, s) - sum_s w_s u(h*, s) ]

is the expected gain from better estimates of the utilities of the candidates seen so far, and

    gain(n) = U_n(h*) - U_n(the choice after n/2)

is the gain of the last doubling, which includes its new candidates. Sampling stops when neither is above `TOLERANCE`.
There is no guarantee for a single segment; `scripts/benchmarks/bench_adaptive.py` measures how often decisions
change, and the utility that is lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.core.decision_problem import Hypotheses
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decision_problem
from mbr_esd_metric.errors import NoValidCandidateError, OptionError

#: The number of candidates in the first round; each further round doubles it.
FIRST = 16
#: The expected utility that may be lost by stopping.
TOLERANCE = 0.0001
#: Draws of the bootstrap.
_DRAWS = 400


def rounds(n_max: int) -> Iterator[int]:
    """The total number of candidates after each round: 16, 32, 64, ..., n_max."""
    n = FIRST
    while n < n_max:
        yield n
        n *= 2
    yield n_max


def check_stops_early(options: DecisionOptions) -> None:
    """Raise `OptionError` if the first candidates cannot show whether more of them would change the decision."""
    if not options.rule_instance.stops_early or options.weights != "uniform":
        names = ", ".join(name for name, rule in rules().items() if rule.stops_early)
        raise OptionError(
            f"n=auto is for rule={names} with weights=uniform, not {options.rule} with {options.weights}; give n=N"
        )
    if not get_similarity(options.utility).mean_over_supports:
        raise OptionError(f"n=auto is for utilities that are means over candidates, not {options.utility}; give n=N")


def settled(
    candidates: Sequence[Candidate],
    translation: str,
    options: DecisionOptions,
    *,
    source: str | None = None,
    tolerance: float = TOLERANCE,
) -> bool:
    """Whether stopping after these candidates, the first n of a segment, is expected to lose at most `tolerance` of the
    expected utility. It depends on nothing else, so a repeated run stops at the same place. The other arguments are
    those of `decide`."""
    try:
        problem, _ = decision_problem(candidates, translation, options, source=source)
    except NoValidCandidateError:
        return False
    similarities = problem.utility.matrix(problem.table, problem.rows, problem.columns)
    return cost_of_stopping(problem.hypotheses, similarities) <= tolerance


def cost_of_stopping(hypotheses: Hypotheses, similarities: Floats) -> float:
    """The larger of loss(n) and gain(n), in units of the utility; similarities are those of each hypothesis of the n
    candidates to each, shape (h, h)."""
    early = [h for h in hypotheses.hypothesis_of_candidate[: len(hypotheses.hypothesis_of_candidate) // 2] if h >= 0]
    if not early:
        return math.inf
    expected = similarities @ hypotheses.weights()
    chosen = hypotheses.best(expected)
    generator = np.random.default_rng(0)
    masses = generator.standard_gamma(hypotheses.counts.astype(np.float64), (_DRAWS, len(hypotheses)))
    utilities = (masses / masses.sum(axis=1, keepdims=True)) @ similarities.T
    loss = (utilities.max(axis=1) - utilities[:, chosen]).mean()
    counts = np.bincount(early, minlength=len(hypotheses))
    before = np.where(counts > 0, similarities @ (counts / counts.sum()), -np.inf)
    gain = expected[chosen] - expected[hypotheses.best(before)]
    return float(max(loss, gain))
