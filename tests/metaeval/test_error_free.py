"""Translations without error: labels, MCC and threshold, against plain definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mbr_esd_metric import ErrorSpan
from mbr_esd_metric.metaeval.error_free import ErrorFree, best_threshold, error_free, gold_labels, unmarked

SPAN = [ErrorSpan(0, 2, "minor")]


def test_a_translation_without_error_has_no_span_and_a_high_score() -> None:
    gold = [[100.0, 85.0, 84.9, 90.0, np.nan]]
    labels = gold_labels(gold, [[[(), (), (), SPAN, ()]], [[(), None, (), (), SPAN]]], 85)
    assert np.array_equal(labels, [[1, 1, 0, 0, np.nan]], equal_nan=True)
    assert np.array_equal(gold_labels(gold, (), 90), [[1, 0, 0, 1, np.nan]], equal_nan=True)
    assert np.array_equal(unmarked([[(), SPAN, None]]), [[1, 0, np.nan]], equal_nan=True)


def test_counts_and_measures_are_their_definitions() -> None:
    labels = np.array([[1, 1, 1, 0, 0, 0, 0, np.nan]])
    predicted = np.array([[1, 0, 1, 0, 0, 1, 0, 1]])
    result = error_free(labels, predicted)
    assert result == ErrorFree(2, 1, 1, 3)
    # MCC is Pearson's correlation of the two columns of 0 and 1.
    assert result.mcc == pytest.approx(np.corrcoef(labels[0, :7], predicted[0, :7])[0, 1], abs=1e-12)
    assert (result.precision, result.recall, result.f1) == (pytest.approx(2 / 3),) * 3
    assert result.accuracy == pytest.approx(5 / 7)


def test_one_sided_predictions() -> None:
    labels = np.array([[1, 0, 0]])
    wrong = error_free(labels, [[0, 1, 0]])
    assert (wrong.precision, wrong.recall, wrong.f1) == (0.0, 0.0, 0.0)
    assert (error_free(labels, [[0, 0, 0]]).mcc, error_free(labels, [[0, 0, 0]]).precision) == (0.0, 1.0)
    assert error_free(labels, [[1, 1, 1]]).recall == 1.0
    assert error_free([[0.0]], [[0.0]]).recall == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_best_and_the_area_that_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = (rng.random((3, 12)) < 0.3).astype(float)
    scores = np.round(labels + rng.normal(scale=1.0, size=labels.shape), 0)  # many ties
    labels[0, 3] = np.nan
    best = best_threshold(labels, scores)
    rated = ~np.isnan(labels)
    every = [error_free(labels, (scores >= t).astype(float)).mcc for t in (*np.unique(scores[rated]), math.inf)]
    assert best.result.mcc == pytest.approx(max(every), abs=1e-12)
    assert best.result == error_free(labels, (scores >= best.threshold).astype(float))
    clean, others = scores[rated & (labels == 1)], scores[rated & (labels == 0)]
    wins = [(a > b) + 0.5 * (a == b) for a in clean for b in others]
    assert best.auc == pytest.approx(np.mean(wins), abs=1e-12)
    assert math.isnan(best_threshold([[1.0, 1.0]], [[0.0, 1.0]]).auc)
