"""Intervals of system differences: their coverage on made data, and what they say of N."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from mbr_esd_metric import Candidate, ErrorSpan, decide
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.comparison import SampledScore, SystemPair, compare, mean_score, sampled_score

TEXT = "0123456789"


def columns(errors: int, n: int) -> CandidateColumns:
    """n candidates, of which so many mark a major error."""
    marked = [ErrorSpan(0, 4, "major")]
    return CandidateColumns.of([Candidate(annotation=marked if i < errors else []) for i in range(n)])


def sampled(
    candidates: CandidateColumns, source: str, mt: str, options: DecisionOptions, n: int, rng: np.random.Generator
) -> SampledScore:
    decision = decide(candidates, mt, options, source=source)
    return sampled_score(decision, candidates, source, mt, options, n, rng)


def test_the_variance_of_an_expected_score_is_that_of_a_mean() -> None:
    options = DecisionOptions(score="expected")
    drawn = sampled(columns(4, 16), "s", TEXT, options, 4000, np.random.default_rng(1))
    # An error costs a fifth: p (1 - p) / (25 (N - 1))
    assert drawn == SampledScore(0.95, pytest.approx(0.25 * 0.75 / 15 / 25, rel=0.1))
    assert sampled(columns(1, 1), "s", TEXT, options, 10, np.random.default_rng(1)) == SampledScore(0.8, 0.0)


def test_a_stated_score_does_not_vary_with_the_candidates() -> None:
    """Not by rounding either, which would show an interval without a width."""
    options = DecisionOptions(score="given", format="tags")
    stated = CandidateColumns.of([Candidate(f"Das{tag}\n\nScore: -3.1") for tag in "=-+==-="])
    drawn = sampled(stated, "", "Das", options, 20, np.random.default_rng(1))
    assert drawn == SampledScore(pytest.approx(1 - 3.1 / 25), 0.0)


@pytest.mark.parametrize(("blank", "score"), [("worst", 0.0), ("perfect", 1.0)])
def test_no_candidate_decides_a_blank_translation(blank: str, score: float) -> None:
    """Nor is one drawn, so that the numbers for the segments behind it stay."""
    options, rng = DecisionOptions(blank=blank), np.random.default_rng(1)
    unread = CandidateColumns.of([Candidate("I see no error."), Candidate(annotation=[])])
    before = rng.bit_generator.state
    assert sampled(unread, "s", " ", options, 10, rng) == SampledScore(score, 0.0)
    assert (rng.bit_generator.state == before) == (blank != "perfect")
    # Without a source there is nothing that the translation lacks.
    assert sampled(unread, " ", " ", options, 10, rng).score == 1.0


def test_the_intervals_hold_what_they_promise() -> None:
    rng, held = np.random.default_rng(2), []
    for _ in range(300):
        segments, noise = rng.normal(0.3, 1.0, 60), rng.normal(0, 0.7, 60)
        pair = compare([SampledScore(0.0, 0.0)] * 60, [SampledScore(float(x), 0.49) for x in segments + noise])
        (low, high), (lowest, highest) = pair.sampling_interval, pair.interval
        held.append((low <= segments.mean() <= high, lowest <= 0.3 <= highest))
        assert 0 < pair.sampling_share < 1
    assert np.mean(held, axis=0) == pytest.approx([0.95, 0.95], abs=0.035)


@pytest.mark.parametrize("scores", [[1.0, 0.45], [1.0, 1.0, 0.98], [0.0, 0.0, 0.3], [0.2] * 5])
def test_the_interval_of_a_mean_passes_no_score(scores: list[float]) -> None:
    """Student's t would go up to 4.2 for the first of them."""
    mean = mean_score([SampledScore(score, 0.1) for score in scores])
    low, high = mean.interval
    assert min(scores) - 1e-12 <= low <= mean.mean <= high <= max(scores) + 1e-12
    assert 0 <= mean.sampling_interval[0] < mean.mean < mean.sampling_interval[1] <= 1


def test_the_interval_of_a_mean_is_that_of_a_bootstrap() -> None:
    scores = np.random.default_rng(3).beta(8, 2, 200)
    bootstrap = scipy.stats.bootstrap((scores,), np.mean, method="percentile", n_resamples=9999, random_state=1)
    mean = mean_score([SampledScore(float(score), 0.0) for score in scores])
    assert mean.interval == pytest.approx(tuple(bootstrap.confidence_interval), abs=0.003)
    with pytest.raises(InputError, match=r"at least two segments with a score \(got 1\)"):
        mean_score([SampledScore(1.0, 0.0)])


def test_the_verdict() -> None:
    def of(mean: float, spread: float, variance: float) -> str:
        values = [mean - spread, mean + spread] * 50
        return compare([SampledScore(0.0, variance)] * 100, [SampledScore(v, variance) for v in values]).verdict

    assert of(1.0, 0.5, 0.1) == "they differ; N is enough"
    assert of(0.0, 1.0, 0.01).startswith("no difference shown; N is enough")
    assert "N may be too small" in of(0.15, 1.0, 0.49)
    assert "more candidates show none either" in of(0.0, 1.0, 0.3)
    with pytest.raises(InputError, match="at least two segments"):
        compare([SampledScore(0.0, 0.0)], [SampledScore(0.0, 0.0)])


def differences(*values: float) -> SystemPair:
    return compare([SampledScore(0.5, 0.0)] * len(values), [SampledScore(0.5 + value, 0.0) for value in values])


@pytest.mark.parametrize("n", [2, 5, 13, 14, 60])
def test_the_p_value_is_that_of_the_permutation_test_of_signs(n: int) -> None:
    """Whole numbers tie often; equal segments change nothing."""
    rng = np.random.default_rng(n)
    for d in (rng.normal(0.02, 0.1, n), 1.0 * rng.integers(-3, 3, n)):
        pair = differences(*d.tolist(), 0.0, 0.0)
        test = scipy.stats.permutation_test(
            (d[d != 0],), np.sum, permutation_type="samples", n_resamples=50_000, random_state=1
        )
        exact = np.count_nonzero(d) <= 13
        assert pair.p_value == pytest.approx(test.pvalue, **({"rel": 1e-9} if exact else {"abs": 0.02}))
        assert pair.p_value == differences(*d.tolist()).p_value
    assert differences(0.0, 0.0).p_value == 1.0


def test_one_much_worse_segment_makes_a_difference_more_certain() -> None:
    """Six segments lose a little, and one everything: the t-test is less sure of the seven than of the six."""
    six, seven = [-0.04] * 6 + [0.0] * 33, [-0.04] * 6 + [0.0] * 33 + [-1.0]
    assert scipy.stats.ttest_1samp(six, 0).pvalue < 0.05 < 0.2 < scipy.stats.ttest_1samp(seven, 0).pvalue
    assert (differences(*six).p_value, differences(*seven).p_value) == (2 / 64, 2 / 128)
    assert differences(*seven).differ


def test_the_interval_of_a_difference_is_that_of_a_bootstrap() -> None:
    d = np.random.default_rng(4).normal(0.02, 0.1, 200)
    bootstrap = scipy.stats.bootstrap((d,), np.mean, method="percentile", n_resamples=9999, random_state=1)
    assert differences(*d.tolist()).interval == pytest.approx(tuple(bootstrap.confidence_interval), abs=0.003)
