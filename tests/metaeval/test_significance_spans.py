"""Clusters and intervals of span measures, against a plain permutation test and a plain bootstrap."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from mbr_esd_metric import Annotation
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval.significance import UNITS, SpanContest, Units, assign_ranks, paired_bootstrap, rank_contest
from mbr_esd_metric.metaeval.spans import SpanEvaluator, SpanScores, span_measure
from tests.helpers.annotations import matrix

SYSTEMS, SEGMENTS, LENGTH = 3, 14, 20
MEASURES = ("softf1", "f1", "mpp-corpus", "softdice-corpus", "f1-corpus", "f1-wmt25-corpus", "f1-corpus-recall")


@pytest.fixture(scope="module")
def scores() -> dict[str, SpanScores]:
    rng = np.random.default_rng(1)
    human, *others = (matrix(rng, SYSTEMS, SEGMENTS, LENGTH, most=2) for _ in range(4))
    rated: list[list[Annotation | None]] = [[*row] for row in human]
    rated[0][2] = rated[2][5] = None
    for row in rated:
        row[7] = None  # nobody rated this segment
    evaluator = SpanEvaluator([rated], np.full((SYSTEMS, SEGMENTS), LENGTH), MEASURES)
    scores = {}
    for name, share, other in zip(("good", "fair", "poor"), (0.6, 0.6, 0.0), others, strict=True):
        pairs = [list(zip(*rows, strict=True)) for rows in zip(human, other, strict=True)]
        scores[name] = evaluator.evaluate([[a if rng.random() < share else b for a, b in row] for row in pairs])
    return scores


def plain_sums(one: SpanScores, measure: str) -> list[npt.NDArray[np.float64]]:
    """The statistics of each rated segment, added up over the systems."""
    cells = [[cell for cell in column if not np.isnan(cell).any()] for column in one.statistics[measure].swapaxes(0, 1)]
    return [np.sum(rated, axis=0) for rated in cells if rated]


def heads(k: int, seed: int, segments: int) -> npt.NDArray[np.bool_]:
    """The coins of the draws: the bits of the generator's words, lowest byte first."""
    rng = np.random.default_rng(seed)
    words = [int(rng.integers(0, 1 << 64, dtype=np.uint64)).to_bytes(8, "little") for _ in range(k)]
    return np.array([[word[at // 8] >> (7 - at % 8) & 1 for at in range(segments)] for word in words], dtype=np.bool_)


@pytest.mark.parametrize("measure", MEASURES)
def test_p_values_are_those_of_a_plain_permutation_test(scores: dict[str, SpanScores], measure: str) -> None:
    k, seed = 300, 5
    ranking = rank_contest(SpanContest(scores, measure), k, seed)
    value = span_measure(measure).value
    for (i, better), (j, worse) in itertools.combinations(enumerate(ranking.names), 2):
        a, b = plain_sums(scores[worse], measure), plain_sums(scores[better], measure)
        lead = float(value(np.sum(b, axis=0)) - value(np.sum(a, axis=0)))
        assert lead == pytest.approx(ranking.values[i] - ranking.values[j], abs=1e-12)
        reached = 0
        for coins in heads(k, seed, len(a)):
            drawn_a = np.sum([y if swap else x for x, y, swap in zip(a, b, coins, strict=True)], axis=0)
            drawn_b = np.sum([x if swap else y for x, y, swap in zip(a, b, coins, strict=True)], axis=0)
            reached += float(value(drawn_b) - value(drawn_a)) >= lead - 1e-12
        assert ranking.p_values[i, j] == pytest.approx(reached / k, abs=1e-12)
    assert ranking.ranks == assign_ranks(ranking.p_values)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("measure", ["softf1", "mpp-corpus", "f1-corpus"])
def test_resamples_are_those_of_a_plain_bootstrap(scores: dict[str, SpanScores], measure: str, units: Units) -> None:
    """Of segments, or of translations as in the paper."""
    value, counts = span_measure(measure).value, np.random.default_rng(3)
    sums = {name: plain_sums(one, measure) for name, one in scores.items()}
    if units == "instance":
        every = {name: one.statistics[measure].reshape(SYSTEMS * SEGMENTS, -1) for name, one in scores.items()}
        sums = {name: [row for row in rows if not np.isnan(row).any()] for name, rows in every.items()}
    count = len(sums["good"])
    drawn = counts.multinomial(count, np.full(count, 1 / count), size=200)
    resamples = paired_bootstrap(scores, measure, 200, 3, units)
    for name, rows in sums.items():
        plain = [float(value(np.sum([n * row for n, row in zip(times, rows, strict=True)], axis=0))) for times in drawn]
        assert resamples[name] == pytest.approx(plain, abs=1e-12)
    with pytest.raises(OptionError, match="at least one resample"):
        paired_bootstrap(scores, measure, 0)
