"""Paired bootstrap (Koehn 2004) over segments, for measures that are computed from sums of segment statistics.

    p = share of k resamples of the segments in which  measure(b) <= measure(a)

A segment is drawn together with the translations of all systems, which share its source and its difficulty. The
statistics of each translation are computed once; a resample only changes their weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.matrices import FloatMatrix

#: Sums of statistics (..., statistics) -> the measure (...).
Measure = Callable[[FloatMatrix], FloatMatrix]

#: Resamples that are computed together.
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The outcome of one test.

    Attributes:
        p_value: small if b is better than a.
        delta: measure of b minus that of a, on all segments.
        low, high: the middle 95% of the resampled deltas.
    """

    p_value: float
    delta: float
    low: float
    high: float


def paired_bootstrap(
    a: npt.ArrayLike, b: npt.ArrayLike, k: int = 1000, seed: int = 0, *, measure: Measure | None = None
) -> Bootstrap:
    """Test whether `b` is better than `a` on the segments they share.

    Args:
        a, b: one value for each translation, (systems, segments) or (segments,), whose mean is the measure; or, with
            `measure`, several statistics for each translation, (systems, segments, statistics). NaN if unrated, at the
            same places in both. Higher is better.
        k: the number of resamples.
        seed: of the resamples.
        measure: turns sums of statistics into the measure, such as ``lambda sums: sums[..., 0] / sums[..., 1]``.

    Raises:
        InputError: arrays of wrong or different shapes, unrated at different places, or without any rating.
        OptionError: k < 1.
    """
    if k < 1:
        raise OptionError(f"k is {k}; a bootstrap needs at least one resample")
    sums_a, sums_b = _segment_sums(a, b, measure is None)
    value = measure or _mean
    segments = len(sums_a)
    rng = np.random.default_rng(seed)
    blocks = []
    for start in range(0, k, _BLOCK):
        weights = rng.multinomial(segments, np.full(segments, 1 / segments), size=min(_BLOCK, k - start))
        blocks.append(value(weights @ sums_b) - value(weights @ sums_a))
    deltas = np.concatenate(blocks)
    low, high = np.quantile(deltas, [0.025, 0.975])
    delta = value(sums_b.sum(axis=0)) - value(sums_a.sum(axis=0))
    # Equal measures may differ in the last bit.
    return Bootstrap(float((deltas <= 1e-12).mean()), float(delta), float(low), float(high))


def _mean(sums: FloatMatrix) -> FloatMatrix:
    """The mean, from the sum of the values and their number."""
    return np.asarray(sums[..., 0] / sums[..., 1])


def _segment_sums(a: npt.ArrayLike, b: npt.ArrayLike, values: bool) -> tuple[FloatMatrix, FloatMatrix]:
    """Statistics of a and b added up over the systems, (rated segments, statistics) each."""
    arrays = [np.asarray(x, dtype=np.float64) for x in (a, b)]
    if values:
        arrays = [np.stack([x, np.where(np.isnan(x), np.nan, 1.0)], axis=-1) for x in np.atleast_2d(*arrays)]
    first, second = arrays
    if first.ndim != 3 or first.shape != second.shape:
        raise InputError(
            f"a is {np.shape(a)} and b is {np.shape(b)}; both are (systems, segments), or with a measure "
            "(systems, segments, statistics)"
        )
    rated = np.asarray(~np.isnan(first).any(axis=2))
    if (rated != ~np.isnan(second).any(axis=2)).any():
        raise InputError("a and b are not rated on the same translations, so they cannot be compared in pairs")
    if not rated.any():
        raise InputError("there is no rated translation")
    kept = rated.any(axis=0)
    return (
        np.where(rated[..., None], first, 0.0).sum(axis=0)[kept],
        np.where(rated[..., None], second, 0.0).sum(axis=0)[kept],
    )
