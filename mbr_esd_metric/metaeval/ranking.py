"""Rankings of metrics with significance clusters, as mt-metrics-eval's ``AssignRanks`` and ``AverageCorrMatrix``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import Missing
from mbr_esd_metric.metaeval.significance import Contest, DrawsDone, EarlyStop, MetricPair, PermBoth, Statistic, prepare


@dataclass(frozen=True, slots=True)
class Ranking:
    """Metrics ordered by a statistic, best first; metrics with equal values by name.

    Attributes:
        ranks: significance clusters from 1.
        p_values: shape (metrics, metrics), for i < j the p-value of "metric i is better than metric j"; 0 elsewhere.
        draws: (i, j) by name -> the differences i - j under the null hypothesis; empty without tests.
        resamples: metric -> its values on bootstrap resamples shared by all metrics; empty without a bootstrap.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    ranks: tuple[int, ...]
    p_values: Floats
    draws: Mapping[tuple[str, str], Floats] = field(repr=False, compare=False)
    resamples: Mapping[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    def value(self, name: str) -> float:
        """The statistic of one metric."""
        return self.values[self.names.index(name)]

    def rank(self, name: str) -> int:
        """The cluster of one metric."""
        return self.ranks[self.names.index(name)]

    def p_value(self, a: str, b: str) -> float:
        """The p-value of "metric b is better than metric a", by the bootstrap if there is one; 1 if one of the metrics
        is not in the ranking."""
        if not {a, b} <= {*self.names}:
            return 1.0
        if self.resamples:
            # The tolerance is for equal values that differ in the last bit.
            return float((self.resamples[b] - self.resamples[a] <= 1e-12).mean())
        i, j = self.names.index(b), self.names.index(a)
        return float(self.p_values[i, j]) if i < j else 1.0


def rank_metrics(
    gold: npt.ArrayLike,
    metrics: Mapping[str, npt.ArrayLike],
    statistic: Statistic,
    k: int = 1000,
    seed: int = 0,
    *,
    alpha: float = 0.05,
    stop: EarlyStop | None = EarlyStop(),
    missing: Missing = "toolkit",
    exact: bool = False,
) -> Ranking:
    """Order `metrics`, test every pair with `perm_both`, and assign significance clusters.

    Args:
        k: the number of draws of each test; 0 for no tests.
        alpha: the significance level: two metrics differ if the p-value is at most alpha.
        stop: the condition for early stopping, by default that of mt-metrics-eval's WMT tasks; None for all k draws.

    The other arguments and the exceptions are those of `perm_both`.
    """
    return rank_contest(prepare(gold, metrics, statistic, missing, exact), k, seed, alpha=alpha, stop=stop)


def rank_contest(
    contest: Contest,
    k: int,
    seed: int,
    *,
    alpha: float = 0.05,
    stop: EarlyStop | None = None,
    progress: DrawsDone | None = None,
) -> Ranking:
    """`rank_metrics` for prepared metrics."""
    values = dict(sorted(contest.values.items(), key=lambda item: (-item[1], item[0])))
    pairs = list(combinations(values, 2)) if k else []
    tests = contest.tests([(b, a) for a, b in pairs], k, seed, stop, progress) if k else {}
    return _ranked(values, {(a, b): tests[b, a] for a, b in pairs}, alpha)


def _ranked(values: Mapping[str, float], tests: Mapping[MetricPair, PermBoth], alpha: float) -> Ranking:
    """The ranking; `tests` are the tests of "a is better than b" for each metric a and each worse metric b."""
    names = tuple(values)
    p_values = np.zeros((len(names), len(names)))
    for (a, b), test in tests.items():
        p_values[names.index(a), names.index(b)] = test.p_value
    draws = {pair: test.draws for pair, test in tests.items()}
    return Ranking(names, tuple(values.values()), assign_ranks(p_values, alpha), p_values, draws)


def average_ranking(
    rankings: Sequence[Ranking], weights: Sequence[float] | None = None, *, alpha: float = 0.05
) -> Ranking:
    """The ranking by the weighted mean over several rankings, for the metrics that are in all of them.

    Draws of the mean are weighted sums of the draws of the individual tests. If a test stopped early, its draws are
    repeated. Bootstrap resamples are averaged without weights.

    Args:
        rankings: the rankings.
        weights: one weight per ranking, with sum 1; None for equal weights.
        alpha: the significance level.

    Raises `InputError` if there is no common metric, or the number of weights is wrong.
    """
    weights = weights or [1 / len(rankings)] * len(rankings)
    if len(weights) != len(rankings):
        raise InputError(f"{len(weights)} weights for {len(rankings)} rankings; specify one per ranking")
    common = [name for name in rankings[0].names if all(name in ranking.names for ranking in rankings)]
    if not common:
        raise InputError("no metric appears in all rankings")
    means = {name: sum(w * r.value(name) for w, r in zip(weights, rankings, strict=True)) for name in common}
    values = dict(sorted(means.items(), key=lambda item: -item[1]))
    tests: dict[MetricPair, PermBoth] = {}
    for a, b in combinations(values, 2) if all(ranking.draws for ranking in rankings) else ():
        single = [r.draws[a, b] if (a, b) in r.draws else -r.draws[b, a] for r in rankings]
        longest, delta = max(map(len, single)), values[a] - values[b]
        draws = np.sum([w * np.resize(drawn, longest) for w, drawn in zip(weights, single, strict=True)], axis=0)
        # The tolerance is the same as in `Contest.tests`.
        tests[a, b] = PermBoth(float((draws >= delta - 1e-12).mean()), delta, draws)
    resampled = common if all(one.resamples for one in rankings) else []
    resamples = {name: np.mean([one.resamples[name] for one in rankings], axis=0) for name in resampled}
    return replace(_ranked(values, tests, alpha), resamples=resamples)


def assign_ranks(p_values: Floats, alpha: float = 0.05) -> tuple[int, ...]:
    """Significance clusters of metrics that are ordered best first.

    A metric starts a new cluster if a metric of the current cluster is significantly better: if p_values[i, j], for i <
    j the p-value of "metric i is better than metric j", is at most `alpha`.
    """
    ranks: list[int] = []
    first = 0
    for j in range(len(p_values)):
        if (p_values[first:j, j] <= alpha).any():
            first = j
        ranks.append(ranks[-1] + (first == j) if ranks else 1)
    return tuple(ranks)
