"""Translations without error: labels, MCC and threshold, against plain definitions; and the small model of them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.error_free import (
    ErrorFree,
    ErrorFreeModel,
    ScoredTranslation,
    best_threshold,
    cross_validated,
    error_free,
    gold_labels,
    read_error_free,
    unmarked,
    write_error_free,
)

SPAN = [ErrorSpan(0, 2, "minor")]


def test_a_translation_without_error_has_no_span_and_a_high_score() -> None:
    gold = [[100.0, 85.0, 84.9, 90.0, np.nan]]
    labels = gold_labels(gold, [[[(), (), (), SPAN, ()]], [[(), None, (), (), SPAN]]], 85)
    np.testing.assert_array_equal(labels, [[1, 1, 0, 0, np.nan]])
    np.testing.assert_array_equal(gold_labels(gold, (), 90), [[1, 0, 0, 1, np.nan]])
    np.testing.assert_array_equal(unmarked([[(), SPAN, None]]), [[1, 0, np.nan]])


def test_counts_and_measures_are_their_definitions() -> None:
    labels = np.array([[1, 1, 1, 0, 0, 0, 0, np.nan]])
    predicted = np.array([[1, 0, 1, 0, 0, 1, 0, 1]])
    result = error_free(labels, predicted)
    assert result == ErrorFree(2, 1, 1, 3)
    # MCC is Pearson's correlation of the two columns of 0 and 1.
    assert result.mcc == pytest.approx(np.corrcoef(labels[0, :7], predicted[0, :7])[0, 1], abs=1e-12)
    assert (result.precision, result.recall, result.f1) == (pytest.approx(2 / 3),) * 3
    assert result.accuracy == pytest.approx(5 / 7)
    wrong, none = error_free([[1, 0, 0]], [[0, 1, 0]]), error_free([[1, 0, 0]], [[0, 0, 0]])
    assert (wrong.precision, wrong.recall, wrong.f1) == (0.0, 0.0, 0.0)
    assert (none.mcc, none.precision, error_free([[0.0]], [[0.0]]).recall) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_threshold_is_the_best_and_the_area_that_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = (rng.random((3, 12)) < 0.3).astype(float)
    scores = np.round(labels + rng.normal(scale=1.0, size=labels.shape), 0)  # many ties
    labels[0, 3] = np.nan
    threshold, result, auc = best_threshold(labels, scores)
    rated = ~np.isnan(labels)
    every = [error_free(labels, (scores >= t).astype(float)).mcc for t in (*np.unique(scores[rated]), math.inf)]
    assert result.mcc == pytest.approx(max(every), abs=1e-12)
    assert result == error_free(labels, (scores >= threshold).astype(float))
    clean, others = scores[rated & (labels == 1)], scores[rated & (labels == 0)]
    wins = [(a > b) + 0.5 * (a == b) for a in clean for b in others]
    assert auc == pytest.approx(np.mean(wins), abs=1e-12)
    assert math.isnan(best_threshold([[1.0, 1.0]], [[0.0, 1.0]])[2])


def _data(count: int = 400) -> tuple[list[ScoredTranslation], list[bool]]:
    """Translations whose error grows with their length and falls with the score; the second pair has more errors."""
    rng = np.random.default_rng(0)
    judged, labels = [], []
    for number in range(count):
        lp, length, score = ("en-de", "en-zh")[number % 2], int(rng.integers(5, 200)), float(rng.uniform(0, 1))
        odds = 6 * score - 3 - 0.02 * (length - 100) - (1.5 if lp == "en-zh" else 0.0)
        clean = rng.uniform() < 1 / (1 + math.exp(-odds))
        marked = not clean and rng.uniform() < 0.3
        annotation = Annotation([ErrorSpan(0, 3, "major", None, 0.6)] if marked else ())
        judged.append(ScoredTranslation(score, annotation, length, lp, f"d{number // 8}"))
        labels.append(bool(clean))
    return judged, labels


def test_it_learns_what_scores_and_spans_alone_do_not_say() -> None:
    judged, labels = _data()
    validated, probabilities = cross_validated(judged, labels)
    tried = {one.name: one for one in validated}
    mcc = {name: one.result.mcc for name, one in tried.items() if one.result}
    assert mcc["never"] == 0
    assert mcc["model"] > max(mcc["score, threshold"] + 0.1, mcc["no span"])
    low, high = tried["model"].interval
    assert low < mcc["model"] < high
    assert set(tried["model"].by_pair) == {"en-de", "en-zh"}
    # Probabilities are what they say, where they were not learnt.
    high_ones = probabilities > 0.7
    assert np.mean(np.array(labels)[high_ones]) == pytest.approx(probabilities[high_ones].mean(), abs=0.1)


def test_weights_are_those_of_the_penalised_likelihood() -> None:
    """A plain reference: no step in any direction makes the likelihood better."""
    judged, labels = _data(120)
    model = ErrorFreeModel.fit(judged, labels)
    signals = [[one.signals[name] for name in model.weights] for one in judged]
    inputs = np.hstack([signals, [[one.lp == lp for lp in model.languages] for one in judged]])
    weights = np.array([*model.weights.values(), *model.languages.values()])
    scale = np.append(np.std(signals, axis=0), [1.0, 1.0])

    def loss(weights: np.ndarray) -> float:
        logits = inputs @ weights + model.bias
        return float(np.logaddexp(0, np.where(labels, -logits, logits)).sum() + ((weights * scale) ** 2).sum() / 2)

    for step in (*0.001 * np.eye(len(weights)), *-0.001 * np.eye(len(weights))):
        assert loss(weights + step / scale) > loss(weights)
    assert model.probabilities(judged) == pytest.approx(1 / (1 + np.exp(-(inputs @ weights + model.bias))))


def test_a_least_precision() -> None:
    judged, labels = _data(1000)
    clean, usual = (ErrorFreeModel.fit(judged, labels, precision=p).clean(judged) for p in (0.95, None))
    assert np.array(labels)[clean].mean() >= 0.95
    assert 0 < clean.sum() < usual.sum()
    with pytest.raises(InputError, match="no threshold reaches a precision of 1; the highest precision is 0"):
        ErrorFreeModel.fit([ScoredTranslation(0.5, None, 10)] * 4, [True, False, True, False], precision=1.0)


def test_a_score_that_does_not_reach_the_precision_leaves_the_model() -> None:
    judged, labels = _data(1000)
    same = [replace(one, score=0.5) for one in judged]
    tried = {one.name: one.result for one in cross_validated(same, labels, precision=0.7)[0]}
    model = tried["model"]
    assert tried["score, threshold"] is None
    assert model
    assert model.true_positives > 0


def test_files_and_messages(tmp_path: Path) -> None:
    judged, labels = _data(60)
    model = ErrorFreeModel.fit(judged, labels, learnt_on="60 translations")
    write_error_free(tmp_path / "e.json", model)
    assert read_error_free(tmp_path / "e.json") == model
    with pytest.raises(InputError, match=r"score -25 is out of range: the model was trained on scores from 0"):
        model.clean([ScoredTranslation(-25.0, Annotation(), 5)])
    bare = ScoredTranslation(0.5, None, 5)
    with pytest.raises(InputError, match="no span score: the error-free model needs a metric with error spans"):
        model.clean([bare])
    with pytest.raises(InputError, match="all 3 rated translations are error-free"):
        ErrorFreeModel.fit(judged[:3], [True] * 3)
    with pytest.raises(InputError, match="from one document"):
        cross_validated([bare, bare], [True, False])
    for change, message in (
        ({"kind": ""}, "x.json: not a file saved by `mbr-esd cal"),
        ({"weights": {"taste": 1}}, "train it again"),
    ):
        (tmp_path / "x.json").write_text(json.dumps({"kind": "error-free", **asdict(model), **change}))
        with pytest.raises(InputError, match=message):
            read_error_free(tmp_path / "x.json")
