"""Statistics of the agreement of scores, and the overall score of WMT's metrics tasks of 2023 to 2025.

    spa, acc_eq                                     as in `spa` and `acc_eq`
    sys-accuracy                                    pairwise accuracy of systems
    sys-pearson, sys-spearman, sys-kendall
    seg-pearson-item, seg-kendall-none, seg-spearman-system ...
    doc-pearson-none, doc-kendall-item ...          of documents, whose scores are the means of their segments

The overall score is

    overall = sum_tasks weight * (value - lowest) / (1 - lowest)

as in mt-metrics-eval's ``TaskSetResults.AverageCorrs``, which puts correlations and accuracies on the same scale. All
statistics of a year have the same weight, divided equally among the language pairs:

    wmt23           pairwise accuracy of systems, pooled over all language pairs; Pearson of systems, Pearson of
                    segments, and acc_eq*.
    wmt24, wmt25    SPA and acc_eq*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Literal

import numpy as np

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, OptionError, labelled, unknown
from mbr_esd_metric.metaeval.correlation import (
    COEFFICIENTS,
    GROUPINGS,
    acc_eq,
    correlation,
    pairwise_accuracy,
    system_correlation,
    system_means,
)
from mbr_esd_metric.metaeval.metric_set import Key, MetricEntry, MetricSet
from mbr_esd_metric.metaeval.ranking import average_ranking, rank_metrics
from mbr_esd_metric.metaeval.significance import Statistic
from mbr_esd_metric.metaeval.spa import spa
from mbr_esd_metric.metaeval.spans import span_measure
from mbr_esd_metric.plugins import Rows

#: Gold and metric scores.
Scores = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class ScoreStatistic:
    """One statistic of scores; higher is better, and the highest value is 1.

    Attributes:
        name: its name on the command line.
        title: its column title.
        level: the input of `value`: for "sys" one score per system, shape (systems,); for "doc" and "seg" score
            matrices (`matrices`), systems x documents or systems x segments.
        value: function from the gold and metric scores of one language pair to the value; unrated gold scores are NaN.
        lowest: the lowest possible value.
        pooled: function from the scores of several language pairs to the pooled value, if the statistic can be pooled.
        contest: the permutation test of its differences, if there is one. The value of "spa" has the option `exact`.
        tasks: the years of WMT whose overall score includes it.
        family: the pattern that replaces the names of a family of statistics in the help.
    """

    name: str
    title: str
    level: Literal["sys", "doc", "seg"]
    value: Callable[..., float]
    lowest: float = -1.0
    pooled: Callable[[Sequence[Scores]], float] | None = None
    contest: Statistic | None = None
    tasks: tuple[str, ...] = ()
    family: str = ""

    def __str__(self) -> str:
        return self.name

    def of(self, pairs: Sequence[Scores], *, exact: bool = False) -> float:
        """The value for one language pair, or the pooled value for several; `exact` is for SPA."""
        if self.pooled is not None:
            return self.pooled(pairs)
        ((gold, metric),) = pairs
        return self.value(gold, metric, **({"exact": exact} if self.contest == "spa" else {}))


def _accuracy(gold: Floats, metric: Floats) -> float:
    return pairwise_accuracy([(gold, metric)])


def _acc_eq(gold: Floats, metric: Floats) -> float:
    return acc_eq(gold, metric).accuracy


def _rows() -> dict[str, ScoreStatistic]:
    later = ("wmt24", "wmt25")
    rows = [
        ScoreStatistic("spa", "SPA", "seg", partial(spa, missing="pairs"), 0.0, contest="spa", tasks=later),
        ScoreStatistic("sys-accuracy", "accuracy sys", "sys", _accuracy, 0.0, pairwise_accuracy, tasks=("wmt23",)),
    ]
    for kind in COEFFICIENTS:
        tasks = ("wmt23",) if kind == "pearson" else ()
        value: Callable[..., float] = partial(system_correlation, coefficient=kind)
        rows.append(
            ScoreStatistic(f"sys-{kind}", f"{kind.capitalize()} sys", "sys", value, tasks=tasks, family="sys-KIND")
        )
    levels: tuple[Literal["seg", "doc"], ...] = ("seg", "doc")
    for level, kind, by in product(levels, COEFFICIENTS, GROUPINGS):
        name, documents = f"{level}-{kind}-{by}", "docs " if level == "doc" else ""
        title = f"{kind.capitalize()} {level if by == 'none' else f'{documents}by {by}'}"
        tasks = ("wmt23",) if name == "seg-pearson-none" else ()
        value = partial(correlation, coefficient=kind, by=by)
        rows.append(ScoreStatistic(name, title, level, value, tasks=tasks, family=f"{level}-KIND-GROUP"))
    rows.append(ScoreStatistic("acc_eq", "acc_eq*", "seg", _acc_eq, 0.0, contest="acc_eq", tasks=("wmt23", *later)))
    return {row.name: row for row in rows}


_ROWS = _rows()
SCORE_STATISTICS = Rows("statistic", "statistics", _ROWS, ScoreStatistic)
#: The supported years.
TASK_SETS = tuple(sorted({year for row in _ROWS.values() for year in row.tasks}))


def statistic_names() -> list[str]:
    """The available names, with one pattern per family."""
    return list(dict.fromkeys(row.family or row.name for row in SCORE_STATISTICS.all().values()))


def evaluate(statistic: ScoreStatistic, sets: Sequence[MetricSet], *, exact: bool = False) -> dict[Key, float]:
    """Metric -> the value of a statistic, for every metric with the required scores in every language pair.

    Args:
        statistic: the statistic.
        sets: the metrics of one language pair; several pairs only for a pooled statistic.
        exact: for SPA, see `spa`.

    Raises `InputError` for several language pairs and a statistic that is not pooled, or for inconsistent scores.
    """
    if len(sets) != 1 and statistic.pooled is None:
        raise InputError(f"{statistic} is computed for one language pair at a time (got {len(sets)})")
    values = {}
    every = [{entry.key: entry for entry in one.entries} for one in sets]
    for key in every[0]:
        pairs = [_pair(statistic, one, of[key]) for one, of in zip(sets, every, strict=True) if key in of]
        complete = [pair for pair in pairs if pair is not None]
        if len(complete) == len(sets):
            with labelled(f"{key[0]} in {', '.join(one.lp for one in sets)}, {statistic}"):
                values[key] = statistic.of(complete, exact=exact)
    return values


def _pair(statistic: ScoreStatistic, data: MetricSet, metric: MetricEntry) -> Scores | None:
    """Gold and metric scores at the level of the statistic, for systems with a gold score; None if either has no scores
    at this level."""
    x, y = data.gold, metric.scores
    if statistic.level == "sys":
        x = system_means(x) if data.gold_of_systems is None else data.gold_of_systems
        y = system_means(y) if metric.of_systems is None and y is not None else metric.of_systems
    elif statistic.level == "doc" and y is not None:
        # If gold has document scores, the metric's are the means of all segments, otherwise of the rated segments.
        stored, rated = data.gold_of_documents, np.where(np.isnan(x), np.nan, y)
        y = data.means_of_documents(rated if stored is None else y)
        x = data.means_of_documents(x) if stored is None else stored
    if y is None:
        return None
    rows = ~np.isnan(x) if x.ndim == 1 else ~np.isnan(x).all(axis=1)
    return x[rows], y[rows]


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a year: a statistic in one language pair, or in several if it is pooled. The weights of a year sum to
    1."""

    statistic: ScoreStatistic
    lps: tuple[str, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class Overall:
    """The overall scores of a year.

    Attributes:
        values: metric -> its value in each task, None without the required scores.
        overall: metric -> its overall score in [0, 1], best first; only metrics with a value in every task.
        ranks: metric -> its significance cluster by the overall score, from 1; empty without tests.
    """

    tasks: tuple[Task, ...]
    values: Mapping[Key, tuple[float | None, ...]]
    overall: Mapping[Key, float]
    ranks: Mapping[Key, int]


def wmt_tasks(name: str, sets: Sequence[MetricSet]) -> tuple[Task, ...]:
    """The tasks of a year in `TASK_SETS`, for these language pairs. Raises `OptionError` for another year."""
    if name not in TASK_SETS:
        raise unknown("set of tasks", name, TASK_SETS)
    lps = tuple(one.lp for one in sets)
    statistics = [row for row in _ROWS.values() if name in row.tasks]
    weight = 1 / len(statistics)
    pooled = [Task(one, lps, weight) for one in statistics if one.pooled is not None]
    each = [one for one in statistics if one.pooled is None]
    return (*pooled, *(Task(one, (lp,), weight / len(lps)) for lp in lps for one in each))


def overall(
    tasks: Sequence[Task], sets: Sequence[MetricSet], draws: int | None = None, *, exact: bool = False
) -> Overall:
    """Evaluate every metric in every task, compute weighted averages, and test them as ``AverageCorrMatrix`` does.

    Args:
        tasks: the tasks.
        sets: the metrics of each language pair.
        draws: the number of draws; None for 1000 where tests are possible, 0 for no tests. Only SPA and acc_eq* (WMT24
            and later) can be tested.
        exact: for SPA, see `spa`.

    Raises:
        InputError: inconsistent scores.
        OptionError: draws for tasks that cannot be tested.
    """
    by_name = {one.lp: one for one in sets}
    columns = [evaluate(task.statistic, [by_name[name] for name in task.lps], exact=exact) for task in tasks]
    keys = dict.fromkeys(entry.key for one in sets for entry in one.entries)
    values = {key: tuple(column.get(key) for column in columns) for key in keys}
    averages = {}
    for key, row in values.items():
        complete = [(task, value) for task, value in zip(tasks, row, strict=True) if value is not None]
        if len(complete) == len(tasks):
            shares = [(value - t.statistic.lowest) / (1 - t.statistic.lowest) for t, value in complete]
            averages[key] = sum(task.weight * share for task, share in zip(tasks, shares, strict=True))
    ordered = dict(sorted(averages.items(), key=lambda item: (-item[1], item[0])))
    contests = [task.statistic.contest for task in tasks if task.statistic.contest is not None]
    testable = len(contests) == len(tasks)
    if draws and not testable:
        raise OptionError("significance tests are available for SPA and acc_eq* only (WMT24 and later)")
    ranks = {}
    if ordered and testable and draws != 0:
        rankings = []
        names = {f"{key[0]} {key[1]}": key for key in keys}
        for task, contest in zip(tasks, contests, strict=True):
            data = by_name[task.lps[0]]
            scores = {name: data.scores[key] for name, key in names.items() if key in data.scores}
            k = 1000 if draws is None else draws
            rankings.append(rank_metrics(data.gold, scores, contest, k, missing="pairs", exact=exact))
        mean = average_ranking(rankings, [task.weight for task in tasks])
        ranks = {names[name]: rank for name, rank in zip(mean.names, mean.ranks, strict=True)}
    return Overall(tuple(tasks), values, ordered, ranks)


@dataclass(frozen=True, eq=False)
class BreakdownPart:
    """One part of a test set.

    Attributes:
        segments: the number of segments.
        rated: the number of rated translations.
        values: metric -> statistic or measure -> value, None if it cannot be computed.
    """

    name: str
    segments: int
    rated: int
    values: Mapping[Key, Mapping[str, float | None]]


def breakdown(
    data: MetricSet, labels: Sequence[str], measures: Sequence[str], *, exact: bool = False
) -> tuple[BreakdownPart, ...]:
    """Evaluate every metric on each part of the test set separately.

    Args:
        data: the metrics.
        labels: the part of each segment. Parts are returned in the order of their first segments.
        measures: names of score statistics and span measures.
        exact: for SPA, see `spa`.

    Raises:
        InputError: inconsistent spans.
        OptionError: an unknown measure.
    """
    of_spans = [span_measure(name).name for name in measures if name not in SCORE_STATISTICS.names()]
    spans = data.span_scores(of_spans) if len(data.human) and of_spans else {}
    parts = []
    for name in dict.fromkeys(labels):
        columns = np.array([label == name for label in labels], dtype=np.bool_)
        part, values = data.part(columns), dict[str, dict[Key, float]]()
        for measure in measures:
            if measure in of_spans:
                sums = {key: one.statistics[measure][:, columns] for key, one in spans.items()}
                value = span_measure(measure).value
                values[measure] = {
                    key: float(value(np.nansum(each, axis=(0, 1))))
                    for key, each in sums.items()
                    if not np.isnan(each).all()
                }
            else:
                with suppress(InputError):  # too few ratings, or systems that are rated on different segments
                    values[measure] = evaluate(SCORE_STATISTICS.get(measure), [part], exact=exact)
        every = {key: {measure: values.get(measure, {}).get(key) for measure in measures} for key in part.scores}
        parts.append(BreakdownPart(name, int(columns.sum()), int((~np.isnan(part.gold)).sum()), every))
    return tuple(parts)


def length_labels(lengths: Sequence[int]) -> list[str]:
    """The bucket of each length, such as "0-49", "50-99" or "100-", from at most four buckets of about equal size."""
    quartiles = np.unique(np.ceil(np.quantile(lengths, [0.25, 0.5, 0.75])).astype(int))
    starts = [0, *quartiles[quartiles > min(lengths)].tolist()]
    names = [f"{low}-{high - 1}" for low, high in pairwise(starts)] + [f"{starts[-1]}-"]
    return [names[at - 1] for at in np.searchsorted(starts, lengths, side="right").tolist()]
