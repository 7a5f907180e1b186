"""WMT's tasks and the overall score, against the toolkit's numbers for WMT23; parts of a test set."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval import (
    MetricEntry,
    MetricSet,
    acc_eq,
    average_ranking,
    correlation,
    evaluate_spans,
    rank_metrics,
    spa,
    system_correlation,
)
from mbr_esd_metric.metaeval.score_statistics import (
    SCORE_STATISTICS,
    breakdown,
    evaluate,
    length_labels,
    overall,
    wmt_tasks,
)
from mbr_esd_metric.metaeval.significance import STATISTICS
from tests.helpers.annotations import matrix

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "overall_wmt23.json").read_text(encoding="utf-8"))


def exactly(value: float) -> object:
    return pytest.approx(value, rel=0, abs=1e-12)


def lp(name: str, seed: int = 0) -> MetricSet:
    """Six systems; gold missing here and there; one metric has scores of systems alone."""
    rng = np.random.default_rng(seed)
    gold = -rng.poisson(np.linspace(1, 3, 6)[:, None], size=(6, 40)).astype(float)
    gold[:, ::7] = np.nan
    good, poor = (np.nan_to_num(gold) + rng.normal(scale=scale, size=gold.shape) for scale in (1, 4))
    means = np.nanmean(gold, axis=1)
    entries = [
        MetricEntry("good", True, good, of_systems=good.mean(axis=1)),
        MetricEntry("poor", False, poor),
        MetricEntry("systems", True, None, of_systems=means + 1),
    ]
    return MetricSet(name, gold, np.zeros(gold.shape, dtype=np.int64), (), entries, gold_of_systems=means)


def test_wmt23_and_later_have_their_tasks() -> None:
    lps = [lp("en-de"), lp("zh-en", seed=1)]
    tasks = wmt_tasks("wmt23", lps)
    assert [str(task.statistic) for task in tasks[:4]] == ["sys-accuracy", "sys-pearson", "seg-pearson-none", "acc_eq"]
    assert [task.weight for task in tasks] == [0.25, *[0.125] * 6]
    later = [(task.lps[0], str(task.statistic), task.weight) for task in wmt_tasks("wmt24", lps)]
    assert later == [(one.lp, name, 0.25) for one in lps for name in ("spa", "acc_eq")]
    assert wmt_tasks("wmt25", lps) == wmt_tasks("wmt24", lps)


def test_the_overall_score_is_the_scaled_mean() -> None:
    lps = [lp("en-de"), lp("zh-en", seed=1)]
    scores = overall(wmt_tasks("wmt23", lps), lps)
    accuracy, *values = scores.values["good", True]
    expected = []
    for data in lps:
        good = data.entries[0]
        expected += [system_correlation(data.gold_of_systems, good.of_systems), correlation(data.gold, good.scores)]
        expected.append(acc_eq(data.gold, good.scores).accuracy)
    assert values == pytest.approx(expected, rel=0, abs=1e-12)
    scaled = [value if number % 3 == 2 else (value + 1) / 2 for number, value in enumerate(values)]
    assert scores.overall["good", True] == exactly(0.25 * accuracy + 0.125 * sum(scaled))
    assert list(scores.overall) == [("good", True), ("poor", False)]
    assert scores.values["systems", True][:3] == (1.0, exactly(1.0), None)


def test_clusters_are_of_the_mean_over_all_tasks() -> None:
    lps = [lp("en-de"), lp("zh-en", seed=1)]
    scored = overall(wmt_tasks("wmt24", lps), lps, 200)
    rankings = []
    for data in lps:
        scores = {str(key): scores for key, scores in data.scores.items()}
        rankings += [rank_metrics(data.gold, scores, statistic, 200) for statistic in STATISTICS]
    mean = average_ranking(rankings)
    assert {str(key): rank for key, rank in scored.ranks.items()} == dict(zip(mean.names, mean.ranks, strict=True))
    assert list(scored.ranks.items()) == [(("good", True), 1), (("poor", False), 2)]
    with pytest.raises(OptionError, match="WMT24"):
        overall(wmt_tasks("wmt23", lps), lps, 10)


def test_what_cannot_be_computed_is_refused() -> None:
    with pytest.raises(OptionError, match="seg-pearson-item"):
        SCORE_STATISTICS.get("seg-pearson-itm")
    with pytest.raises(OptionError, match="wmt23"):
        wmt_tasks("wmt21", [lp("en-de")])
    with pytest.raises(InputError, match="one language pair"):
        evaluate(SCORE_STATISTICS.get("spa"), [lp("en-de"), lp("zh-en")])


def test_the_overall_scores_of_wmt23_are_the_toolkits() -> None:
    from mbr_esd_metric.adapters.wmt import load_test_set
    from mbr_esd_metric.adapters.wmt.test_set import metric_set_of

    folder = os.environ.get("MBR_ESD_WMT")
    if folder is None or not (Path(folder) / "wmt23").is_dir():
        pytest.skip("needs WMT23's data of mt-metrics-eval; name the folder of its test sets in MBR_ESD_WMT")
    names = sorted({name.removesuffix("[noref]") for name in GOLDEN["metrics"]})
    sets = [load_test_set(folder, "wmt23", d) for d in ("en-de", "he-en", "zh-en")]
    lps = [metric_set_of(one, names, of_systems=True) for one in sets]
    scores = overall(wmt_tasks("wmt23", lps), lps)
    assert len(scores.overall) == len(GOLDEN["metrics"])
    for (name, uses_reference), value in scores.overall.items():
        golden = GOLDEN["metrics"][name if uses_reference else f"{name}[noref]"]
        assert value == exactly(golden["overall"])
        assert scores.values[name, uses_reference] == tuple(exactly(one) for one in golden["tasks"])


def test_each_part_is_evaluated_alone() -> None:
    labels, length, rng = ["a"] * 6 + ["b"] * 5 + ["a"] * 3 + ["c"], 20, np.random.default_rng(1)
    human, predicted = (matrix(rng, 4, len(labels), length, most=2) for _ in range(2))
    gold, scores = (np.array([[float(-len(a)) for a in row] for row in rows]) for rows in (human, predicted))
    gold[:, [2, 14]] = np.nan
    rated = [[None if np.isnan(g) else a for g, a in zip(*rows, strict=True)] for rows in zip(gold, human, strict=True)]
    entries = [MetricEntry("spans", False, scores, predicted), MetricEntry("noise", True, rng.normal(size=gold.shape))]
    data = MetricSet("en-de", gold, np.full(gold.shape, length), [rated], entries)
    *parts, unrated = breakdown(data, labels, ("spa", "acc_eq", "seg-kendall-item", "f1-corpus", "softf1"))
    assert [(part.name, part.segments, part.rated) for part in parts] == [("a", 9, 32), ("b", 5, 20)]
    assert (unrated.name, unrated.rated, {*unrated.values["spans", False].values()}) == ("c", 0, {None})
    for part in parts:
        columns = [at for at, label in enumerate(labels) if label == part.name]
        spans, people = ([[row[c] for c in columns] for row in rows] for rows in (predicted, rated))
        measures = evaluate_spans(spans, [people], data.lengths[:, columns], ["f1-corpus", "softf1"]).values
        for entry in entries:
            x, y = gold[:, columns], entry.scores[:, columns]
            kendall = correlation(x, y, "kendall", "item")
            expected = {"spa": spa(x, y), "acc_eq": acc_eq(x, y).accuracy, "seg-kendall-item": kendall}
            expected |= measures if entry.spans else dict.fromkeys(measures)
            assert part.values[entry.key] == pytest.approx(expected, abs=1e-12)
    (without, *_) = breakdown(replace(data, human=[]), labels, ("acc_eq", "softf1"))
    assert without.values["spans", False] == {"acc_eq": parts[0].values["spans", False]["acc_eq"], "softf1": None}


def test_buckets_of_lengths() -> None:
    assert length_labels([1, 2, 3, 4]) == ["0-1", "2-2", "3-3", "4-"]
    labels = length_labels(range(1, 101))
    assert [labels.count(label) for label in dict.fromkeys(labels)] == [25, 25, 25, 25]
    assert set(length_labels([7] * 9)) == {"0-"}
