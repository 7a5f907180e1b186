"""PERM-BOTH (Deutsch et al. 2021): does one metric agree with gold better than another, or is that chance?

    p = share of k draws with  statistic(b') - statistic(a') >= statistic(b) - statistic(a)

A draw swaps a and b at random. For SPA it swaps their scores of each translation. For acc_eq it swaps their verdicts on
each pair of systems; the thresholds stay as calibrated, so that metrics of different scales can be compared. A small p
says that b is better. Both tests are mt-metrics-eval's (``PermutationSigDiff``, ``PairwisePermutationSigDiff``), except
for the random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from itertools import islice
from typing import Literal

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import unknown
from mbr_esd_metric.metaeval.acc_eq import GoldPairs, calibrated, credits, gold_pairs
from mbr_esd_metric.metaeval.contest import Contest, EarlyStop, MetricPair, NextDraws, PermBoth, SpaContest
from mbr_esd_metric.metaeval.matrices import FloatMatrix, Missing, matched, packed

Statistic = Literal["spa", "acc_eq"]
STATISTICS: tuple[Statistic, ...] = ("spa", "acc_eq")


def perm_both(
    gold: npt.ArrayLike,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    statistic: Statistic = "spa",
    k: int = 1000,
    seed: int = 0,
    *,
    stop: EarlyStop | None = None,
    missing: Missing = "toolkit",
    exact: bool = False,
) -> PermBoth:
    """Test whether metric `b` agrees with `gold` better than metric `a`.

    Args:
        gold: systems x segments, NaN if unrated, higher is better.
        a, b: systems x segments.
        statistic: "spa" or "acc_eq".
        k: draws; the p-value's standard error is at most ``0.5 / sqrt(k)``.
        seed: of the draws.
        stop: when to draw fewer; None draws all k.
        missing: for SPA, see `matrices.packed`.
        exact: for SPA, see `spa`; permutations that just reach a lead then count half.

    Raises:
        InputError: for matrices that do not fit; see `matrices`.
        OptionError: for an unknown statistic, or k < 1.
    """
    return prepare(gold, {"a": a, "b": b}, statistic, missing, exact).test("a", "b", k, seed, stop)


def prepare(
    gold: npt.ArrayLike,
    metrics: dict[str, npt.ArrayLike],
    statistic: Statistic,
    missing: Missing = "toolkit",
    exact: bool = False,
) -> Contest:
    """A `Contest` of `metrics` on `gold`; arguments and errors as for `perm_both`."""
    data = matched(gold, metrics)
    if statistic == "spa":
        data = packed(data, missing)
        return SpaContest(data.gold, dict(data.metrics), exact)
    if statistic == "acc_eq":
        return _AccEqContest(gold_pairs(data.gold), dict(data.metrics))
    raise unknown("statistic", statistic, STATISTICS)


class _AccEqContest(Contest):
    """Swaps credits, independently for each pair of systems.

    Only the pairs on which a and b differ change the difference, each by +-1 / (pairs of its segment * segments). So a
    draw needs one binomial number for each distinct segment size, whatever the number of pairs.
    """

    def __init__(self, pairs: GoldPairs, metrics: dict[str, FloatMatrix]) -> None:
        self._size = pairs.sizes[pairs.row]
        self._segments = len(pairs.sizes)
        self.values = {}
        self._credits = {}
        for name, scores in metrics.items():
            differences = pairs.differences(scores)
            best = calibrated(pairs, differences)
            self.values[name] = best.accuracy
            self._credits[name] = credits(pairs, differences, best.epsilon)

    def _delta(self, a: str, b: str) -> float:
        _, weight, gain = self._gain(a, b)
        return float(gain @ weight)

    def _gain(self, a: str, b: str) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
        """For each number of pairs in a segment: pairs on which a and b differ, what one counts, and b's lead."""
        gain = self._credits[b] - self._credits[a]
        sizes, group = np.unique(self._size, return_inverse=True)
        differing = np.bincount(group, weights=gain != 0).astype(np.int64)
        lead = np.bincount(group, weights=gain).astype(np.float64)
        return differing, np.asarray(1.0 / (sizes * self._segments)), lead

    def _sampler(self, k: int, seed: int, pool: Executor, workers: int) -> NextDraws:
        drawn: dict[MetricPair, Iterator[np.float64]] = {}

        def draw(pairs: Sequence[MetricPair], count: int) -> dict[MetricPair, npt.NDArray[np.float64]]:
            for pair in pairs:
                if pair not in drawn:
                    differing, weight, _ = self._gain(*pair)
                    heads = np.random.default_rng(seed).binomial(differing, 0.5, size=(k, len(differing)))
                    drawn[pair] = iter((2 * heads - differing) @ weight)
            return {pair: np.fromiter(islice(drawn[pair], count), np.float64, count) for pair in pairs}

        return draw
