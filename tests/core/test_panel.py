"""Weights of annotators, learnt from how they agree."""

from __future__ import annotations

import numpy as np
import pytest

from mbr_esd_metric import InputError
from mbr_esd_metric.core.panel import FEWEST_SEGMENTS, Panel, correlations, loadings


def scores(loading: dict[str, float], n: int = 4000, seed: int = 0) -> list[dict[str, float]]:
    """Scores of one factor with these loadings, in [-25, 0]."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    columns = {name: one * truth + np.sqrt(1 - one * one) * rng.normal(size=n) for name, one in loading.items()}
    return [{name: float(-5 + 2 * column[k]) for name, column in columns.items()} for k in range(n)]


LOADINGS = {"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.3}


def test_the_loadings_of_an_exact_table_are_found() -> None:
    expected = np.array([*LOADINGS.values()])
    table = np.outer(expected, expected)
    np.fill_diagonal(table, 1.0)
    assert loadings(table) == pytest.approx(expected, abs=1e-4)


def test_weights_are_those_of_the_best_linear_estimate() -> None:
    panel = Panel.learnt(scores(LOADINGS))
    assert [one.name for one in panel.panelists] == ["a", "b", "c", "d"]
    assert [one.reliability for one in panel.panelists] == pytest.approx([0.9, 0.7, 0.5, 0.3], abs=0.05)
    raw = np.array([one.reliability for one in panel.panelists])
    raw = raw / (1 - raw**2)
    assert [one.weight for one in panel.panelists] == pytest.approx(raw / raw.sum())
    assert "4000 segments: a 0.6" in panel.line
    assert str(panel).startswith("agreement/a=0.6")


def test_who_agrees_with_nobody_or_never_marks_anything_weighs_nothing() -> None:
    rows, rng = scores(LOADINGS), np.random.default_rng(5)
    useless = [row | {"random": float(rng.normal()), "empty": 0.0} for row in rows]
    weights = {one.name: one.weight for one in Panel.learnt(useless).panelists}
    assert weights["empty"] == 0.0
    assert weights["random"] < 0.02
    for one in Panel.learnt(rows).panelists:
        assert weights[one.name] == pytest.approx(one.weight, abs=0.02)


@pytest.mark.parametrize("name", LOADINGS)
def test_a_copy_shares_the_weight_of_its_original(name: str) -> None:
    rows = scores(LOADINGS)
    copied = Panel.learnt([row | {"copy": row[name]} for row in rows])
    weights = {one.name: one.weight for one in copied.panelists}
    assert weights["copy"] == weights[name]
    weights[name] += weights.pop("copy")
    assert weights == pytest.approx({one.name: one.weight for one in Panel.learnt(rows).panelists})


def test_annotators_that_did_not_annotate_everything_are_weighed_all_the_same() -> None:
    rows = [{name: one for name, one in row.items() if name != "b" or k % 3} for k, row in enumerate(scores(LOADINGS))]
    assert [one.name for one in Panel.learnt(rows).panelists] == ["a", "b", "c", "d"]
    apart = [
        {"a": row["a"], "c": row["c"], ("b" if k % 2 else "d"): row["b"]} for k, row in enumerate(rows) if "b" in row
    ]
    assert len(Panel.learnt(apart).panelists) == 4  # b and d share no segment


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (scores(LOADINGS, FEWEST_SEGMENTS - 1), "needs 100 segments with several annotators, but there are 99"),
        (scores({"a": 0.9, "b": 0.8}), "needs 3 annotators, but there are 2"),
        ([dict.fromkeys("abc", 0.0)] * 200, "the annotators do not agree"),
        ([], "but there are 0"),
    ],
)
def test_where_nothing_can_be_learnt_weights_are_equal_and_say_why(rows: list[dict[str, float]], why: str) -> None:
    panel = Panel.learnt(rows)
    assert why in panel.line
    assert str(panel) == "agreement/equal"
    assert len({one.weight for one in panel.panelists}) <= 1
    assert {one.scale for one in panel.panelists} <= {1.0}


def test_shares_of_candidates() -> None:
    panel = Panel.learnt(scores(LOADINGS))
    weight = {one.name: one.weight for one in panel.panelists}
    several = panel.shares(["a", "a", "c", "a"])
    total = weight["a"] + weight["c"]
    assert several.tolist() == pytest.approx(
        [weight["a"] / 3 / total] * 2 + [weight["c"] / total, weight["a"] / 3 / total]
    )
    assert panel.shares(["new", "other"]).tolist() == [0.5, 0.5]
    with pytest.raises(InputError, match='candidate 2 has no "annotator"'):
        panel.shares(["a", None])


def test_correlations_know_columns_that_do_not_vary() -> None:
    table = np.random.default_rng(0).normal(size=(50, 3))
    table[:, 2] = 1.0
    assert correlations(table)[2].tolist() == [0.0, 0.0, 1.0]
    assert correlations(table)[0, 1] == pytest.approx(np.corrcoef(table[:, :2].T)[0, 1])
