"""The expected score of a segment, and the weights of its candidates."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide
from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.core.decision_problem import Hypotheses

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


def test_the_mean_is_over_supports_apart() -> None:
    decision = decide(ITEMS[:1], TEXT, supports=ITEMS[2:3], score="expected")
    assert (decision.mqm, decision.mqm_sd, decision.annotation.spans) == (-5.0, 0.0, ())


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


def test_picked_candidates_keep_all_that_is_known() -> None:
    columns = CandidateColumns.of([replace(one, model="A", logprob=-float(i)) for i, one in enumerate(ITEMS)])
    picked = columns.picked([3, 0, 3])
    assert picked.models == ["A"] * 3
    assert picked.logprobs == [-3.0, 0.0, -3.0]
    assert picked.annotations == [MINOR, [], MINOR]
