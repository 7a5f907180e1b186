"""Significance tests of metrics: PERM-BOTH (Deutsch et al. 2021), the paired bootstrap, and rankings.

The permutation test PERM-BOTH tests whether metric b agrees with gold better than metric a,

    p = share of k draws with  statistic(b') - statistic(a') >= statistic(b) - statistic(a)

A draw swaps outputs of a and b at random: for SPA, their standardised scores of each translation; for acc_eq, their
decisions on each pair of systems, with the calibrated thresholds, so that metrics on different scales can be compared.
A small p means that b is better. Both tests are those of mt-metrics-eval (``PermutationSigDiff``,
``PairwisePermutationSigDiff``), except for the random numbers. For span measures, a draw swaps the statistics of whole
segments, summed over the translations of all systems, because these share the source and its difficulty. A measure is a
function of sums, so that one matrix product per metric computes all draws, including those of corpus measures.

The paired bootstrap of span measures (Koehn 2004) uses k resamples of the segments, the same for all metrics. Intervals
of values and of differences are the middle 95% over the resamples, and

    p = share of the resamples in which  measure(b) <= measure(a)

The paper resamples individual translations (`units="instance"`).

Rankings order metrics and assign significance clusters, as mt-metrics-eval's ``AssignRanks`` and ``AverageCorrMatrix``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.metaeval.correlation import GoldPairs, calibrate_ties, credits, gold_pairs
from mbr_esd_metric.metaeval.matrices import BoolMatrix, Missing, ScoreMatrices, check_matrices, pack_rated
from mbr_esd_metric.metaeval.spa import PERMUTATIONS, exact_p_values, pairwise_p_values, signs, spa_of_p_values
from mbr_esd_metric.metaeval.spans import SpanScores, span_measure

Statistic = Literal["spa", "acc_eq"]
STATISTICS: tuple[Statistic, ...] = ("spa", "acc_eq")

#: The names of two metrics; the test is whether the second is better.
MetricPair: TypeAlias = tuple[str, str]
#: Called with the number of further completed draws.
DrawsDone: TypeAlias = Callable[[int], None]
#: (pairs, number) -> the next draws of each pair; the pairs are a subset of those of the previous call.
NextDraws: TypeAlias = Callable[[Sequence[MetricPair], int], dict[MetricPair, Floats]]
_Singles: TypeAlias = npt.NDArray[np.float32]
#: The unit of resampling.
Units = Literal["segment", "instance"]
UNITS: tuple[Units, ...] = ("segment", "instance")


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """Stop drawing if the p-value after a block of draws is below `low` or above `high`, as mt-metrics-eval does."""

    block: int = 100
    low: float = 0.02
    high: float = 0.5


@dataclass(frozen=True, slots=True)
class PermBoth:
    """The result of one test: the p-value, small if b is better than a; `delta`, the statistic of b minus that of a;
    and `draws`, the k differences under the null hypothesis, or fewer (`EarlyStop`)."""

    p_value: float
    delta: float
    draws: Floats = field(repr=False, compare=False)


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
        gold, a, b: score matrices (`matrices`).
        k: the number of draws; the standard error of the p-value is at most ``0.5 / sqrt(k)``.
        stop: the condition for early stopping; None for all k draws.
        missing, exact: for SPA, see `pack_rated` and `spa`; if exact, ties with the observed difference count half.

    Raises `InputError` for inconsistent matrices, `OptionError` for an unknown statistic or k < 1.
    """
    contest = prepare(gold, {"a": a, "b": b}, statistic, missing, exact)
    return contest.tests([("a", "b")], k, seed, stop)["a", "b"]


def prepare(
    gold: npt.ArrayLike,
    metrics: Mapping[str, npt.ArrayLike],
    statistic: Statistic,
    missing: Missing = "toolkit",
    exact: bool = False,
) -> Contest:
    """The `Contest` of `metrics` on `gold`. Raises the exceptions of `perm_both`."""
    data = check_matrices(gold, metrics)
    if statistic == "spa":
        return SpaContest(pack_rated(data, missing), exact)
    if statistic == "acc_eq":
        return AccEqContest(gold_pairs(data.gold), data.metrics)
    raise unknown("statistic", statistic, STATISTICS)


class Contest(ABC):
    """Metrics prepared for pairwise tests, with everything that depends on a single metric precomputed."""

    #: Metric -> its statistic, higher is better.
    values: dict[str, float]

    def tests(
        self, pairs: Sequence[MetricPair], k: int, seed: int, stop: EarlyStop | None, progress: DrawsDone | None = None
    ) -> dict[MetricPair, PermBoth]:
        """`perm_both` for each pair (a, b) of names. All tests use the same seed, and so the same draws.

        `progress` is called with numbers of draws that are completed or not needed; they sum to k per pair.
        """
        if k < 1:
            raise OptionError(f"a permutation test needs at least one draw (got k = {k})")
        tests: dict[MetricPair, PermBoth] = {}
        draws = {pair: np.empty(0) for pair in pairs}
        draw = self._sampler(seed)
        while len(tests) < len(pairs):
            left = [pair for pair in pairs if pair not in tests]
            done = len(draws[left[0]])
            count = min(k if stop is None else stop.block, k - done)
            for pair, following in draw(left, count).items():
                draws[pair], delta = np.append(draws[pair], following), self._delta(*pair)
                # The tolerance makes equal differences count, whatever the order of summation.
                p_value = float((draws[pair] >= delta - 1e-12).mean())
                if done + count == k or (stop is not None and not stop.low <= p_value <= stop.high):
                    tests[pair] = PermBoth(p_value, delta, draws[pair])
            if progress is not None:
                progress(sum(k - done if pair in tests else count for pair in left))
        return tests

    def _delta(self, a: str, b: str) -> float:
        """The observed difference, b minus a."""
        return self.values[b] - self.values[a]

    @abstractmethod
    def _sampler(self, seed: int) -> NextDraws:
        """A function that draws the next differences under the null hypothesis for some pairs."""


def coins(rng: np.random.Generator, draws: int, systems: int, segments: int) -> BoolMatrix:
    """Fair coins, shape (draws, systems, segments). The stream does not depend on how draws are split into calls."""
    count = systems * segments
    words = rng.integers(0, 1 << 64, size=(draws, -(-count // 64)), dtype=np.uint64)
    bits = np.unpackbits(words.view(np.uint8), axis=1, count=count)
    return bits.view(np.bool_).reshape(draws, systems, segments)


class AccEqContest(Contest):
    """Permutation test of acc_eq, which swaps credits independently for each pair of systems.

    Only pairs of systems with different credits change the difference, each by +-1 / (pairs in its segment * segments),
    so a draw needs one binomial number for each distinct number of pairs in a segment.
    """

    def __init__(self, pairs: GoldPairs, metrics: Mapping[str, Floats]) -> None:
        sizes, self._group = np.unique(pairs.sizes[pairs.row], return_inverse=True)
        self._weight: Floats = 1.0 / (sizes * len(pairs.sizes))
        self.values = {}
        self._credits = {}
        for name, scores in metrics.items():
            differences = pairs.differences(scores)
            best = calibrate_ties(pairs, differences)
            self.values[name] = best.accuracy
            self._credits[name] = credits(pairs, differences, best.epsilon)

    def _sampler(self, seed: int) -> NextDraws:
        streams: dict[MetricPair, np.random.Generator] = {}

        def differences(pair: MetricPair, count: int) -> Floats:
            rng = streams.setdefault(pair, np.random.default_rng(seed))
            a, b = (self._credits[name] for name in pair)
            differing = np.bincount(self._group, weights=a != b).astype(np.int64)
            heads = rng.binomial(differing, 0.5, size=(count, len(differing)))
            return np.asarray((2 * heads - differing) @ self._weight)

        return lambda pairs, count: {pair: differences(pair, count) for pair in pairs}


#: The number of draws of SPA that are computed together, so that their data fit in the processor's cache.
_BLOCK = 20


class SpaContest(Contest):
    """Permutation test of SPA, which swaps standardised scores independently for each system and segment.

    All tests share the coins of a draw, so one matrix product per metric computes the sums of the swapped scores over
    the segments with a negative sign. For each pair of metrics, the sums after swapping follow by additions. Scores are
    integer multiples of a small unit, so that sums are exact in single precision, in any order.

    A row is a system. If systems are rated on different segments, a row is a system on the segments that it shares with
    another one, and each pair of systems has two rows.
    """

    def __init__(self, data: ScoreMatrices, exact: bool = False) -> None:
        self._exact = exact
        p_values = exact_p_values if exact else pairwise_p_values
        gold_p = p_values(data.gold)
        self.values = {name: spa_of_p_values(gold_p, p_values(scores)) for name, scores in data.metrics.items()}
        systems, segments = data.gold.shape
        first, second = np.nonzero(~np.isnan(gold_p))
        self._systems, self._system = systems, np.arange(systems)
        shared = data.rated
        if not data.rated.all():
            self._system = np.stack([first, second], axis=1).ravel()
            shared = np.repeat(data.rated[first] & data.rated[second], 2, axis=0)
            first = np.arange(0, len(self._system), 2)
            second = first + 1
        self._pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        self._flipped = (signs(segments).T < 0).astype(np.float32)
        standard = {name: _standardised(scores, data.rated) for name, scores in data.metrics.items()}

        def whole(scores: Floats, unit: float) -> _Singles:
            return np.where(shared, np.rint(scores * unit)[self._system], 0).astype(np.float32)

        unit = _unit(standard.values())
        self._scores = {name: whole(scores, unit) for name, scores in standard.items()}
        self._sums = {name: (scores @ self._flipped)[:, None] for name, scores in self._scores.items()}
        if exact:
            # Ties count half in the gold p-values as well, for comparability with those of the draws.
            centred = np.where(data.rated, data.gold - data.gold[data.rated].mean(), 0.0)
            self._gold = self._counts((whole(centred, _unit([centred])) @ self._flipped)[:, None])
            self._standard_values = {name: -float(self._error(sums)[0]) for name, sums in self._sums.items()}
        else:
            self._gold = 2 * np.rint(gold_p[~np.isnan(gold_p)] * PERMUTATIONS).astype(np.int32)[:, None]
            unrated = np.where(data.rated, 0.0, np.nan)
            self._standard_values = {
                name: spa_of_p_values(gold_p, pairwise_p_values(scores + unrated)) for name, scores in standard.items()
            }

    def _delta(self, a: str, b: str) -> float:
        return self._standard_values[b] - self._standard_values[a]

    def _sampler(self, seed: int) -> NextDraws:
        rng = np.random.default_rng(seed)
        segments = len(self._flipped)

        def draw(pairs: Sequence[MetricPair], count: int) -> dict[MetricPair, Floats]:
            blocks: dict[MetricPair, list[Floats]] = {pair: [] for pair in pairs}
            for at in range(0, count, _BLOCK):
                # (rows, draws, segments)
                swapped = coins(rng, min(_BLOCK, count - at), self._systems, segments)
                swapped = np.ascontiguousarray(swapped.swapaxes(0, 1)[self._system])
                moved = {name: self._moved(self._scores[name], swapped) for name in set(chain(*pairs))}
                for a, b in pairs:
                    change = moved[b] - moved[a]
                    blocks[a, b].append(self._error(self._sums[a] + change) - self._error(self._sums[b] - change))
            return {pair: np.concatenate(parts) for pair, parts in blocks.items()}

        return draw

    def _moved(self, scores: _Singles, swapped: BoolMatrix) -> _Singles:
        """The sums of the swapped scores over the segments with a negative sign, shape (rows, draws, PERMUTATIONS)."""
        rows, draws, segments = swapped.shape
        chosen = np.where(swapped, scores[:, None], np.float32(0)).reshape(-1, segments)
        return np.asarray((chosen @ self._flipped).reshape(rows, draws, PERMUTATIONS))

    def _error(self, sums: _Singles) -> Floats:
        """One minus SPA of each draw, from such sums."""
        total = np.abs(self._counts(sums) - self._gold).sum(axis=0)
        return np.asarray(total / (2.0 * PERMUTATIONS * len(self._pairs)))

    def _counts(self, sums: _Singles) -> npt.NDArray[np.int32]:
        """Twice the number of permutations in which the difference between systems i and j is at least the observed
        one, shape (pairs, draws).

        This is the case if the differences of the segments with a negative sign sum to at most 0, so two sums are
        compared. With `exact`, permutations that equal the observed difference count once, not twice.
        """
        counts = np.empty((len(self._pairs), sums.shape[1]), dtype=np.int32)
        for at, (i, j) in enumerate(self._pairs):
            counts[at] = (sums[i] <= sums[j]).sum(axis=1, dtype=np.int32)
            counts[at] += (sums[i] < sums[j]).sum(axis=1, dtype=np.int32) if self._exact else counts[at]
        return counts


def _standardised(scores: Floats, rated: BoolMatrix) -> Floats:
    """The rated scores with mean zero and unit standard deviation, 0 elsewhere. Constant scores become zero;
    mt-metrics-eval divides by zero for these, so that the p-value is arbitrarily 0 or 1."""
    values = scores[rated]
    if (values == values[0]).all():
        return np.zeros_like(scores)
    return np.where(rated, (scores - values.mean()) / values.std(), 0.0)


def _unit(matrices: Iterable[Floats]) -> float:
    """The number of steps per 1, the finest for which sums of two matrices are exact in single precision (2^24)."""
    largest = max((float(np.abs(matrix).sum(axis=1).max()) for matrix in matrices), default=0.0)
    return float(2.0 ** np.floor(np.log2((1 << 22) / largest))) if largest else 1.0


class SpanContest(Contest):
    """Permutation test of a span measure, which swaps whole segments.

    Raises `InputError` for metrics that are not evaluated on the same translations.
    """

    def __init__(self, scores: Mapping[str, SpanScores], measure: str) -> None:
        self._value: Callable[[Floats], Floats] = span_measure(measure).value
        self._sums = unit_sums({name: one.statistics[measure] for name, one in scores.items()})
        self._totals = {name: sums.sum(axis=0) for name, sums in self._sums.items()}
        self.values = {name: float(self._value(total)) for name, total in self._totals.items()}

    def _sampler(self, seed: int) -> NextDraws:
        rng = np.random.default_rng(seed)
        segments = len(next(iter(self._sums.values())))

        def draw(pairs: Sequence[MetricPair], count: int) -> dict[MetricPair, Floats]:
            swapped = coins(rng, count, 1, segments)[:, 0].astype(np.float64)
            moved = {name: swapped @ self._sums[name] for name in {name for pair in pairs for name in pair}}
            deltas = {}
            for a, b in pairs:
                change = moved[b] - moved[a]
                deltas[a, b] = self._value(self._totals[b] - change) - self._value(self._totals[a] + change)
            return deltas

        return draw


def paired_bootstrap(
    scores: Mapping[str, SpanScores], measure: str, k: int = 1000, seed: int = 0, units: Units = "segment"
) -> dict[str, Floats]:
    """Metric -> its values on k resamples of the units, shape (k,). All metrics share the resamples.

    Raises `InputError` for metrics that are not evaluated on the same translations, `OptionError` for k < 1.
    """
    if k < 1:
        raise OptionError(f"a bootstrap needs at least one resample (got k = {k})")
    sums = unit_sums({name: one.statistics[measure] for name, one in scores.items()}, units)
    count = len(next(iter(sums.values())))
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=k).astype(np.float64)
    value = span_measure(measure).value
    return {name: np.asarray(value(weights @ each)) for name, each in sums.items()}


def unit_sums(statistics: Mapping[str, Floats], units: Units = "segment") -> dict[str, Floats]:
    """Metric -> the statistics of each rated unit, shape (units, number of statistics); segments sum over systems.

    Raises `InputError` for metrics that are not rated on the same translations.
    """
    rated = {name: ~np.isnan(values).any(axis=2) for name, values in statistics.items()}
    first = next(iter(rated))
    for name, cells in rated.items():
        if cells.shape != rated[first].shape or (cells != rated[first]).any():
            raise InputError(f"{first} and {name} are not evaluated on the same translations; they cannot be compared")
    rated_units = rated[first].any(axis=0)
    if units == "instance":
        return {name: values[rated[first]] for name, values in statistics.items()}
    return {name: np.nansum(values, axis=0)[rated_units] for name, values in statistics.items()}


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
        """The p-value of "metric b is better than metric a", by the bootstrap if there is one; 1 if one is missing."""
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

    There is one weight per ranking, with sum 1; None for equal weights. Draws of the mean are weighted sums of the
    draws of the individual tests; if a test stopped early, its draws are repeated. Bootstrap resamples are averaged
    without weights.

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
