"""Curves: each point is the measure of the spans that are left, and the area is average precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval import evaluate_spans
from mbr_esd_metric.metaeval.evaluation import precision_recall_curve
from mbr_esd_metric.metaeval.span_measures import expanded
from mbr_esd_metric.metaeval.spans import confidence_of
from tests.helpers.annotations import matrix

LENGTH = 40


@pytest.mark.parametrize("measure", ["f1-corpus", "f1-wmt25-corpus", "mpp-corpus", "softdice-corpus"])
@pytest.mark.parametrize("raters", ["mean", "best"])
def test_each_point_is_an_evaluation_of_what_is_left(measure: str, raters: str) -> None:
    rng = np.random.default_rng(5)
    predicted = matrix(rng, 3, 8, LENGTH, sure=0.9)  # a span without a confidence is certain
    human = [matrix(rng, 3, 8, LENGTH) for _ in range(2)]
    lengths = np.full((3, 8), LENGTH)
    curve = precision_recall_curve(predicted, human, lengths, measure, raters)  # type: ignore[arg-type]
    assert [point.threshold for point in curve.points[:3]] == [math.inf, 1.0, 0.9]
    assert (curve.points[0].precision, curve.points[0].recall) == (1.0, 0.0)
    for point in curve.points:
        left = [[Annotation(s for s in a if confidence_of(s) >= point.threshold) for a in row] for row in predicted]
        names = expanded([f"{measure}-parts"]) if raters == "mean" else (measure,)
        values = evaluate_spans(left, human, lengths, names, raters).values  # type: ignore[arg-type]
        assert point.value == pytest.approx(values[measure], abs=1e-12)
        if raters == "mean":  # else each part chooses the rater that suits it
            assert point.precision == pytest.approx(values[f"{measure}-precision"], abs=1e-12)
            assert point.recall == pytest.approx(values[f"{measure}-recall"], abs=1e-12)
    assert curve.best.value == max(point.value for point in curve.points)


def average_precision(positive: list[bool], scores: list[float]) -> float:
    """By definition: precision at each threshold times the recall that it adds."""
    area = recall = 0.0
    for threshold in sorted(set(scores), reverse=True):
        predicted = [p for p, s in zip(positive, scores, strict=True) if s >= threshold]
        now = sum(predicted) / sum(positive)
        area += (now - recall) * sum(predicted) / len(predicted)
        recall = now
    return area


def test_area_is_average_precision_where_each_character_is_a_span_of_one_severity() -> None:
    rng = np.random.default_rng(6)
    scores = np.round(rng.random((2, 5, LENGTH)), 1)
    positive = rng.random((2, 5, LENGTH)) < 0.3
    predicted = [
        [Annotation(ErrorSpan(i, i + 1, "major", confidence=float(c)) for i, c in enumerate(cell)) for cell in row]
        for row in scores
    ]
    human = [
        [Annotation(ErrorSpan(int(i), int(i) + 1, "major") for i in np.flatnonzero(cell)) for cell in row]
        for row in positive
    ]
    curve = precision_recall_curve(predicted, [human], np.full((2, 5), LENGTH))
    assert curve.area == pytest.approx(average_precision(positive.ravel().tolist(), scores.ravel().tolist()), abs=1e-12)


def test_silence_has_no_area() -> None:
    curve = precision_recall_curve([[()]], [[[[ErrorSpan(0, 4, "minor")]]]], [[LENGTH]])
    assert (len(curve.points), curve.area, curve.best.value) == (1, 0.0, 0.0)


def test_what_cannot_be_drawn_is_refused() -> None:
    human = [[[[ErrorSpan(0, 4, "minor")]]]]
    with pytest.raises(OptionError, match="corpus"):
        precision_recall_curve([[()]], human, [[LENGTH]], "softf1")
    with pytest.raises(InputError, match="no prediction"):
        precision_recall_curve([[None]], human, [[LENGTH]])
