"""A score learnt from people's: monotone, found by least squares, and written down."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.core.candidate import Candidate, ExpectedSpans
from mbr_esd_metric.core.learnt_score import FEATURES, LearntScore, features, mean_expected
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.learnt_file import read_learnt, write_learnt

ONE = ExpectedSpans(0.5, 0.25, 0.125, 16, 32.0)
SOME = LearntScore(0.1, (0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.05), "a test")


def drawn(count: int, seed: int = 0) -> list[ExpectedSpans]:
    rng = np.random.default_rng(seed)
    spans = rng.exponential(0.5, (count, 3))
    words, surprisal = rng.integers(4, 60, count), rng.exponential(2.0, count)
    return [
        ExpectedSpans(*map(float, row), int(n), float(s * n)) for row, n, s in zip(spans, words, surprisal, strict=True)
    ]


def test_the_equation() -> None:
    assert features(ONE) == [0.5, 0.25, 0.125, 0.125, 0.0625, 0.03125, 1 / 32, 1 / 64, 1 / 128, 2.0]
    z = 0.1 + sum(c * phi for c, phi in zip(SOME.weights, features(ONE), strict=True))
    assert SOME.of(ONE) == pytest.approx(1 - math.exp(z))
    assert SOME.of(replace(ONE, major=500.0)) == -25


@pytest.mark.parametrize("more", ["minor", "major", "missing", "surprisal"])
def test_more_errors_never_raise_the_score(more: str) -> None:
    learnt = LearntScore.fit(drawn(200), -np.random.default_rng(1).exponential(2.0, 200))
    for one in drawn(50, seed=2):
        assert learnt.of(replace(one, **{more: getattr(one, more) + 1.0})) <= learnt.of(one)


def test_what_was_learnt_is_the_minimum() -> None:
    """No small change of any coefficient that stays at least 0 lowers the sum of squares."""
    known, truth = drawn(300), LearntScore(0.05, (0.3, 0.0, 0.2, 0.0, 0.9, 0.0, 0.0, 0.0, 0.0, 0.1))
    noise = np.random.default_rng(3).normal(0, 0.3, 300)
    gold = np.minimum(0.0, np.array([truth.of(one) for one in known]) + noise)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, 300)
    learnt = LearntScore.fit(known, gold, weight)
    phi, w = np.array([features(one) for one in known]), weight / weight.sum()
    scale = np.sqrt(w @ (phi - w @ phi) ** 2)

    def loss(c: list[float]) -> float:
        z = c[0] + phi @ np.array(c[1:])
        return float(w @ (z - np.log1p(-gold)) ** 2 + 1e-3 * ((np.array(c[1:]) * scale) ** 2).sum())

    best = [learnt.intercept, *learnt.weights]
    for k in range(len(best)):
        for step in (1e-4, -1e-4):
            other = list(best)
            other[k] = max(0.0, other[k] + step)
            assert loss(other) >= loss(best) - 1e-9
    found = [learnt.of(one) for one in known]
    assert np.corrcoef(found, [truth.of(one) for one in known])[0, 1] > 0.98


def test_a_decision_takes_the_mean_over_its_candidates(tmp_path: Path) -> None:
    other = replace(ONE, major=1.0)
    candidates = [
        Candidate(annotation=[], expected=ONE),
        Candidate(annotation=[ErrorSpan(0, 1, "major")], expected=other),
    ]
    found = decide(candidates, "a b", score=SOME)
    assert found.score == pytest.approx((SOME.of(ONE) + SOME.of(other)) / 2)
    path = tmp_path / "score.json"
    write_learnt(path, SOME)
    assert read_learnt(LearntScore, path) == SOME
    assert decide(candidates, "a b", score=str(path)).score == found.score
    assert DecisionOptions(score=str(path)).described()["score"] == str(SOME)
    assert str(SOME) != str(replace(SOME, intercept=0.2))
    assert mean_expected([ONE, other]) == replace(ONE, major=0.625)


def test_what_is_no_learnt_score_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "score.json"
    path.write_text('{"score": "learnt"}')
    with pytest.raises(InputError, match=r"score\.json: this is no learnt score; `mbr-esd calibrate --score`"):
        DecisionOptions(score=str(path))
    with pytest.raises(InputError, match="none.json: no learnt score can be read"):
        DecisionOptions(score=str(tmp_path / "none.json"))
    with pytest.raises(OptionError, match="conditional"):
        DecisionOptions(score="conditonal")
    with pytest.raises(InputError, match="numbers from 0"):
        LearntScore(0.0, (-1.0,) * len(FEATURES))
    with pytest.raises(InputError, match="30 translations or more, and there are 3"):
        LearntScore.fit(drawn(3), [0.0] * 3)
    with pytest.raises(InputError, match="how many words"):
        SOME.of(ExpectedSpans(1.0, 0.0))
    with pytest.raises(InputError, match="at most 0"):
        LearntScore.fit(drawn(40), [1.0] * 40)
