"""A leaderboard is the measures, clusters and tests of `metaeval`, put together; and says so in every format."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval import perm_both
from mbr_esd_metric.metaeval.leaderboard import (
    LeaderboardRow,
    LeaderboardSettings,
    compute_leaderboard,
)
from mbr_esd_metric.metaeval.metric_set import MetricEntry, MetricSet
from mbr_esd_metric.metaeval.ranking import Ranking, average_ranking, rank_metrics
from mbr_esd_metric.metaeval.significance import paired_bootstrap
from mbr_esd_metric.metaeval.spans import evaluate_spans
from mbr_esd_metric.report.leaderboard_table import leaderboard_table
from mbr_esd_metric.report.tables import render_all

SYSTEMS, SEGMENTS, LENGTH = 5, 40, 30
CONSTANT = "one score for everything, so that SPA says nothing and depends on the order of the systems"
SIGNATURE = "mbr-esd|model:m|engine:vllm|d:{}|n:16|t:2.0|v:0".format


def spans_of(penalties: np.ndarray) -> list[list[Annotation | None]]:
    """Minor spans side by side, as many as the penalty; None where it is NaN."""
    return [
        [None if np.isnan(p) else Annotation(ErrorSpan(5 * i, 5 * i + 4, "minor") for i in range(int(p))) for p in row]
        for row in penalties
    ]


def lp(name: str = "en-de", seed: int = 0, **noises: float) -> MetricSet:
    """Gold and metrics that see it through more or less noise: one of a rule each, and one with a reference."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(0.2, 3, (SYSTEMS, 1))
    penalties = np.minimum(rng.poisson(quality, (SYSTEMS, SEGMENTS)), 5).astype(float)
    penalties[:, ::7] = np.nan
    entries = []
    for rule, noise in (NOISES | noises).items():
        swapped = np.where(rng.random(penalties.shape) < noise, rng.permuted(penalties, axis=1), penalties)
        seen = np.nan_to_num(swapped)
        entries.append(MetricEntry(f"our-{rule}", False, -seen, spans_of(seen), Signature.parse(SIGNATURE(rule))))
    entries.append(MetricEntry("overlap", True, -np.nan_to_num(penalties) + rng.normal(0, 1, penalties.shape)))
    return MetricSet(name, -penalties, np.full(penalties.shape, LENGTH), [spans_of(penalties)], entries)


NOISES = {"mbr": 0.05, "map": 0.6, "majority": 0.9}


@pytest.fixture(scope="module")
def one() -> MetricSet:
    return lp()


@pytest.fixture(scope="module")
def two(one: MetricSet) -> list[MetricSet]:
    return [one, lp("ja-zh", 1)]


def board_of(*sets: MetricSet, **settings: Any) -> dict[str, LeaderboardRow]:
    """Name of a metric -> its row."""
    board = compute_leaderboard("t", sets, LeaderboardSettings(**{"draws": 200, **settings}))
    return {row.name: row for row in board.rows}


def ranking_of(data: MetricSet, statistic: Any) -> Ranking:
    scores = {f"{entry.name}-{'ref' if entry.uses_reference else 'src'}": entry.scores for entry in data.entries}
    return rank_metrics(data.gold, scores, statistic, 200)


@pytest.mark.parametrize("statistic", ["spa", "acc_eq"])
def test_values_and_clusters_are_those_of_metaeval(one: MetricSet, statistic: str) -> None:
    rows, ranking = board_of(one), ranking_of(one, statistic)
    for name, value, rank in zip(ranking.names, ranking.values, ranking.ranks, strict=True):
        average = rows[name[:-4]].average
        assert (average.values[statistic], average.ranks[statistic]) == (value, rank)
    direct = evaluate_spans(one.entries[0].spans, one.human, one.lengths)
    ours, overlap = rows["our-mbr"].average, rows["overlap"].average
    assert ours.values == {**direct.values, **{name: ours.values[name] for name in ("spa", "acc_eq")}}
    assert (ours.counts, overlap.counts, set(overlap.values)) == (direct.counts, None, {"spa", "acc_eq"})


def test_the_average_is_the_mean_with_clusters(two: list[MetricSet]) -> None:
    rows = board_of(*two)
    for row in rows.values():
        means = {what: np.mean([one.values[what] for one in row.results]) for what in row.average.values}
        assert row.average.values == pytest.approx(means)
    mean = average_ranking([ranking_of(one, "spa") for one in two])
    assert {name: row.average.ranks["spa"] for name, row in rows.items()} == {
        name[:-4]: rank for name, rank in zip(mean.names, mean.ranks, strict=True)
    }
    ours = rows["our-mbr"]
    assert ours.average.counts.minor == sum(one.counts.minor for one in ours.results)


def test_a_metric_that_misses_a_language_pair_has_no_average_and_comes_last(two: list[MetricSet]) -> None:
    *_, last = board_of(two[0], replace(two[1], entries=two[1].entries[1:]), draws=50).values()
    assert (last.name, last.average, last.results[1]) == ("our-mbr", None, None)


def test_daggers_need_every_rival_in_every_language_pair(two: list[MetricSet]) -> None:
    against = ("our-map", "majority")
    rows = board_of(*two, against=against)
    # Five systems are too few for SPA, whoever is better.
    assert {"acc_eq", "softf1", "f1"} <= rows["our-mbr"].daggers
    assert rows["our-map"].daggers == rows["overlap"].daggers == frozenset()
    worse = board_of(two[0], lp("ja-zh", 1, mbr=1.0), against=against)
    untested = board_of(*two, draws=0, against=against)
    assert worse["our-mbr"].daggers == untested["our-mbr"].daggers == frozenset()


def test_a_dagger_needs_a_p_value_of_alpha_at_most(one: MetricSet) -> None:
    ours, rival = one.entries[:2]
    spans = {entry.name: evaluate_spans(entry.spans, one.human, one.lengths) for entry in (ours, rival)}
    drawn = paired_bootstrap(spans, "softf1", 200)
    tests = {
        "spa": perm_both(one.gold, rival.scores, ours.scores, "spa", 200).p_value,
        "softf1": float((drawn[ours.name] <= drawn[rival.name]).mean()),
    }
    for measure, p in tests.items():
        for alpha in (p, float(np.nextafter(p, -1))):
            assert (measure in board_of(one, against=("map",), alpha=alpha)[ours.name].daggers) is (alpha == p)


def test_rivals_by_name_or_by_rule_of_the_same_candidates(one: MetricSet) -> None:
    by_name, by_rule = (
        board_of(one, against=("map", name))["our-mbr"].daggers for name in ("our-majority", "majority")
    )
    assert by_name == by_rule != frozenset()
    with pytest.raises(
        OptionError, match="--against greedy: no metric has that name.*there are: our-majority, our-map"
    ):
        board_of(one, against=("greedy",))
    ours, *others = one.entries
    for old, new in (
        ("n:16", "n:64"),
        ("|v:0", "|shots:0a1b2c3d/3|v:0"),
        ("engine:vllm", "dialect:vllm|engine:server"),
    ):
        more = replace(ours, signature=Signature.parse(SIGNATURE("mbr").replace(old, new)))
        assert board_of(replace(one, entries=[more, *others]), against=("majority",))["our-mbr"].daggers == frozenset()


def test_a_run_of_other_candidates_takes_no_daggers_away(one: MetricSet) -> None:
    """A MAP run with examples beside the one of the same candidates, stored in the same folder."""
    ours, rival, *others = one.entries
    shots = Signature.parse(SIGNATURE("map").replace("|v:0", "|shots:0a1b2c3d/3|v:0"))
    strong = replace(ours, name="map-with-shots", signature=shots)
    entries = [ours, rival, strong, *others]
    daggers = board_of(one, against=("map",))["our-mbr"].daggers
    assert board_of(replace(one, entries=entries), against=("map",))["our-mbr"].daggers == daggers != frozenset()


def test_a_constant_metric_is_noted(one: MetricSet) -> None:
    same, still = (MetricEntry(name, False, np.full_like(one.gold, 2.0)) for name in ("same", "still"))
    every = {"en-de": [same, still], "en-es": [same, still, *one.entries], "ja-zh": [same]}
    sets = [MetricSet(lp, one.gold, one.lengths, [], entries) for lp, entries in every.items()]
    board = compute_leaderboard("t", sets, LeaderboardSettings(draws=0))
    assert (board.measures, board.notes) == (
        (),
        (f"{CONSTANT}: same, still in en-de, en-es; same in ja-zh",),
    )


def test_a_table_carries_n_signature_daggers_and_sums(two: list[MetricSet]) -> None:
    settings = LeaderboardSettings(draws=200, against=("map", "majority"))
    board = compute_leaderboard("t", two, settings)
    assert f"our-mbr: {SIGNATURE('mbr')}" in leaderboard_table(board).notes
    content = json.loads(render_all([leaderboard_table(board, "column")], "json"))
    ours = next(item for item in content["rows"] if item["metric"] == "our-mbr")
    assert (ours["n"], ours["average"]["acc_eq_dagger"], ours["signature"]) == (16, True, SIGNATURE("mbr"))
    human = content["rows"][-1]
    assert human["sum"]["minor"] == human["en-de"]["minor"] + human["ja-zh"]["minor"]
    assert not {"major", "minor", "ratio"} & set(human["average"])
    assert ours["en-de"]["softf1_low"] <= ours["en-de"]["softf1"] <= ours["en-de"]["softf1_high"]
    tested = content["comparisons"]["en-de"]["softf1"]
    assert (np.shape(tested["p_values"]), np.shape(tested["differences"])) == ((3, 3), (3, 3, 2))


def test_the_settings_of_a_board_are_printed() -> None:
    assert "|order:as-given|" in str(LeaderboardSettings())
    assert "|spa:exact|" in str(LeaderboardSettings(exact=True))
    chosen = LeaderboardSettings(choices={"raters": ["b", "a"], "gold": ["da"]})
    assert "|raters:a,b|gold:da|v:" in str(chosen)
