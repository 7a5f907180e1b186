"""Facts of every decision rule, and rules that answer with no candidate."""

from __future__ import annotations

from typing import ClassVar

import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide, soft_f1
from mbr_esd_metric.core.corpus_rules import CorpusRule
from mbr_esd_metric.core.decision_problem import DecisionProblem, Hypotheses, decided
from mbr_esd_metric.core.rules import SegmentRule, get_rule, rules
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.decide import decide_corpus
from mbr_esd_metric.decoding.options import DecisionOptions

TEXT = "0123456789"
A, B = Annotation([ErrorSpan(0, 4, "major")]), Annotation([ErrorSpan(6, 9, "minor")])
BOTH = Annotation([*A, *B])
CANDIDATES = [Candidate(annotation=a, logprob=-1.0 - i) for i, a in enumerate((A, A, B, Annotation()))]


class All(SegmentRule):
    """Every span that any candidate has; no candidate need have them all."""

    name: ClassVar[str] = "all"
    description: ClassVar[str] = "every span"

    def choose(self, problem: DecisionProblem) -> Annotation:
        return Annotation(span for annotation in problem.hypotheses.annotations for span in annotation)


def mean(annotation: Annotation) -> float:
    return sum(soft_f1(annotation, c.annotation or (), len(TEXT)) for c in CANDIDATES) / len(CANDIDATES)


@pytest.mark.parametrize("name", sorted(rules()))
def test_the_value_is_the_expected_utility_of_the_annotation(name: str) -> None:
    rule = get_rule(name)
    candidates = CANDIDATES[:1] if rule.candidates == "one" else CANDIDATES
    if isinstance(rule, CorpusRule):
        decision = decide_corpus([(candidates, TEXT)], DecisionOptions(name)).decisions[0]
        assert decision.index is not None
        assert decision.expected_utility == decision.expected_utilities[decision.index]
        return
    references = [c.annotation or () for c in CANDIDATES] if rule.needs_references else None
    decision = decide(candidates, TEXT, rule=name, references=references)
    expected = 1.0 if rule.candidates == "one" else mean(decision.annotation)
    assert decision.expected_utility == pytest.approx(expected, abs=1e-12)


def test_an_answer_need_not_be_a_candidate() -> None:
    hypotheses = Hypotheses([c.annotation for c in CANDIDATES])  # type: ignore[misc]
    problem = DecisionProblem(hypotheses, len(TEXT), get_similarity("softf1"))
    decision = decided(problem, All().choose(problem), problem.expected)
    assert (decision.index, decision.annotation, decision.mqm) == (None, BOTH, -6.0)
    assert decision.expected_utility == pytest.approx(mean(BOTH), abs=1e-12)
    assert [span.confidence for span in decision.annotation] == [0.5, 0.25]
    assert (decision.valid, decision.distinct, len(decision.expected_utilities)) == (4, 3, 4)


def test_an_answer_that_a_candidate_has_is_that_candidate() -> None:
    problem = DecisionProblem(Hypotheses([B, BOTH]), len(TEXT), get_similarity("f1"))
    decision = decided(problem, All().choose(problem), problem.expected)
    assert (decision.index, decision.expected_utility) == (1, decision.expected_utilities[1])
    empty = decide(CANDIDATES, TEXT, rule="empty")
    assert (empty.index, empty.annotation) == (3, Annotation())
    assert decide(CANDIDATES[:3], TEXT, rule="empty").index is None
