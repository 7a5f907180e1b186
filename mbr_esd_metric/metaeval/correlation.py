"""Agreement of metric scores with gold scores, as in mt-metrics-eval's ``AverageCorrelation`` and (acc_eq*)
``KendallWithTiesOpt``.

Segment scores are correlated over all rated translations ("none"), or the correlations are averaged over segments (each
over its systems: "item") or over systems (each over its segments: "system").

    Pearson   sum (x - mean x)(y - mean y) / (|x - mean x| |y - mean y|)
    Spearman  Pearson of the ranks; tied values share their mean rank
    Kendall   tau-b: (concordant - discordant) / sqrt((pairs - tied in x)(pairs - tied in y))

Groups in which gold or the metric is constant, and groups with a single rating, are excluded from the average. Without
any remaining group, the result is 0, as in the toolkit.

acc_eq* is pairwise accuracy with tie calibration (Deutsch et al. 2023): the share of pairs of rated systems in a
segment that the metric orders like gold or that are tied in both, averaged over segments. Metric scores are tied if
they differ by at most epsilon, and the best epsilon is used:

    acc_eq = max_eps  mean_segments  (concordant + tied in both) / pairs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.matrices import BoolMatrix, check_matrices

Coefficient = Literal["pearson", "spearman", "kendall"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)

#: The groups over which correlations are averaged.
Grouping = Literal["none", "item", "system"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)

#: The maximum number of values for enumerating the pairs of Kendall's tau; for more, SciPy's merge sort is faster.
_FEW = 128


def correlation(
    gold: npt.ArrayLike, metric: npt.ArrayLike, coefficient: Coefficient = "pearson", by: Grouping = "none"
) -> float:
    """The correlation of segment scores, given as score matrices (`matrices`), in [-1, 1].

    Raises `InputError` for inconsistent matrices, `OptionError` for an unknown coefficient or grouping.
    """
    if coefficient not in COEFFICIENTS:
        raise unknown("correlation", coefficient, COEFFICIENTS)
    if by not in GROUPINGS:
        raise unknown("grouping", by, GROUPINGS)
    data = check_matrices(gold, {"metric": metric}, systems=2 if by == "item" else 1)
    groups = _groups(data.gold, data.metrics["metric"], by)
    varied = [(x, y) for x, y in groups if len(x) > 1 and np.ptp(x) != 0 and np.ptp(y) != 0]
    values = [_COEFFICIENTS[coefficient](x, y) for x, y in varied]
    return sum(values) / len(values) if values else 0.0


def system_correlation(gold: npt.ArrayLike, metric: npt.ArrayLike, coefficient: Coefficient = "pearson") -> float:
    """The correlation of system scores, shape (systems,). Raises `InputError` for inconsistent vectors."""
    data = check_matrices(np.atleast_2d(gold).T, {"metric": np.atleast_2d(metric).T})
    return correlation(data.gold, data.metrics["metric"], coefficient)


def pairwise_accuracy(scores: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]]) -> float:
    """The share of pairs of systems that a metric orders like gold, pooled over language pairs (Kocmi et al. 2021). A
    tie agrees only with a tie.

    Args:
        scores: (gold, metric) for each language pair, shape (systems,) each; gold may be NaN.

    Raises `InputError` for inconsistent vectors, or if there are no pairs of systems.
    """
    agreeing = pairs = 0
    for gold, metric in scores:
        data = check_matrices(np.atleast_2d(gold).T, {"metric": np.atleast_2d(metric).T})
        x, y = (values[data.rated] for values in (data.gold, data.metrics["metric"]))
        upper = np.triu_indices(len(x), 1)
        agreeing += int((np.sign(_differences(x)) == np.sign(_differences(y)))[upper].sum())
        pairs += len(upper[0])
    if not pairs:
        raise InputError("no pair of systems has gold scores")
    return agreeing / pairs


def system_means(scores: npt.ArrayLike) -> Floats:
    """The mean of the rated scores of each system, shape (systems,); NaN without rated scores."""
    matrix = np.asarray(scores, dtype=np.float64)
    counts = (~np.isnan(matrix)).sum(axis=1)
    return np.where(counts > 0, np.nansum(matrix, axis=1) / np.maximum(counts, 1), np.nan)


def _groups(gold: Floats, metric: Floats, by: Grouping) -> Iterator[tuple[Floats, Floats]]:
    """The rated scores of each group."""
    if by == "none":
        gold, metric = gold.reshape(1, -1), metric.reshape(1, -1)
    elif by == "item":
        gold, metric = gold.T, metric.T
    for x, y in zip(gold, metric, strict=True):
        rated = ~np.isnan(x)
        yield x[rated], y[rated]


def _differences(values: Floats) -> Floats:
    return np.asarray(values[:, None] - values[None, :])


def _pearson(x: Floats, y: Floats) -> float:
    x, y = x - x.mean(), y - y.mean()
    value = np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y))
    return float(min(1.0, max(-1.0, value)))


def _spearman(x: Floats, y: Floats) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(x), rankdata(y))


def _kendall(x: Floats, y: Floats) -> float:
    if len(x) > _FEW:
        from scipy.stats import kendalltau

        return float(kendalltau(x, y).statistic)
    upper = np.triu_indices(len(x), 1)
    sign_x, sign_y = np.sign(_differences(x)[upper]), np.sign(_differences(y)[upper])
    balance = float((sign_x * sign_y).sum())
    value = balance / float(np.sqrt(np.count_nonzero(sign_x))) / float(np.sqrt(np.count_nonzero(sign_y)))
    return min(1.0, max(-1.0, value))


_COEFFICIENTS: Mapping[Coefficient, Callable[[Floats, Floats], float]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}


@dataclass(frozen=True, slots=True)
class AccEq:
    """A calibrated pairwise accuracy in [0, 1], and its tie threshold."""

    accuracy: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class GoldPairs:
    """The pairs of rated systems, by segment, and in each segment in the order (0, 1), (0, 2), ..., (1, 2), ...

    Attributes:
        rated: (segments, all pairs), whether a pair is rated; `row` and `sign` have one entry for each rated pair.
        row: index into `sizes` of the pair's segment.
        sign: sign of gold's difference, 0 for a tie.
        sizes: pairs per segment, for segments that have any.
        order: the segments in mt-metrics-eval's order of summation.
    """

    rated: BoolMatrix
    row: npt.NDArray[np.intp]
    sign: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.intp]
    order: tuple[int, ...]

    def differences(self, scores: Floats) -> npt.NDArray[np.float64]:
        """The score of the first system of each rated pair minus that of the second; `scores` are systems x
        segments."""
        return _pair_differences(scores)[self.rated]


def gold_pairs(gold: Floats) -> GoldPairs:
    """The pairs of a gold matrix. Raises `InputError` if no segment is rated for two systems."""
    differences = _pair_differences(gold)
    rated = ~np.isnan(differences)
    pairs = rated.sum(axis=1)
    segments = np.flatnonzero(pairs)
    if not len(segments):
        raise InputError("no segment is rated for two systems, so there are no pairs to compare")
    sizes = pairs[segments]
    # The toolkit iterates over a set of segment numbers. The order of summation changes the last bits of the accuracy,
    # and these determine which of several thresholds with the same accuracy it reports.
    positions = {int(segment): position for position, segment in enumerate(segments)}
    order = tuple(positions[segment] for segment in set(segments.tolist()))
    return GoldPairs(rated, np.repeat(np.arange(len(segments)), sizes), np.sign(differences[rated]), sizes, order)


def acc_eq(gold: npt.ArrayLike, metric: npt.ArrayLike) -> AccEq:
    """Pairwise accuracy of `metric` with tie calibration over all pairs (sample rate 1.0).

    The time is O(P log P) for P pairs: a pair becomes a tie when epsilon reaches its difference, so that one sort and
    two cumulative sums evaluate all thresholds. Raises `InputError` for inconsistent score matrices (`matrices`), or if
    there are no pairs.
    """
    data = check_matrices(gold, {"metric": metric})
    pairs = gold_pairs(data.gold)
    return calibrate_ties(pairs, pairs.differences(data.metrics["metric"]))


def calibrate_ties(pairs: GoldPairs, differences: npt.NDArray[np.float64]) -> AccEq:
    """`acc_eq` from precomputed pairs and the metric's `GoldPairs.differences`."""
    rows = len(pairs.sizes)
    untied = credits(pairs, differences, 0.0)
    start = np.bincount(pairs.row, weights=untied, minlength=rows)
    accuracies = (start / pairs.sizes).tolist()
    total = sum(accuracies[row] for row in pairs.order)

    gaps = np.abs(differences)
    ascending = np.argsort(gaps, kind="stable")
    gaps = gaps[ascending]
    # When a pair becomes a tie, the number of credits in its segment changes by -1, 0 or +1.
    change = (pairs.sign == 0).astype(np.int64) - untied
    after = _running_credits(pairs.row[ascending], change[ascending], start.astype(np.int64))
    size = pairs.sizes[pairs.row[ascending]]
    # total - before + after for each pair, with the same sequence of additions as the toolkit's loop.
    steps = np.empty(2 * len(gaps) + 1)
    steps[0] = total
    steps[1::2] = -((after - change[ascending]) / size)
    steps[2::2] = after / size
    means = np.cumsum(steps)[2::2] / rows
    last = np.flatnonzero(np.append(gaps[1:] != gaps[:-1], True))
    thresholds, values = gaps[last], means[last]
    if thresholds[0] != 0.0:
        thresholds, values = np.append(0.0, thresholds), np.append(total / rows, values)
    best = int(np.argmax(values))
    return AccEq(float(values[best]), float(thresholds[best]))


def credits(pairs: GoldPairs, differences: npt.NDArray[np.float64], epsilon: float) -> npt.NDArray[np.int64]:
    """1 for each pair that the metric orders or ties like gold, 0 for the others."""
    sign = np.where(np.abs(differences) <= epsilon, 0.0, np.sign(differences))
    return np.asarray(sign == pairs.sign, dtype=np.int64)


def _running_credits(
    row: npt.NDArray[np.intp], change: npt.NDArray[np.int64], start: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """For each pair, the credits in its segment after the changes of this pair and all earlier ones."""
    by_row = np.argsort(row.astype(np.uint16) if len(start) <= 1 << 16 else row, kind="stable")
    running: npt.NDArray[np.int64] = np.cumsum(change[by_row])
    grouped = row[by_row]
    first = np.flatnonzero(np.append(True, grouped[1:] != grouped[:-1]))
    offset = start - np.append(0, running[first[1:] - 1])
    after: npt.NDArray[np.int64] = np.empty_like(running)
    after[by_row] = running + offset[grouped]
    return after


def _pair_differences(scores: Floats) -> Floats:
    """The score differences of all pairs, shape (segments, pairs of systems); NaN if one of the two scores is NaN."""
    first, second = np.triu_indices(len(scores), 1)
    columns = np.ascontiguousarray(scores.T)
    return np.asarray(columns[:, first] - columns[:, second])
