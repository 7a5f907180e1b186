"""Parts of a test set: each is evaluated as if it were alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mbr_esd_metric.metaeval import acc_eq, correlation, evaluate_spans, spa
from mbr_esd_metric.metaeval.score_statistics import MetricEntry, MetricSet, breakdown, length_labels
from tests.helpers.annotations import matrix

LENGTH = 20
LABELS = ["a"] * 6 + ["b"] * 5 + ["a"] * 3 + ["c"]


@pytest.fixture(scope="module")
def data() -> MetricSet:
    rng = np.random.default_rng(1)

    human = matrix(rng, 4, len(LABELS), LENGTH, most=2)
    gold = np.array([[float(-len(a)) for a in row] for row in human])
    gold[:, 2] = np.nan
    gold[:, 14] = np.nan
    rated = [[None if np.isnan(g) else a for g, a in zip(gs, row, strict=True)] for gs, row in zip(gold, human)]  # noqa: B905
    predicted = matrix(rng, 4, len(LABELS), LENGTH, most=2)
    scores = np.array([[float(-len(a)) for a in row] for row in predicted])
    entries = [MetricEntry("spans", False, scores, predicted), MetricEntry("noise", True, rng.normal(size=gold.shape))]
    return MetricSet("en-de", gold, np.full(gold.shape, LENGTH), [rated], entries)


def test_each_part_is_evaluated_alone(data: MetricSet) -> None:
    measures = ("spa", "acc_eq", "seg-kendall-item", "f1-corpus", "softf1")
    *parts, unrated = breakdown(data, LABELS, measures)
    assert [(part.name, part.segments, part.rated) for part in parts] == [("a", 9, 32), ("b", 5, 20)]
    assert (unrated.name, unrated.rated, {*unrated.values["spans", False].values()}) == ("c", 0, {None})
    for part in parts:
        columns = [at for at, label in enumerate(LABELS) if label == part.name]
        gold = data.gold[:, columns]
        for entry in data.entries:
            scores = entry.scores[:, columns]
            values = part.values[entry.key]
            assert values["spa"] == spa(gold, scores)
            assert values["acc_eq"] == acc_eq(gold, scores).accuracy
            assert values["seg-kendall-item"] == correlation(gold, scores, "kendall", "item").value
        predicted, human = ([[row[c] for c in columns] for row in m] for m in (data.entries[0].spans, data.human[0]))
        alone = evaluate_spans(predicted, [human], data.lengths[:, columns], ["f1-corpus", "softf1"]).values
        assert {name: part.values["spans", False][name] for name in alone} == pytest.approx(alone)
        assert part.values["noise", True]["softf1"] is None
    without, *_ = breakdown(replace(data, human=[]), LABELS, ("acc_eq", "softf1"))
    for key, values in without.values.items():
        assert values == {"acc_eq": parts[0].values[key]["acc_eq"], "softf1": None}


def test_buckets_of_lengths() -> None:
    assert length_labels([1, 2, 3, 4]) == ["0-1", "2-2", "3-3", "4-"]
    labels = length_labels(range(1, 101))
    assert [labels.count(label) for label in dict.fromkeys(labels)] == [25, 25, 25, 25]
    assert set(length_labels([7] * 9)) == {"0-"}
