"""Correlations: equal to mt-metrics-eval's stored numbers and to SciPy, on ties, missing gold and constant metrics."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.correlation import (
    COEFFICIENTS,
    GROUPINGS,
    correlation,
    pairwise_accuracy,
    system_correlation,
    system_means,
)
from tests.helpers.metaeval_cases import Case, Matrix, cases, real_cases

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "correlations.json").read_text(encoding="utf-8"))
CASES = cases()


def exactly(value: float) -> object:
    return pytest.approx(value, rel=0, abs=1e-12)


def check_numbers(case: Case) -> None:
    golden = GOLDEN["correlations"][case.name]
    for coefficient in COEFFICIENTS:
        for by in GROUPINGS:
            assert correlation(case.gold, case.metric, coefficient, by).value == exactly(golden[f"{coefficient} {by}"])
    agree, pairs = GOLDEN["agreement"][case.name]
    gold = system_means(case.gold)
    metric = system_means(np.where(np.isnan(case.gold), np.nan, case.metric))
    accuracy = pairwise_accuracy([(gold, metric)])
    assert (accuracy.accuracy, accuracy.pairs) == (exactly(agree / pairs), pairs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numbers_are_the_toolkits(case: Case) -> None:
    check_numbers(case)


def test_numbers_on_real_annotations_are_the_toolkits(mqm_folder: Path) -> None:
    for case in real_cases(mqm_folder):
        check_numbers(case)


def drawn(systems: int = 5, segments: int = 300) -> tuple[Matrix, Matrix]:
    """Whole numbers with many ties, and some gold missing."""
    rng = np.random.default_rng(3)
    gold = rng.integers(-4, 1, (systems, segments)).astype(float)
    metric = np.round(gold + rng.normal(size=gold.shape))
    gold[rng.random(gold.shape) < 0.1] = np.nan
    return gold, metric


@pytest.mark.parametrize(
    ("coefficient", "theirs"),
    [("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)],
)
def test_numbers_are_scipys(coefficient: str, theirs: object) -> None:
    gold, metric = drawn()
    rated = ~np.isnan(gold)

    def one(x: Matrix, y: Matrix, keep: np.ndarray) -> float:
        return float(theirs(x[keep], y[keep]).statistic)  # type: ignore[operator]

    expected = {
        "none": one(gold, metric, rated),
        "system": np.mean([one(g, m, r) for g, m, r in zip(gold, metric, rated, strict=True)]),
        "item": np.nanmean(
            [
                one(g, m, r)
                for g, m, r in zip(gold.T, metric.T, rated.T, strict=True)
                if len(set(g[r])) > 1 and len(set(m[r])) > 1
            ]
        ),
    }
    for by, value in expected.items():
        assert correlation(gold, metric, coefficient, by).value == exactly(float(value))  # type: ignore[arg-type]


def test_a_constant_metric_has_no_correlation_and_says_so() -> None:
    gold, _ = drawn()
    result = correlation(gold, np.zeros_like(gold), "kendall", "item")
    assert (result.value, result.groups) == (0.0, 0)


def test_accuracy_counts_the_pairs_of_all_language_pairs_together() -> None:
    first = (np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]))  # two of three
    second = (np.array([0.0, 0.0]), np.array([1.0, 1.0]))  # a tie that the metric calls one
    accuracy = pairwise_accuracy([first, second])
    assert (accuracy.accuracy, accuracy.pairs) == (0.75, 4)


def test_systems_are_compared_by_one_score_each() -> None:
    gold, metric = np.array([1.0, 2.0, np.nan, 4.0]), np.array([1.0, 3.0, 9.0, 4.0])
    rated = [0, 1, 3]
    assert system_correlation(gold, metric).value == exactly(stats.pearsonr(gold[rated], metric[rated]).statistic)


def test_the_mean_of_a_system_is_over_what_is_rated_be_it_one() -> None:
    means = system_means([[-1.0, np.nan], [-2.0, -4.0], [np.nan, np.nan]])
    assert means[:2].tolist() == [-1.0, -3.0]
    assert np.isnan(means[2])


def test_one_system_has_correlations_over_its_segments_alone() -> None:
    gold, metric = [[0.0, -1.0, -5.0, math.nan]], [[-1.0, -2.0, -3.0, 0.0]]
    assert correlation(gold, metric, "spearman").value == pytest.approx(1)
    assert correlation(gold, metric, "pearson", "system") == correlation(gold, metric)
    with pytest.raises(InputError, match=r"seg-spearman-none"):
        correlation(gold, metric, "spearman", "item")
    with pytest.raises(InputError, match="two to rank"):
        system_correlation([0.0], [1.0])
