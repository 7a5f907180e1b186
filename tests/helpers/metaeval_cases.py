"""Score matrices for tests: from `random.Random.random`, whose stream no Python version changes; and real ones."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import Rating

Matrix = npt.NDArray[np.float64]

KINDS = ("integers", "decimals", "reals", "constant", "noisy", "copy")
GAPS = ("complete", "columns", "ragged")


@dataclass(frozen=True)
class Case:
    """Gold and metric scores, systems x segments."""

    name: str
    gold: Matrix
    metric: Matrix

    def lists(self) -> tuple[list[float | None], list[float]]:
        """Gold and metric as mt-metrics-eval takes them: flat, by system, None where unrated."""
        gold = [None if math.isnan(score) else score for score in self.gold.ravel().tolist()]
        return gold, self.metric.ravel().tolist()


def cases() -> list[Case]:
    """Small matrices with ties, missing gold, constant metrics; every kind of score with every kind of gap."""
    return list(map(_case, range(252)))


def plain_credits(gold: Matrix, metric: Matrix, epsilon: float) -> list[tuple[int, int, int]]:
    """(segment, pairs of the segment, credit) of every pair of rated systems, by the definition of acc_eq."""
    rows = []
    for segment, (g, m) in enumerate(zip(gold.T, metric.T, strict=True)):
        rated = [i for i in range(len(g)) if not math.isnan(g[i])]
        for i, j in combinations(rated, 2):
            tied = abs(m[i] - m[j]) <= epsilon
            credit = tied if g[i] == g[j] else not tied and (g[i] > g[j]) == (m[i] > m[j])
            rows.append((segment, math.comb(len(rated), 2), int(credit)))
    return rows


def pair(number: int, *, systems: int = 6, segments: int = 60) -> tuple[Matrix, Matrix, Matrix]:
    """Gold, and two metrics of which the second is better by a little, nothing, or the other way round."""
    rng = random.Random(1000 + number)
    quality = [2 * rng.random() for _ in range(systems)]
    gold = _matrix(systems, segments, lambda i: round(min(0.0, quality[i] - 6 * rng.random())))

    def metric(noise: float) -> Matrix:
        """Noisy segment by segment, and unfair to some systems."""
        bias = [noise * (rng.random() - 0.5) for _ in range(systems)]
        scores = gold + _matrix(systems, segments, lambda i: bias[i] + noise * (2 * rng.random() - 1))
        return np.round(scores) if number % 3 == 0 else scores

    a, b = metric(4.0), metric((4.5, 4.0, 3.5, 2.5, 1.0)[number % 5])
    if number % 4 == 1:
        gold[:, [rng.random() < 0.2 for _ in range(segments)]] = np.nan
    return gold, a, b


def real_cases(folder: Path) -> list[Case]:
    """Real annotations: each rater of the three-rater WMT23 set as a metric against each other one; TED talks against
    how much longer the translation is than the source, all of them and with some left unrated."""
    by_cell: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    for rating in read_mqm(folder / "sxs_mqm_generalMT2023_ende.3raters.tsv"):
        by_cell[rating.segment.system, rating.segment.label].append(rating)
    systems = sorted({system for system, _ in by_cell})
    segments = sorted({segment for _, segment in by_cell}, key=int)
    cells = [[sorted(by_cell[s, n], key=lambda rating: rating.rater) for n in segments] for s in systems]
    raters = [np.array([[cell[r].mqm("google") for cell in row] for row in cells]) for r in range(3)]
    pairs = [Case(f"rater {a + 1} against {b + 1}", raters[b], raters[a]) for a, b in permutations(range(3), 2)]

    ted = {(one.segment.system, one.segment.label): one for one in read_mqm(folder / "mqm_ted_ende.tsv")}
    segments = sorted({segment for _, segment in ted}, key=int)
    rows = [[ted[s, n] for n in segments] for s in sorted({system for system, _ in ted} - {"ref"})]
    gold = np.array([[rating.mqm("google") for rating in row] for row in rows])
    texts = [[rating.segment for rating in row] for row in rows]
    longer = np.array([[-abs(len(one.translation) / len(one.source) - 1.1) for one in row] for row in texts])
    some = gold.copy()
    some[:, ::3] = np.nan
    ted_talks = [Case("TED length", gold, longer), Case("TED length, some unrated", some, np.round(longer, 1))]
    return [*pairs, *ted_talks, Case("TED constant", gold, np.zeros_like(gold))]


def _case(number: int) -> Case:
    rng = random.Random(number)
    kind, gap = KINDS[number % len(KINDS)], GAPS[number // len(KINDS) % len(GAPS)]
    systems, segments = 2 + int(7 * rng.random()), 4 + int(40 * rng.random())
    gold = _matrix(systems, segments, lambda _: -float(int(6 * rng.random())))
    constant = 2 * rng.random() - 1
    make: dict[str, Callable[[int], float]] = {
        "integers": lambda _: -float(int(5 * rng.random())),
        "decimals": lambda _: round(rng.random(), 2),
        "reals": lambda _: rng.random(),
        "constant": lambda _: constant,
        "noisy": lambda _: round(rng.random(), 1),
        "copy": lambda _: 0.0,
    }
    metric = _matrix(systems, segments, make[kind]) + (gold if kind in ("noisy", "copy") else 0)
    if gap == "columns":
        gold[:, [rng.random() < 0.3 and column > 0 for column in range(segments)]] = np.nan
    if gap == "ragged":
        # The same number of ratings for each system, on different segments.
        missing = 1 + int(rng.random() * (segments // 3))
        for row in gold:
            row[sorted(range(segments), key=lambda _: rng.random())[:missing]] = np.nan
    return Case(f"{number}-{kind}-{gap}", gold, metric)


def _matrix(systems: int, segments: int, value: Callable[[int], float]) -> Matrix:
    return np.array([[value(system) for _ in range(segments)] for system in range(systems)], dtype=np.float64)
