"""The rule `consensus`: never below MBR, equal to brute force where that is possible, readable and repeatable."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide, mqm_score
from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.core.annotation import SpanKey
from mbr_esd_metric.core.case import Case
from mbr_esd_metric.core.consensus_search import find_consensus
from mbr_esd_metric.core.hypotheses import Hypotheses
from mbr_esd_metric.core.similarities import Similarity, get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import OptionError
from tests.helpers.annotations import drawn

#: Random cases of all utilities together; MBR_ESD_CASES=10000 takes two minutes.
CASES = int(os.environ.get("MBR_ESD_CASES", "1000"))
#: Utility -> share of the cases.
UTILITIES = {
    "softf1": 0.3,
    "softdice": 0.3,
    "f1": 0.24,
    "softf1+scoresim": 0.1,
    "mpp": 0.03,
    "0.7*mpp+0.3*softdice": 0.03,
}
#: Utilities of the severity vectors alone.
BY_VECTOR = ("softf1", "softdice", "softf1+softdice")


def candidates(items: Sequence[Annotation]) -> list[Candidate]:
    return [Candidate(annotation=item) for item in items]


def mean(utility: Similarity, annotation: Annotation, items: Sequence[Annotation], length: int) -> float:
    return sum(utility.scalar(annotation, item, length) for item in items) / len(items)


def pool(rng: random.Random, length: int) -> list[Annotation]:
    """Candidates that share spans and bounds, as a model's do."""
    errors = [drawn(rng, length, 1) for _ in range(rng.randint(1, 5))]
    share = [rng.uniform(0.1, 0.9) for _ in errors]
    return [
        Annotation(span for error, likely in zip(errors, share, strict=True) for span in error if rng.random() < likely)
        for _ in range(rng.randint(1, 12))
    ]


@pytest.mark.parametrize("name", UTILITIES)
def test_never_below_mbr(name: str) -> None:
    """Drawn at random, half of them with structure."""
    utility = get_similarity(name)
    rng = random.Random(name)
    better = 0
    cases = round(UTILITIES[name] * CASES)
    for case in range(cases):
        length = rng.randint(1, 40)
        items = pool(rng, length) if case % 2 else [drawn(rng, length) for _ in range(rng.randint(1, 10))]
        cost = rng.choice([0.0, 0.0, 0.01, 0.2])
        mbr = decide(candidates(items), "x" * length, utility=utility)
        consensus = decide(candidates(items), "x" * length, rule="consensus", utility=utility, span_cost=cost)
        assert consensus.value >= mbr.value - 1e-12
        assert consensus.value - cost * len(consensus.annotation) >= mbr.value - cost * len(mbr.annotation) - 1e-12
        assert consensus.value == pytest.approx(mean(utility, consensus.annotation, items, length), abs=1e-9)
        assert consensus.score == mqm_score(consensus.annotation)
        assert (consensus.index is None) == (consensus.annotation not in items)
        better += consensus.value > mbr.value
    assert better > cases / 10


@pytest.mark.parametrize("name", [*UTILITIES, "scoresim"])
def test_never_below_mbr_on_real_annotations(name: str, mqm_folder: Path) -> None:
    """Three raters' annotations, and their spans in new combinations, of real translations."""
    ratings = read_mqm_tsv(mqm_folder / "sxs_mqm_generalMT2023_ende.3raters.tsv").ratings
    by_text: dict[str, list[Annotation]] = {}
    for rating in ratings:
        by_text.setdefault(rating.target, []).append(rating.annotation)
    rng, utility = random.Random(1), get_similarity(name)
    for text in rng.sample(sorted(by_text), 10):
        spans = [span for annotation in by_text[text] for span in annotation]
        mixed = [Annotation(span for span in spans if rng.random() < 0.5) for _ in range(6)]
        items = candidates([*by_text[text], *mixed])
        assert (
            decide(items, text, rule="consensus", utility=utility).value
            >= decide(items, text, rule="mbr", utility=utility).value - 1e-12
        )


def vectors(items: Sequence[Annotation], length: int) -> list[Annotation]:
    """Every way to mark the intervals between bounds; doubly where some candidate has two spans."""
    ways: list[list[tuple[SpanKey, ...]]] = []
    bounds = sorted({0, length, *(bound for item in items for key in item.key for bound in key[:2])})
    for a, b in itertools.pairwise(bounds):
        most = max(sum(s.start <= a < s.end for s in item) for item in items)
        some: list[tuple[SpanKey, ...]] = [(), ((a, b, "minor"),), ((a, b, "major"),)]
        ways.append([*some, (*some[1], *some[2])][: (1, 3, 4)[min(most, 2)]])
    return [Annotation(ErrorSpan(*key) for keys in chosen for key in keys) for chosen in itertools.product(*ways)]


@pytest.mark.parametrize("name", BY_VECTOR)
def test_equals_brute_force_over_severity_vectors(name: str) -> None:
    utility = get_similarity(name)
    rng = random.Random(7)
    for _ in range(150):
        length = rng.randint(1, 12)
        items = [drawn(rng, length, 2) for _ in range(rng.randint(1, 3))]
        if len({bound for item in items for key in item.key for bound in key[:2]}) > 5:
            continue
        found = decide(candidates(items), "x" * length, rule="consensus", utility=utility)
        best = max(mean(utility, annotation, items, length) for annotation in vectors(items, length))
        assert found.value == pytest.approx(best, abs=1e-9)


def span_sets(items: Sequence[Annotation]) -> list[Annotation]:
    """Every set of spans on the candidates' bounds that do not overlap, none over a place that no candidate bridges."""
    keys = [key for item in items for key in item.key]
    bounds = sorted({bound for key in keys for bound in key[:2]})
    spans: list[SpanKey] = [
        (a, b, severity)
        for a, b in itertools.combinations(bounds, 2)
        for severity in ("major", "minor")
        if all(any(k[0] < bound < k[1] for k in keys) for bound in bounds if a < bound < b)
        and all(any(k[0] <= i < k[1] for k in keys) for i in range(a, b))
    ]
    found: list[tuple[SpanKey, ...]] = [()]
    for span in spans:
        found += [(*one, span) for one in found if all(k[1] <= span[0] or k[0] >= span[1] for k in one)]
    return [Annotation(ErrorSpan(*key) for key in one) for one in found]


@pytest.mark.parametrize("name", ["mpp", "softdice", "mpp+scoresim"])
@pytest.mark.parametrize("cost", [0.0, 0.05])
def test_equals_brute_force_over_sets_of_spans(name: str, cost: float) -> None:
    utility = get_similarity(name)
    rng = random.Random(8)
    compared = 0
    while compared < 100:
        length = rng.randint(3, 30)
        items = [item for item in pool(rng, length) if not _overlaps(item)]
        every = span_sets(items) if items else []
        if not items or len(every) > 153:
            continue
        compared += 1
        found = decide(candidates(items), "x" * length, rule="consensus", utility=utility, span_cost=cost)
        floor = max(mean(utility, item, items, length) for item in items)
        values = [(mean(utility, a, items, length), len(a)) for a in every]
        best = max(value - cost * spans for value, spans in values if value >= floor - 1e-12)
        assert found.value - cost * len(found.annotation) == pytest.approx(best, abs=1e-8)


def _overlaps(annotation: Annotation) -> bool:
    return any(a.end > b.start for a, b in itertools.pairwise(annotation))


def test_large_grids_come_near_to_what_thresholds_reach() -> None:
    """Where a utility is linear in the annotation the best one is known; SoftF1 on a long text nearly is."""
    rng = random.Random(3)
    for _ in range(20):
        items = pool(rng, 300) + pool(rng, 300)
        found = decide(candidates(items), "x" * 300, rule="consensus", utility="softf1")
        shares = np.mean([[any(s.start <= i < s.end for s in item) for i in range(300)] for item in items], axis=0)
        sure = {i for i in range(300) if shares[i] > 0.55}
        marked = {i for span in found.annotation for i in range(span.start, span.end)}
        assert sure <= marked
        assert not {i for i in marked if shares[i] < 0.2}


def test_the_answer_is_repeatable_and_snaps_to_bounds() -> None:
    rng = random.Random(5)
    for _ in range(60):
        length = rng.randint(5, 60)
        items = pool(rng, length)
        # Log-probabilities that tell any two candidates apart, so that no tie of MBR is left to the index.
        given = [Candidate(annotation=item, logprob=-1.0 - at) for at, item in enumerate(items)]
        one = decide(given, "x" * length, rule="consensus", utility="softdice")
        other = decide(rng.sample(given, len(given)), "x" * length, rule="consensus", utility="softdice")
        assert one.annotation == other.annotation
        bounds = {bound for item in items for key in item.key for bound in key[:2]}
        assert {bound for key in one.annotation.key for bound in key[:2]} <= bounds
        for span in one.annotation:
            assert (span.confidence or 0) > 0


def test_a_price_keeps_the_answer_from_fraying() -> None:
    rng = random.Random(6)
    free, priced = 0, 0
    for _ in range(80):
        items = pool(rng, 60) + pool(rng, 60)
        free += len(decide(candidates(items), "x" * 60, rule="consensus", utility="softdice").annotation)
        priced += len(
            decide(candidates(items), "x" * 60, rule="consensus", utility="softdice", span_cost=0.05).annotation
        )
    assert priced < free


def test_an_answer_that_no_candidate_has_is_found_and_has_categories() -> None:
    first = ErrorSpan(0, 4, "major", "accuracy")
    second = ErrorSpan(6, 9, "minor", "fluency")
    third = ErrorSpan(12, 15, "minor", "style")
    items = [Annotation(pair) for pair in ((first, second), (second, third), (first, third))]
    decision = decide(candidates(items), "x" * 20, rule="consensus", utility="softdice")
    assert decision.index is None
    assert [(s.key, s.category) for s in decision.annotation] == [(s.key, s.category) for s in (first, second, third)]
    assert all(span.confidence == pytest.approx(2 / 3) for span in decision.annotation)


def test_supports_given_apart_are_what_it_goes_by() -> None:
    given = [Annotation([ErrorSpan(0, 3, "minor")])]
    apart = [Annotation([ErrorSpan(5, 9, "major")])] * 3
    decision = decide(candidates(given), "x" * 12, rule="consensus", supports=candidates(apart))
    assert decision.annotation == apart[0]
    assert decision.value == 1.0


def test_the_search_is_told_apart_from_its_start_by_value_alone() -> None:
    items = [Annotation([ErrorSpan(0, 2, "minor"), ErrorSpan(2, 4, "minor")])] * 3
    case = Case(Hypotheses(items), 6, get_similarity("softf1"))
    found = find_consensus(case.table, case.columns, case.weights, case.utility, items[0], 1.0)
    assert (found.annotation, found.value) == (items[0], 1.0)


def test_span_cost_is_refused_where_it_says_nothing() -> None:
    with pytest.raises(OptionError, match="span_cost"):
        DecisionOptions().changed({"span_cost": "0.1"}, lambda name, value: f"{name}={value}")
    with pytest.raises(OptionError, match="a number from 0"):
        DecisionOptions("consensus", span_cost=-1.0)
