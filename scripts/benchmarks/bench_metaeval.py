"""Times the meta-evaluation, compared with a plain reference in the same run and with target times.

    OMP_NUM_THREADS=1 python scripts/benchmarks/bench_metaeval.py

The reference is the definition in Python, pair by pair and draw by draw; one draw is timed and extrapolated to the
number of draws of our implementation. The matrix tests all pairs of metrics in three language pairs, with
mt-metrics-eval's early stopping.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import combinations, product

import numpy as np
from bench_decide import best

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.metaeval import acc_eq, perm_both, rank_metrics
from mbr_esd_metric.metaeval.significance import STATISTICS
from mbr_esd_metric.metaeval.spa import pairwise_p_values, spa_of_p_values

SYSTEMS, SEGMENTS, DRAWS, METRICS = 15, 486, 1000, 25


def draw_scores(seed: int, metrics: int) -> tuple[Floats, dict[str, Floats]]:
    """Gold scores of integer MQM penalties, and metrics with increasing noise."""
    rng, shape = np.random.default_rng(seed), (SYSTEMS, SEGMENTS)
    quality = rng.uniform(0.2, 1.5, size=(SYSTEMS, 1))
    gold = np.maximum(-5.0 * rng.poisson(0.3 * quality, shape) - rng.poisson(quality, shape), -25.0)
    return gold, {str(i): gold + rng.normal(scale=2 + 0.2 * i, size=shape) for i in range(metrics)}


def plain_verdicts(gold: Floats, metric: Floats, epsilon: float = 0.0) -> list[tuple[float, bool, bool]]:
    """For each pair of systems in each segment: the metric's gap, whether it agrees with gold, and whether gold is
    tied."""
    verdicts = []
    columns = zip(gold.T.tolist(), metric.T.tolist(), strict=True)
    for (g, m), (i, j) in product(columns, combinations(range(SYSTEMS), 2)):
        gap, lead = abs(m[i] - m[j]), g[i] - g[j]
        verdicts.append((gap, lead * (m[i] - m[j]) > 0 if gap > epsilon else lead == 0, lead == 0))
    return verdicts


def plain_acc_eq(gold: Floats, metric: Floats) -> float:
    """The best accuracy over all thresholds; all segments have the same number of pairs."""
    verdicts = sorted(plain_verdicts(gold, metric))
    agreed = highest = sum(agrees for _, agrees, _ in verdicts)
    for at, (gap, agrees, tie) in enumerate(verdicts, 1):
        agreed += tie - agrees
        if at == len(verdicts) or verdicts[at][0] != gap:
            highest = max(highest, agreed)
    return highest / len(verdicts)


def plain_draw(statistic: str, gold: Floats, a: Floats, b: Floats) -> float:
    """CPU seconds of one draw of PERM-BOTH."""
    rng, gold_p = np.random.default_rng(0), pairwise_p_values(gold)
    right = [[agrees for _, agrees, _ in plain_verdicts(gold, m, acc_eq(gold, m).epsilon)] for m in (a, b)]

    def draw() -> float:
        if statistic == "acc_eq":
            coins = rng.random(len(right[0])) < 0.5
            return float(sum(p - q if coin else q - p for p, q, coin in zip(*right, coins, strict=True)))
        swap = rng.random(gold.shape) < 0.5
        x, y = (pairwise_p_values(np.where(swap, *scores)) for scores in ((a, b), (b, a)))
        return spa_of_p_values(gold_p, x) - spa_of_p_values(gold_p, y)

    return best(draw, 5)


def main() -> None:
    """Print the table."""
    gold, metrics = draw_scores(0, 2)
    a, b = metrics.values()
    assert abs(acc_eq(gold, a).accuracy - plain_acc_eq(gold, a)) < 1e-12
    rows = [("acc_eq", best(lambda: acc_eq(gold, a), 20), best(lambda: plain_acc_eq(gold, a), 3), 0.015)]
    draw = {name: plain_draw(name, gold, a, b) for name in STATISTICS}
    for name, bar in zip(STATISTICS, (1.0, 0.3), strict=True):
        rows.append((f"PERM-BOTH {name}", best(partial(perm_both, gold, a, b, name), 5), DRAWS * draw[name], bar))
    start, plain = time.process_time(), 0.0
    for (gold, metrics), name in product([draw_scores(seed, METRICS) for seed in range(3)], STATISTICS):
        plain += draw[name] * sum(map(len, rank_metrics(gold, metrics, name, DRAWS).draws.values()))
    rows.append((f"matrix of {METRICS} x 3", time.process_time() - start, plain, 1200.0))
    print(f"{'CPU seconds':20}{'ours':>10}{'bar':>10}{'plain':>12}{'ratio':>8}")
    for what, ours, reference, bar in rows:
        print(f"{what:20}{ours:>10.3f}{bar:>10g}{reference:>12.2f}{reference / ours:>7.0f}x")


if __name__ == "__main__":
    main()
