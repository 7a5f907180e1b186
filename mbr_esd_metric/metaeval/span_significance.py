"""Significance of span measures: which metric's error spans agree with people's better, and is that chance?

Both tests take the segments as units. A segment stands with the translations of all systems, which share its source
and its difficulty; the statistics of a segment are added up over them (`SpanScores.statistics`). A measure is a
function of sums, so that one matrix product for each metric gives all draws, of corpus measures as well.

* PERM-BOTH (Deutsch et al. 2021): a draw swaps the statistics of metrics a and b in each segment with probability 1/2,

      p = share of k draws with  measure(b') - measure(a') >= measure(b) - measure(a)

* Paired bootstrap (Koehn 2004): k resamples of the units, the same ones for every metric. The middle 95% are the
  interval of a metric's value, and of the difference of two, and

      p = share of the resamples in which  measure(b) <= measure(a)

  The paper draws each translation alone (`units="instance"`), which gives narrower intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector, percentile_interval
from mbr_esd_metric.metaeval.significance import Contest, MetricPair, NextDraws, coins
from mbr_esd_metric.metaeval.span_measures import span_measure
from mbr_esd_metric.metaeval.spans import SpanScores

#: What a resample draws.
Units = Literal["segment", "instance"]
UNITS: tuple[Units, ...] = ("segment", "instance")


@dataclass(frozen=True, slots=True)
class Resampled:
    """A measure of several metrics on the same resamples: metric -> its value on each, shape (k,)."""

    values: Mapping[str, FloatVector] = field(repr=False)

    def interval(self, name: str) -> tuple[float, float]:
        """The middle 95% of a metric's values."""
        return percentile_interval(self.values[name])

    def p_value(self, a: str, b: str) -> float:
        """The share of resamples in which metric b is not better than metric a: small if b is better."""
        # Equal measures may differ in the last bit.
        return float((self.values[b] - self.values[a] <= 1e-12).mean())

    def difference(self, a: str, b: str) -> tuple[float, float]:
        """The middle 95% of metric a's value minus metric b's."""
        return percentile_interval(self.values[a] - self.values[b])


class SpanContest(Contest):
    """Metrics by one span measure, against the same raters; a draw swaps whole segments.

    Raises:
        InputError: metrics that are not evaluated on the same translations.
        OptionError: an unknown measure.
    """

    def __init__(self, scores: Mapping[str, SpanScores], measure: str) -> None:
        self._value: Callable[[FloatMatrix], FloatMatrix] = span_measure(measure).value
        self._sums = unit_sums({name: one.statistics[measure] for name, one in scores.items()})
        self._totals = {name: sums.sum(axis=0) for name, sums in self._sums.items()}
        self.values = {name: float(self._value(total)) for name, total in self._totals.items()}

    def _sampler(self, k: int, seed: int) -> NextDraws:
        rng = np.random.default_rng(seed)
        segments = len(next(iter(self._sums.values())))

        def draw(pairs: Sequence[MetricPair], count: int) -> dict[MetricPair, FloatVector]:
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
) -> Resampled:
    """Paired bootstrap of several metrics: k resamples of the units.

    Raises:
        InputError: metrics that are not evaluated on the same translations.
        OptionError: an unknown measure, or k < 1.
    """
    if k < 1:
        raise OptionError(f"k is {k}; a bootstrap needs at least one resample")
    sums = unit_sums({name: one.statistics[measure] for name, one in scores.items()}, units)
    count = len(next(iter(sums.values())))
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=k).astype(np.float64)
    value = span_measure(measure).value
    return Resampled({name: np.asarray(value(weights @ each)) for name, each in sums.items()})


def mean_resampled(parts: Sequence[Resampled]) -> Resampled:
    """The mean over several test sets, of the metrics that are in all of them."""
    common = [name for name in parts[0].values if all(name in part.values for part in parts)]
    return Resampled({name: np.mean([part.values[name] for part in parts], axis=0) for name in common})


def unit_sums(statistics: Mapping[str, FloatMatrix], units: Units = "segment") -> dict[str, FloatMatrix]:
    """Metric -> the statistics of each unit that somebody rated, (units, width); a segment's are summed over systems.

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
