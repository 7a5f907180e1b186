"""Calibration against plain definitions, and recalibration on what it was not learnt on."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.core.recalibration import Recalibration
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.calibration import (
    CalibrationLevel,
    Predicted,
    calibration_error,
    predicted_spans,
    reliability,
    threshold_curve,
)

LENGTH = 10


def span(start: int, end: int, confidence: float | None = None) -> ErrorSpan:
    return ErrorSpan(start, end, "minor", confidence=confidence)


#: One system, three segments; the last one is unrated.
PREDICTED = [[Annotation([span(0, 4, 0.9), span(6, 8, 0.2)]), Annotation([span(2, 3, 0.6)]), None]]
ONE = [[Annotation([span(2, 6)]), Annotation(), None]]
OTHER = [[Annotation([span(0, 4)]), None, None]]
LENGTHS = [[LENGTH, LENGTH, LENGTH]]


def test_a_span_is_confirmed_by_the_share_of_its_characters_and_raters() -> None:
    spans = predicted_spans(PREDICTED, [ONE, OTHER], LENGTHS)
    assert spans.confidence.tolist() == [0.9, 0.2, 0.6]
    assert spans.confirmed.tolist() == [(0.5 + 1.0) / 2, 0.0, 0.0]
    assert spans.segment.tolist() == [0, 0, 1]
    # Characters 2 to 6 of the one rater, two of them found, and 0 to 4 of the other; a span weighs 1 over its raters.
    assert sorted(spans.reached.tolist()) == sorted([0.9, 0.9, -1, -1, *[0.9] * 4])
    assert spans.weight.sum() == pytest.approx(1.0)


def test_characters() -> None:
    spans = predicted_spans(PREDICTED, [ONE, OTHER], LENGTHS, "character")
    assert len(spans) == 7
    by_place = dict(zip([0, 1, 2, 3, 6, 7], spans.confirmed[:6].tolist(), strict=True))
    assert by_place == {0: 0.5, 1: 0.5, 2: 1.0, 3: 1.0, 6: 0.0, 7: 0.0}
    curve = threshold_curve(spans)
    points = np.stack([curve.threshold, curve.precision, curve.recall, curve.coverage])
    rows = [[0.9, 0.6, 0.2], [3 / 4, 3 / 5, 3 / 7], [3 / 4] * 3, [4 / 7, 5 / 7, 1]]
    np.testing.assert_allclose(points, rows, atol=1e-12)
    assert curve.average_precision == pytest.approx(0.75 * 0.75)
    assert curve.mean_risk == pytest.approx(4 / 7 * 1 / 4 + 1 / 7 * 2 / 5 + 2 / 7 * 4 / 7)
    assert curve.best_f1 == pytest.approx(0.75)


@pytest.mark.parametrize(("level", "expected"), [("span", [0.9, 0.0]), ("character", [0.9] * 4 + [0.0] * 2)])
def test_a_span_of_no_confidence_at_all_is_a_predicted_span(level: CalibrationLevel, expected: list[float]) -> None:
    predicted = [[Annotation([span(0, 4, 0.9), span(6, 8, 0.0)])]]
    spans = predicted_spans(predicted, [[[Annotation([span(7, 9)])]]], [[LENGTH]], level)
    assert spans.confidence.tolist() == expected
    # Precision and recall may be well below one half.
    right = {"span": 1 / 4, "character": 1 / 6}[level]
    assert threshold_curve(spans).best_f1 == pytest.approx(2 * right * 0.5 / (right + 0.5))


def test_the_calibration_error_is_the_mean_gap_of_the_bins() -> None:
    none = np.zeros(0)
    confidence, confirmed = np.array([0.05, 0.1, 0.15, 0.95, 1.0]), np.array([0.0, 0.0, 1.0, 1.0, 0.0])
    predicted = Predicted(confidence, confirmed, np.arange(5), none, none)
    gaps = [1 * abs(0.05 - 0), 2 * abs(0.125 - 0.5), 2 * abs(0.975 - 0.5)]
    assert calibration_error(predicted) == pytest.approx(sum(gaps) / 5)
    assert [b.count for b in reliability(predicted)] == [1, 2, 2]
    assert math.isnan(calibration_error(Predicted(none, none, np.arange(0), none, none)))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_learnt_is_the_isotonic_regression(seed: int) -> None:
    rng, levels = random.Random(seed), [0.1, 0.3, 0.5, 0.7, 0.9]
    x = np.array([*levels, *rng.choices(levels, k=rng.randint(0, 12))])
    y = np.array([rng.random() for _ in x])
    fitted = Recalibration.fit(x, y).of(levels)

    def mean(low: float, high: float) -> float:
        return float(y[(low <= x) & (x <= high)].mean())

    # Its minimax formula (Barlow et al. 1972): the max over a <= i of the min over b >= i of the mean. It never falls.
    for i in range(5):
        assert fitted[i] == pytest.approx(max(min(mean(a, b) for b in levels[i:]) for a in levels[: i + 1]))


def test_a_recalibration_changes_confidences_alone() -> None:
    learnt = Recalibration.fit([0.2, 0.4, 0.8], [0.5, 0.1, 0.9], learnt_on="three")
    assert Recalibration.from_json(learnt.to_json()) == learnt
    before = Annotation([span(0, 2, 0.8), ErrorSpan(4, 6, "major", "accuracy"), span(7, 9, 0.3)])
    after = learnt.annotation(before)
    assert [s.category for s in after] == [None, "accuracy", None]
    assert [s.confidence for s in after] == [pytest.approx(0.9), None, pytest.approx(0.3)]
    for wrong in ({}, {"recalibration": "isotonic", "confidence": [0.2], "confirmed": [2.0]}, 3):
        with pytest.raises(InputError):
            Recalibration.from_json(wrong)
