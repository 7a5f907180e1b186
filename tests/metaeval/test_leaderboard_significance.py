"""Clusters and intervals of span measures, against a plain permutation test and a plain bootstrap."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from mbr_esd_metric import Annotation
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval.leaderboard import SpanContest, paired_bootstrap
from mbr_esd_metric.metaeval.matrices import percentile_interval
from mbr_esd_metric.metaeval.significance import assign_ranks, rank_contest
from mbr_esd_metric.metaeval.span_measures import span_measure
from mbr_esd_metric.metaeval.spans import SpanEvaluator, SpanScores
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
    sums = []
    for j in range(SEGMENTS):
        cells = [one.statistics[measure][i, j] for i in range(SYSTEMS)]
        rated = [cell for cell in cells if not np.isnan(cell).any()]
        if rated:
            sums.append(np.sum(rated, axis=0))
    return sums


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


def test_instances_are_drawn_as_in_the_paper(scores: dict[str, SpanScores]) -> None:
    resamples = paired_bootstrap(scores, "softf1", 20_000, 1, "instance")
    values = {name: one.statistics["softf1"][..., 0] for name, one in scores.items()}
    gains = (values["good"] - values["poor"])[~np.isnan(values["good"])]
    deltas = gains[np.random.default_rng(0).integers(0, len(gains), (20_000, len(gains)))].mean(axis=1)
    assert percentile_interval(resamples["good"] - resamples["poor"]) == pytest.approx(
        np.quantile(deltas, [0.025, 0.975]), abs=0.01
    )
    with pytest.raises(OptionError, match="at least one resample"):
        paired_bootstrap(scores, "softf1", 0)


@pytest.mark.parametrize("measure", ["softf1", "mpp-corpus", "f1-corpus"])
def test_resamples_are_those_of_a_plain_bootstrap(scores: dict[str, SpanScores], measure: str) -> None:
    k, seed = 200, 3
    resamples = paired_bootstrap(scores, measure, k, seed)
    sums = {name: plain_sums(one, measure) for name, one in scores.items()}
    segments = len(sums["good"])
    value = span_measure(measure).value
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[float]] = {name: [] for name in scores}
    for times in rng.multinomial(segments, np.full(segments, 1 / segments), size=k):
        for name, rows in sums.items():
            drawn[name].append(float(value(np.sum([n * row for n, row in zip(times, rows, strict=True)], axis=0))))
    for name, values in drawn.items():
        assert resamples[name] == pytest.approx(values, abs=1e-12)
