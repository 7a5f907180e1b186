"""Errors that need no model in a decision: its annotation has them, and its score loses their points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric import Candidate, ErrorSpan, decide, decide_many, load_metric
from mbr_esd_metric.core.decision import TokenLogprobs
from mbr_esd_metric.decoding.file import decide_file
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import read_decisions, write_records
from tests.helpers.candidates import answer, record

SRC, MT = "Hello {name}, it costs 15 euros.", "Hallo, es kostet 51 Euro."


@pytest.mark.parametrize(
    ("marked", "points"),
    [
        ([], -5),
        ([ErrorSpan(17, 19, "major", "accuracy")], -5),  # the same characters count once
        ([ErrorSpan(17, 19, "minor")], -5),
        ([ErrorSpan(10, 24, "major")], -5),
        ([ErrorSpan(0, 5, "minor")], -6),
        ([ErrorSpan(0, 5, "major")] * 5, -10),
    ],
)
def test_the_score_loses_their_points_once(marked: list[ErrorSpan], points: int) -> None:
    candidates = [Candidate(annotation=marked)] * 3
    plain = decide(candidates, MT)
    decision = decide(candidates, MT, source=SRC.replace(" {name}", ""), checks="true")
    assert (decision.mqm, decision.score) == (points, 1 + points / 25)
    assert ErrorSpan(17, 19, "major") in {replace(one, category=None, confidence=None) for one in decision.annotation}
    assert ("check/number", 1.0) in {(one.category, one.confidence) for one in decision.annotation}
    assert set(decision.annotation.key) == {*plain.annotation.key, (17, 19, "major")}
    assert decision.expected_utilities == plain.expected_utilities


@pytest.mark.parametrize("marked", ["none", "major <51>"])
def test_a_score_that_the_model_states_loses_them_all(marked: str) -> None:
    candidates = [Candidate(f"{marked}\nscore 90"), Candidate(f"{marked}\nscore 80")]
    options = DecisionOptions(format="esa", score="given")
    plain, checked = (decide(candidates, MT, options, source=SRC, checks=one) for one in ("false", "true"))
    assert checked.mqm == plain.mqm - 10  # a number and a placeholder
    assert checked.mqm_sd == plain.mqm_sd


def test_a_mean_over_the_candidates_loses_what_they_have_not_taken_off() -> None:
    candidates = [Candidate(annotation=[ErrorSpan(17, 19, "major")] * marks) for marks in (1, 1, 1, 0)]
    decision = decide(candidates, MT, source=SRC.replace(" {name}", ""), score="expected", checks="true")
    assert decision.mqm == pytest.approx(-5)  # -3.75 of the candidates
    # A single answer has lost all; its tokens' probabilities are the confidence, and no share.
    text = answer("51", severity="major")
    tokens = TokenLogprobs.spelling([text.encode()], [-0.5], text)
    decision = decide(
        [Candidate(text, token_logprobs=tokens)], MT, source=SRC.replace(" {name}", ""), score="expected", checks="true"
    )
    assert decision.mqm == pytest.approx(-5)


def test_what_is_lost_is_an_omission_where_a_model_marks_omissions() -> None:
    decision = decide([Candidate('{"errors": []}', format="json-omissions")], MT, source=SRC, checks="true")
    assert [(one.category, one.side) for one in decision.annotation] == [
        ("check/number", "translation"),
        ("check/placeholder", "source"),
    ]
    assert decision.mqm == -10
    decision = decide([Candidate('{"errors": []}')], MT, source=SRC, checks="true")
    assert [one.category for one in decision.annotation] == ["check/number"]
    assert (decision.mqm, decision.valid) == (-5, 1)


def test_every_way_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [answer("kostet", severity="minor"), answer(), answer("kostet", severity="minor")]
    expected = decide([Candidate(text, logprob=-1.0) for text in texts], MT, source=SRC, checks="true")
    assert expected.mqm == -6
    path, out = tmp_path / "candidates.jsonl", tmp_path / "decisions.jsonl"
    write_records(path, [record(SRC, MT, *texts, decision={"rule": "mbr", "checks": "true"})])
    decide_file(path, out)
    (stored,) = read_decisions(out)
    assert (stored.annotation, stored.score) == (expected.annotation, expected.score)
    prediction = load_metric(f"mbr-esd-llama?n=3&candidates={path}").predict([{"src": SRC, "mt": MT}])
    assert prediction.scores == [expected.score]
    kinds = [one["category"] for one in prediction.metadata.error_spans[0]]
    assert kinds == ["accuracy/mistranslation", "check/number"]
    assert "|checks:true|" in prediction.metadata.signature
    for rule in ("mbr-corpus", "consensus-corpus"):
        plain, checked = (
            decide_many([([Candidate(one) for one in texts], MT)], DecisionOptions(rule, checks=one), sources=[SRC])
            for one in ("false", "true")
        )
        assert checked[0].mqm == plain[0].mqm - 5


def test_checks_need_the_source() -> None:
    with pytest.raises(InputError, match="give the source"):
        decide([Candidate(annotation=[])], MT, checks="true")
