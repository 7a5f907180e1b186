"""The other views of a leaderboard: numbers of spans and their agreement, translations without error, parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

import numpy as np

from mbr_esd_metric.adapters.wmt.scored import stored_metrics
from mbr_esd_metric.adapters.wmt.test_set import TestSet, base_name
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.elicit.words import word_count
from mbr_esd_metric.errors import InputError, number_of
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
from mbr_esd_metric.metaeval.spa import constant_metrics, constant_notes, exact_notes
from mbr_esd_metric.metaeval.spans import SpanEvaluator, SpanScores, rater_agreement
from mbr_esd_metric.report.evaluations import Measuring
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES, input_of, row_name, statistic_title
from mbr_esd_metric.report.tables import Cell, Column, Table

#: Of what translations leave out, where a metric says it.
_OMISSIONS = (
    Column("omissions", "omitted", digits=0),
    Column("omission_precision", "omission precision", best="max"),
    Column("omission_recall", "omission recall", best="max"),
    Column("omission_f1", "omission F1", best="max"),
)


def span_table(test_set: TestSet, measuring: Measuring, metrics: Sequence[str] = ()) -> Table:
    """The humans, "no error" everywhere, and each metric with error spans.

    Where translations have two raters, also what one rater reaches against the others, and each metric's share of it.

    Raises:
        InputError: no human ratings, or a named metric without error spans.
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
    rows = [
        (
            Cell("human"),
            Cell(),
            *_counts(counts.gold_major, counts.gold_minor, nothing.rated, None),
            *_shared(dict.fromkeys(measuring.measures) | among_people, among_people),
        ),
        _row("no error", None, nothing, among_people),
    ]
    people = [r.omissions_of(test_set.systems, test_set.segments) for r in test_set.human_ratings(measuring.raters)]
    said = [ratings.omissions_of(test_set.systems, test_set.segments) for _, ratings in with_spans]
    with_omissions = any(cell is not None and len(cell) > 0 for matrix in said for row in matrix for cell in row)
    if with_omissions:
        rows = [(*row, *[Cell()] * len(_OMISSIONS)) for row in rows]
    for (metric, ratings), omissions in zip(with_spans, said, strict=True):
        try:
            found = evaluator.evaluate(ratings.of(test_set.systems, test_set.segments))
        except InputError as error:
            raise InputError(f"{metric.name}, {test_set.lp}: {error}") from None
        base, uses_reference = base_name(metric.name)
        row = _row(base, input_of(uses_reference), found, among_people)
        if with_omissions:
            left_out = evaluate_omissions(omissions, people)
            cells = (left_out.predicted, left_out.precision, left_out.recall, left_out.f1)
            row = (*row, *(Cell(None if math.isnan(value) else value) for value in cells))
        rows.append(row)
    columns = (
        Column("metric", "metric", label=True),
        Column("input", "input", label=True),
        Column("major", "major", digits=0),
        Column("minor", "minor", digits=0),
        Column("per_translation", "per translation", digits=2),
        Column("major_share", "% major", digits=1, percent=True),
        Column("ratio", "ratio", digits=2),
        *(column for name in measuring.measures for column in _columns(name, bool(among_people))),
        *(_OMISSIONS if with_omissions else ()),
    )
    legend = (
        f"{number_of(nothing.rated, 'rated translation')}, {number_of(len(test_set.systems), 'system')}, raters: "
        f"{', '.join(human)}",
        "ratio: error spans per human error span",
        *(("human: one rater against the others; % human: the share of it",) if among_people else ()),
        *(
            ("omitted: what is left out, as spans of the source; right if they meet a human one",)
            if with_omissions
            else ()
        ),
    )
    return Table(f"{test_set.name} {test_set.lp}", columns, tuple(rows), (*legend, *test_set.notes, *notes))


def _columns(measure: str, shared: bool) -> list[Column]:
    share = [Column(f"{measure}_share", "% human", digits=0, percent=True)] if shared else []
    return [Column(measure, MEASURE_TITLES.get(measure, measure), best="max"), *share]


def _shared(values: Mapping[str, float | None], among_people: Mapping[str, float]) -> list[Cell]:
    """Each value, and where people agree with one another its share of that."""
    cells = []
    for name, value in values.items():
        cells.append(Cell(value))
        if among_people:
            human = among_people[name]
            cells.append(Cell(value / human if value is not None and human > 0 else None))
    return cells


def _row(name: str, looks_at: str | None, scores: SpanScores, among_people: Mapping[str, float]) -> tuple[Cell, ...]:
    counts = scores.counts
    return (
        Cell(name),
        Cell(looks_at),
        *_counts(counts.major, counts.minor, scores.rated, counts.ratio),
        *_shared(scores.values, among_people),
    )


def _counts(major: float, minor: float, rated: int, ratio: float | None) -> list[Cell]:
    total = major + minor
    return [
        Cell(major),
        Cell(minor),
        Cell(total / rated),
        Cell(major / total if total else None),
        Cell(None if ratio is None or math.isnan(ratio) else ratio),
    ]


def error_free_table(test_set: TestSet, metrics: Sequence[str] = (), raters: Sequence[str] = ()) -> Table:
    """Each metric, by its spans and by its score.

    Args:
        test_set: one language pair.
        metrics: full or base names; none for all.
        raters: sets of human ratings.
    """
    gold = test_set.info.gold
    least = ESA_THRESHOLD if gold.startswith("esa") else 0.0 if gold.startswith("mqm") else -math.inf
    labels = gold_labels(test_set.gold, list(test_set.human(raters).values()), least)
    rated, clean = int((~np.isnan(labels)).sum()), int(np.nansum(labels))
    rows = [(Cell("none without error"), Cell(), *_cells(error_free(labels, np.zeros(labels.shape))), Cell(), Cell())]
    found, notes = test_set.read_metrics(metrics)
    for metric in found:
        shown = row_name(base_name(metric.name))
        if metric.ratings is not None:
            said = unmarked(metric.ratings.of(test_set.systems, test_set.segments))
            rows.append((Cell(shown), Cell("no span"), *_cells(error_free(labels, said)), Cell(), Cell()))
        best = best_threshold(labels, metric.scores)
        auc = Cell(None if math.isnan(best.auc) else best.auc)
        where = Cell(None if math.isinf(best.threshold) else best.threshold)
        rows.append((Cell(shown), Cell("score, best"), *_cells(best.result), where, auc))
    columns = (
        Column("metric", "metric", label=True),
        Column("by", "by", label=True),
        Column("mcc", "MCC", best="max"),
        Column("precision", "P", best="max"),
        Column("recall", "R", best="max"),
        Column("f1", "F1", best="max"),
        Column("accuracy", "accuracy", best="max"),
        Column("threshold", "threshold", label=True),
        Column("auc", "AUC", best="max"),
    )
    score = "" if least == -math.inf else f" and a gold score of at least {least:g}"
    legend = [f"{clean} of {rated} rated translations are without error: no marked error{score}"]
    legend.append("best: the threshold of the score with the highest MCC on these translations")
    return Table(f"{test_set.name} {test_set.lp}", columns, tuple(rows), (*legend, *test_set.notes, *notes))


def learning_tables(
    title: str, tried: Sequence[Tried], labels: Sequence[bool], precision: float | None = None
) -> list[Table]:
    """Ways to say "without error" on translations that they were not learnt on, and each language pair by itself."""
    pairs = list(tried[0].by_pair)
    columns = (
        Column("by", "by", label=True),
        Column("mcc", "MCC", best="max"),
        Column("interval", "95% interval", label=True),
        Column("precision", "P", best="max"),
        Column("recall", "R", best="max"),
        Column("f1", "F1", best="max"),
        Column("accuracy", "accuracy", best="max"),
        *(Column(f"mcc {pair}", f"MCC {pair}", best="max") for pair in pairs if len(pairs) > 1),
    )
    rows = tuple(
        (
            Cell(one.name),
            *_cells(one.result)[:1],
            Cell("{:+.3f} to {:+.3f}".format(*one.interval)),
            *_cells(one.result)[1:],
            *(Cell(one.by_pair[pair].mcc) for pair in pairs if len(pairs) > 1),
        )
        for one in tried
    )
    aim = "the highest MCC" if precision is None else f"a precision of {precision:g}"
    notes = (
        f"{sum(labels)} of {len(labels)} rated translations are without error",
        f"learnt on four fifths of the documents, for {aim}, and tried on the last; intervals resample documents",
    )
    return [Table(f"{title}: without error", columns, rows, notes)]


def _cells(result: ErrorFree) -> list[Cell]:
    return [Cell(value) for value in (result.mcc, result.precision, result.recall, result.f1, result.accuracy)]


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
    parts = breakdown(data, labels, names, measuring.aggregation, exact=measuring.exact)
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
