"""Compares the mean scores of two systems: how certain is the difference, and would more candidates help?

A segment's score comes from N sampled candidates, so other samples would give another score. With d_k the difference of
segment k (of K) and e_k the variance of d_k between such draws,

    variance over draws, on the same segments      v_same = sum_k e_k / K^2
    variance over segments and draws               v_all  = sample variance of d / K

Each d_k was drawn once, so the sample variance of d already contains the noise of sampling (law of total variance). The
part that comes from the segments is ``v_all - v_same``; adding v_same to v_all would count it twice. e_k comes from a
bootstrap: candidates are drawn again from the given ones, with replacement, and decided again.

The test of two systems is the paired permutation test of signs: if it does not matter which system a score comes from,
each d_k is as likely to be -d_k, and with fair signs s_k = +-1

    p = P( |sum_k s_k d_k| >= |sum_k d_k| )

All combinations of signs are counted where up to 13 segments differ; else 10,000 are drawn, and the observed one counts
as a further draw. Unlike the t-test it assumes nothing of the distribution of d, so that a segment that is much worse
makes the difference no less certain.

Intervals, of a mean and of a difference, are those of a bootstrap over segments, which never pass the highest score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mbr_esd_metric.core.decision import CandidateColumns, Decision
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import blank_decision, decide_segment
from mbr_esd_metric.errors import InputError, NoValidCandidateError
from mbr_esd_metric.metaeval.matrices import percentile_interval
from mbr_esd_metric.metaeval.significance import coins

#: The quantile of the normal distribution for an interval of 95%.
_Z = 1.959964
#: Scores that differ by less are equal: sums are rounded, and models compute in single precision.
TOLERANCE = 1e-6
#: Resamples of the segments, and the seed of all draws.
_DRAWS, _SEED = 1000, 0
#: Up to so many differing segments all combinations of signs are counted; else so many are drawn, in blocks.
_ALL_SIGNS, _PERMUTATIONS, _BLOCK = 13, 10_000, 100


@dataclass(frozen=True, slots=True)
class SampledScore:
    """A segment's score, in [0, 1], and its variance between draws of the candidates."""

    score: float
    variance: float


def sampled_score(
    decision: Decision,
    candidates: CandidateColumns,
    source: str,
    translation: str,
    options: DecisionOptions,
    resamples: int,
    rng: np.random.Generator,
) -> SampledScore:
    """The score of a segment, and its variance between draws of N from its N candidates, with replacement.

    The variance is 0 with a single candidate, for a blank translation, and for a rule or weights of a whole test set.
    """
    n, together = len(candidates), options.whole_set or options.weights == "agreement"
    if n < 2 or together or blank_decision(source, translation, options) is not None:
        return SampledScore(decision.score, 0.0)
    names = ("texts", "logprobs", "truncated", "annotations", "annotators", "formats")
    columns = {name: getattr(candidates, name) for name in names}
    scores = []
    for _ in range(resamples):
        picked = rng.integers(0, n, n).tolist()
        changes: dict[str, Any] = {name: each and [each[i] for i in picked] for name, each in columns.items()}
        drawn = replace(candidates, **changes)
        with suppress(NoValidCandidateError):
            scores.append(decide_segment(drawn, translation, options, source=source).score)
    # The variance of a mean of N that a bootstrap sees is (N - 1) / N of what it stands for.
    return SampledScore(decision.score, float(np.var(scores, ddof=1)) * n / (n - 1) if len(scores) > 1 else 0.0)


@dataclass(frozen=True, slots=True)
class SystemPair:
    """System b against system a on the K segments that both have; the difference is positive if b is better.

    Attributes:
        interval: 95% interval for other segments of the same kind: the middle 95% of the differences of 1,000
            resamples of the segments.
        p_value: two-sided p-value of the permutation test.
        sampling_sd: standard deviation of the difference between draws on the same segments.
        total_sd: the same between draws and segments.
    """

    segments: int
    difference: float
    interval: tuple[float, float]
    p_value: float
    sampling_sd: float
    total_sd: float

    @property
    def sampling_interval(self) -> tuple[float, float]:
        """95% interval for new samples of the same segments."""
        return self.difference - _Z * self.sampling_sd, self.difference + _Z * self.sampling_sd

    @property
    def sampling_share(self) -> float:
        """The share of the variance that comes from sampling, in [0, 1]; 0 if there is no variance."""
        return min(self.sampling_sd**2 / self.total_sd**2, 1.0) if self.total_sd else 0.0

    @property
    def differ(self) -> bool:
        """Whether the systems differ significantly, at the level 0.05."""
        return self.p_value < 0.05

    @property
    def verdict(self) -> str:
        """Whether the systems differ, in words; where sampling adds to the variance, also whether N was enough."""
        if not self.sampling_sd:
            return "they differ" if self.differ else "no difference shown"
        if self.differ:
            return "they differ; N is enough"
        if self.sampling_share < 0.1:
            return "no difference shown; N is enough, only more segments would help"
        best = (self.interval[1] - self.interval[0]) / 2 * math.sqrt(1 - self.sampling_share)
        if abs(self.difference) > best:
            return f"no difference shown; N may be too small: without sampling noise the interval is +-{best:.3g}"
        return f"no difference shown; more candidates show none either (+-{best:.3g} at best), more segments might"


@dataclass(frozen=True, slots=True)
class SystemMean:
    """The mean score of a system over at least two segments, and 95% intervals of it.

    `interval` is for other segments of the same kind: the middle 95% of the means of 1,000 resamples of the segments.
    `sampling_interval` is for new samples of the same segments, cut where a score of candidates ends: at 0 and 1.
    """

    mean: float
    interval: tuple[float, float]
    sampling_interval: tuple[float, float]


def mean_score(scores: Sequence[SampledScore]) -> SystemMean:
    """The mean score of a system. Raises `InputError` if it has fewer than two segments."""
    if len(scores) < 2:
        raise InputError(f"an interval needs two or more segments with a score, not {len(scores)}")
    values = np.array([one.score for one in scores])
    mean, half = float(values.mean()), _Z * math.sqrt(sum(one.variance for one in scores)) / len(values)
    sampling = (max(mean - half, min(mean, 0.0)), min(mean + half, max(mean, 1.0)))
    return SystemMean(mean, _bootstrap(values), sampling)


def compare(a: Sequence[SampledScore], b: Sequence[SampledScore]) -> SystemPair:
    """Compare two systems on the same segments, in the same order. Raises `InputError` if these are fewer than two."""
    if len(a) != len(b) or len(a) < 2:
        raise InputError(f"a comparison needs two or more segments with a score in both, not {min(len(a), len(b))}")
    d = np.array([after.score - before.score for before, after in zip(a, b, strict=True)])
    d = np.where(np.abs(d) < TOLERANCE, 0.0, d)
    noise = math.sqrt(sum(one.variance for one in (*a, *b))) / len(d)
    total = math.sqrt(float(d.var(ddof=1)) / len(d))
    return SystemPair(len(d), float(d.mean()), _bootstrap(d), sign_test(d), noise, total)


def _bootstrap(values: Floats) -> tuple[float, float]:
    """The middle 95% of the means of resamples of the values."""
    rng = np.random.default_rng(_SEED)
    means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(_DRAWS)]
    return percentile_interval(means)


def sign_test(d: Floats) -> float:
    """The two-sided p-value of the permutation test of signs of the differences d, (segments,); 1 if all are 0."""
    d = d[d != 0]
    if len(d) <= _ALL_SIGNS:
        sums = np.zeros(1)
        for one in d:
            sums = np.concatenate([sums + one, sums - one])
        draws = [sums]
    else:
        rng = np.random.default_rng(_SEED)
        blocks = (coins(rng, _BLOCK, 1, len(d))[:, 0] for _ in range(_PERMUTATIONS // _BLOCK))
        draws = [np.array([d.sum()]), *(d.sum() - 2 * (flipped.astype(np.float64) @ d) for flipped in blocks)]
    least = abs(d.sum()) - 1e-9 * np.abs(d).sum()  # sums are rounded
    return float((np.abs(np.concatenate(draws)) >= least).mean())
