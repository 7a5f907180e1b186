"""Correlations of metric scores with gold scores, equal to mt-metrics-eval's ``AverageCorrelation``.

Scores of segments are compared in one of three ways:

* "none": all rated translations as two long vectors;
* "item": one correlation a segment, over its systems, averaged over the segments;
* "system": one correlation a system, over its segments, averaged over the systems.

    Pearson   sum (x - mean x)(y - mean y) / (|x - mean x| |y - mean y|)
    Spearman  Pearson of the ranks; ties share the mean of theirs
    Kendall   tau-b: (concordant - discordant) / sqrt((pairs - tied in x)(pairs - tied in y))

A group has no correlation if gold or the metric is constant in it, or if it has a single rating. It is then left out of
the average. If no group is left, the result is 0, as in the toolkit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector, check_matrices

#: Which correlation.
Coefficient = Literal["pearson", "spearman", "kendall"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)

#: What is averaged over.
Grouping = Literal["none", "item", "system"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)

#: Up to so many values Kendall's pairs are listed; beyond that SciPy's merge sort is faster.
_FEW = 128


@dataclass(frozen=True, slots=True)
class Correlation:
    """A mean correlation in [-1, 1], higher is better, and the number of its groups; 0 and 0 if no group has one."""

    value: float
    groups: int


@dataclass(frozen=True, slots=True)
class PairwiseAccuracy:
    """The share of pairs of systems that a metric orders as gold does, and their number (Kocmi et al. 2021)."""

    accuracy: float
    pairs: int


def correlation(
    gold: npt.ArrayLike, metric: npt.ArrayLike, coefficient: Coefficient = "pearson", by: Grouping = "none"
) -> Correlation:
    """Correlation of segment scores.

    Args:
        gold, metric: score matrices (`matrices`).
        coefficient: "pearson", "spearman" or "kendall" (tau-b).
        by: "none", "item" or "system", see above.

    Raises:
        InputError: for matrices that do not fit.
        OptionError: for an unknown coefficient or grouping.
    """
    if coefficient not in COEFFICIENTS:
        raise unknown("correlation", coefficient, COEFFICIENTS)
    if by not in GROUPINGS:
        raise unknown("grouping", by, GROUPINGS)
    data = check_matrices(gold, {"metric": metric}, systems=2 if by == "item" else 1)
    every = [coefficient_of(x, y, coefficient) for x, y in _groups(data.gold, data.metrics["metric"], by)]
    values = [value for value in every if value is not None]
    return Correlation(sum(values) / len(values), len(values)) if values else Correlation(0.0, 0)


def coefficient_of(gold: FloatVector, metric: FloatVector, coefficient: Coefficient) -> float | None:
    """The correlation of two vectors of the same length; None for fewer than two values, or a constant vector."""
    varied = len(gold) > 1 and np.ptp(gold) != 0 and np.ptp(metric) != 0
    return _COEFFICIENTS[coefficient](gold, metric) if varied else None


def system_correlation(gold: npt.ArrayLike, metric: npt.ArrayLike, coefficient: Coefficient = "pearson") -> Correlation:
    """Correlation of one score a system. Raises `InputError` for vectors that do not fit."""
    data = check_matrices(np.atleast_2d(gold).T, {"metric": np.atleast_2d(metric).T})
    return correlation(data.gold, data.metrics["metric"], coefficient)


def pairwise_accuracy(scores: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]]) -> PairwiseAccuracy:
    """Pairwise accuracy of system scores, over the pairs of one or several language pairs together.

    A pair agrees if the differences of gold and of the metric have the same sign; a tie counts as a third sign.
    `scores` are (gold, metric) of each language pair, shape (systems,) each; gold may be NaN.

    Raises:
        InputError: for vectors that do not fit, or no pair at all.
    """
    agreeing = pairs = 0
    for gold, metric in scores:
        data = check_matrices(np.atleast_2d(gold).T, {"metric": np.atleast_2d(metric).T})
        x, y = (values[data.rated] for values in (data.gold, data.metrics["metric"]))
        upper = np.triu_indices(len(x), 1)
        agreeing += int((np.sign(_differences(x)) == np.sign(_differences(y)))[upper].sum())
        pairs += len(upper[0])
    if not pairs:
        raise InputError("there is no pair of systems with gold scores")
    return PairwiseAccuracy(agreeing / pairs, pairs)


def system_means(scores: npt.ArrayLike) -> FloatVector:
    """The mean of each system's rated scores, shape (systems,); NaN if it has none."""
    matrix = np.asarray(scores, dtype=np.float64)
    counts = (~np.isnan(matrix)).sum(axis=1)
    return np.where(counts > 0, np.nansum(matrix, axis=1) / np.maximum(counts, 1), np.nan)


def _groups(gold: FloatMatrix, metric: FloatMatrix, by: Grouping) -> Iterator[tuple[FloatVector, FloatVector]]:
    """The rated scores of each group."""
    if by == "none":
        gold, metric = gold.reshape(1, -1), metric.reshape(1, -1)
    elif by == "item":
        gold, metric = gold.T, metric.T
    for x, y in zip(gold, metric, strict=True):
        rated = ~np.isnan(x)
        yield x[rated], y[rated]


def _differences(values: FloatVector) -> FloatMatrix:
    return np.asarray(values[:, None] - values[None, :])


def _pearson(x: FloatVector, y: FloatVector) -> float:
    x, y = x - x.mean(), y - y.mean()
    value = np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y))
    return float(min(1.0, max(-1.0, value)))


def _spearman(x: FloatVector, y: FloatVector) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(x), rankdata(y))


def _kendall(x: FloatVector, y: FloatVector) -> float:
    if len(x) > _FEW:
        from scipy.stats import kendalltau

        return float(kendalltau(x, y).statistic)
    upper = np.triu_indices(len(x), 1)
    sign_x, sign_y = np.sign(_differences(x)[upper]), np.sign(_differences(y)[upper])
    balance = float((sign_x * sign_y).sum())
    value = balance / float(np.sqrt(np.count_nonzero(sign_x))) / float(np.sqrt(np.count_nonzero(sign_y)))
    return min(1.0, max(-1.0, value))


_COEFFICIENTS: Mapping[Coefficient, Callable[[FloatVector, FloatVector], float]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}
