"""Exact SPA against all signs, against many permutations, and whatever the order of the systems."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from mbr_esd_metric.metaeval import perm_both, rank_metrics, spa
from mbr_esd_metric.metaeval.spa import exact_p, exact_p_values, grid_unit

KINDS = ("whole", "tenths", "thirds", "real", "few values", "sparse", "constant")


def scores_of(kind: str, systems: int, segments: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    whole = -rng.poisson(rng.uniform(0.2, 2, (systems, 1)), (systems, segments)).astype(float)
    made = {
        "whole": whole,
        "tenths": whole - 0.1 * rng.integers(0, 4, whole.shape),
        "thirds": whole / 3,
        "real": whole + rng.normal(size=whole.shape),
        "few values": np.where(whole < -1, -0.7312, np.where(whole < 0, -0.1, 0.0)),
        "sparse": np.where(rng.random(whole.shape) < 0.2, rng.normal(size=whole.shape), 0.0),
        "constant": np.full(whole.shape, -1.5),
    }
    return made[kind]


def plain(d: np.ndarray, signs: np.ndarray) -> float:
    """One row of signs after the other."""
    sums, total = signs @ d, d.sum()
    tied = np.isclose(sums, total, atol=1e-9)
    return float(((sums > total) & ~tied).mean() + tied.mean() / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_p_values_are_those_of_all_signs(kind: str, seed: int) -> None:
    scores = scores_of(kind, 3, 12, seed)
    p_values, signs = exact_p_values(scores), np.array(list(product((-1, 1), repeat=12)))
    for i, j in combinations(range(3), 2):
        assert p_values[i, j] == pytest.approx(plain(scores[i] - scores[j], signs), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_many_permutations_come_near_and_the_other_order_is_the_complement(kind: str) -> None:
    scores = scores_of(kind, 3, 60, 1)
    signs = np.random.default_rng(0).integers(0, 2, (50_000, 60)) * 2.0 - 1.0
    p_values, reverse = exact_p_values(scores), exact_p_values(scores[::-1])
    for i, j in combinations(range(3), 2):
        near = plain(scores[i] - scores[j], signs)
        assert p_values[i, j] == pytest.approx(near, abs=4.5 * np.sqrt(0.25 / len(signs)))
        assert p_values[i, j] + reverse[2 - j, 2 - i] == pytest.approx(1, abs=1e-12)


def test_davies_and_the_grid_meet() -> None:
    """On a grid so fine that ties hardly occur, both ways give the same."""
    rng = np.random.default_rng(2)
    d = np.rint(rng.normal(2, 40, 60))
    assert exact_p(d, 1.0) == pytest.approx(exact_p(d, None), abs=1e-5)


def test_the_unit_of_a_grid() -> None:
    for kind, unit in (("whole", 1.0), ("tenths", 0.1), ("thirds", 1 / 3), ("constant", 1.0)):
        assert grid_unit(scores_of(kind, 4, 300, 3).ravel()) == pytest.approx(unit, rel=1e-6)
    assert grid_unit(scores_of("real", 4, 300, 3).ravel()) is None


@pytest.mark.parametrize("kind", ["whole", "sparse", "constant"])
def test_spa_does_not_depend_on_the_order_of_systems(kind: str) -> None:
    gold, metric = scores_of("whole", 6, 60, 0), scores_of(kind, 6, 60, 7)
    order = np.random.default_rng(1).permutation(6)
    assert spa(gold[order], metric[order], exact=True) == pytest.approx(spa(gold, metric, exact=True), abs=1e-12)
    # The toolkit's does, by far more than rounding.
    orders = [np.random.default_rng(seed).permutation(6) for seed in range(5)]
    assert np.ptp([spa(gold[o], metric[o]) for o in orders]) > 1e-4


def test_a_constant_metric_calls_every_pair_even() -> None:
    gold = scores_of("whole", 5, 60, 0)
    p = exact_p_values(gold)[np.triu_indices(5, 1)]
    expected = 1 - np.abs(p - 0.5).mean()
    assert spa(gold, np.zeros_like(gold), exact=True) == pytest.approx(expected, abs=1e-12)


def test_tests_of_exact_spa_know_better_and_equal() -> None:
    rng = np.random.default_rng(4)
    gold = scores_of("whole", 8, 120, 9)
    good, bad = gold + rng.normal(0, 0.3, gold.shape), rng.normal(size=gold.shape)
    test = perm_both(gold, bad, good, "spa", 300, exact=True)
    assert test.p_value < 0.05
    assert test.delta == pytest.approx(spa(gold, good, exact=True) - spa(gold, bad, exact=True), abs=0.05)
    assert perm_both(gold, good, good, "spa", 50, exact=True).p_value == 1
    ranking = rank_metrics(gold, {"good": good, "bad": bad}, "spa", 300, exact=True)
    assert ranking.values == (spa(gold, good, exact=True), spa(gold, bad, exact=True))
    assert ranking.ranks == (1, 2)
