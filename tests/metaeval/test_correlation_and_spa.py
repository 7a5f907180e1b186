"""Correlations, SPA and acc_eq: equal to mt-metrics-eval's stored numbers, to plain definitions and to SciPy, on ties,
missing gold and constant metrics; exact SPA to all signs."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval import acc_eq, spa
from mbr_esd_metric.metaeval.correlation import (
    COEFFICIENTS,
    GROUPINGS,
    Coefficient,
    correlation,
    pairwise_accuracy,
    system_correlation,
    system_means,
)
from mbr_esd_metric.metaeval.spa import exact_p, exact_p_values
from tests.helpers.metaeval_cases import Case, Matrix, cases, plain_credits, real_cases

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "metaeval.json").read_text(encoding="utf-8"))
REAL = json.loads((FOLDER / "metaeval_real.json").read_text(encoding="utf-8"))
CORRELATIONS = json.loads((FOLDER / "correlations.json").read_text(encoding="utf-8"))


def exactly(value: float) -> object:
    return pytest.approx(value, rel=0, abs=1e-12)


def plain_spa(gold: Matrix, metric: Matrix) -> float:
    """The definition, pair by pair and permutation by permutation; float32 sums as they come."""
    keep = ~np.isnan(gold).any(axis=0)
    systems, segments = len(gold), int(keep.sum())
    drawn = np.random.default_rng(4).random(size=(1000, segments), dtype=np.float32)
    signs = np.where(np.rint(drawn) == 1, 1.0, -1.0)
    errors = []
    for i, j in itertools.combinations(range(systems), 2):
        p_values = []
        for scores in (gold[:, keep], metric[:, keep]):
            lead = scores[i] - scores[j]
            p_values.append(sum(float((sign * lead).sum()) >= float(lead.sum()) for sign in signs) / 1000)
        errors.append(abs(p_values[0] - p_values[1]))
    return 1 - sum(errors) / len(errors)


def plain_accuracy(gold: Matrix, metric: Matrix, epsilon: float) -> float:
    """Mean over segments of the share of pairs with a credit."""
    rows = plain_credits(gold, metric, epsilon)
    return sum(credit / pairs for _, pairs, credit in rows) / len({segment for segment, _, _ in rows})


def plain_acc_eq(gold: Matrix, metric: Matrix) -> float:
    """The best accuracy over every threshold that could matter."""
    gaps = {abs(a - b) for column in metric.T for a, b in itertools.combinations(column, 2)}
    return max(plain_accuracy(gold, metric, epsilon) for epsilon in {0.0, *gaps})


def check_numbers(case: Case, golden: dict[str, float]) -> None:
    for coefficient, by in itertools.product(COEFFICIENTS, GROUPINGS):
        expected = CORRELATIONS["correlations"][case.name][f"{coefficient} {by}"]
        assert correlation(case.gold, case.metric, coefficient, by) == exactly(expected)
    agree, pairs = CORRELATIONS["agreement"][case.name]
    means = [system_means(np.where(np.isnan(case.gold), np.nan, scores)) for scores in (case.gold, case.metric)]
    assert pairwise_accuracy([means]) == exactly(agree / pairs)
    result = acc_eq(case.gold, case.metric)
    assert result.accuracy == exactly(golden["accuracy"])
    assert plain_accuracy(case.gold, case.metric, result.epsilon) == pytest.approx(result.accuracy, abs=1e-12)
    # Thresholds that are equally good differ in the last bits of a float sum, which Python 3.12 adds up otherwise.
    golden_accuracy = plain_accuracy(case.gold, case.metric, golden["epsilon"])
    assert result.epsilon == golden["epsilon"] or golden_accuracy == pytest.approx(result.accuracy, abs=1e-12)
    assert spa(case.gold, case.metric) == exactly(golden["spa"])


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_numbers_are_the_toolkits(case: Case) -> None:
    check_numbers(case, GOLDEN["statistics"][case.name])


def test_numbers_on_real_annotations_are_the_toolkits(mqm_folder: Path) -> None:
    for case in real_cases(mqm_folder):
        check_numbers(case, REAL["statistics"][case.name])


@st.composite
def score_matrices(draw: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Gold with unrated columns, and a metric."""
    shape = draw(st.tuples(st.integers(2, 4), st.integers(1, 6)))
    # Multiples of a half: sums are exact in every order, so that a tie is a tie in any arithmetic.
    scores = hnp.arrays(np.float64, shape, elements=st.integers(-8, 0).map(lambda n: n / 2))
    gold, metric, missing = draw(scores), draw(scores), draw(hnp.arrays(np.bool_, shape[1]))
    return gold if missing.all() else np.where(missing, np.nan, gold), metric


@settings(max_examples=25, deadline=None)
@given(score_matrices())
def test_spa_is_its_definition(scores: tuple[Matrix, Matrix]) -> None:
    assert spa(*scores) == pytest.approx(plain_spa(*scores), abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(score_matrices())
def test_acc_eq_is_its_definition(scores: tuple[Matrix, Matrix]) -> None:
    gold, metric = scores
    assert acc_eq(gold, metric).accuracy == pytest.approx(plain_acc_eq(gold, metric), abs=1e-12)


@pytest.mark.parametrize("statistic", [spa, acc_eq])
def test_none_is_unrated_and_unrated_metric_scores_may_be_missing(statistic: Any) -> None:
    gold, metric = [[-1.0, None, -3.0], [0.0, None, -2.0]], [[0.1, None, 0.3], [0.2, math.nan, 0.9]]
    assert statistic(gold, metric) == statistic([[-1.0, -3.0], [0.0, -2.0]], [[0.1, 0.3], [0.2, 0.9]])


def test_each_pair_of_systems_is_compared_on_the_segments_that_both_have() -> None:
    gold, metric = [[-1.0, -2.0, -3.0], [0.0, np.nan, -4.0]], [[0.3, 0.1, 0.2], [0.5, 0.6, 0.1]]
    with pytest.raises(InputError, match=r"system 1 has 3 rated segments and system 2 has 2.*missing='pairs'"):
        spa(gold, metric)
    with pytest.raises(OptionError, match="toolkit"):
        spa(gold, metric, missing="tolkit")  # type: ignore[arg-type]
    apart = [[-1.0, -2.0, np.nan], [0.0, np.nan, -4.0]]  # as many each, on different segments
    assert spa(apart, metric) != spa(apart, metric, missing="pairs") == spa([[-1.0], [0.0]], [[0.3], [0.5]])
    never_together = [[0.0, np.nan], [np.nan, 0.0]]
    with pytest.raises(InputError, match="no segment is rated for two systems"):
        spa(never_together, never_together, missing="pairs")
    with pytest.raises(InputError, match="no pair"):
        acc_eq(never_together, never_together)


@pytest.mark.parametrize("exact", [False, True])
def test_spa_of_a_contrastive_campaign(exact: bool) -> None:
    """Every segment is rated for two or three of six systems, so none for all; two systems never meet."""
    rng = np.random.default_rng(3)
    complete = -rng.poisson(np.linspace(0.5, 3, 6)[:, None], (6, 120)).astype(float)
    gold = np.full(complete.shape, np.nan)
    for segment in range(120):
        systems = rng.choice(6, 2 + segment % 2, replace=False)
        if not {0, 5} <= {*systems.tolist()}:
            gold[systems, segment] = complete[systems, segment]
    metric = complete + rng.normal(0, 2, complete.shape)
    errors = []
    for i, j in itertools.combinations(range(6), 2):
        both = ~np.isnan(gold[[i, j]]).any(axis=0)
        assert both.any() == ((i, j) != (0, 5))
        if both.any():
            errors.append(1 - spa(gold[[i, j]][:, both], metric[[i, j]][:, both], exact=exact))
    # The 1000 permutations are others where there are other segments beside those of the pair.
    near = pytest.approx(1 - np.mean(errors), abs=1e-12 if exact else 0.01)
    assert spa(gold, metric, missing="pairs", exact=exact) == near


@pytest.mark.parametrize(
    ("gold", "metric", "message"),
    [
        ([[0.0, 1.0]], [[0.0, 1.0]], "only 1 system has gold"),
        ([0.0, 1.0], [0.0, 1.0], "1 dimension"),
        ([[0.0], [1.0]], [[0.0, 1.0], [1.0, 2.0]], "metric is 2 x 2 and gold is 2 x 1"),
        ([[0.0, 1.0], [1.0, 2.0]], [[0.0, math.nan], [1.0, 2.0]], "metric has no finite score for system 1, segment 2"),
        ([[math.nan], [math.nan]], [[0.0], [0.0]], "contains no ratings"),
        ([[math.inf], [0.0]], [[0.0], [0.0]], "gold is infinite at system 1, segment 1"),
        ([["a"], ["b"]], [[0.0], [0.0]], "gold is not a matrix of numbers"),
    ],
)
@pytest.mark.parametrize("statistic", [spa, acc_eq])
def test_matrices_that_do_not_fit_are_refused(statistic: Any, gold: Any, metric: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        statistic(gold, metric)


def test_spa_refuses_what_32_bits_cannot_hold() -> None:
    gold = np.random.default_rng(0).normal(size=(3, 9))
    assert spa(gold, gold * 2.0**100) == pytest.approx(1, abs=1e-12)
    with pytest.raises(InputError, match="metric has scores that add up to .*; scale the scores"):
        spa(gold, np.where(gold > 0, 3e38, gold), exact=True)


KINDS = ("whole", "tenths", "thirds", "real", "few values", "sparse", "constant")


def scores_of(kind: str, systems: int, segments: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    whole = -rng.poisson(rng.uniform(0.2, 2, (systems, 1)), (systems, segments)).astype(float)
    made = {
        "whole": whole,
        "tenths": whole - 0.1 * rng.integers(0, 4, whole.shape),
        "thirds": whole / 3,
        "real": whole + rng.normal(size=whole.shape),
        "few values": np.where(whole < -1, -0.7312, np.where(whole < 0, -0.1, 0.0)),
        "sparse": np.where(rng.random(whole.shape) < 0.2, rng.normal(size=whole.shape), 0.0),
        "constant": np.full(whole.shape, -1.5),
    }
    return made[kind]


def share_of_all_signs(d: np.ndarray) -> float:
    """Of all combinations of the signs: the sums of one half of the differences beside the sorted ones of the other."""
    first, second = (np.array([0.0]), np.array([0.0]))
    for one, other in itertools.zip_longest(d[::2], d[1::2], fillvalue=0.0):
        first, second = np.concatenate([first + one, first - one]), np.concatenate([second + other, second - other])
    rest, second = np.sort(d.sum() - first), np.sort(second)
    reached = np.searchsorted(second, rest - 1e-9) + np.searchsorted(second, rest + 1e-9)
    return float(1 - reached.mean() / (2 * len(second)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("segments", "seed"), [(12, 0), (12, 1), (12, 2), (34, 1)])
def test_p_values_are_those_of_all_signs_and_the_other_order_is_the_complement(
    kind: str, segments: int, seed: int
) -> None:
    scores = scores_of(kind, 3, segments, seed)
    p_values, reverse = exact_p_values(scores), exact_p_values(scores[::-1])
    for i, j in itertools.combinations(range(3), 2):
        exact = share_of_all_signs(scores[i] - scores[j])
        assert p_values[i, j] == pytest.approx(exact, abs=1e-12 if segments < 20 else 1e-6)
        assert p_values[i, j] + reverse[2 - j, 2 - i] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("unit", [1.0, None])
@pytest.mark.parametrize("differences", [np.zeros(0), np.zeros(1), np.zeros(5), np.zeros(50)])
def test_the_p_value_of_equal_systems_is_one_half(differences: np.ndarray, unit: float | None) -> None:
    assert exact_p(differences, unit) == (0.5, 0.0)


@pytest.mark.parametrize("segments", [1, 12, 30])
def test_exact_spa_does_not_depend_on_the_order_where_systems_are_equal(segments: int) -> None:
    """Scores on no grid; a metric that gives two systems the same scores, and gold that does."""
    rng = np.random.default_rng(0)
    gold, metric = rng.normal(size=(2, 4, segments))
    metric[1], gold[3] = metric[0], gold[2]

    def p(d: np.ndarray) -> float:
        return 0.5 if not d.any() else share_of_all_signs(d)

    pairs = list(itertools.combinations(range(4), 2))
    expected = 1 - np.mean([abs(p(gold[i] - gold[j]) - p(metric[i] - metric[j])) for i, j in pairs])
    for order in itertools.permutations(range(4)):
        assert spa(gold[[*order]], metric[[*order]], exact=True) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("count", [18, 25, 34, 38])
@pytest.mark.parametrize("tail", [30.0, 1000.0, 1e5])
def test_exact_p_values_of_heavy_tails(count: int, tail: float, caplog: pytest.LogCaptureFixture) -> None:
    """One score far above the others, and scores over many powers of ten. With 1,024 terms alone, p is off by .2."""
    rng = np.random.default_rng(count)
    outlier = np.concatenate([[tail], rng.normal(size=count - 1)])
    spread = np.exp(np.log(tail) / 2 * rng.normal(size=count)) * rng.choice([-1, 1], count)
    for d in (outlier, spread):
        p = exact_p_values(np.stack([d, np.zeros(count)]))[0, 1]
        assert p == pytest.approx(share_of_all_signs(d), abs=1e-5)
    assert not caplog.records or count > 36


def test_a_p_value_that_is_approximate_says_its_bound(caplog: pytest.LogCaptureFixture) -> None:
    """Whole numbers and a little noise: what is a tie without the noise is decided by it."""
    rng = np.random.default_rng(3)
    d = rng.integers(-3, 4, 38) + 1e-4 * rng.normal(size=38)
    p = exact_p_values(np.stack([d, np.zeros(38)]))[0, 1]
    (record,) = caplog.records
    assert "1 of 1 p-values are approximate, with an error of at most" in record.getMessage()
    assert abs(p - share_of_all_signs(d)) <= float(record.getMessage().rpartition(" ")[2]) < 0.05


@pytest.mark.parametrize(
    ("coefficient", "peer"), [("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)]
)
def test_numbers_are_scipys(coefficient: Coefficient, peer: Any) -> None:
    """Whole numbers with many ties, and some gold missing."""
    rng = np.random.default_rng(3)
    gold = rng.integers(-4, 1, (5, 300)).astype(float)
    metric = np.round(gold + rng.normal(size=gold.shape))
    gold[rng.random(gold.shape) < 0.1] = np.nan
    rated = ~np.isnan(gold)
    assert correlation(gold, metric, coefficient) == exactly(peer(gold[rated], metric[rated]).statistic)
    systems = [peer(g[r], m[r]).statistic for g, m, r in zip(gold, metric, rated, strict=True)]
    assert correlation(gold, metric, coefficient, "system") == exactly(float(np.mean(systems)))


def test_systems_are_compared_by_one_score_each() -> None:
    # Two of three pairs, and a tie in both.
    assert pairwise_accuracy([([3.0, 2.0, 1.0], [3.0, 1.0, 2.0]), ([0.0, 0.0], [1.0, 1.0])]) == 0.75
    pearson = stats.pearsonr([1.0, 2.0, 4.0], [1.0, 3.0, 4.0]).statistic
    assert system_correlation([1.0, 2.0, np.nan, 4.0], [1.0, 3.0, 9.0, 4.0]) == exactly(pearson)
    means = system_means([[-1.0, np.nan], [-2.0, -4.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(means, [-1.0, -3.0, np.nan])


def test_one_system_has_correlations_over_its_segments_alone() -> None:
    gold, metric = [[0.0, -1.0, -5.0, math.nan]], [[-1.0, -2.0, -3.0, 0.0]]
    assert correlation(gold, metric, "pearson", "system") == correlation(gold, metric)
    with pytest.raises(InputError, match=r"seg-spearman-none"):
        correlation(gold, metric, "spearman", "item")
    with pytest.raises(InputError, match="at least two"):
        system_correlation([0.0], [1.0])
