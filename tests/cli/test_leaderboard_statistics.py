"""The statistics and the tasks of leaderboard on a made-up test set in the folder layout."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import read_scores, write_scores
from mbr_esd_metric.metaeval import acc_eq, correlation, spa
from tests.helpers.command import Command
from tests.helpers.wmt_folder import SYSTEMS, write_folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("correlations")
    for lp in ("en-de", "zh-en"):
        write_folder(folder, "wmt23", lp)
    return folder


def table(data: Path, mbr_esd: Command, *words: str) -> dict[str, Any]:
    command = f"leaderboard --test-set {data}/wmt23 --reference refA --table json"
    table: dict[str, Any] = json.loads(mbr_esd(command, *words).out)
    return table


def test_correlations_are_those_of_the_stored_scores(data: Path, mbr_esd: Command) -> None:
    statistics = "sys-pearson sys-accuracy seg-kendall-item seg-spearman-none spa"
    rows = {row["metric"]: row for row in table(data, mbr_esd, "--lp en-de zh-en --statistics", statistics)["rows"]}
    assert set(rows) == {"flat", "length", "noise", "spans", "systems"}
    for lp in ("en-de", "zh-en"):
        test_set = load_test_set(data, "wmt23", lp, reference="refA")
        stored = read_scores(test_set.layout.metric_scores("length-src", "sys"))
        gold = np.nanmean(test_set.gold, axis=1)
        systems = np.array([stored[system][0][1] for system in SYSTEMS], dtype=float)
        length = test_set.metric("length-src").scores
        assert rows["length"][lp] == {
            # Stored scores of systems are not the means of segments.
            "sys-pearson": pytest.approx(stats.pearsonr(gold, systems).statistic, abs=1e-12),
            "sys-accuracy": pytest.approx((stats.kendalltau(gold, systems).statistic + 1) / 2, abs=1e-12),
            "seg-kendall-item": pytest.approx(correlation(test_set.gold, length, "kendall", "item"), abs=1e-12),
            "seg-spearman-none": pytest.approx(correlation(test_set.gold, length, "spearman"), abs=1e-12),
            "spa": pytest.approx(spa(test_set.gold, length), abs=1e-12),
        }
        assert rows["systems"][lp]["sys-pearson"] == pytest.approx(1.0)
        assert rows["systems"][lp]["spa"] is None
        assert rows["flat"][lp]["sys-pearson"] == 0.0
    mean = np.mean([rows["noise"][lp]["spa"] for lp in ("en-de", "zh-en")])
    assert rows["noise"]["average"]["spa"] == pytest.approx(mean)


def test_documents_are_compared_by_their_means_or_their_gold(data: Path, tmp_path: Path, mbr_esd: Command) -> None:
    folder = shutil.copytree(data, tmp_path / "data")
    words = "--lp en-de --statistics doc-pearson-none doc-kendall-item"
    rows = {row["metric"]: row["en-de"] for row in table(folder, mbr_esd, words)["rows"]}
    test_set = load_test_set(folder, "wmt23", "en-de", reference="refA")
    names = [document for _, document in test_set.documents]
    at = [[i for i, name in enumerate(names) if name == one] for one in dict.fromkeys(names)]
    scores = test_set.metric("length-src").scores
    rated = np.where(np.isnan(test_set.gold), np.nan, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a document without a rating
        gold, length = (
            np.stack([np.nanmean(of[:, columns], axis=1) for columns in at], 1) for of in (test_set.gold, rated)
        )
    rated_documents = ~np.isnan(gold)
    pearson = stats.pearsonr(gold[rated_documents], length[rated_documents]).statistic
    assert rows["length"]["doc-pearson-none"] == pytest.approx(pearson, abs=1e-12)
    assert rows["length"]["doc-kendall-item"] == pytest.approx(correlation(gold, length, "kendall", "item"))
    # Gold of documents that stands in the folder; the metric's is then the mean of all segments.
    gold = np.random.default_rng(1).normal(size=gold.shape)
    path = test_set.layout.human_scores("mqm", "doc")
    write_scores(path, {s: list(v) for s, v in zip(test_set.systems, gold.tolist(), strict=True)})
    rows = {row["metric"]: row["en-de"] for row in table(folder, mbr_esd, words)["rows"]}
    length = np.stack([scores[:, columns].mean(axis=1) for columns in at], 1)
    pearson = stats.pearsonr(gold.ravel(), length.ravel()).statistic
    assert rows["length"]["doc-pearson-none"] == pytest.approx(pearson, abs=1e-9)
    where = f"--test-set {folder}/wmt23 --lp en-de --reference refA"
    message = mbr_esd(f"leaderboard {where} --view length --statistics doc-pearson-none", status=1).err
    assert "doc-pearson-none: a part is not divided into documents" in message


@pytest.mark.parametrize(
    "view", ["--k 0", "--statistics acc_eq", "--view overall", "--view domain", "--view error-free"]
)
def test_every_view_marks_what_is_no_primary_submission(data: Path, view: str, mbr_esd: Command) -> None:
    printed = mbr_esd(f"leaderboard --test-set {data}/wmt23 --reference refA --lp en-de", view).out
    assert "*noise" in printed
    assert "*: contrastive submission, or none; _: baseline" in printed


def test_overall_is_the_weighted_mean_of_the_tasks(data: Path, mbr_esd: Command) -> None:
    rows = {row["metric"]: row for row in table(data, mbr_esd, "--view overall --lp en-de zh-en")["rows"]}
    row = rows["noise"]
    expected = 0.25 * row["all"]["sys-accuracy"]
    for lp in ("en-de", "zh-en"):
        expected += 0.125 * (row[lp]["sys-pearson"] + 1) / 2
        expected += 0.125 * (row[lp]["seg-pearson-none"] + 1) / 2
        expected += 0.125 * row[lp]["acc_eq"]
    assert row["overall"] == pytest.approx(expected, abs=1e-12)
    assert rows["systems"]["overall"] is None
    test_set = load_test_set(data, "wmt23", "zh-en", reference="refA")
    metric = test_set.metric("noise-refA").scores
    assert row["zh-en"]["acc_eq"] == pytest.approx(acc_eq(test_set.gold, metric).accuracy, abs=1e-12)
    (other_year,) = table(data, mbr_esd, "--lp en-de --view wmt24 --metric noise")["rows"]
    assert set(other_year["en-de"]) == {"spa", "acc_eq"}


def test_what_cannot_be_shown_is_refused(data: Path, mbr_esd: Command) -> None:
    board = f"leaderboard --test-set {data}/wmt23 --lp en-de --reference refA"
    for words, message in (
        ("--statistics seg-kendal-item", "seg-kendall-item"),
        ("--statistics --metric lenght", "length"),
        ("--view wmt21", "wmt23"),
    ):
        assert message in mbr_esd(board, words, status=1).err
    write_folder(data, "made", "en-de")
    assert "--view wmt23" in mbr_esd(f"leaderboard --view overall --test-set {data}/made --lp en-de", status=1).err


def test_spa_is_exact_with_the_option(data: Path, mbr_esd: Command) -> None:
    exact = "--lp en-de zh-en --spa exact"
    correlated = table(data, mbr_esd, exact, "--statistics spa acc_eq")
    summed = table(data, mbr_esd, exact, "--view wmt24")
    assert "SPA: exact, of infinitely many permutations" in correlated["notes"]
    for board in (correlated, summed):
        assert any("SPA says nothing" in note and "flat in en-de, zh-en" in note for note in board["notes"])
        rows = {row["metric"]: row for row in board["rows"]}
        for lp in ("en-de", "zh-en"):
            test_set = load_test_set(data, "wmt23", lp, reference="refA")
            for name in ("length-src", "noise-refA"):
                expected = spa(test_set.gold, test_set.metric(name).scores, exact=True)
                assert rows[name.split("-")[0]][lp]["spa"] == pytest.approx(expected, abs=1e-12)
                assert expected != spa(test_set.gold, test_set.metric(name).scores)
    ranks = {row["metric"]: row["overall_rank"] for row in summed["rows"] if row["overall"] is not None}
    assert set(ranks) == {"flat", "length", "noise", "spans"}


def test_a_metric_that_cannot_be_shown_is_refused_with_its_reason(data: Path, mbr_esd: Command) -> None:
    board = f"leaderboard --test-set {data}/wmt23 --lp en-de"
    views = ["", "--view error-free", "--view domain", "--view spans"]
    for view in views:
        message = mbr_esd(board, view, "--reference refA --metric systems", status=1).err
        assert "systems-refA is left out in en-de: it has no scores of segments" in message
    for view in [*views, "--statistics"]:
        message = mbr_esd(board, view, "--reference refB --metric noise", status=1).err
        assert "noise-refA is left out in en-de: it uses refA" in message


def test_one_broken_file_stops_no_board(data: Path, mbr_esd: Command) -> None:
    write_folder(data, "broken", "en-de")
    layout = load_test_set(data, "broken", "en-de", reference="refA").layout
    layout.metric_scores("noise-refA", "seg").write_text("A\t0.5\nB\tbad\n", encoding="utf-8")
    board = f"leaderboard --test-set {data}/broken --lp en-de --reference refA"
    for view in ("--k 0", "--statistics", "--view wmt23", "--view error-free", "--view spans", "--view domain"):
        printed = mbr_esd(board, view).out
        assert printed.count("noise-refA is left out in en-de: ") == 1
        assert "noise-refA.seg.score" in printed
        assert "spans" in printed
        if view != "--view spans":
            assert "noise-refA.seg.score" in mbr_esd(board, view, "--metric noise", status=1).err
