"""Pairwise accuracy with tie calibration (Deutsch et al. 2023), equal to mt-metrics-eval's ``KendallWithTiesOpt``.

In each segment, the metric earns a credit for every pair of rated systems that it orders as gold does, or that is a tie
in both. Metric scores that are at most epsilon apart are a tie. acc_eq is the mean over segments of the share of pairs
with a credit, at the epsilon that maximises it:

    acc_eq = max_eps  mean_segments  (concordant + tied in both) / pairs
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import BoolMatrix, FloatMatrix, check_matrices


@dataclass(frozen=True, slots=True)
class AccEq:
    """A calibrated pairwise accuracy in [0, 1], its tie threshold, and the numbers of segments and pairs behind it."""

    accuracy: float
    epsilon: float
    segments: int
    pairs: int


@dataclass(frozen=True, slots=True)
class GoldPairs:
    """The pairs of rated systems, by segment, and in each segment in the order (0, 1), (0, 2), ..., (1, 2), ...

    Attributes:
        rated: (segments, all pairs), whether a pair is rated; the arrays below have one entry for each rated pair.
        row: index into `sizes` of the pair's segment.
        sign: sign of gold's difference, 0 for a tie.
        sizes: pairs per segment, for segments that have any.
        order: the segments in the order in which mt-metrics-eval first sums them.
    """

    rated: BoolMatrix
    row: npt.NDArray[np.intp]
    sign: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.intp]
    order: tuple[int, ...]

    def differences(self, scores: FloatMatrix) -> npt.NDArray[np.float64]:
        """Score of the pair's first system minus the second's, for the rated pairs of systems x segments `scores`."""
        return _differences(scores)[self.rated]


def gold_pairs(gold: FloatMatrix) -> GoldPairs:
    """The pairs of a gold matrix. Raises `InputError` if no segment is rated for two systems."""
    differences = _differences(gold)
    rated = ~np.isnan(differences)
    pairs = rated.sum(axis=1)
    segments = np.flatnonzero(pairs)
    if not len(segments):
        raise InputError("no segment is rated for two systems, so there is no pair to be accurate on")
    sizes = pairs[segments]
    # The toolkit sums over a set of segment numbers. The order decides the last bits of the sum, and these decide
    # which of two thresholds with the same accuracy it reports.
    positions = {int(segment): position for position, segment in enumerate(segments)}
    order = tuple(positions[segment] for segment in set(segments.tolist()))
    return GoldPairs(rated, np.repeat(np.arange(len(segments)), sizes), np.sign(differences[rated]), sizes, order)


def acc_eq(gold: npt.ArrayLike, metric: npt.ArrayLike) -> AccEq:
    """Pairwise accuracy of `metric` with tie calibration, every pair used (sample rate 1.0).

    For P pairs this takes O(P log P) time and O(P) memory, with one sort and two cumulative sums. The thresholds are
    the pairs' metric differences in ascending order; each pair becomes a tie at its own difference.

    Raises:
        InputError: for score matrices (`matrices`) that do not fit, or no pair of ratings.
    """
    data = check_matrices(gold, {"metric": metric})
    pairs = gold_pairs(data.gold)
    return calibrate_ties(pairs, pairs.differences(data.metrics["metric"]))


def calibrate_ties(pairs: GoldPairs, differences: npt.NDArray[np.float64]) -> AccEq:
    """`acc_eq` for pairs that are computed already, from the metric's `GoldPairs.differences`."""
    rows = len(pairs.sizes)
    untied = credits(pairs, differences, 0.0)
    start = np.bincount(pairs.row, weights=untied, minlength=rows)
    accuracies = (start / pairs.sizes).tolist()
    total = sum(accuracies[row] for row in pairs.order)

    gaps = np.abs(differences)
    ascending = np.argsort(gaps, kind="stable")
    gaps = gaps[ascending]
    # Turning a pair into a tie changes its segment's number of credits by -1, 0 or +1.
    change = (pairs.sign == 0).astype(np.int64) - untied
    after = _running_credits(pairs.row[ascending], change[ascending], start.astype(np.int64))
    size = pairs.sizes[pairs.row[ascending]]
    # total - before + after for each pair in turn, by the same additions as the toolkit's loop.
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
    return AccEq(float(values[best]), float(thresholds[best]), rows, len(gaps))


def credits(pairs: GoldPairs, differences: npt.NDArray[np.float64], epsilon: float) -> npt.NDArray[np.int64]:
    """1 for each pair that the metric orders, or ties, as gold does; 0 for the others."""
    sign = np.where(np.abs(differences) <= epsilon, 0.0, np.sign(differences))
    return np.asarray(sign == pairs.sign, dtype=np.int64)


def _running_credits(
    row: npt.NDArray[np.intp], change: npt.NDArray[np.int64], start: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The credits of each pair's segment after this pair's change and all earlier ones."""
    by_row = np.argsort(row.astype(np.uint16) if len(start) <= 1 << 16 else row, kind="stable")
    running: npt.NDArray[np.int64] = np.cumsum(change[by_row])
    grouped = row[by_row]
    first = np.flatnonzero(np.append(True, grouped[1:] != grouped[:-1]))
    offset = start - np.append(0, running[first[1:] - 1])
    after: npt.NDArray[np.int64] = np.empty_like(running)
    after[by_row] = running + offset[grouped]
    return after


def _differences(scores: FloatMatrix) -> FloatMatrix:
    """Differences of each pair, (segments, pairs of systems); NaN if one of the two scores is NaN."""
    first, second = np.triu_indices(len(scores), 1)
    columns = np.ascontiguousarray(scores.T)
    return np.asarray(columns[:, first] - columns[:, second])
