"""The statistics of scores by name, for tables of correlations and for WMT's tasks.

spa, acc_eq                        as in `spa` and `acc_eq`
doc-pearson-none, doc-kendall-item ...   the same correlations of documents, whose scores are means of their segments
sys-accuracy                       pairwise accuracy of systems
sys-pearson, sys-spearman, sys-kendall
seg-pearson-item, seg-kendall-none, seg-spearman-system ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.acc_eq import acc_eq
from mbr_esd_metric.metaeval.correlation import (
    COEFFICIENTS,
    GROUPINGS,
    Coefficient,
    Grouping,
    correlation,
    pairwise_accuracy,
    system_correlation,
    system_means,
)
from mbr_esd_metric.metaeval.matrices import BoolMatrix, FloatMatrix, FloatVector, Missing
from mbr_esd_metric.metaeval.metric_set import Key
from mbr_esd_metric.metaeval.spa import constant_metrics, spa

#: What a statistic compares: scores of systems, documents or segments. SPA compares systems by their segments' scores.
StatisticLevel = Literal["sys", "doc", "seg"]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of gold or a metric.

    Attributes:
        segments: systems x segments, NaN if there is none; None if only systems are scored.
        systems: domain, or None for all domains -> one score for each system, shape (systems,), NaN if there is none.
            For a domain that is missing here, the mean of the segments counts.
        documents: systems x documents, where they are scored by themselves; else the mean of the rated segments counts.
    """

    segments: FloatMatrix | None
    systems: Mapping[str | None, FloatVector] = field(default_factory=dict)
    documents: FloatMatrix | None = None

    def of_systems(self, domain: str | None, segments: BoolMatrix) -> FloatVector | None:
        """Scores of systems over a domain, which has those segments; None if there are none."""
        if domain in self.systems:
            return self.systems[domain]
        return None if self.segments is None else system_means(self.segments[:, segments])


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """Scores of one language pair over the same translations.

    Attributes:
        lp: such as "en-de".
        domains, documents: the domain and the document of each segment.
        human: whether a system is a human translation, shape (systems,).
        references: the number of references, including the standard one.
        gold, metrics: scores; the systems have the same order in all of them.
        notes: what readers of a table should know.
    """

    lp: str
    domains: tuple[str, ...]
    documents: tuple[str, ...]
    human: BoolMatrix
    references: int
    gold: Scores
    metrics: Mapping[Key, Scores]
    notes: tuple[str, ...] = ()

    @property
    def constant(self) -> list[str]:
        """The metrics that say the same of every translation: `spa.constant_metrics`."""
        there = [(name, one.segments) for (name, _), one in self.metrics.items() if one.segments is not None]
        return [] if self.gold.segments is None else constant_metrics(self.gold.segments, there)


@dataclass(frozen=True, slots=True)
class ScoreStatistic:
    """One statistic.

    Attributes:
        level: what is compared.
        kind: "spa", "acc_eq", "accuracy" or a correlation.
        by: grouping of a correlation of segments.
    """

    level: StatisticLevel
    kind: str
    by: Grouping = "none"

    def __str__(self) -> str:
        if self.kind in ("spa", "acc_eq"):
            return self.kind
        return f"{self.level}-{self.kind}" + ("" if self.level == "sys" else f"-{self.by}")

    @property
    def lowest(self) -> float:
        """The lowest possible value; the highest is 1."""
        return -1.0 if self.kind in COEFFICIENTS else 0.0

    def of_segments(
        self, gold: FloatMatrix, metric: FloatMatrix, missing: Missing = "toolkit", *, exact: bool = False
    ) -> float:
        """The value for scores of segments; scores of systems are their means. `missing` and `exact` are for SPA.

        Raises:
            InputError: for matrices that do not fit, see `matrices`.
        """
        if self.kind == "spa":
            return spa(gold, metric, missing=missing, exact=exact)
        if self.kind == "acc_eq":
            return acc_eq(gold, metric).accuracy
        if self.level == "sys":
            return self.of_systems([(system_means(gold), system_means(metric))])
        return correlation(gold, metric, _coefficient(self.kind), self.by).value

    def of_systems(self, scores: Iterable[tuple[FloatVector, FloatVector]]) -> float:
        """The value for (gold, metric) scores of systems; only the accuracy takes several language pairs.

        Raises:
            InputError: for vectors that do not fit.
        """
        if self.kind == "accuracy":
            return pairwise_accuracy(scores).accuracy
        ((gold, metric),) = scores
        return system_correlation(gold, metric, _coefficient(self.kind)).value


#: Every statistic by name.
SCORE_STATISTICS: Mapping[str, ScoreStatistic] = {
    str(statistic): statistic
    for statistic in (
        ScoreStatistic("sys", "spa"),
        ScoreStatistic("seg", "acc_eq"),
        ScoreStatistic("sys", "accuracy"),
        *(ScoreStatistic("sys", coefficient) for coefficient in COEFFICIENTS),
        *(ScoreStatistic("seg", coefficient, by) for coefficient in COEFFICIENTS for by in GROUPINGS),
        *(ScoreStatistic("doc", coefficient, by) for coefficient in COEFFICIENTS for by in GROUPINGS),
    )
}


def score_statistic(name: str) -> ScoreStatistic:
    """The statistic of that name.

    Raises:
        OptionError: an unknown name, with the nearest ones.
    """
    if name not in SCORE_STATISTICS:
        raise unknown("statistic", name, SCORE_STATISTICS)
    return SCORE_STATISTICS[name]


def evaluate(
    statistic: ScoreStatistic,
    sets: Sequence[ScoredSet],
    *,
    domain: str | None = None,
    human: bool = True,
    missing: Missing = "toolkit",
    exact: bool = False,
) -> dict[Key, float]:
    """One statistic of every metric that has the scores it needs in every language pair.

    Args:
        statistic: what to compute.
        sets: one; several for the accuracy of systems, whose pairs are counted together.
        domain: only these segments; None for all.
        human: whether people's translations are compared as well.
        missing, exact: for SPA, see `matrices.packed` and `spa`.

    Raises:
        InputError: several language pairs for another statistic, or scores that do not fit.
    """
    if len(sets) != 1 and statistic.kind != "accuracy":
        raise InputError(f"{statistic} is of one language pair, not of {len(sets)}")
    found = {}
    for key in sets[0].metrics:
        if all(key in one.metrics for one in sets):
            pairs = [_pair(statistic, one, key, domain, human) for one in sets]
            there = [pair for pair in pairs if pair is not None]
            if len(there) == len(pairs):
                found[key] = _value(statistic, there, key, sets, missing, exact)
    return found


def _value(
    statistic: ScoreStatistic,
    pairs: Sequence[tuple[FloatMatrix, FloatMatrix]],
    key: Key,
    sets: Sequence[ScoredSet],
    missing: Missing,
    exact: bool,
) -> float:
    try:
        if statistic.level == "sys" and statistic.kind != "spa":
            return statistic.of_systems(pairs)
        return statistic.of_segments(*pairs[0], missing, exact=exact)
    except InputError as error:
        where = ", ".join(one.lp for one in sets)
        raise InputError(f"{key[0]} in {where}, {statistic}: {error}") from None


def _pair(
    statistic: ScoreStatistic, data: ScoredSet, key: Key, domain: str | None, human: bool
) -> tuple[FloatMatrix, FloatMatrix] | None:
    """Gold and metric, of segments or of systems, where gold has something; None if one has no such scores."""
    columns = np.array([domain is None or one == domain for one in data.domains], dtype=np.bool_)
    rows = np.ones(len(data.human), dtype=np.bool_) if human else ~data.human
    gold, metric = data.gold, data.metrics[key]
    if statistic.level == "sys" and statistic.kind != "spa":
        x, y = gold.of_systems(domain, columns), metric.of_systems(domain, columns)
        if x is None or y is None:
            return None
        rows = rows & ~np.isnan(x)
        return x[rows], y[rows]
    if statistic.level == "doc":
        found = _of_documents(data, gold, metric, columns)
        if found is None:
            return None
        matrix, scores = found
    elif gold.segments is None or metric.segments is None:
        return None
    else:
        matrix, scores = gold.segments[:, columns], metric.segments[:, columns]
    rows = rows & ~np.isnan(matrix).all(axis=1)
    return matrix[rows], scores[rows]


def _of_documents(
    data: ScoredSet, gold: Scores, metric: Scores, columns: BoolMatrix
) -> tuple[FloatMatrix, FloatMatrix] | None:
    """Gold and metric of the documents that have one of these segments, systems x documents.

    Gold is its own score of a document where it is stored, and the metric's then the mean of all its segments; else
    both are means of the segments that are rated.
    """
    if metric.segments is None or (gold.documents is None and gold.segments is None):
        return None
    x, y = [], []
    for at, name in enumerate(dict.fromkeys(data.documents)):
        of = columns & np.array([document == name for document in data.documents])
        if not of.any():
            continue
        scores = metric.segments[:, of]
        if gold.documents is not None:
            x.append(gold.documents[:, at])
        else:
            assert gold.segments is not None
            rated = gold.segments[:, of]
            x.append(_mean(rated))
            scores = np.where(np.isnan(rated), np.nan, scores)
        y.append(_mean(scores))
    return np.stack(x, axis=1), np.stack(y, axis=1)


def _mean(values: FloatMatrix) -> FloatVector:
    """The mean of each row's numbers; NaN if it has none."""
    there = ~np.isnan(values)
    counts = there.sum(axis=1)
    sums = np.where(there, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _coefficient(kind: str) -> Coefficient:
    for coefficient in COEFFICIENTS:
        if coefficient == kind:
            return coefficient
    raise unknown("correlation", kind, COEFFICIENTS)
