"""The exact optimum of the corpus softdice, against brute force over every severity vector."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan
from mbr_esd_metric.core.corpus_choice import best_options, level_spans, maximise_ratio
from mbr_esd_metric.core.kernels import AnnotationTable, severity_vector
from mbr_esd_metric.decoding.decide import decide_corpus
from mbr_esd_metric.decoding.options import DecisionOptions
from tests.helpers.annotations import drawn, overlap_and_size

LENGTH = 3
CONSENSUS = DecisionOptions("consensus-corpus")


def test_the_optimum_equals_brute_force() -> None:
    rng = random.Random(1)
    for _ in range(60):
        segments = []
        brute: list[list[tuple[float, float]]] = []
        for _ in range(2):
            items = [drawn(rng, LENGTH, 2) for _ in range(rng.randint(1, 4))]
            weights = np.array([rng.random() + 0.1 for _ in items])
            weights /= weights.sum()
            table = AnnotationTable(items, LENGTH)
            options, statistics = best_options(table, slice(0, len(items)), weights)
            segments.append(statistics)
            for option, parts in zip(options, statistics, strict=True):
                vector = severity_vector(Annotation(ErrorSpan(*key) for key in option), LENGTH)
                assert tuple(parts) == pytest.approx(overlap_and_size(vector, items, weights))
            every = itertools.product([0.0, 0.5, 1.0, 1.5], repeat=LENGTH)
            brute.append([overlap_and_size(np.array(levels), items, weights) for levels in every])
        choice = maximise_ratio(segments)
        best = max((a + c) / (b + d) if b + d else 1.0 for (a, b), (c, d) in itertools.product(*brute))
        assert choice.ratios[-1] == pytest.approx(best, abs=1e-9)


def test_spans_are_as_long_as_candidates_allow() -> None:
    bounds, nowhere, inside = [0, 2, 5, 9], np.zeros(4, dtype=bool), np.array([False, True, True, False])
    spans = [level_spans(bounds, inside, np.array(of)) for of in ([1, 1, 2], [2, 3, 2], [0, 0, 0], [1, 0, 1])]
    assert spans == [
        ((0, 5, "minor"), (5, 9, "major")),
        ((0, 9, "major"), (2, 5, "minor")),
        (),
        ((0, 2, "minor"), (5, 9, "minor")),
    ]
    assert level_spans(bounds, nowhere, np.array([1, 1, 0])) == ((0, 2, "minor"), (2, 5, "minor"))
    assert level_spans([], np.zeros(0, dtype=bool), np.zeros(0, dtype=np.intp)) == ()


def test_a_span_that_no_candidate_has_takes_the_category_of_most_who_mark_its_characters() -> None:
    minor = [(0, 8, "style"), (1, 8, "style"), (2, 9, "fluency"), (2, 10, "fluency"), (3, 8, "fluency")]
    items = [
        [ErrorSpan(start, end, "minor", category), ErrorSpan(12, 15, "major", "other" if number else "accuracy")]
        for number, (start, end, category) in enumerate(minor)
    ]
    (decision,) = decide_corpus([([Candidate(annotation=of) for of in items], "x" * 20)], CONSENSUS).decisions
    assert decision.index is None
    assert [(span.key, span.category) for span in decision.annotation] == [
        ((2, 8, "minor"), "fluency"),
        ((12, 15, "major"), "accuracy"),
    ]
    assert [span.confidence for span in decision.annotation] == pytest.approx([(0.8 + 5) / 6, 1.0])


@pytest.mark.parametrize("rule", ["mbr-corpus", "consensus-corpus"])
def test_a_test_set_without_errors_and_one_without_segments(rule: str) -> None:
    clean = decide_corpus([([Candidate(annotation=())], "abc")], DecisionOptions(rule))
    assert (clean.ratios, clean.decisions[0].annotation, clean.decisions[0].index) == ((1.0,), Annotation(), 0)
    assert decide_corpus([], DecisionOptions(rule)).decisions == ()
