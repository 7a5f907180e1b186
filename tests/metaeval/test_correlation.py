"""Correlations: equal to mt-metrics-eval's stored numbers and to SciPy, on ties, missing gold and constant metrics."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.correlation import (
    COEFFICIENTS,
    GROUPINGS,
    Coefficient,
    correlation,
    pairwise_accuracy,
    system_correlation,
    system_means,
)
from tests.helpers.metaeval_cases import Case, cases, real_cases

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "correlations.json").read_text(encoding="utf-8"))


def exactly(value: float) -> object:
    return pytest.approx(value, rel=0, abs=1e-12)


def check_numbers(case: Case) -> None:
    for coefficient, by in itertools.product(COEFFICIENTS, GROUPINGS):
        golden = GOLDEN["correlations"][case.name][f"{coefficient} {by}"]
        assert correlation(case.gold, case.metric, coefficient, by) == exactly(golden)
    agree, pairs = GOLDEN["agreement"][case.name]
    gold = system_means(case.gold)
    metric = system_means(np.where(np.isnan(case.gold), np.nan, case.metric))
    assert pairwise_accuracy([(gold, metric)]) == exactly(agree / pairs)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_numbers_are_the_toolkits(case: Case) -> None:
    check_numbers(case)


def test_numbers_on_real_annotations_are_the_toolkits(mqm_folder: Path) -> None:
    for case in real_cases(mqm_folder):
        check_numbers(case)


@pytest.mark.parametrize(
    ("coefficient", "peer"), [("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)]
)
def test_numbers_are_scipys(coefficient: Coefficient, peer: Any) -> None:
    """Whole numbers with many ties, and some gold missing."""
    rng = np.random.default_rng(3)
    gold = rng.integers(-4, 1, (5, 300)).astype(float)
    metric = np.round(gold + rng.normal(size=gold.shape))
    gold[rng.random(gold.shape) < 0.1] = np.nan
    rated = ~np.isnan(gold)
    assert correlation(gold, metric, coefficient) == exactly(peer(gold[rated], metric[rated]).statistic)
    systems = [peer(g[r], m[r]).statistic for g, m, r in zip(gold, metric, rated, strict=True)]
    assert correlation(gold, metric, coefficient, "system") == exactly(float(np.mean(systems)))


def test_systems_are_compared_by_one_score_each() -> None:
    first = ([3.0, 2.0, 1.0], [3.0, 1.0, 2.0])  # two of three
    second = ([0.0, 0.0], [1.0, 1.0])  # a tie in both
    assert pairwise_accuracy([first, second]) == 0.75
    gold, metric = np.array([1.0, 2.0, np.nan, 4.0]), np.array([1.0, 3.0, 9.0, 4.0])
    rated = [0, 1, 3]
    assert system_correlation(gold, metric) == exactly(stats.pearsonr(gold[rated], metric[rated]).statistic)
    means = system_means([[-1.0, np.nan], [-2.0, -4.0], [np.nan, np.nan]])
    assert np.array_equal(means, [-1.0, -3.0, np.nan], equal_nan=True)


def test_one_system_has_correlations_over_its_segments_alone() -> None:
    gold, metric = [[0.0, -1.0, -5.0, math.nan]], [[-1.0, -2.0, -3.0, 0.0]]
    assert correlation(gold, metric, "pearson", "system") == correlation(gold, metric)
    with pytest.raises(InputError, match=r"seg-spearman-none"):
        correlation(gold, metric, "spearman", "item")
    with pytest.raises(InputError, match="two to rank"):
        system_correlation([0.0], [1.0])
