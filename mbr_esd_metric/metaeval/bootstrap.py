"""Paired bootstrap (Koehn 2004) over segments, for measures that are computed from sums of segment statistics.

k resamples of the units are drawn, the same ones for every metric. The middle 95% are the interval of a metric's
value, and of the difference of two, and

    p = share of the resamples in which  measure(b) <= measure(a).

A segment is drawn together with the translations of all systems, which share its source and its difficulty; the
paper draws each translation alone (`units="instance"`), which gives narrower intervals. The statistics of each
translation are computed once; a resample only changes their weights, so that one matrix product for each metric gives
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector

#: What a resample draws.
Units = Literal["segment", "instance"]
UNITS: tuple[Units, ...] = ("segment", "instance")

#: The middle of the resamples that an interval covers.
_LEVELS = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Resampled:
    """A measure of several metrics on the same resamples.

    Attributes:
        values: metric -> its value on each resample, shape (k,).
    """

    values: Mapping[str, FloatVector] = field(repr=False)

    def interval(self, name: str) -> tuple[float, float]:
        """The middle 95% of a metric's values."""
        return _middle(self.values[name])

    def p_value(self, a: str, b: str) -> float:
        """The share of resamples in which metric b is not better than metric a: small if b is better."""
        # Equal measures may differ in the last bit.
        return float((self.values[b] - self.values[a] <= 1e-12).mean())

    def difference(self, a: str, b: str) -> tuple[float, float]:
        """The middle 95% of metric a's value minus metric b's."""
        return _middle(self.values[a] - self.values[b])


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
    a: npt.ArrayLike, b: npt.ArrayLike, k: int = 1000, seed: int = 0, units: Units = "segment"
) -> Bootstrap:
    """Test whether the mean of `b` is higher than that of `a`.

    Args:
        a, b: a value for each translation, (systems, segments) or (segments,); NaN if unrated, at the same places in
            both. Higher is better.
        k: the number of resamples.
        seed: of the resamples.
        units: what a resample draws.

    Raises:
        InputError: arrays of different shapes, unrated at different places, or without any rating.
        OptionError: k < 1.
    """
    arrays = {"a": np.atleast_2d(np.asarray(a, dtype=np.float64)), "b": np.atleast_2d(np.asarray(b, dtype=np.float64))}
    # A value and how many it is the sum of, of which the measure is the mean.
    sums = unit_sums({name: np.stack([x, np.where(np.isnan(x), np.nan, 1)], -1) for name, x in arrays.items()}, units)
    found = resample(sums, _mean, k, seed)
    low, high = found.difference("b", "a")
    delta = float(_mean(sums["b"].sum(axis=0)) - _mean(sums["a"].sum(axis=0)))
    return Bootstrap(found.p_value("a", "b"), delta, low, high)


def _mean(sums: FloatMatrix) -> FloatMatrix:
    return np.asarray(sums[..., 0] / sums[..., 1])


def resample(
    sums: Mapping[str, FloatMatrix], measure: Callable[[FloatMatrix], FloatMatrix], k: int, seed: int
) -> Resampled:
    """The measure of several metrics on k resamples of the units.

    Args:
        sums: metric -> statistics of each unit, (units, width).
        measure: turns sums of statistics (..., width) into values (...).
        k: the number of resamples.
        seed: of the resamples.

    Raises:
        OptionError: k < 1.
    """
    if k < 1:
        raise OptionError(f"k is {k}; a bootstrap needs at least one resample")
    segments = len(next(iter(sums.values())))
    weights = np.random.default_rng(seed).multinomial(segments, np.full(segments, 1 / segments), size=k)
    drawn = weights.astype(np.float64)
    return Resampled({name: np.asarray(measure(drawn @ own)) for name, own in sums.items()})


def mean_resampled(parts: Sequence[Resampled]) -> Resampled:
    """The mean over several test sets, of the metrics that are in all of them."""
    common = [name for name in parts[0].values if all(name in part.values for part in parts)]
    return Resampled({name: np.mean([part.values[name] for part in parts], axis=0) for name in common})


def unit_sums(statistics: Mapping[str, FloatMatrix], units: Units = "segment") -> dict[str, FloatMatrix]:
    """Metric -> the statistics of each unit that somebody rated, (units, width); a segment's are summed over systems.

    Args:
        statistics: metric -> (systems, segments, width), NaN if unrated.
        units: segments, or instances: each translation alone.

    Raises:
        InputError: metrics that are not rated on the same translations, or no rating.
    """
    rated = {name: ~np.isnan(values).any(axis=2) for name, values in statistics.items()}
    first = next(iter(rated))
    for name, there in rated.items():
        if there.shape != rated[first].shape or (there != rated[first]).any():
            raise InputError(f"{first} and {name} are not evaluated on the same translations; they cannot be compared")
    kept = rated[first].any(axis=0)
    if not kept.any():
        raise InputError("there is no rated translation")
    if units == "instance":
        return {name: values[rated[first]] for name, values in statistics.items()}
    return {name: np.nansum(values, axis=0)[kept] for name, values in statistics.items()}


def _middle(values: FloatVector) -> tuple[float, float]:
    low, high = np.quantile(values, _LEVELS)
    return float(low), float(high)
