"""Soft Pairwise Accuracy (Thompson et al. 2024), equal to mt-metrics-eval's ``PairwiseConfidenceError``.

For each pair of systems i < j a paired permutation test gives the p-value that i is no better than j, once from gold
and once from the metric; SPA is one minus their mean absolute difference,

    SPA = 1 - mean_{i<j} |p_gold[i, j] - p_metric[i, j]|

The order of the systems matters, because only the pairs i < j are used, and draws that just reach the observed lead
count for i. It changes SPA by up to .015 if scores are whole numbers, such as those of error spans, and otherwise in
the fifth digit. mt-metrics-eval takes the order of its data; the reader of the data folder sorts systems by name. With
`exact` the order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.metaeval.exact import exact_p_values
from mbr_esd_metric.metaeval.matrices import FloatMatrix, Missing, matched, packed

#: The number of permutations behind every p-value, and the seed of their signs, as in mt-metrics-eval.
PERMUTATIONS = 1000
SEED = 4

SignMatrix = npt.NDArray[np.float32]


def spa(gold: npt.ArrayLike, metric: npt.ArrayLike, *, missing: Missing = "toolkit", exact: bool = False) -> float:
    """Soft Pairwise Accuracy of `metric` against `gold`, in [0, 1], higher is better.

    Args:
        gold: systems x segments, NaN if unrated, higher is better.
        metric: systems x segments, higher is better.
        missing: what to do if systems are rated on different segments, see `matrices.packed`.
        exact: take the limit of infinitely many permutations, which no order of the systems changes; see `exact`.

    Raises:
        InputError: for matrices that do not fit, or ratings that cannot be compared; see `matrices`.
    """
    data = packed(matched(gold, {"metric": metric}), missing)
    p_values = exact_p_values if exact else pairwise_p_values
    return spa_of_p_values(p_values(data.gold), p_values(data.metrics["metric"]))


def constant_metrics(gold: FloatMatrix, metrics: Iterable[tuple[str, FloatMatrix]]) -> list[str]:
    """The names of the metrics, each with its scores, that say the same of every translation that has gold."""
    rated = ~np.isnan(gold)
    return [name for name, scores in metrics if np.ptp(scores[rated]) == 0]


def constant_notes(constant: Mapping[str, Iterable[str]], exact: bool) -> list[str]:
    """One line for a whole board, or none, on the metrics that say the same of everything.

    Args:
        constant: language pair -> names of such metrics.
        exact: which SPA the board has.
    """
    pairs: dict[str, list[str]] = {}
    for pair, names in constant.items():
        for name in names:
            pairs.setdefault(name, []).append(pair)
    where: dict[str, list[str]] = {}
    for name, own in pairs.items():
        where.setdefault(", ".join(own), []).append(name)
    if not where:
        return []
    why = "all its p-values are 1/2" if exact else "depends on the order of the systems"
    found = "; ".join(f"{', '.join(names)} in {own}" for own, names in where.items())
    return [f"one score for everything, so that SPA says nothing and {why}: {found}"]


def exact_notes(exact: bool) -> list[str]:
    """A line that says so where SPA is exact."""
    return ["SPA: exact, of infinitely many permutations"] if exact else []


def pairwise_p_values(scores: FloatMatrix) -> FloatMatrix:
    """P-values of "system i is better than system j" for i < j; NaN elsewhere.

    With signs s = +-1 per segment, p[i, j] is the share of the permutations with
    ``sum(s * (x_i - x_j)) >= sum(x_i - x_j)``. All pairs share the signs, so one matrix product is enough for all. The
    arithmetic is float32 and in mt-metrics-eval's order: if scores are whole numbers, the two sums often tie, and
    rounding decides.

    Args:
        scores: (systems, segments), complete.

    Returns:
        (systems, systems).
    """
    systems, segments = scores.shape
    single = scores.astype(np.float32)
    totals = single.sum(axis=1)
    partial = np.matmul(signs(segments), single.T)
    p_values = np.full((systems, systems), np.nan)
    for i in range(systems - 1):
        null = partial[:, i, None] - partial[:, i + 1 :]
        observed = totals[i] - totals[i + 1 :]
        p_values[i, i + 1 :] = (null >= observed).sum(axis=0) / PERMUTATIONS
    return p_values


def spa_of_p_values(gold: FloatMatrix, metric: FloatMatrix) -> float:
    """SPA of two matrices of `pairwise_p_values`."""
    pairs = np.triu_indices(len(gold), 1)
    return float(1.0 - np.mean(np.abs(gold - metric)[pairs]))


@lru_cache(maxsize=8)
def signs(segments: int) -> SignMatrix:
    """The (PERMUTATIONS, segments) signs +-1 that every test over this many segments shares; read-only."""
    drawn = np.random.default_rng(SEED).random(size=(PERMUTATIONS, segments), dtype=np.float32)
    drawn_signs: SignMatrix = np.rint(drawn) * np.float32(2.0) - np.float32(1.0)
    drawn_signs.flags.writeable = False
    return drawn_signs
