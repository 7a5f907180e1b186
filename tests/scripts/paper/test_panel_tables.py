"""Statements of docs/evidence/panels.md about the large models and people, and the statistics behind them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import panel_tables
import pytest
from panel_tables import Judged, Row
from scipy.stats import kendalltau, spearmanr

from mbr_esd_metric import Annotation, DecisionOptions, ErrorSpan
from tests.helpers.panels import LENGTH, panel_segments

DATA = Path(os.environ.get("MBR_ESD_DATA", Path(__file__).parents[4] / "shared" / "data")) / "panel"
AGREEMENT = DecisionOptions(utility="softdice", weights="agreement")


@pytest.fixture(scope="module")
def judged() -> Judged:
    path = DATA / "judges_wmt24.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path} (MBR_ESD_DATA)")
    return Judged(panel_tables.read(str(path)))


def test_learnt_weights_reach_the_best_judge_and_equal_ones_do_not(judged: Judged) -> None:
    names = [*judged.rows[0].judges]
    best = np.max([judged.judge(name).values() for name in names], axis=0)
    learnt = judged.decide(names, AGREEMENT).values()
    assert learnt == pytest.approx([0.2573, 0.4043, 0.2064], abs=5e-4)
    assert learnt[0] > best[0] + 0.01
    assert learnt[1] > best[1] + 0.02
    assert judged.decide(names, DecisionOptions(utility="softdice")).values()[0] < best[0]


@pytest.mark.parametrize("added", ["empty", "random", "copy"])
def test_a_useless_author_changes_the_spans_by_less_than_the_goal(judged: Judged, added: str) -> None:
    rng, names = np.random.default_rng(0), [*judged.rows[0].judges]

    def annotation(row: Row) -> Annotation:
        starts = rng.integers(0, len(row.text), 2 if added == "random" else 0)
        spans = [ErrorSpan(at, min(at + 9, len(row.text)), "major") for at in starts.tolist()]
        return row.judges["llama3-3-cot"] if added == "copy" else Annotation(spans)

    rows = [Row(row.item, row.text, row.gold, {**row.judges, "added": annotation(row)}) for row in judged.rows]
    after = Judged(rows).decide([*names, "added"], AGREEMENT).values()
    assert after[0] == pytest.approx(judged.decide(names, AGREEMENT).values()[0], abs=0.005)


def test_rho_and_tau_are_those_of_scipy() -> None:
    rows = [
        Row(str(number % 5), "x" * LENGTH, [one.truth], one.annotations)
        for number, one in enumerate(panel_segments(40, seed=3))
    ]
    judged, points = Judged(rows), np.random.default_rng(0).integers(0, 4, 40)
    measured = judged.measure([row.gold[0] for row in rows], points)
    taus = [kendalltau(points[number::5], judged.points[number::5]).statistic for number in range(5)]
    expected = [1.0, spearmanr(points, judged.points).statistic, np.mean(taus)]
    assert measured.values() == pytest.approx(expected)
    ones = np.ones((1, 5))
    assert measured.values(np.concatenate([ones, 2 * ones]))[:, 1] == pytest.approx(expected)
