"""Ranks metrics in significance clusters, as mt-metrics-eval's ``AssignRanks`` and ``AverageCorrMatrix`` do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector, Missing
from mbr_esd_metric.metaeval.significance import Contest, DrawsDone, EarlyStop, Statistic, prepare


@dataclass(frozen=True, slots=True)
class Ranking:
    """Metrics ordered by a statistic, best first; metrics of equal value by name.

    Attributes:
        names, values, ranks: one entry per metric; `ranks` are significance clusters from 1.
        p_values: (metrics, metrics), for i < j the p-value that metric i beats metric j; 0 elsewhere.
        draws: (i, j) -> differences i - j under the null hypothesis, by name; empty if nothing was tested.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    ranks: tuple[int, ...]
    p_values: FloatMatrix
    draws: Mapping[tuple[str, str], FloatVector] = field(repr=False, compare=False)

    def value(self, name: str) -> float:
        """The statistic of one metric."""
        return self.values[self.names.index(name)]

    def rank(self, name: str) -> int:
        """The cluster of one metric, 1 is best."""
        return self.ranks[self.names.index(name)]


def rank_metrics(
    gold: npt.ArrayLike,
    metrics: Mapping[str, npt.ArrayLike],
    statistic: Statistic,
    k: int = 1000,
    seed: int = 0,
    *,
    alpha: float = 0.05,
    stop: EarlyStop | None = EarlyStop(),  # noqa: B008
    missing: Missing = "toolkit",
    exact: bool = False,
    progress: DrawsDone | None = None,
) -> Ranking:
    """Order `metrics` by `statistic`, test every pair as `perm_both` does, and put them in clusters.

    Args:
        gold, statistic, seed, missing, exact: as of `perm_both`; errors too.
        metrics: name -> score matrix (`matrices`).
        k: draws of each test; 0 tests nothing, and every metric is a cluster of its own.
        alpha: two metrics differ if the p-value is at most this.
        stop: when to draw fewer; the default is that of mt-metrics-eval's WMT tasks, None draws all k.
        progress: see `Contest.tests`.
    """
    contest = prepare(gold, dict(metrics), statistic, missing, exact)
    return rank_contest(contest, k, seed, alpha=alpha, stop=stop, progress=progress)


def rank_contest(
    contest: Contest,
    k: int,
    seed: int,
    *,
    alpha: float = 0.05,
    stop: EarlyStop | None = None,
    progress: DrawsDone | None = None,
) -> Ranking:
    """The ranking of metrics that are prepared for tests; arguments as of `rank_metrics`."""
    values = dict(sorted(contest.values.items(), key=lambda item: (-item[1], item[0])))
    pairs = list(combinations(values, 2)) if k else []
    # The test asks whether the better one beats the other.
    tests = contest.tests([(b, a) for a, b in pairs], k, seed, stop, progress) if k else {}
    p_values = {(a, b): tests[b, a].p_value for a, b in pairs}
    return _ranked(values, p_values, {(a, b): tests[b, a].draws for a, b in pairs}, alpha)


def _ranked(
    values: Mapping[str, float],
    p_values: Mapping[tuple[str, str], float],
    draws: Mapping[tuple[str, str], FloatVector],
    alpha: float,
) -> Ranking:
    index = {name: i for i, name in enumerate(values)}
    matrix = np.zeros((len(index), len(index)))
    for (a, b), p_value in p_values.items():
        matrix[index[a], index[b]] = p_value
    return Ranking(tuple(values), tuple(values.values()), assign_ranks(matrix, alpha), matrix, draws)


def average_ranking(
    rankings: Sequence[Ranking], weights: Sequence[float] | None = None, *, alpha: float = 0.05
) -> Ranking:
    """The ranking by the weighted mean of several rankings' values, such as SPA and acc_eq over three language pairs.

    Metrics that are not in all rankings are left out. The weights, one per ranking, add up to 1; None weighs them
    alike. The draws of the single tests are added up, draw by draw, into draws of the mean. If a test stopped early,
    its draws are repeated.

    Raises:
        InputError: for no ranking, no common metric, or the wrong number of weights.
    """
    if not rankings:
        raise InputError("there is no ranking to average")
    if weights is None:
        weights = [1 / len(rankings)] * len(rankings)
    if len(weights) != len(rankings):
        raise InputError(f"{len(weights)} weights for {len(rankings)} rankings; give one each")
    common = [name for name in rankings[0].names if all(name in ranking.names for ranking in rankings)]
    if not common:
        raise InputError("no metric is in all of the rankings")
    means = {name: sum(w * r.value(name) for w, r in zip(weights, rankings, strict=True)) for name in common}
    values = dict(sorted(means.items(), key=lambda item: -item[1]))
    draws: dict[tuple[str, str], FloatVector] = {}
    if all(ranking.draws for ranking in rankings):
        for pair in combinations(values, 2):
            single = [r.draws[pair] if pair in r.draws else -r.draws[pair[1], pair[0]] for r in rankings]
            longest = max(map(len, single))
            weighted = [w * np.resize(drawn, longest) for w, drawn in zip(weights, single, strict=True)]
            draws[pair] = np.sum(weighted, axis=0)
    # As in `Contest.tests`: equal differences count as reached.
    p_values = {(a, b): float((drawn >= values[a] - values[b] - 1e-12).mean()) for (a, b), drawn in draws.items()}
    return _ranked(values, p_values, draws, alpha)


def assign_ranks(p_values: FloatMatrix, alpha: float = 0.05) -> tuple[int, ...]:
    """Significance clusters of metrics that are ordered best first.

    A metric opens a new cluster if a metric of the current cluster beats it: p_values[i, j], for i < j the p-value that
    metric i beats metric j, is at most `alpha`.
    """
    ranks: list[int] = []
    first = 0
    for j in range(len(p_values)):
        if (p_values[first:j, j] <= alpha).any():
            first = j
        ranks.append(ranks[-1] + (first == j) if ranks else 1)
    return tuple(ranks)
