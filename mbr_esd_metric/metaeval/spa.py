"""Soft Pairwise Accuracy (Thompson et al. 2024), as in mt-metrics-eval's ``PairwiseConfidenceError``.

For each pair of systems i < j, a paired permutation test gives the p-value of the hypothesis that i is not better than
j, once for gold and once for the metric. SPA is one minus the mean absolute difference of the two p-values,

    SPA = 1 - mean_{i<j} |p_gold[i, j] - p_metric[i, j]|

SPA depends on the order of the systems, because only the pairs i < j are used, and permutations that equal the observed
difference count for i. The effect is up to .015 for integer scores, such as those of error spans, and otherwise in the
fifth digit.

Exact SPA is the limit of infinitely many permutations; it does not depend on a seed, on rounding, or on the order of
the systems. For a pair of systems with differences d, the p-value is the probability that a random sum ``S = sum(s *
d)`` reaches the observed ``T = sum(d)``, where the signs s = +-1 are independent and equally likely. With ties counted
half,

    p[i, j] = P(S > T) + P(S = T) / 2,        p[j, i] = 1 - p[i, j]

so that the order of the systems is irrelevant, and a metric with constant scores has p = 1/2 for every pair.

The computation of p depends on d:

* Scores on a grid (integers, tenths, means over a few raters): the inverse Fourier transform of the characteristic
  function ``phi(theta) = prod cos(d * theta)``. It is exact, and used unless the grid is so fine that P(S = T) < 0.001.
* Few differing segments: enumeration of all signs.
* Other scores: Davies' (1973) inversion of phi, with an error below 1e-6 if phi has decayed after 1,024 terms. A few
  large differences slow the decay; these are removed, and their signs are enumerated.
* If phi has not decayed even so, as for integers with a little noise: the same sum with Vaaler's (1985) weights, which
  bound the error. A warning reports the bound.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.log import logger
from mbr_esd_metric.metaeval.matrices import Missing, check_matrices, pack_rated

#: The number of permutations for each p-value, and the seed of their signs, as in mt-metrics-eval.
PERMUTATIONS = 1000
SEED = 4
#: P(|S| > _TAIL * sqrt(sum d^2)) is below 5e-16 (Hoeffding).
_TAIL = 8.5
#: If the number of grid steps times the number of distinct sizes exceeds this, the grid is so fine that ties are
#: negligible.
_GRID = 1_000_000
#: The maximum number of differing segments for enumerating all signs: always, and if phi has not decayed.
_FEW, _SOME = 20, 36
#: The number of terms of Davies' series; phi has decayed if it is below this value in their second half.
_TERMS, _DEAD = 1024, 1e-6
_HALVES = np.arange(_TERMS) + 0.5
#: Numbers of the largest differences to remove from Davies' series, in the order in which they are tried.
_TAKEN_OUT = (0, 10)
#: Numbers that differ by less than this share of the largest one are treated as equal.
_ROUNDING = 1e-9

SignMatrix = npt.NDArray[np.float32]


def spa(gold: npt.ArrayLike, metric: npt.ArrayLike, *, missing: Missing = "toolkit", exact: bool = False) -> float:
    """Soft Pairwise Accuracy of `metric` with respect to `gold`, in [0, 1], higher is better.

    Args:
        gold, metric: score matrices (`matrices`).
        missing: the treatment of systems that are rated on different segments, see `pack_rated`.
        exact: compute exact SPA, which does not depend on the order of the systems.

    Raises `InputError` for inconsistent matrices, or ratings that cannot be compared.
    """
    data = pack_rated(check_matrices(gold, {"metric": metric}), missing)
    p_values = exact_p_values if exact else pairwise_p_values
    return spa_of_p_values(p_values(data.gold), p_values(data.metrics["metric"]))


def pairwise_p_values(scores: Floats) -> Floats:
    """P-values of "system i is better than system j" for i < j, shape (systems, systems); NaN elsewhere.

    With signs s = +-1 per segment, p[i, j] is the share of the permutations with
    ``sum(s * (x_i - x_j)) >= sum(x_i - x_j)``, over the common segments; NaN without common segments. The arithmetic is
    in float32 and in mt-metrics-eval's order, because with integer scores the two sums are often equal up to rounding.
    """
    systems, segments = scores.shape
    p_values = np.full((systems, systems), np.nan)
    single = scores.astype(np.float32)
    if np.isnan(scores).any():
        for i, j in combinations(range(systems), 2):
            lead = single[i] - single[j]
            if not np.isnan(lead).all():
                lead = np.nan_to_num(lead)
                p_values[i, j] = (signs(segments) @ lead >= lead.sum()).mean()
        return p_values
    totals = single.sum(axis=1)
    partial = np.matmul(signs(segments), single.T)
    for i in range(systems - 1):
        null = partial[:, i, None] - partial[:, i + 1 :]
        observed = totals[i] - totals[i + 1 :]
        p_values[i, i + 1 :] = (null >= observed).sum(axis=0) / PERMUTATIONS
    return p_values


def spa_of_p_values(gold: Floats, metric: Floats) -> float:
    """SPA from two matrices of p-values, over the pairs of systems with p-values."""
    differences = np.abs(gold - metric)[np.triu_indices(len(gold), 1)]
    return float(1.0 - np.mean(differences[~np.isnan(differences)]))


@lru_cache(maxsize=8)
def signs(segments: int) -> SignMatrix:
    """The signs +-1 of the permutations, shape (PERMUTATIONS, segments), shared by all tests; read-only."""
    uniform = np.random.default_rng(SEED).random(size=(PERMUTATIONS, segments), dtype=np.float32)
    drawn_signs: SignMatrix = np.rint(uniform) * np.float32(2.0) - np.float32(1.0)
    drawn_signs.flags.writeable = False
    return drawn_signs


def exact_p_values(scores: Floats) -> Floats:
    """`pairwise_p_values` in the limit of infinitely many permutations. Logs a warning if some are approximate."""
    systems = len(scores)
    unit = grid_unit(scores[~np.isnan(scores)])
    p_values = np.full((systems, systems), np.nan)
    bounds = [0.0]
    for i, j in combinations(range(systems), 2):
        differences = scores[i] - scores[j]
        differences = differences[~np.isnan(differences)]
        if len(differences):
            p_values[i, j], bound = exact_p(differences, unit)
            bounds.append(bound)
    if max(bounds) > 0:
        warning = "exact SPA: %d of %d p-values are approximate, with an error of at most %.2g"
        logger.warning(warning, np.count_nonzero(bounds), len(bounds) - 1, max(bounds))
    return p_values


def exact_p(differences: Floats, unit: float | None) -> tuple[float, float]:
    """P(S > T) + P(S = T) / 2 for the differences d, shape (segments,), and a bound on its error, 0 if it is exact.

    The differences are multiples of `unit`, unless it is None.
    """
    if unit is not None:
        whole = np.rint(differences / unit).astype(np.int64)
        if (p := _on_a_grid(whole)) is not None:
            return p, 0.0
    size = np.abs(differences)
    differing = size > _ROUNDING * size.max(initial=0.0)
    d, total = np.sort(size[differing])[::-1], float(differences[differing].sum())  # S is symmetric
    if not len(d):  # S = T = 0
        return 0.5, 0.0
    if len(d) <= _FEW:
        return _all_signs(d, total), 0.0
    tried = []
    for taken in _TAKEN_OUT:
        tried.append(_davies(d[taken:], total - _sums(d[:taken])))
        if not tried[-1][1]:
            break
        if len(d) <= _SOME:
            return _all_signs(d, total), 0.0
    p, bound = min(tried, key=lambda one: one[1])
    return min(1.0, max(0.0, p)), bound


def _sums(d: Floats) -> Floats:
    """The sums for all combinations of signs of d, shape (2^n,), in ascending order."""
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums + value, sums - value])
    return np.sort(sums)


def _all_signs(d: Floats, total: float) -> float:
    """P(S > T) + P(S = T) / 2 by enumeration: for each sum of one half of d, count the sums of the other that reach
    T."""
    rest, other = total - _sums(d[::2]), _sums(d[1::2])
    tolerance = _ROUNDING * float(np.linalg.norm(d))
    below, up_to = (np.searchsorted(other, rest + shift) for shift in (-tolerance, tolerance))
    return float(1 - (below + up_to).mean() / (2 * len(other)))


def _phi(d: Floats, at: npt.NDArray[np.floating[Any]]) -> Floats:
    """The characteristic function of S at multiples of the step of Davies' series."""
    step, values = np.pi / (_TAIL * np.linalg.norm(d)), np.ones(len(at))
    for value in d:
        values *= np.cos(at * step * value)
    return values


def _davies(d: Floats, totals: Floats) -> tuple[float, float]:
    """The mean over `totals` of P(S > T) + P(S = T) / 2, and a bound on its error, 0 if phi has decayed.

    P(S < T) + P(S = T) / 2 = 1/2 + sum_m phi(w) sin(w T) / (pi (m + 1/2)), w = (m + 1/2) step.
    This is the Fourier series of two sawtooth functions, so that with Vaaler's weights, a Fejer kernel bounds the
    error.
    """
    deviation = float(np.linalg.norm(d))
    inside = totals[np.abs(totals) < _TAIL * deviation]
    above, bound = float(np.count_nonzero(totals <= -_TAIL * deviation)), 0.0
    step, weights = np.pi / (_TAIL * deviation), _phi(d, _HALVES)
    if np.abs(weights[_TERMS // 2 :]).max() > _DEAD:
        share = _HALVES / (_TERMS + 0.5)
        weights = weights * (np.pi * share * (1 - share) / np.tan(np.pi * share) + share)
        whole = np.arange(1.0, _TERMS + 1)
        fejer = (1 - whole / (_TERMS + 0.5)) * _phi(d, whole)
        gaps = 1 + 2 * np.cos(np.outer(inside, whole * step)) @ fejer
        bound = float(gaps.sum()) / (2 * _TERMS + 1) / len(totals)
    below = 0.5 + np.sin(np.outer(inside, _HALVES * step)) @ (weights / (np.pi * _HALVES))
    return (above + float((1 - below).sum())) / len(totals), bound


def grid_unit(scores: Floats) -> float | None:
    """The largest unit of which all score differences are multiples, by Euclid's algorithm; None if it is tiny."""
    values = np.unique(scores - scores.min())[1:]
    if not len(values):
        return 1.0
    largest = float(values[-1])
    tolerance = 1e-7 * largest
    unit = float(values[0])
    while unit > 1e-4 * largest:
        rest = np.abs(values - unit * np.rint(values / unit))
        if (rest <= tolerance).all():
            # Computed from the largest value, so that the error of the unit does not accumulate.
            return largest / float(np.rint(largest / unit))
        unit = float(rest[rest > tolerance].min())
    return None


def _on_a_grid(whole: npt.NDArray[np.int64]) -> float | None:
    """`exact_p` for integers; None if they are too large, so that P(S = T) is below 0.001."""
    sizes, times = np.unique(np.abs(whole[whole != 0]), return_counts=True)
    if not len(sizes):
        return 0.5
    total = int(whole.sum())
    reach = min(int((sizes * times).sum()), int(np.ceil(_TAIL * np.sqrt(float((sizes * sizes * times).sum())))))
    if abs(total) > reach:
        return 0.0 if total > 0 else 1.0
    if reach * len(sizes) > _GRID:
        return None
    length = 2 * reach + 1
    cosines = np.cos(2 * np.pi * np.arange(length) / length)
    at = np.arange(reach + 1)
    phi = np.ones(reach + 1)
    for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
        phi *= cosines[at * size % length] ** count
    # probabilities[m] is P(S = m); negative m are indexed from the end.
    probabilities = np.fft.irfft(phi, length)
    ordered = np.concatenate([probabilities[reach + 1 :], probabilities[: reach + 1]])
    p = float(ordered[reach + total + 1 :].sum() + ordered[reach + total] / 2)
    return min(1.0, max(0.0, p))
