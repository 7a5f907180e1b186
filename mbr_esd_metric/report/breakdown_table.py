"""The leaderboard of each domain, each document, or translations of like length, as one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from mbr_esd_metric.adapters.wmt.scored import stored_metrics
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.elicit.sentences import word_count
from mbr_esd_metric.metaeval.breakdown import breakdown, length_labels
from mbr_esd_metric.metaeval.score_statistics import SCORE_STATISTICS
from mbr_esd_metric.metaeval.spa import constant_metrics, constant_notes, exact_notes
from mbr_esd_metric.report.evaluations import Measuring
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES, input_of
from mbr_esd_metric.report.statistics import statistic_title
from mbr_esd_metric.report.tables import Cell, Column, Table

#: What a test set can be divided by.
By = Literal["domain", "document", "length"]


def breakdown_table(
    test_set: TestSet, by: By, statistics: Sequence[str], measuring: Measuring, metrics: Sequence[str] = ()
) -> Table:
    """One row for each part and metric; within a part the best by the first statistic or measure comes first.

    Args:
        test_set: one language pair.
        by: the parts.
        statistics: of scores, before the measures of error spans.
        measuring: which raters, measures and SPA.
        metrics: full or base names; none for all.
    """
    names = [*statistics, *measuring.measures]
    data = stored_metrics(test_set, metrics, measuring.raters)
    if by == "length":
        labels = length_labels(words_of_translations(test_set))
    else:
        labels = [domain if by == "domain" else document for domain, document in test_set.documents]
    parts = breakdown(data, labels, names, measuring.aggregation, measuring.missing, exact=measuring.exact)
    if by == "length":
        parts = tuple(sorted(parts, key=lambda part: int(part.name.split("-")[0])))
    columns = [Column(by, by, label=True), Column("segments", "segments"), Column("rated", "rated")]
    columns += [Column("metric", "metric", label=True), Column("input", "input", label=True)]
    for name in names:
        title = statistic_title(SCORE_STATISTICS[name]) if name in SCORE_STATISTICS else MEASURE_TITLES.get(name, name)
        columns.append(Column(name, title))
    rows = []
    for part in parts:
        ordered = sorted(part.values.items(), key=lambda item: (falling(item[1][names[0]]), item[0]))
        for key, values in ordered:
            named = (Cell(part.name), Cell(part.segments), Cell(part.rated), Cell(key[0]), Cell(input_of(key[1])))
            rows.append((*named, *(Cell(values[name]) for name in names)))
    legend = "rated: translations with a gold score"
    if by == "length":
        legend += "; lengths are words of the translation, the mean over the systems"
    legends = [legend]
    if "softf1" in names:
        legends.append("SoftF1 rewards a metric that marks little; compare with the metric empty")
    title = f"{test_set.name} {test_set.lp} by {by}"
    constant = {test_set.lp: constant_metrics(data.gold, data.scores)} if "spa" in names else {}
    notes = constant_notes(constant, measuring.exact)
    return Table(title, tuple(columns), tuple(rows), (*legends, *exact_notes(measuring.exact), *data.notes, *notes))


def words_of_translations(test_set: TestSet) -> list[int]:
    """Of each segment the mean number of words of its translations, rounded."""
    each: list[list[int]] = [[] for _ in test_set.sources]
    for texts in test_set.outputs.values():
        for words, text in zip(each, texts, strict=True):
            words += [] if text is None else [word_count(text)]
    return [round(fmean(words)) if words else 0 for words in each]


def falling(value: float | None) -> float:
    """A sort key: the highest value first, no value last."""
    return math.inf if value is None else -value
