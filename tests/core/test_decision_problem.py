"""What is known of a segment's score before anything is chosen."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide
from mbr_esd_metric.core.candidate import CandidateColumns, ExpectedSpans
from mbr_esd_metric.core.decision_problem import Hypotheses
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus
from mbr_esd_metric.errors import InputError

MAJOR, MINOR = [ErrorSpan(0, 4, "major")], [ErrorSpan(6, 9, "minor", "fluency/punctuation")]
ITEMS = [Candidate(annotation=spans) for spans in ([], [], MAJOR, MINOR, [*MAJOR, *MINOR])]
TEXT = "0123456789"


@pytest.mark.parametrize("rule", ["mbr", "majority", "empty"])
def test_the_expected_score_is_the_mean_over_the_candidates_whatever_is_chosen(rule: str) -> None:
    decision = decide(ITEMS, TEXT, rule=rule, score="expected")
    scores = [0.0, 0.0, -5.0, -1.0, -6.0]
    assert decision.mqm == pytest.approx(statistics.fmean(scores))
    assert decision.mqm_sd == pytest.approx(statistics.pstdev(scores))
    chosen = decide(ITEMS, TEXT, rule=rule)
    assert (chosen.annotation, chosen.index, chosen.expected_utility) == (
        decision.annotation,
        decision.index,
        decision.expected_utility,
    )
    assert chosen.mqm_sd is None


def test_the_weights_of_mqm_count() -> None:
    assert decide(ITEMS, TEXT, mqm="google", score="expected").mqm == pytest.approx((-5 - 0.1 - 5.1) / 5)


def test_supports_given_apart_are_what_the_mean_is_over() -> None:
    decision = decide(ITEMS[:1], TEXT, supports=ITEMS[2:3], score="expected")
    assert (decision.mqm, decision.mqm_sd, decision.annotation.spans) == (-5.0, 0.0, ())


COUNTS = [ExpectedSpans(*counts) for counts in ((0.1, 0.0), (0.3, 0.1), (0.2, 0.9), (1.5, 0.2), (3.0, 7.5))]
COUNTED = [replace(one, expected=spans) for one, spans in zip(ITEMS, COUNTS, strict=True)]
#: -(minor + 5 major), not below -25.
CONDITIONAL = [-0.1, -0.8, -4.7, -2.5, -25.0]


@pytest.mark.parametrize("rule", ["mbr", "majority", "empty", "mbr-corpus", "consensus-corpus"])
def test_the_conditional_score_is_the_mean_of_what_was_expected_along_each_candidate(rule: str) -> None:
    def of(score: str) -> object:
        options = DecisionOptions(rule, score=score)
        if options.whole_set:
            return decide_corpus([(COUNTED, TEXT)], options).decisions[0]
        return decide(COUNTED, TEXT, rule=rule, score=score)

    decision, chosen = of("conditional"), of("chosen")
    assert decision.mqm == pytest.approx(statistics.fmean(CONDITIONAL))  # type: ignore[attr-defined]
    assert decision.mqm_sd == pytest.approx(statistics.pstdev(CONDITIONAL))  # type: ignore[attr-defined]
    assert decision.annotation == chosen.annotation  # type: ignore[attr-defined]


def test_the_conditional_score_of_one_answer_is_that_of_its_marks() -> None:
    decision = decide(COUNTED[1:2], TEXT, rule="greedy", score="conditional")
    assert (decision.mqm, decision.mqm_sd) == (pytest.approx(-0.8), 0.0)
    # What is expected has no category, so that a minor error is no matter of punctuation.
    assert decide(COUNTED[1:2], TEXT, mqm="google", score="conditional").mqm == pytest.approx(-0.8)


def test_a_long_error_counts_as_a_part_of_a_non_translation() -> None:
    def score(*spans: ErrorSpan, length: int = 100, source: str | None = None, mqm: str = "google") -> float:
        one = Candidate(annotation=spans, expected=ExpectedSpans(0.2, 0.9))
        options = DecisionOptions(score="conditional", mqm=mqm, format="marked-omissions" if source else "marked")
        return decide([one], "x" * length, options, source=source).mqm

    # -0.2 - 5 * 0.9, and what an error over x of its text weighs more than a short one: max(0, 25 x - 5).
    assert score(ErrorSpan(0, 100, "major")) == pytest.approx(-24.7)
    assert score(ErrorSpan(0, 100, "major"), mqm="paper") == pytest.approx(-4.7)
    assert score(ErrorSpan(50, 100, "major")) == pytest.approx(-12.2)
    assert score(ErrorSpan(0, 20, "major")) == score(ErrorSpan(0, 100, "minor")) == pytest.approx(-4.7)
    missing = ErrorSpan(0, 100, "major", "omission", side="source")
    assert score(missing, source="x" * 200) == pytest.approx(-12.2)
    assert score(missing, ErrorSpan(0, 100, "major"), source="x" * 200) == -25.0
    # A text of a few words is too short for its share to say much.
    assert score(ErrorSpan(0, 10, "major"), length=10) == pytest.approx(-4.7)
    assert score(ErrorSpan(0, 25, "major"), length=25) == pytest.approx(-12.2)


def test_candidates_that_agree_keep_their_own_expectations_and_weights() -> None:
    """Of model A one candidate agrees with three of model B: they weigh 1/4 and 1/16 each."""
    models = ["A", "B", "A", "B", "B", "B", "B", "B", "B", "B"]
    annotations = [ITEMS[2 if i in (0, 1, 4, 5) else 0].annotation for i in range(10)]
    counts = [ExpectedSpans(i / 8, 0.0) for i in range(10)]
    weights = [1 / 4 if model == "A" else 1 / 16 for model in models]
    candidates = [
        Candidate(annotation=a, model=m, expected=c) for a, m, c in zip(annotations, models, counts, strict=True)
    ]
    candidates.insert(3, Candidate("no answer", model="B", truncated=True))
    mean = -sum(weight * spans.minor for weight, spans in zip(weights, counts, strict=True))
    decision = decide(candidates, TEXT, score="conditional")
    assert decision.mqm == pytest.approx(mean)
    variance = sum(w * (mean + spans.minor) ** 2 for w, spans in zip(weights, counts, strict=True))
    assert decision.mqm_sd == pytest.approx(math.sqrt(variance))


@pytest.mark.parametrize("weighting", ["uniform", "model"])
@pytest.mark.parametrize("models", [None, ["A", "A", "B", "A", "B", "A", "B", "A"]])
def test_the_weights_of_candidates_sum_to_those_of_their_annotation(weighting: str, models: list[str] | None) -> None:
    one, other = Annotation(MAJOR), Annotation(MINOR)
    annotations = [one, one, other, None, one, one, other, other]
    texts = ["a", "a", "b", "c", "a", "A", "B", "b"]
    logprobs = [-1.0, -1.0, -2.0, None, -3.0, -1.5, -2.5, -0.5]
    hypotheses = Hypotheses(annotations, logprobs, texts, models)
    weights = hypotheses.candidate_weights(weighting)
    assert weights[3] == 0
    assert weights.sum() == pytest.approx(1)
    folded = [sum(weights[i] for i in range(8) if hypotheses.of[i] == h) for h in range(2)]
    assert folded == pytest.approx(hypotheses.weights(weighting).tolist(), abs=1e-15)
    assert weights[0] == weights[1], "equal answers of one model weigh the same"
    if weighting == "model" and models is None:
        assert folded[0] == pytest.approx((np.exp(-1) + np.exp(-1.5)) / (np.exp([-1, -1.5, -0.5, -2.5]).sum()))


def test_what_the_conditional_score_lacks_is_said() -> None:
    lacking = [*COUNTED[:3], *ITEMS[3:]]
    with pytest.raises(InputError, match="candidate 4 does not say how many .* take score=expected, or sample again"):
        decide(lacking, TEXT, score="conditional")
    with pytest.raises(InputError, match="candidate 1 of B does not say"):
        decide([Candidate(annotation=[], model="B")], TEXT, score="conditional")
    with pytest.raises(InputError, match="second: candidate 4 does not say"):
        decide_corpus(
            [(COUNTED, TEXT), (lacking, TEXT)],
            DecisionOptions("mbr-corpus", score="conditional"),
            labels=["first", "second"],
        )
    # Supports are what it is the mean of, and what cannot be read has no weight.
    assert decide(ITEMS, TEXT, supports=COUNTED[:1], score="conditional").mqm == pytest.approx(-0.1)
    assert decide([Candidate("?"), COUNTED[0]], TEXT, score="conditional").mqm == pytest.approx(-0.1)
    assert decide([Candidate("?"), COUNTED[0]], TEXT, invalid="empty", score="conditional").mqm == pytest.approx(-0.05)


@pytest.mark.parametrize("translation", ["", " \n"])
def test_where_there_is_no_word_no_error_is_expected(translation: str) -> None:
    decision = decide([Candidate("=")], translation, format="marked", score="conditional")
    assert (decision.mqm, decision.mqm_sd) == (0.0, 0.0)


def test_picked_candidates_keep_all_that_is_known() -> None:
    columns = CandidateColumns.of([replace(one, model="A", logprob=-float(i)) for i, one in enumerate(COUNTED)])
    picked = columns.picked([3, 0, 3])
    assert picked.expected == [COUNTS[3], COUNTS[0], COUNTS[3]]
    assert picked.models == ["A"] * 3
    assert picked.logprobs == [-3.0, 0.0, -3.0]
    assert picked.annotations == [MINOR, [], MINOR]
