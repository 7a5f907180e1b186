"""Leaderboards: the agreement of metrics with human scores and error spans.

Every metric of a test set has SPA and acc_eq* with significance clusters. Metrics with error spans also have SoftF1,
F1, softdice, MPP and span counts, compared with the human ones. For several language pairs, averages are computed as
well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval.matrices import percentile_interval
from mbr_esd_metric.metaeval.metric_set import Key, MetricSet, spa_notes
from mbr_esd_metric.metaeval.ranking import Ranking, average_ranking, rank_contest
from mbr_esd_metric.metaeval.significance import (
    STATISTICS,
    DrawsDone,
    EarlyStop,
    SpanContest,
    Units,
    paired_bootstrap,
    prepare,
)
from mbr_esd_metric.metaeval.spans import DEFAULT_MEASURES, SpanCounts, expand_measures


@dataclass(frozen=True, slots=True)
class Result:
    """The results of one metric, in one language pair or averaged. Without tests, there are no ranks and intervals.

    Attributes:
        values: statistic or span measure -> its value in [0, 1], higher is better.
        ranks: statistic or measure -> significance cluster from 1.
        counts: numbers of error spans, summed over the language pairs; None if the metric has no spans.
        intervals: span measure -> the 95% bootstrap interval.
    """

    values: Mapping[str, float]
    ranks: Mapping[str, int]
    counts: SpanCounts | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """One metric of a leaderboard.

    Attributes:
        signatures, results: one for each language pair; None if missing.
        average: the average over the language pairs; None if a result is missing.
        daggers: the measures in which the metric is significantly better than every baseline in every language pair.
    """

    name: str
    uses_reference: bool
    signatures: tuple[Signature | None, ...]
    results: tuple[Result | None, ...]
    average: Result | None
    daggers: frozenset[str]

    @property
    def samples(self) -> int | None:
        """N, the number of candidates per segment, if a signature records it."""
        return next((one.samples for one in self.signatures if one is not None and one.samples is not None), None)


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The rows, best average SPA first; metrics that miss a language pair come last.

    Attributes:
        lps: language pairs in the order of the rows' results.
        measures: the span measures, in display order.
        human: numbers of major and minor human spans in each language pair; None if there are no human spans.
        rankings: language pair, or "average" for several -> statistic or measure -> the ranking of the metrics, whose
            names end in "-src" or "-ref"; rankings by span measures have bootstrap resamples. Empty without tests.
    """

    test_set: str
    lps: tuple[str, ...]
    rows: tuple[LeaderboardRow, ...]
    measures: tuple[str, ...]
    human: tuple[tuple[float, float] | None, ...]
    settings: LeaderboardSettings
    notes: tuple[str, ...]
    rankings: Mapping[str, Mapping[str, Ranking]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaderboardSettings:
    """The settings of a leaderboard.

    Attributes:
        draws: k of PERM-BOTH and of the bootstrap; 0 for no tests.
        alpha: the significance level.
        measures: the span measures; "NAME-parts" stands for the measure, its precision and its recall.
        against: the baselines for daggers: names of metrics, or decision rules such as "map", which select the metric
            with that rule on the same candidates.
        bootstrap: the unit of resampling for span measures.
        order: a description of the order of the systems, on which SPA depends unless it is exact.
        choices: the choices of data that are not the default, for the signature: "raters", "gold", "systems" and so on
            -> the names.
    """

    draws: int = 1000
    seed: int = 0
    alpha: float = 0.05
    measures: tuple[str, ...] = DEFAULT_MEASURES
    against: tuple[str, ...] = ()
    exact: bool = False
    bootstrap: Units = "segment"
    order: str = "as-given"
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measures", expand_measures(self.measures))

    def __str__(self) -> str:
        fields: dict[str, Any] = {"k": self.draws} | ({"seed": self.seed, "p": self.alpha} if self.draws else {})
        fields |= {"spa": "exact"} if self.exact else {"order": self.order}
        fields |= {"raters": "mean", **{what: ",".join(sorted({*names})) for what, names in self.choices.items()}}
        fields |= {} if self.bootstrap == "segment" else {"bootstrap": self.bootstrap}
        return str(Signature.of("leaderboard", fields, __version__))


def compute_leaderboard(
    test_set: str,
    sets: Sequence[MetricSet],
    settings: LeaderboardSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Leaderboard:
    """Evaluate every metric in every language pair, rank the metrics, average, and test against baselines.

    Args:
        test_set: the name of the test set.
        sets: the metrics of each language pair.
        settings: the settings; defaults if None.
        progress: called with the number of further completed draws of SPA's tests, which take nearly all of the time,
            and the total.

    Raises:
        InputError: inconsistent data.
        OptionError: an unknown measure or baseline.
    """
    settings = settings or LeaderboardSettings()
    draws = sum(math.comb(len(one.entries), 2) for one in sets) * settings.draws
    done = (lambda more: progress(more, draws)) if progress is not None else None
    evaluated = [_Evaluated(one, settings, done) for one in sets]
    keys = list(dict.fromkeys(key for one in evaluated for key in one.results))
    averaged = _averaged(evaluated, settings)
    by_pair = [{entry.key: entry.signature for entry in one.entries} for one in sets]
    signatures = {key: tuple(of.get(key) for of in by_pair) for key in keys}
    rows = []
    for key in keys:
        results = tuple(one.results.get(key) for one in evaluated)
        baselines = _baselines(key, keys, signatures, settings.against)
        average, daggers = _average(results, _text(key), averaged), _daggers(key, baselines, evaluated, settings)
        rows.append(LeaderboardRow(*key, signatures[key], results, average, daggers))
    rows.sort(key=lambda row: (-row.average.values["spa"] if row.average else 1.0, row.name, row.uses_reference))
    rankings = {"average": averaged} if len(sets) > 1 else {}
    rankings |= {data.lp: one.rankings for data, one in zip(sets, evaluated, strict=True)}
    notes = [note for one in sets for note in one.notes]
    return Leaderboard(
        test_set,
        lps=tuple(one.lp for one in sets),
        rows=tuple(rows),
        measures=settings.measures if any(one.measures for one in evaluated) else (),
        human=tuple(one.human for one in evaluated),
        settings=settings,
        notes=(*notes, *spa_notes(sets, settings.exact)),
        rankings=rankings if settings.draws else {},
    )


def evaluate_metrics(data: MetricSet, settings: LeaderboardSettings | None = None) -> dict[Key, Result]:
    """Metric with segment scores -> its results in one language pair, without tests."""
    return _Evaluated(data, replace(settings or LeaderboardSettings(), draws=0), None).results


class _Evaluated:
    """The evaluation of one language pair."""

    def __init__(self, data: MetricSet, settings: LeaderboardSettings, progress: DrawsDone | None) -> None:
        matrices = {_text(key): scores for key, scores in data.scores.items()}
        tests = (settings.draws, settings.seed)
        self.rankings: dict[str, Ranking] = {}
        for statistic in STATISTICS:
            contest = prepare(data.gold, matrices, statistic, "pairs", settings.exact)
            done = progress if statistic == "spa" else None
            self.rankings[statistic] = rank_contest(
                contest, *tests, alpha=settings.alpha, stop=EarlyStop(), progress=done
            )
        spans = {_text(key): scores for key, scores in data.span_scores(settings.measures).items()}
        self.measures = settings.measures if spans and len(data.human) else ()
        counts = next((one.counts for one in spans.values()), None) if self.measures else None
        self.human = (counts.gold_major, counts.gold_minor) if counts else None
        for measure in self.measures:
            ranking = rank_contest(SpanContest(spans, measure), *tests, alpha=settings.alpha)
            bootstrap = paired_bootstrap(spans, measure, *tests, settings.bootstrap) if settings.draws else {}
            self.rankings[measure] = replace(ranking, resamples=bootstrap)
        self.results: dict[Key, Result] = {}
        for key in data.scores:
            name, scores = _text(key), spans.get(_text(key))
            values: dict[str, float] = {what: self.rankings[what].value(name) for what in STATISTICS}
            # Not those of the rankings: a different order of summation changes the last bit.
            values |= scores.values if scores else {}
            tested = self.rankings if settings.draws else {}
            self.results[key] = _result(name, values, scores.counts if scores else None, tested)


def _text(key: Key) -> str:
    """A unique name of a metric, sorted by base name."""
    return f"{key[0]}-{'ref' if key[1] else 'src'}"


def _averaged(evaluated: Sequence[_Evaluated], settings: LeaderboardSettings) -> dict[str, Ranking]:
    """Statistic or measure -> the ranking by the mean over the language pairs; empty without tests."""
    rankings: dict[str, Ranking] = {}
    for what in (*STATISTICS, *settings.measures) if settings.draws else ():
        each = [one.rankings[what] for one in evaluated if what in one.rankings]
        if len(each) == len(evaluated) and set.intersection(*(set(one.names) for one in each)):
            rankings[what] = average_ranking(each, alpha=settings.alpha)
    return rankings


def _average(results: Sequence[Result | None], name: str, averaged: Mapping[str, Ranking]) -> Result | None:
    present = [result for result in results if result is not None]
    if len(present) < len(results):
        return None
    shared = [what for what in present[0].values if all(what in result.values for result in present)]
    counts = [astuple(result.counts) for result in present if result.counts is not None]
    total = SpanCounts(*map(sum, zip(*counts, strict=True))) if len(counts) == len(present) else None
    values = {what: sum(result.values[what] for result in present) / len(present) for what in shared}
    return _result(name, values, total, averaged)


def _result(name: str, values: Mapping[str, float], counts: SpanCounts | None, tested: Mapping[str, Ranking]) -> Result:
    """The result with clusters and intervals. A span measure has no clusters if only one metric has error spans."""
    ranked = {what: one for what, one in tested.items() if name in one.names}
    ranks = {what: one.rank(name) for what, one in ranked.items() if what in STATISTICS or len(one.names) > 1}
    intervals = {what: percentile_interval(one.resamples[name]) for what, one in ranked.items() if one.resamples}
    return Result(values, ranks, counts, intervals)


def _baselines(
    key: Key,
    keys: Sequence[Key],
    signatures: Mapping[Key, Sequence[Signature | None]],
    against: Sequence[str],
) -> list[Key]:
    """The baselines of one row; empty if one of `against` has no counterpart for this metric."""
    baselines = []
    for name in against:
        named = [k for k in keys if name in (k[0], _text(k))]
        if not named:
            ruled = [k for k in keys if any(one and one.get("d") == name for one in signatures[k])]
            if not ruled:
                raise OptionError(
                    f"--against {name}: no metric has that name or uses that decision rule; "
                    f"there are: {', '.join(sorted({k[0] for k in keys}))}"
                )
            named = [k for k in ruled if _same_candidates(signatures[key], signatures[k])]
        if not named:
            return []  # no metric with this rule on the same candidates
        baselines += named
    return baselines


def _daggers(
    key: Key, baselines: Sequence[Key], evaluated: Sequence[_Evaluated], settings: LeaderboardSettings
) -> frozenset[str]:
    """The measures in which `key` is significantly better than every baseline in every language pair."""
    if not baselines or key in baselines or not settings.draws:
        return frozenset()
    rivals = [(one.rankings, _text(baseline)) for one in evaluated for baseline in baselines]
    return frozenset(
        what
        for what in (*STATISTICS, *settings.measures)
        if all(what in of and of[what].p_value(rival, _text(key)) <= settings.alpha for of, rival in rivals)
    )


def _same_candidates(one: Sequence[Signature | None], other: Sequence[Signature | None]) -> bool:
    """Whether two metrics use the same candidates in every language pair that has both."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if a and b]
    return bool(both) and all(a.same_candidates(b) for a, b in both)
