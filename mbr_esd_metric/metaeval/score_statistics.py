"""The metrics of a language pair, their statistics by name, and the overall score of WMT's metrics tasks, 2023 to 2025.

    spa, acc_eq                                     as in `spa` and `acc_eq`
    sys-accuracy                                    pairwise accuracy of systems
    sys-pearson, sys-spearman, sys-kendall
    seg-pearson-item, seg-kendall-none, seg-spearman-system ...
    doc-pearson-none, doc-kendall-item ...          of documents, whose scores are means of their segments

    overall = sum_tasks weight * (value - lowest) / (1 - lowest)

as in mt-metrics-eval's ``TaskSetResults.AverageCorrs``, so that correlations and accuracies weigh alike.

    wmt23           pairwise accuracy of systems over all language pairs, which weighs as much as a task a pair; and for
                    each pair Pearson of systems, Pearson of segments, and acc_eq*.
    wmt24, wmt25    SPA and acc_eq* for each language pair, all alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, OptionError, labelled, unknown
from mbr_esd_metric.metaeval.correlation import (
    COEFFICIENTS,
    GROUPINGS,
    Coefficient,
    Grouping,
    acc_eq,
    correlation,
    pairwise_accuracy,
    system_correlation,
    system_means,
)
from mbr_esd_metric.metaeval.matrices import BoolMatrix, FloatMatrix, FloatVector
from mbr_esd_metric.metaeval.significance import STATISTICS, Statistic, average_ranking, rank_metrics
from mbr_esd_metric.metaeval.spa import constant_metrics, spa
from mbr_esd_metric.metaeval.span_measures import span_measure
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, SpanEvaluator, SpanScores

#: Scores of systems, documents or segments are compared. SPA compares systems by their segments' scores.
StatisticLevel = Literal["sys", "doc", "seg"]
#: The years whose tasks are known.
TASK_SETS = ("wmt23", "wmt24", "wmt25")


@dataclass(frozen=True, slots=True)
class ScoreStatistic:
    """One statistic: what is compared; "spa", "acc_eq", "accuracy" or a correlation; and how segments are grouped."""

    level: StatisticLevel
    kind: str
    by: Grouping = "none"

    def __str__(self) -> str:
        by = "" if self.level == "sys" else f"-{self.by}"
        return self.kind if self.kind in STATISTICS else f"{self.level}-{self.kind}{by}"

    @property
    def lowest(self) -> float:
        """The lowest possible value; the highest is 1."""
        return -1.0 if self.kind in COEFFICIENTS else 0.0

    @property
    def of_means(self) -> bool:
        """Whether it compares one score a system."""
        return self.level == "sys" and self.kind != "spa"

    def of_segments(self, gold: FloatMatrix, metric: FloatMatrix, *, exact: bool = False) -> float:
        """The value for score matrices (`matrices`); scores of systems are their means. `exact` is for SPA."""
        if self.kind == "spa":
            return spa(gold, metric, missing="pairs", exact=exact)
        if self.kind == "acc_eq":
            return acc_eq(gold, metric).accuracy
        if self.level == "sys":
            return self.of_systems([(system_means(gold), system_means(metric))])
        return correlation(gold, metric, cast(Coefficient, self.kind), self.by)

    def of_systems(self, scores: Iterable[tuple[FloatVector, FloatVector]]) -> float:
        """The value for (gold, metric) scores of systems; only the accuracy takes several language pairs."""
        if self.kind == "accuracy":
            return pairwise_accuracy(scores)
        ((gold, metric),) = scores
        return system_correlation(gold, metric, cast(Coefficient, self.kind))


SCORE_STATISTICS: Mapping[str, ScoreStatistic] = {
    str(statistic): statistic
    for statistic in (
        ScoreStatistic("sys", "spa"),
        ScoreStatistic("seg", "acc_eq"),
        ScoreStatistic("sys", "accuracy"),
        *(ScoreStatistic("sys", coefficient) for coefficient in COEFFICIENTS),
        *(ScoreStatistic("seg", *of) for of in product(COEFFICIENTS, GROUPINGS)),
        *(ScoreStatistic("doc", *of) for of in product(COEFFICIENTS, GROUPINGS)),
    )
}


def score_statistic(name: str) -> ScoreStatistic:
    """The statistic of that name. Raises `OptionError` with the nearest names if there is none."""
    if name not in SCORE_STATISTICS:
        raise unknown("statistic", name, SCORE_STATISTICS)
    return SCORE_STATISTICS[name]


def evaluate(statistic: ScoreStatistic, sets: Sequence[ScoredSet], *, exact: bool = False) -> dict[Key, float]:
    """One statistic of every metric that has the scores it needs in every language pair; `exact` is for SPA.

    The accuracy of systems takes several sets, whose pairs are counted together. Raises `InputError`: several language
    pairs for another statistic, or scores that do not fit.
    """
    if len(sets) != 1 and statistic.kind != "accuracy":
        raise InputError(f"{statistic} is of one language pair, not of {len(sets)}")
    values = {}
    for key in sets[0].metrics:
        pairs = [_pair(statistic, one, one.metrics[key]) for one in sets if key in one.metrics]
        complete = [pair for pair in pairs if pair is not None]
        if len(complete) < len(sets):
            continue
        with labelled(f"{key[0]} in {', '.join(one.lp for one in sets)}, {statistic}"):
            if statistic.of_means:
                values[key] = statistic.of_systems(complete)
            else:
                values[key] = statistic.of_segments(*complete[0], exact=exact)
    return values


def _pair(statistic: ScoreStatistic, data: ScoredSet, metric: Scores) -> tuple[FloatMatrix, FloatMatrix] | None:
    """Gold and metric, of segments, documents or systems, where gold has a score; None if one has no such scores."""
    x, y = data.gold, metric.segments
    if statistic.of_means:
        x = system_means(x) if data.gold_of_systems is None else data.gold_of_systems
        y = system_means(y) if metric.systems is None and y is not None else metric.systems
    elif statistic.level == "doc" and y is not None:
        # Where gold has scores of documents, the metric's are means of all segments, else of those that are rated.
        stored, rated = data.gold_of_documents, np.where(np.isnan(x), np.nan, y)
        y = data.means_of_documents(rated if stored is None else y)
        x = data.means_of_documents(x) if stored is None else stored
    if y is None:
        return None
    rows = ~np.isnan(x) if x.ndim == 1 else ~np.isnan(x).all(axis=1)
    return x[rows], y[rows]


@dataclass(frozen=True, slots=True)
class Task:
    """One comparison of metrics; only the accuracy takes several language pairs. The weights of a year add up to 1."""

    statistic: ScoreStatistic
    lps: tuple[str, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class Overall:
    """Metric -> its value in each task, None if it lacks the scores; and, of the metrics that are in every task, the
    weighted average in [0, 1], best first."""

    tasks: tuple[Task, ...]
    values: Mapping[Key, tuple[float | None, ...]]
    overall: Mapping[Key, float]


def wmt_tasks(name: str, sets: Sequence[ScoredSet]) -> tuple[Task, ...]:
    """The tasks of a year, one of `TASK_SETS`, for these language pairs. Raises `OptionError`: another year."""
    if name not in TASK_SETS:
        raise unknown("set of tasks", name, TASK_SETS)
    lps = tuple(one.lp for one in sets)
    if name == "wmt23":
        accuracy = Task(score_statistic("sys-accuracy"), lps, 1 / 4)
        each, weight = ("sys-pearson", "seg-pearson-none", "acc_eq"), 1 / (4 * len(lps))
        return (accuracy, *(Task(score_statistic(name), (lp,), weight) for lp in lps for name in each))
    return tuple(Task(score_statistic(name), (lp,), 1 / (2 * len(lps))) for lp in lps for name in STATISTICS)


def overall(tasks: Sequence[Task], sets: Sequence[ScoredSet], *, exact: bool = False) -> Overall:
    """Evaluate every metric in every task, and average by weights; `exact` is for SPA."""
    by_name = {one.lp: one for one in sets}
    columns = [evaluate(task.statistic, [by_name[name] for name in task.lps], exact=exact) for task in tasks]
    keys = dict.fromkeys(key for one in sets for key in one.metrics)
    values = {key: tuple(column.get(key) for column in columns) for key in keys}
    averages = {}
    for key, row in values.items():
        complete = [(task, value) for task, value in zip(tasks, row, strict=True) if value is not None]
        if len(complete) == len(tasks):
            shares = [(value - t.statistic.lowest) / (1 - t.statistic.lowest) for t, value in complete]
            averages[key] = sum(task.weight * share for task, share in zip(tasks, shares, strict=True))
    ordered = dict(sorted(averages.items(), key=lambda item: (-item[1], item[0])))
    return Overall(tuple(tasks), values, ordered)


def testable(tasks: Sequence[Task]) -> bool:
    """Whether `clusters` can test these tasks: SPA and acc_eq*, as in WMT24 and later."""
    return all(task.statistic.kind in STATISTICS for task in tasks)


def clusters(
    tasks: Sequence[Task], sets: Sequence[ScoredSet], k: int = 1000, seed: int = 0, *, exact: bool = False
) -> dict[Key, int]:
    """Significance clusters by the overall score, of the metrics that are in every task; as ``AverageCorrMatrix``.

    Raises `InputError` for scores that do not fit, `OptionError` for tasks that are not `testable`.
    """
    if not testable(tasks):
        raise OptionError("only SPA and acc_eq* are tested: the tasks of WMT24 and later")
    by_name = {one.lp: one for one in sets}
    keys = {f"{key[0]} {key[1]}": key for one in sets for key in one.metrics}
    rankings = []
    for task in tasks:
        data, kind = by_name[task.lps[0]], cast(Statistic, task.statistic.kind)
        metrics = ((name, data.metrics.get(key)) for name, key in keys.items())
        scores = {name: one.segments for name, one in metrics if one is not None and one.segments is not None}
        rankings.append(rank_metrics(data.gold, scores, kind, k, seed, missing="pairs", exact=exact))
    mean = average_ranking(rankings, [task.weight for task in tasks])
    return {keys[name]: rank for name, rank in zip(mean.names, mean.ranks, strict=True)}


@dataclass(frozen=True, eq=False)
class BreakdownPart:
    """One part of a test set, with numbers of segments and of rated translations; and metric -> statistic or measure ->
    value, None if it cannot be computed."""

    name: str
    segments: int
    rated: int
    values: Mapping[Key, Mapping[str, float | None]]


def breakdown(
    data: MetricSet, labels: Sequence[str], measures: Sequence[str], *, exact: bool = False
) -> tuple[BreakdownPart, ...]:
    """Evaluate every metric on every part by itself, by statistics of scores and measures of spans.

    `labels` name each segment's part; parts come in the order of their first segment. Raises `InputError` for spans
    that do not fit, `OptionError` for an unknown measure.
    """
    for name in measures:
        if name in SCORE_STATISTICS and SCORE_STATISTICS[name].level == "doc":
            raise OptionError(f"{name}: a part is not divided into documents; --statistics alone compares them")
    of_spans = [span_measure(name).name for name in measures if name not in SCORE_STATISTICS]
    spans: dict[Key, SpanScores] = {}
    if data.human and of_spans:
        spans = data.span_scores(SpanEvaluator(data.human, data.lengths, of_spans))
    parts = []
    for name in dict.fromkeys(labels):
        columns = np.array([label == name for label in labels], dtype=np.bool_)
        values = {
            entry.key: {
                measure: _of_spans(spans.get(entry.key), measure, columns)
                if measure in of_spans
                else _of_scores(measure, data.gold[:, columns], entry.scores[:, columns], exact)
                for measure in measures
            }
            for entry in data.entries
        }
        rated = int((~np.isnan(data.gold[:, columns])).sum())
        parts.append(BreakdownPart(name, int(columns.sum()), rated, values))
    return tuple(parts)


def length_labels(lengths: Sequence[int]) -> list[str]:
    """The bucket of each length, of four that hold about as many each: "0-49", "50-99", "100-"."""
    quartiles = np.unique(np.ceil(np.quantile(lengths, [0.25, 0.5, 0.75])).astype(int))
    starts = [0, *quartiles[quartiles > min(lengths)].tolist()]
    names = [f"{low}-{high - 1}" for low, high in pairwise(starts)] + [f"{starts[-1]}-"]
    return [names[at - 1] for at in np.searchsorted(starts, lengths, side="right").tolist()]


def _of_scores(name: str, gold: FloatMatrix, scores: FloatMatrix, exact: bool) -> float | None:
    """None where there are too few ratings, or systems are rated on different segments."""
    rows = ~np.isnan(gold).all(axis=1)
    try:
        return score_statistic(name).of_segments(gold[rows], scores[rows], exact=exact)
    except InputError:
        return None


def _of_spans(scores: SpanScores | None, name: str, columns: BoolMatrix) -> float | None:
    statistics = None if scores is None else scores.statistics[name][:, columns]
    if statistics is None or np.isnan(statistics).all():
        return None
    return float(span_measure(name).value(np.nansum(statistics, axis=(0, 1))))


#: Base name, and whether a reference was used. Entries of several language pairs with the same key share a row.
Key = tuple[str, bool]


@dataclass(frozen=True, eq=False)
class MetricEntry:
    """One metric in one language pair.

    Attributes:
        name: base name, the same in every language pair.
        scores: a score matrix (`matrices`).
        spans: systems x segments; None if the metric has no error spans.
        signature: what the scores depend on, if known.
    """

    name: str
    uses_reference: bool
    scores: Floats
    spans: AnnotationMatrix | None = None
    signature: str | None = None

    @property
    def key(self) -> Key:
        """Base name, and whether a reference was used."""
        return (self.name, self.uses_reference)


@dataclass(frozen=True, eq=False)
class MetricSet:
    """All metrics of one language pair, on the same translations: with a gold matrix (`matrices`), the characters of
    each translation (systems x segments), the spans of each rater, and what readers of a table should know."""

    lp: str
    gold: Floats
    lengths: npt.NDArray[np.int64]
    human: Sequence[AnnotationMatrix]
    entries: Sequence[MetricEntry]
    notes: tuple[str, ...] = ()

    @property
    def constant(self) -> list[str]:
        """The names of `spa.constant_metrics`."""
        return constant_metrics(self.gold, [(entry.name, entry.scores) for entry in self.entries])

    def span_scores(self, evaluator: SpanEvaluator) -> dict[Key, SpanScores]:
        """The evaluation of each metric that has error spans; errors name the metric."""
        scores = {}
        for entry in self.entries:
            if entry.spans is not None:
                with labelled(f"{entry.name} in {self.lp}"):
                    scores[entry.key] = evaluator.evaluate(entry.spans)
        return scores


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of a metric: systems x segments, None if only systems are scored; and one score a system, None where the
    means of segments count."""

    segments: FloatMatrix | None
    systems: FloatVector | None = None


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """Scores of one language pair over the same translations.

    Attributes:
        documents: of each segment.
        gold: a gold matrix (`matrices`).
        gold_of_systems, gold_of_documents: shape (systems,), and systems x documents, where they are scored by
            themselves; else the means of the rated segments count.
    """

    lp: str
    documents: tuple[str, ...]
    gold: FloatMatrix
    gold_of_systems: FloatVector | None
    gold_of_documents: FloatMatrix | None
    metrics: Mapping[Key, Scores]
    notes: tuple[str, ...] = ()

    @property
    def constant(self) -> list[str]:
        """The names of `spa.constant_metrics`."""
        scores = [(name, one.segments) for (name, _), one in self.metrics.items() if one.segments is not None]
        return constant_metrics(self.gold, scores)

    def means_of_documents(self, scores: FloatMatrix) -> FloatMatrix:
        """The mean of each document's segments, systems x documents; NaN is left out."""
        each = [[document == name for document in self.documents] for name in dict.fromkeys(self.documents)]
        return np.stack([system_means(scores[:, of]) for of in each], axis=1)
