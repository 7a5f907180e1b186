"""WMT's tasks and the overall score, against the toolkit's numbers for WMT23; parts of a test set."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    breakdown,
    evaluate,
    length_labels,
    overall,
    score_statistic,
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
    later = wmt_tasks("wmt24", lps)
    names = [("en-de", "spa", 0.25), ("en-de", "acc_eq", 0.25), ("zh-en", "spa", 0.25), ("zh-en", "acc_eq", 0.25)]
    assert [(task.lps[0], str(task.statistic), task.weight) for task in later] == names
    assert wmt_tasks("wmt25", lps) == later


def test_the_overall_score_is_the_scaled_mean() -> None:
    lps = [lp("en-de"), lp("zh-en", seed=1)]
    scores = overall(wmt_tasks("wmt23", lps), lps)
    key = ("good", True)
    expected = 0.25 * (scores.values[key][0] or 0.0)
    for number, data in enumerate(lps):
        good: Any = data.entries[0]
        values = (
            system_correlation(data.gold_of_systems, good.of_systems),  # type: ignore[arg-type]
            correlation(data.gold, good.scores),
            acc_eq(data.gold, good.scores).accuracy,
        )
        assert scores.values[key][1 + 3 * number : 4 + 3 * number] == tuple(exactly(value) for value in values)
        expected += 0.125 * ((values[0] + 1) / 2 + (values[1] + 1) / 2 + values[2])
    assert scores.overall[key] == exactly(expected)
    assert list(scores.overall) == [("good", True), ("poor", False)]
    assert scores.values["systems", True][:3] == (1.0, exactly(1.0), None)


def test_clusters_are_of_the_mean_over_all_tasks() -> None:
    lps = [lp("en-de"), lp("zh-en", seed=1)]
    tasks = wmt_tasks("wmt24", lps)
    scored = overall(tasks, lps, 200)
    ranks = scored.ranks
    rankings = []
    for data in lps:
        scores = {str(key): scores for key, scores in data.scores.items()}
        rankings += [rank_metrics(data.gold, scores, statistic, 200) for statistic in STATISTICS]
    mean = average_ranking(rankings)
    assert {str(key): rank for key, rank in ranks.items()} == dict(zip(mean.names, mean.ranks, strict=True))
    assert list(ranks) == list(scored.overall)
    assert ranks["good", True] < ranks["poor", False]
    with pytest.raises(OptionError, match="WMT24"):
        overall(wmt_tasks("wmt23", lps), lps, 10)


def test_what_cannot_be_computed_is_refused() -> None:
    data = lp("en-de")
    with pytest.raises(OptionError, match="seg-pearson-item"):
        score_statistic("seg-pearson-itm")
    with pytest.raises(OptionError, match="wmt23"):
        wmt_tasks("wmt21", [data])
    with pytest.raises(InputError, match="one language pair"):
        evaluate(score_statistic("spa"), [data, data])


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


LENGTH = 20
PARTS = ["a"] * 6 + ["b"] * 5 + ["a"] * 3 + ["c"]


@pytest.fixture(scope="module")
def metrics() -> MetricSet:
    rng = np.random.default_rng(1)

    human = matrix(rng, 4, len(PARTS), LENGTH, most=2)
    gold = np.array([[float(-len(a)) for a in row] for row in human])
    gold[:, 2] = np.nan
    gold[:, 14] = np.nan
    rated = [[None if np.isnan(g) else a for g, a in zip(gs, row, strict=True)] for gs, row in zip(gold, human)]  # noqa: B905
    predicted = matrix(rng, 4, len(PARTS), LENGTH, most=2)
    scores = np.array([[float(-len(a)) for a in row] for row in predicted])
    entries = [MetricEntry("spans", False, scores, predicted), MetricEntry("noise", True, rng.normal(size=gold.shape))]
    return MetricSet("en-de", gold, np.full(gold.shape, LENGTH), [rated], entries)


def test_each_part_is_evaluated_alone(metrics: MetricSet) -> None:
    measures = ("spa", "acc_eq", "seg-kendall-item", "f1-corpus", "softf1")
    *parts, unrated = breakdown(metrics, PARTS, measures)
    assert [(part.name, part.segments, part.rated) for part in parts] == [("a", 9, 32), ("b", 5, 20)]
    assert (unrated.name, unrated.rated, {*unrated.values["spans", False].values()}) == ("c", 0, {None})
    for part in parts:
        columns = [at for at, label in enumerate(PARTS) if label == part.name]
        gold = metrics.gold[:, columns]
        for entry in metrics.entries:
            scores = entry.scores[:, columns]
            values = part.values[entry.key]
            assert values["spa"] == spa(gold, scores)
            assert values["acc_eq"] == acc_eq(gold, scores).accuracy
            assert values["seg-kendall-item"] == correlation(gold, scores, "kendall", "item")
        predicted, human = (
            [[row[c] for c in columns] for row in m] for m in (metrics.entries[0].spans, metrics.human[0])
        )
        alone = evaluate_spans(predicted, [human], metrics.lengths[:, columns], ["f1-corpus", "softf1"]).values
        assert {name: part.values["spans", False][name] for name in alone} == pytest.approx(alone)
        assert part.values["noise", True]["softf1"] is None
    without, *_ = breakdown(replace(metrics, human=[]), PARTS, ("acc_eq", "softf1"))
    for key, values in without.values.items():
        assert values == {"acc_eq": parts[0].values[key]["acc_eq"], "softf1": None}


def test_buckets_of_lengths() -> None:
    assert length_labels([1, 2, 3, 4]) == ["0-1", "2-2", "3-3", "4-"]
    labels = length_labels(range(1, 101))
    assert [labels.count(label) for label in dict.fromkeys(labels)] == [25, 25, 25, 25]
    assert set(length_labels([7] * 9)) == {"0-"}
