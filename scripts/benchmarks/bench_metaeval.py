"""Times the meta-evaluation, beside a plain reference in the same run.

    python scripts/benchmarks/bench_metaeval.py

Scores are drawn like WMT's: whole MQM penalties for gold, a metric that follows them with noise, 15 systems x 486
segments. The plain reference is the definition in Python, pair by pair and draw by draw; draws are timed on a few and
scaled up. Where Google's mt-metrics-eval is on the path it is timed as well. Times are CPU times of one core, the best
of several, so that other work on the machine does not count.
"""

# ruff: noqa: E402  (the number of threads must be set before numpy is loaded)

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.metaeval import acc_eq, perm_both, spa
from mbr_esd_metric.metaeval.spa import pairwise_p_values, spa_of_p_values

Matrix = npt.NDArray[np.float64]

SYSTEMS, SEGMENTS, DRAWS = 15, 486, 1000


def draw_scores(seed: int, metrics: int) -> tuple[Matrix, list[Matrix]]:
    """Gold and metrics of falling quality."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(0.2, 1.5, size=(SYSTEMS, 1))
    gold = -5.0 * rng.poisson(0.3 * quality, (SYSTEMS, SEGMENTS)) - rng.poisson(quality, (SYSTEMS, SEGMENTS))
    gold = np.maximum(gold, -25.0)
    return gold, [gold + rng.normal(scale=2 + 0.2 * i, size=gold.shape) for i in range(metrics)]


def best(run: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several runs, in seconds of CPU time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def plain_acc_eq(gold: Matrix, metric: Matrix) -> float:
    """Every threshold in turn, with the counts of each segment kept up to date."""
    pairs = []
    credits = [0] * SEGMENTS
    for segment in range(SEGMENTS):
        for i, j in combinations(range(SYSTEMS), 2):
            g, m = gold[i, segment] - gold[j, segment], metric[i, segment] - metric[j, segment]
            right = bool((g > 0) == (m > 0) and (g < 0) == (m < 0))
            credits[segment] += right
            pairs.append((abs(m), segment, bool(g == 0) - right))
    size = SYSTEMS * (SYSTEMS - 1) // 2
    total = highest = sum(credits) / size
    pairs.sort()
    for at, (gap, _, change) in enumerate(pairs):
        total += change / size
        if at + 1 == len(pairs) or pairs[at + 1][0] != gap:
            highest = max(highest, total)
    return highest / SEGMENTS


def plain_acc_eq_draw(gold: Matrix, a: Matrix, b: Matrix) -> Callable[[], float]:
    """One draw of PERM-BOTH for acc_eq: the verdicts of a and b on each pair change places, or do not."""
    verdicts = []
    for metric in (a, b):
        epsilon = acc_eq(gold, metric).epsilon
        credits = []
        for segment in range(SEGMENTS):
            for i, j in combinations(range(SYSTEMS), 2):
                g, m = gold[i, segment] - gold[j, segment], metric[i, segment] - metric[j, segment]
                sign = 0.0 if abs(m) <= epsilon else m
                credits.append(int((g > 0) == (sign > 0) and (g < 0) == (sign < 0)))
        verdicts.append(credits)
    rng = np.random.default_rng(0)

    def draw() -> float:
        first = second = 0
        for x, y, swap in zip(*verdicts, rng.integers(2, size=len(verdicts[0])).tolist(), strict=True):
            first += y if swap else x
            second += x if swap else y
        return (second - first) / len(verdicts[0])

    return draw


def plain_spa_draw(gold: Matrix, a: Matrix, b: Matrix) -> Callable[[], float]:
    """One draw of PERM-BOTH for SPA: both halves of the swapped scores by SPA itself."""
    rng = np.random.default_rng(0)
    gold_p = pairwise_p_values(gold)
    a, b = ((scores - scores.mean()) / scores.std() for scores in (a, b))

    def draw() -> float:
        swap = rng.random(gold.shape) < 0.5
        values = [pairwise_p_values(scores) for scores in (np.where(swap, a, b), np.where(swap, b, a))]
        return spa_of_p_values(gold_p, values[0]) - spa_of_p_values(gold_p, values[1])

    return draw


def toolkit(gold: Matrix, a: Matrix, b: Matrix) -> dict[str, float]:
    """Seconds of mt-metrics-eval for the same; empty where it is not on the path."""
    try:
        from mt_metrics_eval import stats
    except ImportError:
        return {}
    flat = gold.ravel().tolist()
    first, second = a.ravel().tolist(), b.ravel().tolist()

    def pce(gold_scores: Any, scores: Any) -> Any:
        return stats.PairwiseConfidenceError(gold_scores, scores, SYSTEMS)

    correlations = [stats.Correlation(SYSTEMS, flat, scores) for scores in (first, second)]
    few = 10
    calibration = best(lambda: stats.KendallWithTiesOpt(flat, first, "acc23", SYSTEMS, "item", 1.0), 2)
    draws = best(lambda: stats.PairwisePermutationSigDiff(*correlations, average_by="item", k=few), 1)
    return {
        "spa": best(lambda: stats.PairwiseConfidenceError(flat, first, SYSTEMS), 3),
        "acc_eq": calibration,
        "PERM-BOTH spa": best(lambda: stats.PermutationSigDiff(*correlations, pce, k=few), 1) * DRAWS / few,
        # Both metrics are calibrated once, whatever the number of draws.
        "PERM-BOTH acc_eq": 2 * calibration + (draws - 2 * calibration) * DRAWS / few,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Times the meta-evaluation.")
    parser.parse_args()
    gold, (a, b) = draw_scores(0, 2)
    ours = {
        "spa": best(lambda: spa(gold, a), 20),
        "acc_eq": best(lambda: acc_eq(gold, a), 20),
        "PERM-BOTH spa": best(lambda: perm_both(gold, a, b, "spa", DRAWS)),
        "PERM-BOTH acc_eq": best(lambda: perm_both(gold, a, b, "acc_eq", DRAWS), 20),
    }
    assert abs(acc_eq(gold, a).accuracy - plain_acc_eq(gold, a)) < 1e-9
    plain = {
        "acc_eq": best(lambda: plain_acc_eq(gold, a), 3),
        "PERM-BOTH spa": best(plain_spa_draw(gold, a, b), 20) * DRAWS,
        "PERM-BOTH acc_eq": best(plain_acc_eq_draw(gold, a, b), 20) * DRAWS,
    }
    peer = toolkit(gold, a, b)
    load = os.getloadavg()[0]
    print(f"{SYSTEMS} systems x {SEGMENTS} segments, k = {DRAWS}; load {load:.1f} on {os.cpu_count()} cores")
    print(f"{'':18}{'ours':>12}{'plain':>12}{'ratio':>8}{'mt-metrics-eval':>18}{'ratio':>8}")
    for name, seconds in ours.items():
        line = f"{name:18}{1000 * seconds:>9.1f} ms"
        for other, width in ((plain, 12), (peer, 18)):
            if name in other:
                line += f"{other[name]:>{width - 2}.2f} s{other[name] / seconds:>7.0f}x"
            else:
                line += f"{'-':>{width}}{'-':>8}"
        print(line)


if __name__ == "__main__":
    main()
