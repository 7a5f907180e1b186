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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from synthetic import EDITS, decline_ratio

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide
from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.adapters.ratings import Rating
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.core.kernels import BETA, GAMMA, severity_vector
from mbr_esd_metric.decoding.decide import decide_corpus
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.metaeval.calibration import (
    CALIBRATION_LEVELS,
    CalibrationLevel,
    Predicted,
    calibration_error,
    predicted_spans,
)
from mbr_esd_metric.metaeval.matrices import percentile_interval
from mbr_esd_metric.metaeval.significance import paired_bootstrap
from mbr_esd_metric.metaeval.spans import SpanScores, evaluate_spans
from mbr_esd_metric.report.evaluations import cross_fitted

CORPUS_MEASURES = ("softdice-corpus", "mpp-corpus", "f1-corpus", "f1-wmt25-corpus")
MEASURES = ("softf1", "f1", "softdice", "scoresim", "mpp", *CORPUS_MEASURES)
UTILITIES = ("softf1", "f1", "softdice", "scoresim", "scoresim-mean", "mpp", "softf1+scoresim")
#: The rules that choose for all segments together; the first is what the others are compared with.
CORPUS_RULES = ("mbr-corpus, all five as supports", "mbr-corpus, the two raters as supports")


@dataclass(frozen=True)
class Case:
    """A translation, two raters who stand for a prediction or for samples, and the third, who judges them."""

    segment: str
    text: str
    a: Annotation
    b: Annotation
    third: Annotation


#: Each rater once as the third.
THIRDS = ((0, 1, 2), (0, 2, 1), (1, 2, 0))
#: The cases of a source segment are a column.
Cases: TypeAlias = Sequence[Sequence[Case]]
#: An annotation for each case.
Choice: TypeAlias = Sequence[Sequence[Annotation]]


def read(path: str) -> dict[tuple[str, str], list[Rating]]:
    """(system, segment) -> the ratings of its three raters."""
    rated = defaultdict(list)
    for rating in read_mqm_tsv(path):
        rated[rating.segment.system, rating.segment.label].append(rating)
    return rated


def cases_of(rated: Mapping[tuple[str, str], Sequence[Rating]], orders: Iterable[tuple[int, ...]]) -> Cases:
    """A row for each of these orders of the raters and each system."""
    systems, segments = (list(dict.fromkeys(names)) for names in zip(*rated, strict=True))
    return [
        [
            Case(segment, of[0].segment.translation, *(Annotation(of[at].annotation) for at in order))
            for segment in segments
            for of in [rated[system, segment]]
        ]
        for order in orders
        for system in systems
    ]


def of_vector(vector: npt.NDArray[Any]) -> Annotation:
    """Spans of the stretches of equal severity."""
    bounds = [0, *(np.flatnonzero(np.diff(vector)) + 1).tolist(), len(vector)]
    spans = []
    for start, end in pairwise(bounds):
        if end > start and vector[start] > 0:
            spans.append(ErrorSpan(start, end, "major" if vector[start] >= BETA else "minor"))
    return Annotation(spans)


def intersection(case: Case) -> Annotation:
    """Characters that both raters mark, with the lower severity."""
    return of_vector(np.minimum(*(severity_vector(one, len(case.text)) for one in (case.a, case.b))))


def union(case: Case) -> Annotation:
    """Characters that one of them marks, with the higher severity."""
    return of_vector(np.maximum(*(severity_vector(one, len(case.text)) for one in (case.a, case.b))))


PREDICTIONS: dict[str, Callable[[Case], Annotation]] = {
    "another rater": lambda case: case.a,
    "nothing": lambda case: EMPTY,
    "everything minor": lambda case: of_vector(np.full(len(case.text), GAMMA)),
    "intersection of two raters": intersection,
    "union of two raters": union,
}


def evaluated(cases: Cases, choices: Mapping[str, Choice], measures: Sequence[str]) -> dict[str, SpanScores]:
    """Each choice against the third rater."""
    third, lengths = [[c.third for c in row] for row in cases], [[len(c.text) for c in row] for row in cases]
    return {name: evaluate_spans(chosen, [third], lengths, measures) for name, chosen in choices.items()}


def cells(scores: Mapping[str, SpanScores], measure: str, resamples: int, best: str = "") -> dict[str, list[str]]:
    """Row -> its value and interval, and the difference of `best` and the row."""
    resampled = paired_bootstrap(scores, measure, resamples)
    values = {name: one.values[measure] for name, one in scores.items()}
    best = best or next(iter(values))

    def shown(value: float, interval: tuple[float, float], sign: str = "") -> str:
        return f"{value:{sign}.3f} [{interval[0]:{sign}.3f}, {interval[1]:{sign}.3f}]"

    return {
        name: [
            shown(value, percentile_interval(resampled[name])),
            shown(values[best] - value, percentile_interval(resampled[best] - resampled[name]), "+"),
        ]
        for name, value in values.items()
    }


def agreement(cases: Cases, resamples: int) -> None:
    """Each two raters, in both orders, against the third."""
    made = {name: [[make(case) for case in row] for row in cases] for name, make in PREDICTIONS.items()}
    scores = evaluated(cases, made, MEASURES)
    print("| against a rater | " + " | ".join(PREDICTIONS) + " | rater minus nothing |")
    print("|---|" + "---|" * (len(PREDICTIONS) + 1))
    for name in MEASURES:
        rows = cells(scores, name, resamples)
        print(f"| {name} | " + " | ".join(rows[row][0] for row in rows) + f" | {rows['nothing'][1]} |", flush=True)


def choices(cases: Cases) -> dict[str, Choice]:
    """The choice of each rule among two raters, their intersection and union, and nothing, in each case."""
    flat = [case for row in cases for case in row]
    fives = [[Candidate(annotation=x) for x in (c.a, c.b, intersection(c), union(c), EMPTY)] for c in flat]
    supports = [[Candidate(annotation=c.a), Candidate(annotation=c.b)] for c in flat]
    each = list(zip(fives, supports, (case.text for case in flat), strict=True))
    rows: dict[str, list[Annotation]] = {}
    for utility in UTILITIES:
        rows[f"mbr {utility}, all five as supports"] = [
            decide(five, text, utility=utility).annotation for five, _, text in each
        ]
        rows[f"mbr {utility}, the two raters as supports"] = [
            decide(five, text, utility=utility, supports=two).annotation for five, two, text in each
        ]
    rows["majority"] = [decide(five, text, rule="majority").annotation for five, _, text in each]
    rows["always nothing"] = [EMPTY] * len(flat)
    rows["always the intersection"] = list(map(intersection, flat))
    rows["always the union"] = list(map(union, flat))
    for name, others in zip(CORPUS_RULES, (None, supports), strict=True):
        corpus = decide_corpus([(five, text) for five, _, text in each], DecisionOptions("mbr-corpus"), supports=others)
        rows[name] = [decision.annotation for decision in corpus.decisions]
    width = len(cases[0])
    return {name: [row[at : at + width] for at in range(0, len(row), width)] for name, row in rows.items()}


def decisions(cases: Cases, resamples: int) -> None:
    """MBR over two raters, their intersection and union, and nothing, against the third rater."""
    chosen, shown = choices(cases), ("softf1", "f1", "softdice", "mpp-corpus", "softdice-corpus")
    scores = evaluated(cases, chosen, shown)
    columns = [cells(scores, measure, resamples, CORPUS_RULES[0]) for measure in shown]
    print("| rule | empty chosen | " + " | ".join(shown) + " | mbr-corpus minus it |")
    print("|---|---|" + "---|" * (len(shown) + 1))
    for name, rows in chosen.items():
        empty = np.mean([annotation.clean for row in rows for annotation in row])
        values = [column[name][0] for column in columns]
        print(f"| {name} | {empty:.0%} | " + " | ".join(values) + f" | {columns[-1][name][1]} |", flush=True)


def calibrated(cases: Cases, level: CalibrationLevel) -> tuple[Predicted, Predicted]:
    """The confidences of a decision over two raters, held against the third; and recalibrated by what is learnt on the
    other half of the source segments."""
    chosen = [
        [decide([Candidate(annotation=x) for x in (c.a, c.b)], c.text, utility="softdice").annotation for c in row]
        for row in cases
    ]
    third, lengths = [[c.third for c in row] for row in cases], [[len(c.text) for c in row] for row in cases]
    spans = predicted_spans(chosen, [third], lengths, level)
    return spans, cross_fitted(spans, [case.segment for row in cases for case in row])


def confidences(cases: Cases) -> None:
    """Distance of confidences from the share that the third rater confirms."""
    print("| rule | per | predicted | mean confidence | confirmed | ECE | ECE, learnt on the other half |")
    print("|---|---|---|---|---|---|---|")
    for level in CALIBRATION_LEVELS:
        before, after = calibrated(cases, level)
        values = (before.confidence.mean(), before.confirmed.mean(), *map(calibration_error, (before, after)))
        print(f"| mbr softdice | {level} | {len(before)} | " + " | ".join(f"{v:.3f}" for v in values) + " |")


def declines(annotations: Sequence[Annotation], lengths: Sequence[int]) -> None:
    """Decline ratios on the raters' annotations."""
    names = ("softf1", "softdice", "f1", "scoresim", "mpp")
    print("| similarity | add, clean | add, with errors | delete, with errors |")
    print("|---|---|---|---|")
    added, deleted = (decline_ratio(annotations, lengths, edit, names) for edit in EDITS)
    for a, d in zip(added, deleted, strict=True):
        shown = [f"{t.ratio:.4f} ({t.edits})" for t in (a.of(marked=False), a.of(marked=True), d.of(marked=True))]
        print(f"| {a.similarity} | " + " | ".join(shown) + " |")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tsv", help="sxs_mqm_generalMT2023_ende.3raters.tsv")
    parser.add_argument("--resamples", type=int, default=1000)
    args = parser.parse_args()
    rated = read(args.tsv)
    every, thirds = cases_of(rated, permutations(range(3))), cases_of(rated, THIRDS)
    ratings = [(Annotation(one.annotation), len(one.segment.translation)) for of in rated.values() for one in of]
    clean = np.mean([annotation.clean for annotation, _ in ratings])
    print(f"{len(rated)} translations of {len(every[0])} segments; {clean:.1%} of ratings without a span\n")
    agreement(every, args.resamples)
    print()
    decisions(thirds, args.resamples)
    # As people wrote them, and without spans that cover each other.
    for flatten in (False, True):
        print()
        flat = [of_vector(severity_vector(a, n)) if flatten else a for a, n in ratings]
        declines(flat, [n for _, n in ratings])
    print()
    confidences(thirds)


if __name__ == "__main__":
    main()
