"""Decision rules, scores and weights against a plain reading of their definitions."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide, mqm_score, soft_f1
from mbr_esd_metric.core.decision_problem import Hypotheses
from mbr_esd_metric.core.kernels import AnnotationTable, severity_vector
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.decide import decide_corpus
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError
from tests.helpers.annotations import drawn, overlap_and_size, several

A = [ErrorSpan(0, 4, "major")]
B = [ErrorSpan(0, 4, "minor")]
C = [ErrorSpan(6, 9, "minor")]
TEXT = "0123456789"
CORPUS = DecisionOptions("mbr-corpus")


def candidates(*items: object, logprobs: list[float] | None = None) -> list[Candidate]:
    return [
        Candidate(annotation=item, logprob=None if logprobs is None else logprobs[i])  # type: ignore[arg-type]
        for i, item in enumerate(items)
    ]


@given(case=several(1, 6), data=st.data())
def test_mbr_is_the_argmax_of_the_mean(case: tuple[int, list[Annotation]], data: st.DataObject) -> None:
    length, items = case
    items = [items[data.draw(st.integers(0, len(items) - 1))] for _ in range(len(items) + 3)]
    name = data.draw(st.sampled_from(["softf1", "f1", "softdice", "scoresim", "mpp", "softf1+f1"]))
    similarity = get_similarity(name)
    mean = [sum(similarity.scalar(c, s, length) for s in items) / len(items) for c in items]
    decision = decide(candidates(*items), "x" * length, utility=name)
    np.testing.assert_allclose(decision.expected_utilities, mean, atol=1e-12)
    tied = [i for i, value in enumerate(mean) if value >= max(mean) - 1e-9]
    assert decision.index == tied[0]
    assert decision.annotation == items[tied[0]]
    assert (decision.valid, decision.distinct, decision.invalid) == (len(items), len(set(items)), 0)
    assert decision.mqm == mqm_score(items[tied[0]])


@given(case=several(1, 5), seed=st.integers(0, 99))
def test_the_order_of_candidates_does_not_matter(case: tuple[int, list[Annotation]], seed: int) -> None:
    length, items = case
    rng = random.Random(seed)
    # Log-probabilities that tell any two candidates apart, so that no tie is left to the index.
    some = candidates(*items, *items, logprobs=[-1.0 - i for i in range(2 * len(items))])
    shuffled = rng.sample(some, len(some))
    for rule in ("mbr", "map", "majority"):
        one = decide(some, "x" * length, rule=rule)
        other = decide(shuffled, "x" * length, rule=rule)
        assert shuffled[other.index] == some[one.index]
        assert other.annotation == one.annotation


def test_ties_go_to_the_likelier_then_to_the_first() -> None:
    assert decide(candidates(A, C), TEXT).index == 0
    assert decide(candidates(A, B, logprobs=[-3, -2]), TEXT).index == 1
    # A stands for its likeliest duplicate, wherever that is.
    for order in itertools.permutations([(A, -5.0), (B, -2.0), (A, -1.0), (B, -4.0)]):
        items, logprobs = zip(*order, strict=True)
        decision = decide(candidates(*items, logprobs=list(logprobs)), TEXT)
        assert decision.annotation == Annotation(A)
        assert logprobs[decision.index] == -1.0


def test_model_weights_count_each_output_once() -> None:
    logs = [math.log(0.6), math.log(0.6), math.log(0.3)]
    decision = decide(candidates(A, A, C, logprobs=logs), TEXT, weights="model")
    expected = [2 / 3 + soft_f1(A, C, 10) / 3, 2 / 3 + soft_f1(A, C, 10) / 3, 1 / 3 + 2 * soft_f1(A, C, 10) / 3]
    assert decision.expected_utilities == pytest.approx(expected)
    assert decision.annotation.spans[0].confidence == pytest.approx(2 / 3)
    # Two texts of one annotation are two outputs, and their probabilities add up.
    error = '{"errors": [{"error_span": "0123", "category": "%s", "sub_category": "x", "severity": "major"}]}'
    texts = [Candidate(error % kind, logprob=math.log(0.2)) for kind in ("style", "other", "style")]
    decision = decide([*texts, Candidate('{"errors": []}', logprob=math.log(0.3))], TEXT, weights="model")
    assert decision.annotation.spans[0].confidence == pytest.approx(4 / 7)
    folded = Hypotheses([*map(Annotation, (A, A, C)), None, Annotation(A)], [-1.0, -1.0, -2.0, None, -3.0], "aabca")
    weights = np.array([1, 1, 3 / math.e, 0, 1]) / (3 + 3 / math.e)  # three equal answers share one output's
    assert folded.candidate_weights("model") == pytest.approx(weights)


def test_supports_apart_and_oracle() -> None:
    decision = decide(candidates(A, C), TEXT, supports=candidates(C, C, B))
    assert decision.index == 1
    assert decision.expected_utilities[0] == pytest.approx((2 * soft_f1(A, C, 10) + soft_f1(A, B, 10)) / 3)
    oracle = decide(candidates([], B, C), TEXT, rule="oracle", references=[A, []], utility="f1")
    assert oracle.expected_utilities == pytest.approx((0.5, 0.25, 0.0))
    greedy = decide(candidates(A), TEXT, rule="greedy")
    assert (greedy.index, greedy.annotation.spans[0].confidence) == (0, 1.0)


def test_invalid_candidates_are_counted_and_never_perfect() -> None:
    bad = Candidate("no JSON", logprob=-0.1)
    cut = Candidate('{"errors": []}', logprob=-0.1, truncated=True)
    good = candidates(A, A, B, logprobs=[-3, -3, -3])
    decision = decide([bad, *good, cut], TEXT)
    assert (decision.valid, decision.distinct, decision.invalid) == (3, 2, 2)
    assert dict(decision.reasons) == {"not JSON": 1, "cut by the length limit": 1}
    assert math.isnan(decision.expected_utilities[0])
    assert decision.index == 1
    assert decide([bad, *good, cut], TEXT, rule="map").index != 0
    empty = decide([bad, *good, cut], TEXT, rule="map", invalid="empty")
    assert (empty.index, empty.mqm, empty.valid, empty.invalid) == (0, 0.0, 3, 2)
    with pytest.raises(NoValidCandidateError, match=r"none of the 2 candidates is valid \(1 not JSON, 1 cut"):
        decide([bad, cut], TEXT)
    with pytest.raises(NoValidCandidateError, match="no candidates"):
        decide([], TEXT)


@pytest.mark.parametrize("n", [1, 2, 300])
def test_blocks_do_not_change_the_result(n: int) -> None:
    """So many distinct annotations that the work is cut into blocks."""
    rng = random.Random(n)
    items = [drawn(rng, 50) for _ in range(n)]
    folded = Hypotheses(items)
    table, weights = AnnotationTable(folded.annotations, 50), folded.weights()
    everyone = slice(0, len(folded))
    for name in ("softf1", "f1", "softdice", "scoresim", "mpp", "softf1+f1"):
        similarity = get_similarity(name)
        whole = similarity.matrix(table, everyone, everyone) @ weights
        np.testing.assert_allclose(similarity.expected(table, everyone, everyone, weights), whole, atol=1e-12)
        some, rest = slice(n // 3, n // 2 + 1), slice(n // 2, len(folded))
        part = similarity.matrix(table, some, rest) @ weights[rest]
        np.testing.assert_allclose(similarity.expected(table, some, rest, weights[rest]), part, atol=1e-12)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_mbr_corpus_is_the_best_of_all_combinations(seed: int, apart: bool) -> None:
    rng = random.Random(seed)
    lengths = [rng.randint(5, 30) for _ in range(4)]
    segments = [[drawn(rng, length) for _ in range(rng.randint(1, 5))] for length in lengths]
    supports = [[drawn(rng, length) for _ in range(rng.randint(1, 6))] for length in lengths] if apart else segments
    pairs = [(candidates(*items), "x" * length) for items, length in zip(segments, lengths, strict=True)]
    choice = decide_corpus(pairs, CORPUS, supports=[candidates(*items) for items in supports] if apart else None)
    assert all(a < b for a, b in itertools.pairwise(choice.ratios))

    def ratio(annotations: Sequence[Annotation]) -> float:
        vectors = [severity_vector(one, n) for one, n in zip(annotations, lengths, strict=True)]
        parts = [overlap_and_size(vector, items) for vector, items in zip(vectors, supports, strict=True)]
        overlap, size = map(sum, zip(*parts, strict=True))
        return overlap / size if size else 1.0

    best = max(map(ratio, itertools.product(*segments)))
    assert choice.ratios[-1] == pytest.approx(best, abs=1e-12)
    assert ratio([decision.annotation for decision in choice.decisions]) == pytest.approx(best, abs=1e-12)
    for decision, items, length in zip(choice.decisions, supports, lengths, strict=True):
        assert decision.expected_utilities[decision.index] >= max(decision.expected_utilities) - 1e-9
        for span in decision.annotation:
            marks = [(severity_vector(support, length) > 0)[span.start : span.end].mean() for support in items]
            assert span.confidence == pytest.approx(np.mean(marks))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "map"}, "map"),
        ({"rule": "greedy"}, "map"),
        ({"rule": "oracle"}, "oracle"),
        ({"weights": "model"}, "candidate 1 has no log-probability"),
        ({"references": [A]}, "references has no effect with rule=mbr"),
        ({"rule": "oracle", "references": [A], "supports": [Candidate(annotation=A)]}, "supports has no effect with"),
    ],
)
def test_what_a_rule_lacks_and_what_plays_no_part_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, OptionError), match=message):
        decide(candidates(A, B), TEXT, **options)
    with pytest.raises(InputError, match="-inf"):
        decide(candidates(A, B, logprobs=[-math.inf, -math.inf]), TEXT, weights="model")


@pytest.mark.parametrize(("n", "most", "length", "peak"), [(16, 4000, 100_000, 500e6), (256, 5, 600, 9e6)])
def test_many_spans_take_memory_by_their_number(n: int, most: int, length: int, peak: float) -> None:
    """A dense table of 16 candidates with 4,000 errors each has gigabytes."""
    generator = np.random.default_rng(5)
    starts = generator.integers(0, length - 10, (n, most)).tolist()
    some = candidates(*(Annotation([ErrorSpan(start, start + 5, "minor") for start in row]) for row in starts))
    for utility in ("softf1", "mpp") if most < 10 else ("softf1",):
        tracemalloc.start()
        assert decide(some, "x" * length, utility=utility).distinct == n
        assert tracemalloc.get_traced_memory()[1] < peak
        tracemalloc.stop()


MAJOR, MINOR = [ErrorSpan(0, 4, "major")], [ErrorSpan(6, 9, "minor", "fluency/punctuation")]
ITEMS = [Candidate(annotation=spans) for spans in ([], [], MAJOR, MINOR, [*MAJOR, *MINOR])]


@pytest.mark.parametrize("rule", ["mbr", "majority", "empty"])
def test_the_expected_score_is_the_mean_over_the_supports_whatever_is_chosen(rule: str) -> None:
    decision = decide(ITEMS, TEXT, rule=rule, score="expected")
    scores = [0.0, 0.0, -5.0, -1.0, -6.0]
    assert (decision.mqm, decision.mqm_sd) == pytest.approx((statistics.fmean(scores), statistics.pstdev(scores)))
    chosen = decide(ITEMS, TEXT, rule=rule)
    assert replace(decision, mqm=chosen.mqm, score=chosen.score, mqm_sd=None) == chosen
    assert decide(ITEMS, TEXT, rule=rule, mqm="google", score="expected").mqm == pytest.approx((-5 - 0.1 - 5.1) / 5)
    decision = decide(ITEMS[:1], TEXT, supports=ITEMS[2:3], score="expected")
    assert (decision.mqm, decision.mqm_sd, decision.annotation.spans) == (-5.0, 0.0, ())
