"""The tables of docs/evidence/similarities.md, on what each similarity says about professionals and silence, and one
of docs/evidence/decide.md, on confidences.

    python scripts/paper/rater_tables.py sxs_mqm_generalMT2023_ende.3raters.tsv

The file is Google's MQM of WMT23 English-German in which three raters annotated each translation
(google/wmt-mqm-human-evaluation). Intervals are 95% bootstrap intervals over source segments, since the translations of
one segment are not independent.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from synthetic import EDITS, decline_ratio

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide
from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.core.kernels import BETA, GAMMA, Floats, severity_vector
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus
from mbr_esd_metric.metaeval.calibration import (
    CALIBRATION_LEVELS,
    CalibrationLevel,
    Predicted,
    calibration_error,
    predicted_spans,
)
from mbr_esd_metric.metaeval.span_measures import SpanMeasure, span_measure
from mbr_esd_metric.report.calibration_tables import cross_fitted

MEASURES = (
    "softf1",
    "f1",
    "softdice",
    "scoresim",
    "mpp",
    *(f"{m}-corpus" for m in ("softdice", "mpp", "f1", "f1-wmt25")),
)
UTILITIES = ("softf1", "f1", "softdice", "scoresim", "scoresim-mean", "mpp", "softf1+scoresim")
#: The rules that choose for all segments together; the first is what the others are compared with.
CORPUS_RULES = ("mbr-corpus, all five as supports", "mbr-corpus, the two raters as supports")


@dataclass(frozen=True)
class Item:
    """One translation: the source segment it is of, its text and the raters' annotations."""

    cluster: str
    text: str
    raters: tuple[Annotation, Annotation, Annotation]


def read(path: str) -> list[Item]:
    by_text = defaultdict(list)
    for rating in read_mqm_tsv(path):
        by_text[rating.segment, rating.system, rating.target].append(Annotation(rating.annotation))
    items = []
    for (segment, _, text), rated in by_text.items():
        if len(rated) == 3:
            items.append(Item(segment, text, (rated[0], rated[1], rated[2])))
    return items


def of_vector(vector: npt.NDArray[Any]) -> Annotation:
    """Spans of the stretches of equal severity."""
    bounds = [0, *(np.flatnonzero(np.diff(vector)) + 1).tolist(), len(vector)]
    spans = []
    for start, end in pairwise(bounds):
        if end > start and vector[start] > 0:
            spans.append(ErrorSpan(start, end, "major" if vector[start] >= BETA else "minor"))
    return Annotation(spans)


def intersection(a: Annotation, b: Annotation, length: int) -> Annotation:
    """Characters that both mark, with the lower severity."""
    return of_vector(np.minimum(severity_vector(a, length), severity_vector(b, length)))


def union(a: Annotation, b: Annotation, length: int) -> Annotation:
    """Characters that one of them marks, with the higher severity."""
    return of_vector(np.maximum(severity_vector(a, length), severity_vector(b, length)))


PREDICTIONS: dict[str, Callable[[Annotation, Annotation, int], Annotation]] = {
    "another rater": lambda a, b, length: a,
    "nothing": lambda a, b, length: EMPTY,
    "everything minor": lambda a, b, length: of_vector(np.full(length, GAMMA)),
    "intersection of two raters": intersection,
    "union of two raters": union,
}


class Table:
    """Sums of statistics a cluster, and what measures and intervals come of them."""

    def __init__(self, items: Sequence[Item], resamples: int) -> None:
        names = list(dict.fromkeys(item.cluster for item in items))
        self.cluster = {name: i for i, name in enumerate(names)}
        rng = np.random.default_rng(0)
        n = len(names)
        self.weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples)

    def sums(self, measure: SpanMeasure, scored: Sequence[tuple[Item, Annotation, Annotation]]) -> Floats:
        sums = np.zeros((len(self.cluster), measure.width))
        for item, predicted, gold in scored:
            sums[self.cluster[item.cluster]] += measure.statistics(predicted, gold, len(item.text))
        return sums

    def cell(self, measure: SpanMeasure, sums: Floats) -> str:
        low, high = np.percentile(measure.value(self.weights @ sums), [2.5, 97.5])
        return f"{float(measure.value(sums.sum(0))):.3f} [{low:.3f}, {high:.3f}]"

    def difference(self, measure: SpanMeasure, a: Floats, b: Floats) -> str:
        difference = measure.value(self.weights @ a) - measure.value(self.weights @ b)
        low, high = np.percentile(difference, [2.5, 97.5])
        value = float(measure.value(a.sum(0)) - measure.value(b.sum(0)))
        return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def triples(items: Sequence[Item]) -> list[tuple[Item, Annotation, Annotation, Annotation]]:
    """Each two raters, in both orders, against the third."""
    return [(item, a, b, c) for item in items for a, b, c in permutations(item.raters)]


def agreement(items: Sequence[Item], table: Table) -> None:
    print("| against a rater | " + " | ".join(PREDICTIONS) + " | rater minus nothing |")
    print("|---|" + "---|" * (len(PREDICTIONS) + 1))
    for name in MEASURES:
        measure = span_measure(name)
        sums = {
            row: table.sums(measure, [(i, make(a, b, len(i.text)), c) for i, a, b, c in triples(items)])
            for row, make in PREDICTIONS.items()
        }
        cells = [table.cell(measure, sums[row]) for row in PREDICTIONS]
        difference = table.difference(measure, sums["another rater"], sums["nothing"])
        print(f"| {name} | " + " | ".join(cells) + f" | {difference} |", flush=True)


#: A translation, two raters who stand for samples, and the third.
Case: TypeAlias = tuple[Item, Annotation, Annotation, Annotation]


def cases_of(items: Sequence[Item]) -> list[Case]:
    return [(i, i.raters[x], i.raters[y], i.raters[z]) for i in items for x, y, z in ((0, 1, 2), (0, 2, 1), (1, 2, 0))]


def choices(cases: Sequence[Case]) -> dict[str, list[Annotation]]:
    """The choice of each rule among two raters, their intersection and union, and nothing, in each case."""
    texts = [item.text for item, *_ in cases]
    candidates = [
        [Candidate(annotation=x) for x in (a, b, intersection(a, b, n), union(a, b, n), EMPTY)]
        for item, a, b, _ in cases
        for n in [len(item.text)]
    ]
    supports = [[Candidate(annotation=a), Candidate(annotation=b)] for _, a, b, _ in cases]
    rows: dict[str, list[Annotation]] = {}
    for utility in UTILITIES:
        rows[f"mbr {utility}, all five as supports"] = [
            decide(five, text, utility=utility).annotation for five, text in zip(candidates, texts, strict=True)
        ]
        rows[f"mbr {utility}, the two raters as supports"] = [
            decide(five, text, utility=utility, supports=two).annotation
            for five, two, text in zip(candidates, supports, texts, strict=True)
        ]
    rows["majority"] = [
        decide(five, text, rule="majority").annotation for five, text in zip(candidates, texts, strict=True)
    ]
    rows["always nothing"] = [EMPTY] * len(cases)
    rows["always the intersection"] = [intersection(a, b, len(item.text)) for item, a, b, _ in cases]
    rows["always the union"] = [union(a, b, len(item.text)) for item, a, b, _ in cases]
    for row, others in zip(CORPUS_RULES, (None, supports), strict=True):
        corpus = decide_corpus(zip(candidates, texts, strict=True), DecisionOptions("mbr-corpus"), supports=others)
        rows[row] = [decision.annotation for decision in corpus.decisions]
    return rows


def decisions(items: Sequence[Item], table: Table) -> None:
    """MBR over two raters, their intersection and union, and nothing, against the third rater."""
    cases = cases_of(items)
    rows = choices(cases)
    shown = ("softf1", "f1", "softdice", "mpp-corpus", "softdice-corpus")
    print("| rule | empty chosen | " + " | ".join(shown) + " | mbr-corpus minus it |")
    print("|---|---|" + "---|" * (len(shown) + 1))
    corpus = span_measure("softdice-corpus")
    best = table.sums(corpus, scored(cases, rows[CORPUS_RULES[0]]))
    for row, chosen in rows.items():
        empty = sum(not annotation.spans for annotation in chosen) / len(chosen)
        cells = [table.cell(m, table.sums(m, scored(cases, chosen))) for m in map(span_measure, shown)]
        difference = table.difference(corpus, best, table.sums(corpus, scored(cases, chosen)))
        print(f"| {row} | {empty:.0%} | " + " | ".join(cells) + f" | {difference} |", flush=True)


def calibrated(cases: Sequence[Case], level: CalibrationLevel) -> tuple[Predicted, Predicted]:
    """The confidences of a decision over two raters, held against the third; and recalibrated by what is learnt on the
    other half of the source segments."""
    chosen = [decide([Candidate(annotation=x) for x in (a, b)], i.text, utility="softdice") for i, a, b, _ in cases]
    spans = predicted_spans(
        [[decision.annotation for decision in chosen]],
        [[[third for *_, third in cases]]],
        [[len(item.text) for item, *_ in cases]],
        level,
    )
    return spans, cross_fitted(spans, [item.cluster for item, *_ in cases])


def confidences(items: Sequence[Item]) -> None:
    """Distance of confidences from the share that the third rater confirms."""
    print("| rule | per | predicted | mean confidence | confirmed | ECE | ECE, learnt on the other half |")
    print("|---|---|---|---|---|---|---|")
    for level in CALIBRATION_LEVELS:
        before, after = calibrated(cases_of(items), level)
        values = (before.confidence.mean(), before.confirmed.mean(), *map(calibration_error, (before, after)))
        print(f"| mbr softdice | {level} | {len(before)} | " + " | ".join(f"{v:.3f}" for v in values) + " |")


def scored(cases: Sequence[Case], chosen: Sequence[Annotation]) -> list[tuple[Item, Annotation, Annotation]]:
    """Each choice beside the third rater."""
    return [(case[0], annotation, case[3]) for case, annotation in zip(cases, chosen, strict=True)]


def declines(items: Sequence[Item], flat: bool) -> None:
    """Decline ratios on the raters' annotations, or (`flat`) on the same without spans that cover each other."""
    lengths = [len(item.text) for item in items for _ in item.raters]
    annotations = [annotation for item in items for annotation in item.raters]
    if flat:
        annotations = [of_vector(severity_vector(a, n)) for a, n in zip(annotations, lengths, strict=True)]
    names = ("softf1", "softdice", "f1", "scoresim", "mpp")
    print("| similarity | add, clean | add, with errors | delete, with errors |")
    print("|---|---|---|---|")
    added, deleted = (decline_ratio(annotations, lengths, edit, names) for edit in EDITS)
    for a, d in zip(added, deleted, strict=True):
        print(
            f"| {a.similarity} | {a.clean.ratio:.4f} ({a.clean.edits}) | {a.marked.ratio:.4f} ({a.marked.edits}) "
            f"| {d.marked.ratio:.4f} ({d.marked.edits}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tsv", help="sxs_mqm_generalMT2023_ende.3raters.tsv")
    parser.add_argument("--resamples", type=int, default=1000)
    args = parser.parse_args()
    items = read(args.tsv)
    clean = sum(not annotation.spans for item in items for annotation in item.raters) / len(items) / 3
    table = Table(items, args.resamples)
    print(f"{len(items)} translations of {len(table.cluster)} segments; {clean:.1%} of ratings without a span\n")
    agreement(items, table)
    print()
    decisions(items, table)
    for flat in (False, True):
        print()
        declines(items, flat)
    print()
    confidences(items)


if __name__ == "__main__":
    main()
