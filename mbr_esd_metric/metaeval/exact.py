"""The p-values behind SPA in the limit of infinitely many permutations: no seed, no rounding, no order of systems.

For a pair of systems with differences d, the test asks how often a random sum ``S = sum(s * d)`` reaches the observed
``T = sum(d)``. The signs s = +-1 are fair and independent. Here

    p[i, j] = P(S > T) + P(S = T) / 2,        p[j, i] = 1 - p[i, j]

The half makes the order of the systems irrelevant. The usual p-value counts all of P(S = T) in favour of the system
that comes first. With whole-number scores, such as those of error spans, that adds up to some hundredths for each pair,
however many permutations are drawn. A metric with the same score for everything has p = 1/2 everywhere.

The distribution of S follows from its characteristic function ``prod cos(d * theta)``:

* scores on a grid (whole numbers, tenths, means of a few raters): the inverse Fourier transform, without error;
* other scores: all combinations of signs for up to 16 differing segments, else Davies' (1973) inversion.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.metaeval.matrices import FloatMatrix

_Floats = npt.NDArray[np.float64]

#: P(|S| > _TAIL * sqrt(sum d^2)) is below 5e-16 (Hoeffding).
_TAIL = 8.5
#: If the steps of the grid times the number of different sizes exceed this, the grid is too fine for ties to matter.
_GRID = 1_000_000
#: Up to so many differing segments, all combinations of signs are counted.
_FEW = 16
#: Terms of Davies' series; the first 24 are all where the characteristic function does not come back.
_TERMS = 1024


def exact_p_values(scores: FloatMatrix) -> FloatMatrix:
    """P-values of "system i is better than system j" for i < j; NaN elsewhere.

    Args:
        scores: (systems, segments), complete.

    Returns:
        (systems, systems).
    """
    systems = len(scores)
    unit = grid_unit(scores)
    p_values = np.full((systems, systems), np.nan)
    for i in range(systems - 1):
        for j in range(i + 1, systems):
            p_values[i, j] = exact_p(scores[i] - scores[j], unit)
    return p_values


def exact_p(differences: _Floats, unit: float | None) -> float:
    """P(S > T) + P(S = T) / 2.

    Args:
        differences: d, (segments,).
        unit: all of d are multiples of it; None if there is no such unit.
    """
    if unit is not None:
        whole = np.rint(differences / unit).astype(np.int64)
        if (p := _on_a_grid(whole)) is not None:
            return p
    scale = np.abs(differences).max(initial=0.0)
    d = differences[np.abs(differences) > 1e-9 * scale] if scale else differences[:0]
    if not len(d):
        return 0.5
    deviation, total = float(np.sqrt((d * d).sum())), float(d.sum())
    if len(d) <= _FEW:
        return _by_all_signs(d, total, deviation)
    if abs(total) >= _TAIL * deviation:
        return 0.0 if total > 0 else 1.0
    # Davies: P(S < T) + P(S = T) / 2 = 1/2 + sum_m phi(w) sin(w T) / (pi (m + 1/2)), w = (m + 1/2) step.
    step = 2 * np.pi / (2 * _TAIL * deviation)
    at = np.arange(_TERMS) + 0.5
    phi = np.ones(_TERMS)
    for value in d:
        phi *= np.cos(at * step * value)
    below = 0.5 + float((phi * np.sin(at * step * total) / (np.pi * at)).sum())
    return min(1.0, max(0.0, 1 - below))


def grid_unit(scores: FloatMatrix) -> float | None:
    """The largest unit of which all differences of scores are multiples, by Euclid's algorithm; None if it is tiny."""
    values = np.unique(scores - scores.min())[1:]
    if not len(values):
        return 1.0
    largest = float(values[-1])
    tolerance = 1e-7 * largest
    unit = float(values[0])
    while unit > 1e-4 * largest:
        rest = np.abs(values - unit * np.rint(values / unit))
        if (rest <= tolerance).all():
            # Computed over many steps, so that the error of the unit itself does not add up.
            return largest / float(np.rint(largest / unit))
        unit = float(rest[rest > tolerance].min())
    return None


def _on_a_grid(whole: npt.NDArray[np.int64]) -> float | None:
    """`exact_p` of whole numbers; None if they are too large for it, and P(S = T) is below 0.001."""
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
    # probabilities[m] is P(S = m), with negative m from the end.
    probabilities = np.fft.irfft(phi, length)
    ordered = np.concatenate([probabilities[reach + 1 :], probabilities[: reach + 1]])
    p = float(ordered[reach + total + 1 :].sum() + ordered[reach + total] / 2)
    return min(1.0, max(0.0, p))


def _by_all_signs(d: _Floats, total: float, deviation: float) -> float:
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums + value, sums - value])
    tied = np.abs(sums - total) <= 1e-9 * deviation
    return float(((sums > total) & ~tied).mean() + tied.mean() / 2)
