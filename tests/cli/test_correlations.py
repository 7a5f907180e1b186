"""correlations and overall on a made-up test set in the folder layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import read_scores
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.metaeval import acc_eq, correlation, spa
from tests.helpers.wmt_folder import SYSTEMS, write_folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("correlations")
    for direction in ("en-de", "zh-en"):
        write_folder(folder, "wmt23", direction)
    return folder


def table(data: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    verb, *rest = words
    capsys.readouterr()
    where = ["--data", str(data), "--test-set", "wmt23", "--reference", "refA"]
    assert main([verb, *where, *rest, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_correlations_are_those_of_the_stored_scores(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sys-pearson", "sys-accuracy", "seg-kendall-item", "seg-spearman-none", "spa"]
    found = table(data, capsys, "correlations", "--direction", "en-de", "zh-en", "--statistics", *words)
    rows = {row["metric"]: row for row in found["rows"]}
    assert set(rows) == {"flat", "length", "noise", "spans", "systems"}
    for direction in ("en-de", "zh-en"):
        test_set = load_test_set(data, "wmt23", direction, reference="refA")
        stored = read_scores(test_set.layout.metric_scores("length-src", "sys"))
        gold = np.nanmean(test_set.gold, axis=1)
        own = np.array([stored[system][0][1] for system in SYSTEMS], dtype=float)
        length = test_set.metric("length-src").scores
        assert rows["length"][direction] == {
            # Stored scores of systems are not the means of segments.
            "sys-pearson": pytest.approx(stats.pearsonr(gold, own).statistic, abs=1e-12),
            "sys-accuracy": pytest.approx((stats.kendalltau(gold, own).statistic + 1) / 2, abs=1e-12),
            "seg-kendall-item": pytest.approx(correlation(test_set.gold, length, "kendall", "item").value, abs=1e-12),
            "seg-spearman-none": pytest.approx(correlation(test_set.gold, length, "spearman").value, abs=1e-12),
            "spa": pytest.approx(spa(test_set.gold, length), abs=1e-12),
        }
        assert rows["systems"][direction]["sys-pearson"] == pytest.approx(1.0)
        assert rows["systems"][direction]["spa"] is None
        assert rows["flat"][direction]["sys-pearson"] == 0.0
    mean = np.mean([rows["noise"][direction]["spa"] for direction in ("en-de", "zh-en")])
    assert rows["noise"]["average"]["spa"] == pytest.approx(mean)


def test_overall_is_the_weighted_mean_of_the_tasks(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = table(data, capsys, "overall", "--direction", "en-de", "zh-en")
    row = next(row for row in found["rows"] if row["metric"] == "noise")
    expected = 0.25 * row["all"]["sys-accuracy"]
    for direction in ("en-de", "zh-en"):
        expected += 0.125 * (row[direction]["sys-pearson"] + 1) / 2
        expected += 0.125 * (row[direction]["seg-pearson-none"] + 1) / 2
        expected += 0.125 * row[direction]["acc_eq"]
    assert row["overall"] == pytest.approx(expected, abs=1e-12)
    assert next(row for row in found["rows"] if row["metric"] == "systems")["overall"] is None
    test_set = load_test_set(data, "wmt23", "zh-en", reference="refA")
    metric = test_set.metric("noise-refA").scores
    assert row["zh-en"]["acc_eq"] == pytest.approx(acc_eq(test_set.gold, metric).accuracy, abs=1e-12)


def test_overall_by_the_tasks_of_another_year(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = table(data, capsys, "overall", "--direction", "en-de", "--tasks", "wmt22", "--metric", "noise")
    (row,) = found["rows"]
    assert len(row["en-de"]) == 3 * 2 * 8
    assert {"sys-kendall", "seg-pearson-item talks no people"} <= set(row["en-de"])
    words = ["overall", "--data", str(data), "--test-set", "wmt23", "--reference", "refA", "--tasks", "wmt22"]
    assert main([*words, "--direction", "en-de", "--metric", "noise"]) == 0
    assert "40 tasks have no column here" in capsys.readouterr().out


def test_what_cannot_be_shown_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data", str(data), "--test-set", "wmt23", "--direction", "en-de", "--reference", "refA"]
    for words, message in (
        (["correlations", *where, "--statistics", "seg-kendal-item"], "seg-kendall-item"),
        (["correlations", *where, "--metric", "lenght"], "length"),
        (["overall", *where, "--tasks", "wmt21"], "wmt22"),
    ):
        assert main(words) == 1
        assert message in capsys.readouterr().err
    write_folder(data, "made", "en-de")
    assert main(["overall", "--data", str(data), "--test-set", "made", "--direction", "en-de"]) == 1
    assert "--tasks wmt22" in capsys.readouterr().err


def test_spa_is_exact_where_it_is_asked_for(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--direction", "en-de", "zh-en", "--spa", "exact"]
    correlated = table(data, capsys, "correlations", *where, "--statistics", "spa", "acc_eq")
    summed = table(data, capsys, "overall", *where, "--tasks", "wmt24")
    assert correlated["notes"][0] == "SPA: exact, of infinitely many permutations"
    for found in (correlated, summed):
        assert (
            "flat has one score for everything in zh-en: its SPA says nothing, all its p-values are 1/2"
            in found["notes"]
        )
        rows = {row["metric"]: row for row in found["rows"]}
        for direction in ("en-de", "zh-en"):
            test_set = load_test_set(data, "wmt23", direction, reference="refA")
            for name in ("length-src", "noise-refA"):
                expected = spa(test_set.gold, test_set.metric(name).scores, exact=True)
                assert rows[name.split("-")[0]][direction]["spa"] == pytest.approx(expected, abs=1e-12)
                assert expected != spa(test_set.gold, test_set.metric(name).scores)
    ranks = {row["metric"]: row["overall_rank"] for row in summed["rows"] if row["overall"] is not None}
    assert set(ranks) == {"flat", "length", "noise", "spans"}


def test_which_spa_is_refused_where_there_is_none(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data", str(data), "--test-set", "wmt23", "--direction", "en-de", "--reference", "refA"]
    for verb, *words in (
        ["correlations", "--spa", "exact"],
        ["correlations", "--missing", "common", "--statistics", "acc_eq"],
        ["overall", "--spa", "exact", "--tasks", "wmt23"],
        ["breakdown", "--spa", "exact", "--measures", "f1-corpus"],
    ):
        assert main([verb, *where, *words]) == 1
        assert f"{words[0]} {words[1]} changes nothing with" in capsys.readouterr().err
