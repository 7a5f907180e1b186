"""The numbers of other people's code, made by golden/make_similarities.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide, f1, soft_f1
from mbr_esd_metric.core.kernels import AnnotationTable
from mbr_esd_metric.core.similarities.f1 import wmt23_counts, wmt25_counts
from mbr_esd_metric.core.similarities.mpp import Mpp

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "similarities.json").read_text(encoding="utf-8")
)


def of(keys: Any) -> Annotation:
    return Annotation(ErrorSpan(*key) for key in keys)


PAIRS = [(of(pair["candidate"]), of(pair["support"]), pair["length"]) for pair in GOLDEN["pairs"]]


def test_pairs() -> None:
    assert len(PAIRS) == 150
    for pair, (c, s, length) in zip(GOLDEN["pairs"], PAIRS, strict=True):
        assert soft_f1(c, s, length, clip=False) == pytest.approx(pair["soft_f1"], abs=1e-15)
        assert f1(c, s, length) == pytest.approx(pair["f1"], abs=1e-15)
        for options, value in zip(GOLDEN["mpp_options"], pair["mpp"], strict=True):
            assert Mpp(**options).scalar(c, s, length) == pytest.approx(value, abs=1e-12)
            batched = Mpp(**options).matrix(AnnotationTable([c, s], length), slice(0, 1), slice(1, 2))
            assert batched.item() == pytest.approx(value, abs=1e-12)


def test_corpora() -> None:
    for task, counted in (("wmt23", wmt23_counts), ("wmt25", wmt25_counts)):
        credit, size_c, size_s = map(sum, zip(*(counted(*pair) for pair in PAIRS), strict=True))
        assert 2 * credit / (size_c + size_s) == pytest.approx(GOLDEN["corpora"][task], abs=1e-12)
    counts = [Mpp().counts(c, s) for c, s, _ in PAIRS]
    precision = sum(c.precision_credit for c in counts) / sum(c.candidate_mass for c in counts)
    recall = sum(c.recall_credit for c in counts) / sum(c.support_mass for c in counts)
    micro = 2 * precision * recall / (precision + recall)
    assert micro == pytest.approx(GOLDEN["corpora"]["mpp"], abs=1e-12)


@pytest.mark.parametrize("method", GOLDEN["methods"])
def test_the_released_code_takes_a_candidate_that_is_best_by_ours(method: str) -> None:
    rule, utility = GOLDEN["methods"][method]
    for case in GOLDEN["decisions"]:
        candidates = [Candidate(text, logprob=logprob) for text, logprob in case["candidates"]]
        decision = decide(candidates, case["translation"], rule=rule, utility=utility, invalid="empty")
        utilities = decision.expected_utilities
        assert utilities[case["chosen"][method]] == pytest.approx(utilities[decision.index], abs=1e-12), case
