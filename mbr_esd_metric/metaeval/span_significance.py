"""Significance of span measures: which metric's error spans agree with people's better, and is that chance?

Both tests take the segments as units. A segment stands with the translations of all systems, which share its source
and its difficulty; the statistics of a segment are added up over them (`SpanScores.statistics`).

* PERM-BOTH (Deutsch et al. 2021): a draw swaps the statistics of metrics a and b in each segment with probability 1/2,

      p = share of k draws with  measure(b') - measure(a') >= measure(b) - measure(a)

* Paired bootstrap; see `metaeval.bootstrap`.

A measure is a function of sums, so that one matrix product for each metric gives all draws, of corpus measures as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

import numpy as np

from mbr_esd_metric.metaeval.bootstrap import Resampled, Units, resample, unit_sums
from mbr_esd_metric.metaeval.contest import Contest, MetricPair, NextDraws, coins
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector
from mbr_esd_metric.metaeval.ranking import Ranking, rank_contest
from mbr_esd_metric.metaeval.span_measures import span_measure
from mbr_esd_metric.metaeval.spans import SpanScores


class SpanContest(Contest):
    """Metrics by one span measure; a draw swaps whole segments.

    Args:
        scores: metric -> its spans against the same raters.
        measure: one that all of them have.

    Raises:
        InputError: metrics that are not evaluated on the same translations.
        OptionError: an unknown measure.
    """

    def __init__(self, scores: Mapping[str, SpanScores], measure: str) -> None:
        self._value: Callable[[FloatMatrix], FloatMatrix] = span_measure(measure).value
        self._sums = unit_sums({name: one.statistics[measure] for name, one in scores.items()})
        self._totals = {name: sums.sum(axis=0) for name, sums in self._sums.items()}
        self.values = {name: float(self._value(total)) for name, total in self._totals.items()}

    def _delta(self, a: str, b: str) -> float:
        return self.values[b] - self.values[a]

    def _sampler(self, k: int, seed: int, pool: Executor, workers: int) -> NextDraws:
        rng = np.random.default_rng(seed)
        segments = len(next(iter(self._sums.values())))

        def draw(pairs: Sequence[MetricPair], count: int) -> dict[MetricPair, FloatVector]:
            swapped = coins(rng, count, 1, segments)[:, 0].astype(np.float64)
            moved = {name: swapped @ self._sums[name] for name in {name for pair in pairs for name in pair}}
            found = {}
            for a, b in pairs:
                change = moved[b] - moved[a]
                found[a, b] = self._value(self._totals[b] - change) - self._value(self._totals[a] + change)
            return found

        return draw


def rank_spans(
    scores: Mapping[str, SpanScores], measure: str, k: int = 1000, seed: int = 0, *, alpha: float = 0.05
) -> Ranking:
    """Order metrics by a span measure, test every pair with all k draws, and put them in clusters.

    Args:
        scores, measure: as for `SpanContest`.
        k: draws of each test; 0 tests nothing.
        seed: of the draws, which all pairs share.
        alpha: two metrics differ if the p-value is at most this.

    Raises:
        InputError, OptionError: as `SpanContest`.
    """
    return rank_contest(SpanContest(scores, measure), k, seed, alpha=alpha, stop=None)


def resampled(
    scores: Mapping[str, SpanScores], measure: str, k: int = 1000, seed: int = 0, units: Units = "segment"
) -> Resampled:
    """Paired bootstrap of several metrics over these units; other arguments and errors as of `rank_spans`."""
    sums = unit_sums({name: one.statistics[measure] for name, one in scores.items()}, units)
    return resample(sums, span_measure(measure).value, k, seed)
