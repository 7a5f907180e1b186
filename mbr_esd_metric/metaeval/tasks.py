"""The overall score of WMT's metrics tasks, 2022 to 2025: which statistics of which data count, with which weights.

    overall = sum_tasks weight * (value - lowest) / (1 - lowest)

So correlations (from -1 to 1) and accuracies (from 0 to 1) have the same weight, as in mt-metrics-eval's
``TaskSetResults.AverageCorrs``.

    wmt22   pairwise accuracy of systems over all language pairs; and for each pair, all of it and each domain, with
            and without people's translations where there are several references: Pearson and Kendall, of systems, and
            of segments over everything, by system and by item (201 tasks for its three pairs). Weights are shared
            out evenly by language pair, then domain, level, people, grouping and correlation.
    wmt23   pairwise accuracy of systems over all language pairs, which weighs as much as a task a pair; and for each
            pair Pearson of systems, Pearson of segments, and acc_eq*.
    wmt24   SPA and acc_eq* for each language pair, all alike.
    wmt25   the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.metaeval.correlation import GROUPINGS
from mbr_esd_metric.metaeval.matrices import Missing
from mbr_esd_metric.metaeval.metric_set import Key
from mbr_esd_metric.metaeval.ranking import average_ranking, rank_metrics
from mbr_esd_metric.metaeval.score_statistics import ScoredSet, ScoreStatistic, evaluate, score_statistic
from mbr_esd_metric.metaeval.significance import STATISTICS, Statistic


@dataclass(frozen=True, slots=True)
class Task:
    """One comparison of metrics.

    Attributes:
        statistic: what is computed.
        lps: the language pairs of the data; several for the accuracy of systems.
        domain: the domain of the segments; None for all.
        human: whether human translations are compared.
        weight: of its value in the overall score; the weights of a task set add up to 1.
    """

    statistic: ScoreStatistic
    lps: tuple[str, ...]
    domain: str | None = None
    human: bool = True
    weight: float = 0.0

    def __str__(self) -> str:
        words = [str(self.statistic), *([self.domain] if self.domain else []), *([] if self.human else ["no people"])]
        return " ".join(words)


@dataclass(frozen=True, eq=False)
class Overall:
    """The overall score of each metric.

    Attributes:
        tasks: with weights.
        values: metric -> its value in each task, None if it lacks the scores.
        overall: metric -> the weighted average in [0, 1], of the metrics that are in every task, best first.
    """

    tasks: tuple[Task, ...]
    values: Mapping[Key, tuple[float | None, ...]]
    overall: Mapping[Key, float]


def wmt_tasks(name: str, sets: Sequence[ScoredSet]) -> tuple[Task, ...]:
    """The tasks of a year, for these language pairs.

    Raises:
        InputError: no language pair.
        OptionError: an unknown task set.
    """
    if name not in TASK_SETS:
        raise unknown("set of tasks", name, TASK_SETS)
    if not sets:
        raise InputError("a set of tasks needs a language pair")
    return TASK_SETS[name](sets)


def overall(
    tasks: Sequence[Task], sets: Sequence[ScoredSet], missing: Missing = "toolkit", *, exact: bool = False
) -> Overall:
    """Evaluate every metric in every task, and average.

    Args:
        tasks: of `wmt_tasks`, or made otherwise; weights add up to 1.
        sets: those of the tasks.
        missing, exact: for SPA, see `matrices.packed` and `spa`.

    Raises:
        InputError: scores that do not fit.
    """
    by_name = {one.lp: one for one in sets}
    found = [
        evaluate(
            task.statistic,
            [by_name[name] for name in task.lps],
            domain=task.domain,
            human=task.human,
            missing=missing,
            exact=exact,
        )
        for task in tasks
    ]
    keys = dict.fromkeys(key for one in sets for key in one.metrics)
    values = {key: tuple(values.get(key) for values in found) for key in keys}
    averages = {
        key: sum(task.weight * _share(task, value) for task, value in zip(tasks, row, strict=True))
        for key, row in values.items()
        if None not in row
    }
    ordered = dict(sorted(averages.items(), key=lambda item: (-item[1], item[0])))
    return Overall(tuple(tasks), values, ordered)


def testable(tasks: Sequence[Task]) -> bool:
    """Whether `clusters` can test these tasks: SPA and acc_eq* on whole language pairs, as in WMT24 and later."""
    return all(task.statistic.kind in STATISTICS and task.domain is None and task.human for task in tasks)


def clusters(
    tasks: Sequence[Task],
    sets: Sequence[ScoredSet],
    k: int = 1000,
    seed: int = 0,
    *,
    alpha: float = 0.05,
    missing: Missing = "toolkit",
    exact: bool = False,
    workers: int = 1,
) -> dict[Key, int]:
    """Significance clusters by the overall score, of the metrics that are in every task; as ``AverageCorrMatrix``.

    Raises:
        InputError: scores that do not fit.
        OptionError: tasks that cannot be tested.
    """
    if not testable(tasks):
        raise OptionError("only SPA and acc_eq* are tested: the tasks of WMT24 and later")
    by_name = {one.lp: one for one in sets}
    keys: dict[str, Key] = {}
    rankings = []
    for task in tasks:
        data = by_name[task.lps[0]]
        scores = {
            f"{key[0]} {key[1]}": metric.segments for key, metric in data.metrics.items() if metric.segments is not None
        }
        keys |= {f"{key[0]} {key[1]}": key for key in data.metrics}
        if data.gold.segments is None:
            raise InputError(f"no gold scores of segments in {data.lp}")
        statistic: Statistic = "spa" if task.statistic.kind == "spa" else "acc_eq"
        rankings.append(
            rank_metrics(
                data.gold.segments,
                scores,
                statistic,
                k,
                seed,
                alpha=alpha,
                missing=missing,
                exact=exact,
                workers=workers,
            )
        )
    mean = average_ranking(rankings, [task.weight for task in tasks], alpha=alpha)
    return {keys[name]: rank for name, rank in zip(mean.names, mean.ranks, strict=True)}


def _share(task: Task, value: float | None) -> float:
    assert value is not None
    lowest = task.statistic.lowest
    return (value - lowest) / (1 - lowest)


def _wmt22(sets: Sequence[ScoredSet]) -> tuple[Task, ...]:
    names = tuple(one.lp for one in sets)
    tasks = [Task(score_statistic("sys-accuracy"), names, human=False)] if len(names) > 1 else []
    for one in sets:
        for domain in (None, *dict.fromkeys(one.domains)):
            for statistic in (
                *(f"sys-{kind}" for kind in ("pearson", "kendall")),
                *(f"seg-{kind}-{by}" for by in GROUPINGS for kind in ("pearson", "kendall")),
            ):
                for human in (True, False) if one.references > 1 else (False,):
                    tasks.append(Task(score_statistic(statistic), (one.lp,), domain, human))
    return _shared_out(tasks, 1.0, ("lps", "domain", "level", "human", "by", "kind"))


def _shared_out(tasks: Sequence[Task], weight: float, attributes: Sequence[str]) -> tuple[Task, ...]:
    """The tasks, with the weight shared equally between the values of the first attribute, then within each value."""
    if not attributes:
        return tuple(replace(task, weight=weight / len(tasks)) for task in tasks)
    groups: dict[object, list[Task]] = {}
    for task in tasks:
        owner = task if hasattr(task, attributes[0]) else task.statistic
        groups.setdefault(getattr(owner, attributes[0]), []).append(task)
    shared = (_shared_out(group, weight / len(groups), attributes[1:]) for group in groups.values())
    return tuple(task for group in shared for task in group)


def _wmt23(sets: Sequence[ScoredSet]) -> tuple[Task, ...]:
    names = tuple(one.lp for one in sets)
    total = 4 * len(names)
    tasks = [Task(score_statistic("sys-accuracy"), names, weight=len(names) / total)]
    for name in names:
        for statistic in ("sys-pearson", "seg-pearson-none", "acc_eq"):
            tasks.append(Task(score_statistic(statistic), (name,), weight=1 / total))
    return tuple(tasks)


def _wmt24(sets: Sequence[ScoredSet]) -> tuple[Task, ...]:
    return tuple(
        Task(score_statistic(statistic), (one.lp,), weight=1 / (2 * len(sets)))
        for one in sets
        for statistic in ("spa", "acc_eq")
    )


#: Name -> what makes the tasks.
TASK_SETS: Mapping[str, Callable[[Sequence[ScoredSet]], tuple[Task, ...]]] = {
    "wmt22": _wmt22,
    "wmt23": _wmt23,
    "wmt24": _wmt24,
    "wmt25": _wmt24,
}
