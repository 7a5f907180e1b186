"""The other views of a leaderboard: numbers of spans and their agreement, translations without error, parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

import numpy as np

from mbr_esd_metric.adapters.wmt.metric_sets import metric_set_of
from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.errors import InputError, labelled, number_of
from mbr_esd_metric.metaeval.breakdown import breakdown, length_labels
from mbr_esd_metric.metaeval.error_free import (
    ESA_THRESHOLD,
    ErrorFree,
    Tried,
    best_threshold,
    error_free,
    gold_labels,
    unmarked,
)
from mbr_esd_metric.metaeval.omissions import evaluate_omissions
from mbr_esd_metric.metaeval.score_statistics import SCORE_STATISTICS
from mbr_esd_metric.metaeval.spa import constant_notes, exact_notes
from mbr_esd_metric.metaeval.spans import SpanCounts, SpanEvaluator, rater_agreement
from mbr_esd_metric.prompting.words import word_count
from mbr_esd_metric.report.evaluations import Measuring
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES, input_of, measure_column, row_name, statistic_title
from mbr_esd_metric.report.tables import Cell, Column, Table, TableRow, Value, finite_or_empty, table_of

#: Field of `OmissionScores` -> column.
_OMISSIONS = {
    "predicted": Column("omissions", "omitted", digits=0),
    "precision": Column("omission_precision", "omission precision", best="max"),
    "recall": Column("omission_recall", "omission recall", best="max"),
    "f1": Column("omission_f1", "omission F1", best="max"),
}


def span_table(test_set: TestSet, measuring: Measuring, metrics: Sequence[str] = ()) -> Table:
    """The humans, "no error" everywhere, and each metric with error spans.

    Where translations have two raters, also what one rater reaches against the others, and each metric's share of it.
    """
    human = test_set.human(measuring.raters)
    if not human:
        raise InputError(
            f"{test_set.layout.human_rating('*')}: no human ratings to compare spans with; import them with: "
            "mbr-esd wmt import"
        )
    evaluator = SpanEvaluator(list(human.values()), test_set.lengths, measuring.measures, measuring.aggregation)
    nothing = evaluator.evaluate([[EMPTY] * test_set.segments] * len(test_set.systems))
    counts = nothing.counts
    among_people = rater_agreement(list(human.values()), test_set.lengths, measuring.measures, measuring.aggregation)
    with_spans, notes = test_set.metrics_with_spans(metrics)
    people = [r.omissions_of(test_set.systems, test_set.segments) for r in test_set.human_ratings(measuring.raters)]
    omissions = [ratings.omissions_of(test_set.systems, test_set.segments) for _, ratings in with_spans]
    with_omissions = any(cell is not None and len(cell) > 0 for matrix in omissions for row in matrix for cell in row)

    def row(
        name: str, source: str | None, of: SpanCounts, values: Mapping[str, float], left_out: object = None
    ) -> TableRow:
        both = of.major + of.minor
        cells: dict[Column, Value | Cell] = {
            Column("metric", "metric"): name,
            Column("input", "input"): source,
            Column("major", "major", digits=0): of.major,
            Column("minor", "minor", digits=0): of.minor,
            Column("per_translation", "per translation", digits=2): both / nothing.rated,
            Column("major_share", "% major", digits=1, percent=True): of.major / both if both else None,
            Column("ratio", "ratio", digits=2): finite_or_empty(of.ratio),
        }
        for measure in measuring.measures:
            cells[measure_column(measure)] = value = values.get(measure)
            if among_people:
                best = among_people[measure]
                share = value / best if value is not None and best > 0 else None
                cells[Column(f"{measure}_share", "% human", digits=0, percent=True)] = share
        if with_omissions:
            cells |= {column: finite_or_empty(getattr(left_out, key, None)) for key, column in _OMISSIONS.items()}
        return cells

    rows = [
        row("human", None, SpanCounts(counts.gold_major, counts.gold_minor, 0, 0), among_people),
        row("no error", None, counts, nothing.values),
    ]
    for (metric, ratings), left_out in zip(with_spans, omissions, strict=True):
        with labelled(f"{metric.name}, {test_set.lp}"):
            scores = evaluator.evaluate(ratings.of(test_set.systems, test_set.segments))
        base, uses_reference = base_name(metric.name)
        omitted = evaluate_omissions(left_out, people) if with_omissions else None
        rows.append(row(base, input_of(uses_reference), scores.counts, scores.values, omitted))
    legend = [
        f"{number_of(nothing.rated, 'rated translation')}, {number_of(len(test_set.systems), 'system')}, raters: "
        f"{', '.join(human)}",
        "ratio: error spans per human error span",
    ]
    if among_people:
        legend.append("human: one rater against the others; % human: the share of it")
    if with_omissions:
        legend.append("omitted: what is left out, as spans of the source; right if they meet a human one")
    return table_of(f"{test_set.name} {test_set.lp}", rows, (*legend, *test_set.notes, *notes))


def error_free_table(test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = ()) -> Table:
    """Each metric, by its spans and by its score; metrics by full or base names, none for all."""
    gold = test_set.info.gold
    least = ESA_THRESHOLD if gold.startswith("esa") else 0.0 if gold.startswith("mqm") else -math.inf
    labels = gold_labels(test_set.gold, list(test_set.human(raters).values()), least)
    rated, clean = int((~np.isnan(labels)).sum()), int(np.nansum(labels))

    def row(name: str, by: str | None, result: ErrorFree, threshold: float | None, auc: float | None) -> TableRow:
        return {
            Column("metric", "metric"): name,
            Column("by", "by"): by,
            **_values(result),
            Column("threshold", "threshold"): finite_or_empty(threshold),
            Column("auc", "AUC", best="max"): finite_or_empty(auc),
        }

    rows = [row("none without error", None, error_free(labels, np.zeros(labels.shape)), None, None)]
    stored, notes = test_set.read_metrics(metrics)
    for metric in stored:
        shown = row_name(base_name(metric.name))
        if metric.ratings is not None:
            clean_spans = unmarked(metric.ratings.of(test_set.systems, test_set.segments))
            rows.append(row(shown, "no span", error_free(labels, clean_spans), None, None))
        best = best_threshold(labels, metric.scores)
        rows.append(row(shown, "score, best", best.result, best.threshold, best.auc))
    score = "" if least == -math.inf else f" and a gold score of at least {least:g}"
    legend = [f"{clean} of {rated} rated translations are without error: no marked error{score}"]
    legend.append("best: the threshold of the score with the highest MCC on these translations")
    return table_of(f"{test_set.name} {test_set.lp}", rows, (*legend, *test_set.notes, *notes))


def learning_tables(
    title: str, tried: Sequence[Tried], labels: Sequence[bool], precision: float | None = None
) -> list[Table]:
    """Ways to say "without error" on translations that they were not learnt on, and each language pair by itself."""
    pairs = list(tried[0].by_pair)
    rows: list[TableRow] = []
    for one in tried:
        mcc, *others = _values(one.result).items()
        interval = Column("interval", "95% interval"), "{:+.3f} to {:+.3f}".format(*one.interval)
        row = dict([(Column("by", "by"), one.name), mcc, interval, *others])
        if len(pairs) > 1:
            row |= {Column(f"mcc {pair}", f"MCC {pair}", best="max"): one.by_pair[pair].mcc for pair in pairs}
        rows.append(row)
    aim = "the highest MCC" if precision is None else f"a precision of {precision:g}"
    notes = (
        f"{sum(labels)} of {len(labels)} rated translations are without error",
        f"learnt on four fifths of the documents, for {aim}, and tried on the last; intervals resample documents",
    )
    return [table_of(f"{title}: without error", rows, notes)]


def _values(result: ErrorFree) -> TableRow:
    return {
        Column("mcc", "MCC", best="max"): result.mcc,
        Column("precision", "P", best="max"): result.precision,
        Column("recall", "R", best="max"): result.recall,
        Column("f1", "F1", best="max"): result.f1,
        Column("accuracy", "accuracy", best="max"): result.accuracy,
    }


#: What a test set can be divided by.
By = Literal["domain", "document", "length"]


def breakdown_table(
    test_set: TestSet, by: By, statistics: Sequence[str], measuring: Measuring, metrics: Sequence[str] = ()
) -> Table:
    """One row for each part and metric; within a part the best by the first statistic or measure comes first.

    Statistics of scores come before the measures of error spans; metrics by full or base names, none for all.
    """
    names = [*statistics, *measuring.measures]
    data = metric_set_of(test_set, metrics, measuring.raters)
    if by == "length":
        labels = length_labels(words_of_translations(test_set))
    else:
        labels = [domain if by == "domain" else document for domain, document in test_set.documents]
    parts = breakdown(data, labels, names, measuring.aggregation, exact=measuring.exact)
    if by == "length":
        parts = tuple(sorted(parts, key=lambda part: int(part.name.split("-")[0])))
    titles = {
        name: statistic_title(SCORE_STATISTICS[name]) if name in SCORE_STATISTICS else MEASURE_TITLES.get(name, name)
        for name in names
    }
    rows: list[TableRow] = [
        {
            Column(by, by): part.name,
            Column("segments", "segments"): part.segments,
            Column("rated", "rated"): part.rated,
            Column("metric", "metric"): key[0],
            Column("input", "input"): input_of(key[1]),
            **{Column(name, title): values[name] for name, title in titles.items()},
        }
        for part in parts
        for key, values in sorted(part.values.items(), key=lambda item: (falling(item[1][names[0]]), item[0]))
    ]
    legend = "rated: translations with a gold score"
    if by == "length":
        legend += "; lengths are words of the translation, the mean over the systems"
    legends = [legend]
    if "softf1" in names:
        legends.append("SoftF1 rewards a metric that marks little; compare with the metric empty")
    title = f"{test_set.name} {test_set.lp} by {by}"
    constant = {test_set.lp: data.constant} if "spa" in names else {}
    notes = constant_notes(constant, measuring.exact)
    return table_of(title, rows, (*legends, *exact_notes(measuring.exact), *data.notes, *notes))


def words_of_translations(test_set: TestSet) -> list[int]:
    """The mean number of words of each segment's translations, rounded."""
    each: list[list[int]] = [[] for _ in test_set.sources]
    for texts in test_set.outputs.values():
        for words, text in zip(each, texts, strict=True):
            words += [] if text is None else [word_count(text)]
    return [round(fmean(words)) if words else 0 for words in each]


def falling(value: float | None) -> float:
    """A sort key: the highest value first, no value last."""
    return math.inf if value is None else -value
