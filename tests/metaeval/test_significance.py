"""PERM-BOTH, clusters, their average and the bootstrap: equal to mt-metrics-eval within Monte-Carlo error, and to plain
tests."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval import EarlyStop, Ranking, acc_eq, assign_ranks, average_ranking, perm_both, rank_metrics
from mbr_esd_metric.metaeval.ranking import rank_contest
from mbr_esd_metric.metaeval.significance import STATISTICS, UNITS, SpanContest, Units, paired_bootstrap, prepare
from mbr_esd_metric.metaeval.spa import pairwise_p_values, spa, spa_of_p_values
from mbr_esd_metric.metaeval.spans import SpanEvaluator, SpanScores, span_measure
from tests.helpers.annotations import matrix
from tests.helpers.metaeval_cases import Matrix, pair, plain_credits, real_cases

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "metaeval.json").read_text(encoding="utf-8"))
REAL = json.loads((FOLDER / "metaeval_real.json").read_text(encoding="utf-8"))
Statistic = Literal["spa", "acc_eq"]


def standard_errors(p: float, q: float, draws_p: int, draws_q: int) -> float:
    """The distance of two Monte-Carlo p-values in standard errors; half a draw is free."""
    pooled = (p * draws_p + q * draws_q) / (draws_p + draws_q)
    error = math.sqrt(max(pooled * (1 - pooled), 1 / (draws_p + draws_q)) * (1 / draws_p + 1 / draws_q))
    return max(0.0, abs(p - q) - 0.5 / min(draws_p, draws_q)) / error


def check_p_value(
    matrices: tuple[Matrix, Matrix, Matrix], statistic: Statistic, golden: dict[str, Any], k: int
) -> None:
    test, expected = perm_both(*matrices, statistic), golden[statistic]
    assert test.delta == pytest.approx(expected["delta"], abs=1e-3 if statistic == "spa" else 1e-12)
    # 48 comparisons at 3.9 standard errors: all pass with probability 0.995 if the tests are the same.
    assert standard_errors(test.p_value, expected["p_value"], 1000, k) < 3.9


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("number", range(len(GOLDEN["p_values"]["pairs"])))
def test_p_values_are_the_toolkits_within_monte_carlo_error(number: int, statistic: Statistic) -> None:
    check_p_value(pair(number), statistic, GOLDEN["p_values"]["pairs"][number], GOLDEN["p_values"]["k"])


@pytest.mark.parametrize("statistic", STATISTICS)
def test_p_values_of_real_raters_are_the_toolkits(mqm_folder: Path, statistic: Statistic) -> None:
    cases = {case.name: case for case in real_cases(mqm_folder)}
    for (a, b, gold), golden in zip(((1, 2, 3), (1, 3, 2), (2, 3, 1)), REAL["p_values"]["pairs"], strict=True):
        first, second = cases[f"rater {a} against {gold}"], cases[f"rater {b} against {gold}"]
        check_p_value((first.gold, first.metric, second.metric), statistic, golden, REAL["p_values"]["k"])


@pytest.mark.parametrize("rated", [1.0, 0.7])
def test_acc_eq_swaps_every_pair_of_systems_apart(rated: float) -> None:
    """Where ratings are missing, a pair weighs by its segment."""
    gold, a, b = pair(2, systems=5, segments=30)
    rng = np.random.default_rng(0)
    gold[rng.random(gold.shape) > rated] = np.nan
    pairs_a, pairs_b = (plain_credits(gold, metric, acc_eq(gold, metric).epsilon) for metric in (a, b))
    segments = len({segment for segment, _, _ in pairs_a})
    weighted = [(y[2] - x[2]) / (x[1] * segments) for x, y in zip(pairs_a, pairs_b, strict=True)]
    signs = rng.choice([-1.0, 1.0], size=(20_000, len(weighted)))
    plain = float((signs @ weighted >= sum(weighted) - 1e-12).mean())
    test = perm_both(gold, a, b, "acc_eq", k=20_000)
    assert test.delta == pytest.approx(sum(weighted), abs=1e-12)
    assert standard_errors(test.p_value, plain, 20_000, 20_000) < 4


def plain_perm_both_spa(gold: Matrix, a: Matrix, b: Matrix, k: int, seed: int) -> tuple[float, list[float]]:
    """The test draw by draw, with SPA itself."""
    gold_p = pairwise_p_values(gold)
    a, b = (np.where(np.isnan(gold), np.nan, scores) for scores in (a, b))
    a, b = ((scores - np.nanmean(scores)) / np.nanstd(scores) for scores in (a, b))

    def value(scores: Matrix) -> float:
        return spa_of_p_values(gold_p, pairwise_p_values(scores))

    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(k):
        swap = rng.random(gold.shape) < 0.5
        draws.append(value(np.where(swap, a, b)) - value(np.where(swap, b, a)))
    return value(b) - value(a), draws


@pytest.mark.parametrize("rated", [1.0, 0.6])
def test_spa_swaps_every_score_apart(rated: float) -> None:
    for number in (0, 2, 4):
        gold, a, b = pair(number, systems=5, segments=30)
        gold[1:][np.random.default_rng(number).random(gold[1:].shape) > rated] = np.nan
        delta, draws = plain_perm_both_spa(gold, a, b, 400, seed=1)
        test = perm_both(gold, a, b, k=2000, missing="pairs")
        assert test.delta == pytest.approx(delta, abs=1e-12)
        plain = float(np.mean([draw >= delta for draw in draws]))
        assert standard_errors(test.p_value, plain, 2000, 400) < 4
        # The whole null distribution has the same centre and width.
        assert abs(np.mean(draws) - test.draws.mean()) < 4 * np.std(draws) / math.sqrt(400)
        assert np.std(draws) == pytest.approx(test.draws.std(), rel=0.2)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_good_metric_beats_noise_and_silence_and_not_itself(statistic: Statistic) -> None:
    """mt-metrics-eval standardises a constant metric to NaN, and its p-value for SPA is 0 or 1 by accident."""
    gold, a, _ = pair(2)
    same = perm_both(gold, a, a, statistic)
    assert (same.p_value, same.delta) == (1.0, 0.0)
    zeros = np.zeros_like(gold)
    for bad in (np.random.default_rng(0).normal(size=gold.shape), zeros):
        assert perm_both(gold, bad, gold, statistic).p_value < 0.05
        assert perm_both(gold, gold, bad, statistic).p_value > 0.95
    assert perm_both(gold, zeros, a, statistic) == perm_both(gold, zeros + 0.3, a, statistic)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_early_stopping_looks_at_the_end_of_each_block(statistic: Statistic) -> None:
    gold, _, _ = pair(2)
    noise = np.random.default_rng(0).normal(size=gold.shape)
    for a, b, k, stop, ended in (
        (noise, gold, 1000, EarlyStop(), (100, 0.0)),
        (gold, noise, 1000, EarlyStop(block=40), (40, 1.0)),
        (noise, gold, 250, EarlyStop(low=0.0, high=1.0), (250, 0.0)),
    ):
        test = perm_both(gold, a, b, statistic, k, stop=stop)
        assert (len(test.draws), test.p_value) == ended


def test_arguments_are_checked() -> None:
    gold, a, b = pair(0)
    with pytest.raises(OptionError, match="did you mean 'acc_eq'"):
        perm_both(gold, a, b, "acceq")
    with pytest.raises(OptionError, match="at least one draw"):
        perm_both(gold, a, b, k=0)


def test_clusters_are_the_toolkits() -> None:
    for golden in GOLDEN["clusters"]:
        assert list(assign_ranks(np.array(golden["p_values"]))) == golden["ranks"]
    p_values = np.ones((4, 4))
    # Alpha itself is significant. Metric 3 is beaten by an earlier cluster alone.
    p_values[1, 2] = p_values[0, 3] = 0.05
    assert assign_ranks(p_values) == (1, 1, 2, 2)
    assert assign_ranks(p_values, np.nextafter(0.05, 0)) == (1, 1, 1, 1)
    assert assign_ranks(np.zeros((0, 0))) == ()


def test_the_average_of_tasks_is_the_toolkits() -> None:
    golden, rankings = GOLDEN["average"], []
    for task in golden["tasks"]:
        draws: Any = {tuple(names.split()): np.array(drawn) for names, drawn in task["draws"].items()}
        names, values = zip(*task["values"].items(), strict=True)
        rankings.append(Ranking(names, values, (1,) * len(names), np.zeros((len(names), len(names))), draws))
    mean = average_ranking(rankings)
    assert list(mean.names) == list(golden["values"])
    np.testing.assert_allclose(mean.values, list(golden["values"].values()), atol=1e-12)
    np.testing.assert_allclose(mean.p_values, golden["p_values"], atol=1e-12)
    assert list(mean.ranks) == golden["ranks"]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_ranking_is_its_single_tests(statistic: Statistic) -> None:
    gold, a, b = pair(4)
    metrics = {"b": b, "a": a, "copy of a": a, "gold": np.nan_to_num(gold)}
    ranking = rank_metrics(gold, metrics, statistic, k=200, seed=3, stop=None)
    # Equal values in the order of names.
    assert [name for name in ranking.names if name != "b"] == ["gold", "a", "copy of a"]
    test = perm_both(gold, metrics[ranking.names[3]], metrics["gold"], statistic, k=200, seed=3)
    assert ranking.p_values[0, 3] == test.p_value
    np.testing.assert_array_equal(ranking.draws["gold", ranking.names[3]], test.draws)
    assert ranking.ranks == assign_ranks(ranking.p_values)
    assert ranking.value("b") == (spa(gold, b) if statistic == "spa" else acc_eq(gold, b).accuracy)
    untested = rank_metrics(gold, metrics, statistic, k=0)
    assert (untested.ranks, untested.draws) == ((1, 2, 3, 4), {})
    assert average_ranking([untested, untested]).values == untested.values
    assert not np.array_equal(*(perm_both(gold, a, b, statistic, k=200, seed=seed).draws for seed in (3, 4)))


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(("exact", "missing"), [(False, 0), (True, 0), (False, 0.5), (True, 0.5)])
def test_all_pairs_at_once_are_the_single_tests(statistic: Statistic, exact: bool, missing: float) -> None:
    """The products that all pairs share are exact sums, so every draw is the same to the last bit."""
    rng = np.random.default_rng(3)
    gold = -rng.poisson(np.linspace(0.4, 2, 6)[:, None], (6, 70)).astype(float)
    metrics = {f"m{i}": np.rint(gold + rng.normal(0, 1 + 0.15 * i, gold.shape)) for i in range(5)}
    gold[rng.random(gold.shape) < missing] = np.nan
    contest = prepare(gold, metrics, statistic, "pairs", exact)
    pairs = list(itertools.combinations(metrics, 2))
    for stop in (None, EarlyStop(block=20, high=0.9)):
        done: list[int] = []
        together = contest.tests(pairs, 130, 0, stop, done.append)
        assert sum(done) == 130 * len(pairs)
        for a, b in pairs:
            alone = contest.tests([(a, b)], 130, 0, stop)[a, b]
            np.testing.assert_array_equal(together[a, b].draws, alone.draws)
            assert together[a, b] == alone
    assert len({len(test.draws) for test in together.values()}) > 1


SYSTEMS, SEGMENTS, LENGTH = 3, 14, 20
MEASURES = ("softf1", "f1", "mpp-corpus", "softdice-corpus", "f1-corpus", "f1-wmt25-corpus", "f1-corpus-recall")


@pytest.fixture(scope="module")
def scores() -> dict[str, SpanScores]:
    rng = np.random.default_rng(1)
    human, *others = (matrix(rng, SYSTEMS, SEGMENTS, LENGTH, most=2) for _ in range(4))
    rated: list[list[Any]] = [[*row] for row in human]
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
