"""Comparison of the mean scores of two systems: significance of the difference, and the variance due to sampling.

The score of a segment is computed from N sampled candidates, and depends on the sample. With d_k the difference of
segment k (of K) and e_k the variance of d_k over samples,

    variance over samples, on the same segments    v_same = sum_k e_k / K^2
    variance over segments and samples             v_all  = sample variance of d / K

Each d_k is computed from one sample, so the sample variance of d already includes the sampling noise (law of total
variance). The variance due to the segments is ``v_all - v_same``; adding v_same to v_all would count it twice. e_k is
estimated by a bootstrap: candidates are resampled with replacement, and the decision is repeated.

Two systems are compared by the paired sign-flip permutation test: under the null hypothesis, d_k and -d_k are equally
likely, and with random signs s_k = +-1

    p = P( |sum_k s_k d_k| >= |sum_k d_k| )

If at most 13 segments differ, all combinations of signs are enumerated; otherwise 10,000 are drawn, and the observed
one counts as a further draw. Unlike the t-test, this test does not assume a distribution of d, so that an outlier, such
as one segment that is much worse, does not increase the p-value.

Intervals of means and differences are computed by a bootstrap over segments, so they stay in the range of the scores.
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
#: Scores that differ by less are treated as equal, because of rounding and models in single precision.
TOLERANCE = 1e-6
#: The number of bootstrap resamples of the segments, and the random seed.
_DRAWS, _SEED = 1000, 0
#: The maximum number of differing segments for enumerating all signs; the number of random draws; their block size.
_ALL_SIGNS, _PERMUTATIONS, _BLOCK = 13, 10_000, 100


@dataclass(frozen=True, slots=True)
class SampledScore:
    """The score of a segment, in [0, 1], and its variance over samples of the candidates."""

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
    """The score of a segment, and its bootstrap variance over resamples of its N candidates.

    The variance is 0 for a single candidate, for a blank translation, for equal scores of all resamples (such as one
    that the model states), and if the rule or the weights depend on the whole test set.
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
    if len(scores) < 2 or max(scores) - min(scores) < TOLERANCE:
        return SampledScore(decision.score, 0.0)
    # The bootstrap underestimates the variance of a mean of N by the factor (N - 1) / N.
    return SampledScore(decision.score, float(np.var(scores, ddof=1)) * n / (n - 1))


@dataclass(frozen=True, slots=True)
class SystemPair:
    """The comparison of systems a and b on their K common segments.

    Attributes:
        segments: K.
        difference: the mean score of b minus that of a; positive if b is better.
        interval: the 95% bootstrap interval of the difference, over 1,000 resamples of the segments.
        p_value: the two-sided p-value of the permutation test.
        sampling_sd: the standard deviation of the difference over samples, on the same segments.
        total_sd: the standard deviation over samples and segments.
    """

    segments: int
    difference: float
    interval: tuple[float, float]
    p_value: float
    sampling_sd: float
    total_sd: float

    @property
    def sampling_interval(self) -> tuple[float, float]:
        """The 95% interval for new samples of candidates on the same segments."""
        return self.difference - _Z * self.sampling_sd, self.difference + _Z * self.sampling_sd

    @property
    def sampling_share(self) -> float:
        """The share of the variance that is due to sampling, in [0, 1]; 0 if there is no variance."""
        return min(self.sampling_sd**2 / self.total_sd**2, 1.0) if self.total_sd else 0.0

    @property
    def differ(self) -> bool:
        """Whether the systems differ significantly, at the 0.05 level."""
        return self.p_value < 0.05

    @property
    def verdict(self) -> str:
        """The result of the test in words; if sampling contributes to the variance, also whether N is sufficient."""
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
    """The mean score of a system over at least two segments, with 95% intervals.

    Attributes:
        mean: the mean score.
        interval: the bootstrap interval over 1,000 resamples of the segments.
        sampling_interval: the interval for new samples of candidates on the same segments, clipped to [0, 1], the range
            of the scores of candidates.
    """

    mean: float
    interval: tuple[float, float]
    sampling_interval: tuple[float, float]


def mean_score(scores: Sequence[SampledScore]) -> SystemMean:
    """The mean score of a system. Raises `InputError` if it has fewer than two segments."""
    if len(scores) < 2:
        raise InputError(f"an interval needs at least two segments with a score (got {len(scores)})")
    values = np.array([one.score for one in scores])
    mean, half = float(values.mean()), _Z * math.sqrt(sum(one.variance for one in scores)) / len(values)
    sampling = (max(mean - half, min(mean, 0.0)), min(mean + half, max(mean, 1.0)))
    return SystemMean(mean, _bootstrap(values), sampling)


def compare(a: Sequence[SampledScore], b: Sequence[SampledScore]) -> SystemPair:
    """Compare two systems on the same segments, in the same order. Raises `InputError` for fewer than two segments."""
    if len(a) != len(b) or len(a) < 2:
        raise InputError(
            f"a comparison needs at least two segments with scores of both systems (got {min(len(a), len(b))})"
        )
    d = np.array([after.score - before.score for before, after in zip(a, b, strict=True)])
    d = np.where(np.abs(d) < TOLERANCE, 0.0, d)
    noise = math.sqrt(sum(one.variance for one in (*a, *b))) / len(d)
    total = math.sqrt(float(d.var(ddof=1)) / len(d))
    return SystemPair(len(d), float(d.mean()), _bootstrap(d), sign_test(d), noise, total)


def _bootstrap(values: Floats) -> tuple[float, float]:
    """The 95% bootstrap interval of the mean."""
    rng = np.random.default_rng(_SEED)
    means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(_DRAWS)]
    return percentile_interval(means)


def sign_test(d: Floats) -> float:
    """The two-sided p-value of the sign-flip permutation test for differences d, shape (segments,); 1 if all are 0."""
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
    least = abs(d.sum()) - 1e-9 * np.abs(d).sum()  # tolerance for rounding
    return float((np.abs(np.concatenate(draws)) >= least).mean())
