"""A leaderboard is the measures, clusters and tests of `metaeval`, put together; and says so in every format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval import acc_eq, perm_both, spa
from mbr_esd_metric.metaeval.leaderboard import (
    Leaderboard,
    LeaderboardRow,
    LeaderboardSettings,
    Result,
    compute_leaderboard,
    paired_bootstrap,
    signature_field,
)
from mbr_esd_metric.metaeval.metric_set import MetricEntry, MetricSet
from mbr_esd_metric.metaeval.significance import Ranking, average_ranking, rank_metrics
from mbr_esd_metric.metaeval.spans import evaluate_spans
from mbr_esd_metric.report.leaderboard_table import leaderboard_table
from mbr_esd_metric.report.tables import render_all

SYSTEMS, SEGMENTS, LENGTH = 5, 40, 30
CONSTANT = "one score for everything, so that SPA says nothing and depends on the order of the systems"
SIGNATURE = "mbr-esd|model:m|engine:vllm|d:{}|n:16|t:2.0|v:0"


def spans_of(penalties: np.ndarray) -> list[list[Annotation | None]]:
    """Minor spans side by side, as many as the penalty; None where it is NaN."""
    return [
        [None if np.isnan(p) else Annotation(ErrorSpan(5 * i, 5 * i + 4, "minor") for i in range(int(p))) for p in row]
        for row in penalties
    ]


def lp(name: str = "en-de", seed: int = 0, noises: Sequence[tuple[str, str, float]] = ()) -> MetricSet:
    """Gold and metrics that see it through more or less noise; (name, rule, noise)."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(0.2, 3, (SYSTEMS, 1))
    penalties = np.minimum(rng.poisson(quality, (SYSTEMS, SEGMENTS)), 5).astype(float)
    penalties[:, ::7] = np.nan
    human = spans_of(penalties)
    entries = []
    for metric, rule, noise in noises:
        swapped = np.where(rng.random(penalties.shape) < noise, rng.permuted(penalties, axis=1), penalties)
        seen = np.nan_to_num(swapped)
        entries.append(MetricEntry(metric, False, -seen, spans_of(seen), SIGNATURE.format(rule)))
    reference = MetricEntry("overlap", True, -np.nan_to_num(penalties) + rng.normal(0, 1, penalties.shape))
    entries.append(reference)
    return MetricSet(name, -penalties, np.full(penalties.shape, LENGTH), [human], entries)


NOISES = (("ours", "mbr", 0.05), ("map", "map", 0.6), ("vote", "majority", 0.9))


@pytest.fixture(scope="module")
def one() -> MetricSet:
    return lp(noises=NOISES)


@pytest.fixture(scope="module")
def two(one: MetricSet) -> list[MetricSet]:
    return [one, lp("ja-zh", 1, NOISES)]


def board_of(sets: Sequence[MetricSet], **settings: Any) -> Leaderboard:
    return compute_leaderboard("t", sets, LeaderboardSettings(**{"draws": 200, **settings}))


def row(board: Leaderboard, name: str) -> LeaderboardRow:
    return next(row for row in board.rows if row.name == name)


def full_name(one: MetricEntry | LeaderboardRow) -> str:
    return f"{one.name}-{'ref' if one.uses_reference else 'src'}"


def result(board: Leaderboard, name: str) -> Result:
    average = row(board, name).average
    assert average is not None
    return average


def rankings(sets: Sequence[MetricSet], statistic: Any) -> list[Ranking]:
    named = [{full_name(entry): entry.scores for entry in one.entries} for one in sets]
    return [rank_metrics(one.gold, scores, statistic, 200) for one, scores in zip(sets, named, strict=True)]  # type: ignore[arg-type]


def test_values_and_clusters_are_those_of_metaeval(one: MetricSet) -> None:
    board = board_of([one])
    for statistic in ("spa", "acc_eq"):
        (ranking,) = rankings([one], statistic)
        for entry in one.entries:
            found, name, scores = result(board, entry.name), full_name(entry), one.scores[entry.key]
            assert (found.values[statistic], found.ranks[statistic]) == (ranking.value(name), ranking.rank(name))
            expected = spa(one.gold, scores) if statistic == "spa" else acc_eq(one.gold, scores).accuracy
            assert found.values[statistic] == expected
    direct = evaluate_spans(one.entries[0].spans or (), one.human, one.lengths)
    ours, overlap = result(board, "ours"), result(board, "overlap")
    assert ({m: ours.values[m] for m in board.measures}, ours.counts) == (direct.values, direct.counts)
    assert board.human == ((direct.counts.gold_major, direct.counts.gold_minor),)
    assert (overlap.counts, set(overlap.values)) == (None, {"spa", "acc_eq"})


def test_the_average_is_the_mean_with_clusters(two: list[MetricSet]) -> None:
    board = board_of(two)
    for name in ("ours", "map", "vote", "overlap"):
        each = [one for one in row(board, name).results if one is not None]
        means = {what: pytest.approx(sum(one.values[what] for one in each) / 2) for what in each[0].values}
        assert result(board, name).values == means
    mean = average_ranking(rankings(two, "spa"))
    ranks = {full_name(r): r.average.ranks["spa"] for r in board.rows if r.average}
    assert ranks == dict(zip(mean.names, mean.ranks, strict=True))
    total, each = result(board, "ours").counts, [one.counts for one in row(board, "ours").results if one and one.counts]
    assert total is not None
    assert total.minor == sum(one.minor for one in each)


def test_a_metric_that_misses_a_language_pair_has_no_average_and_comes_last(two: list[MetricSet]) -> None:
    other = lp("ja-zh", 1, NOISES[1:])
    last = board_of([two[0], other], draws=50).rows[-1]
    assert (last.name, last.average, last.results[1]) == ("ours", None, None)


def test_daggers_need_every_rival_in_every_language_pair(two: list[MetricSet]) -> None:
    against = ("map", "majority")
    board = board_of(two, against=against)
    # Five systems are too few for SPA, whoever is better.
    assert {"acc_eq", "softf1", "f1"} <= row(board, "ours").daggers
    assert row(board, "map").daggers == row(board, "overlap").daggers == frozenset()
    worse = [two[0], lp("ja-zh", 1, (("ours", "mbr", 1.0), *NOISES[1:]))]
    for untold in (board_of(worse, against=against), board_of(two, draws=0, against=("map",))):
        assert row(untold, "ours").daggers == frozenset()


def test_a_dagger_needs_a_p_value_of_alpha_at_most(one: MetricSet) -> None:
    entries = {e.name: e for e in one.entries}
    spans = {name: evaluate_spans(entries[name].spans or (), one.human, one.lengths) for name in ("map", "ours")}
    drawn = paired_bootstrap(spans, "softf1", 200)
    tests = {
        "spa": perm_both(one.gold, entries["map"].scores, entries["ours"].scores, "spa", 200).p_value,
        "softf1": float((drawn["ours"] <= drawn["map"]).mean()),
    }
    for measure, p in tests.items():
        for alpha in (p, float(np.nextafter(p, -1))):
            board = board_of([one], against=("map",), alpha=alpha)
            assert (measure in row(board, "ours").daggers) is (alpha == p)


def test_rivals_by_name_or_by_rule_of_the_same_candidates(one: MetricSet) -> None:
    by_name, by_rule = (board_of([one], draws=100, against=("map", name)) for name in ("vote", "majority"))
    assert row(by_name, "ours").daggers == row(by_rule, "ours").daggers != frozenset()
    with pytest.raises(OptionError, match="--against greedy: no metric of that name.*there are: map, ours"):
        board_of([one], draws=100, against=("greedy",))
    other = [replace(e, signature=SIGNATURE.replace("n:16", "n:64")) if e.name == "ours" else e for e in one.entries]
    board = board_of([replace(one, entries=other)], draws=100, against=("majority",))
    assert row(board, "ours").daggers == frozenset()


def test_a_constant_metric_is_noted(one: MetricSet) -> None:
    same, still = (MetricEntry(name, False, np.full_like(one.gold, 2.0)) for name in ("same", "still"))
    pairs = [
        MetricSet(lp, one.gold, one.lengths, [], entries)
        for lp, entries in (("en-de", [same, still]), ("en-es", [same, still, *one.entries]), ("ja-zh", [same]))
    ]
    board = board_of(pairs, draws=0)
    assert (board.measures, board.notes) == ((), (f"{CONSTANT}: same in en-de, en-es, ja-zh; still in en-de, en-es",))


def test_a_table_carries_n_signature_daggers_and_sums(two: list[MetricSet]) -> None:
    board = board_of(two, against=("map", "majority"))
    assert f"ours: {SIGNATURE.format('mbr')}" in leaderboard_table(board).notes
    content = json.loads(render_all([leaderboard_table(board, "column")], "json"))
    ours = next(item for item in content["rows"] if item["metric"] == "ours")
    assert (ours["n"], ours["average"]["acc_eq_dagger"], ours["signature"]) == (16, True, SIGNATURE.format("mbr"))
    human = content["rows"][-1]
    assert human["sum"]["minor"] == human["en-de"]["minor"] + human["ja-zh"]["minor"]
    assert not {"major", "minor", "ratio"} & set(human["average"])


def test_fields_of_signatures() -> None:
    assert "|order:as-given|" in str(LeaderboardSettings())
    assert "|spa:exact|" in str(LeaderboardSettings(exact=True))
    fields = {("a|n:16|t:2.0", "n"): "16", ("n:3", "n"): "3", ("a|seed:1", "d"): None, (None, "n"): None}
    assert {of: signature_field(*of) for of in fields} == fields
