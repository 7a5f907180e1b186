"""What the released code makes of answers: scores as written, what cannot be read, and counts."""

from __future__ import annotations

import json

import pytest

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.decoding.released_code import decide_released
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError

TRANSLATION = "Das Ufer, das Ufer"


def answer(*errors: tuple[object, str, str, str]) -> str:
    keys = ("error_span", "category", "sub_category", "severity")
    return json.dumps({"errors": [dict(zip(keys, error, strict=True)) for error in errors]})


@pytest.mark.parametrize(
    ("errors", "score", "spans", "dropped"),
    [
        ([("Ufer", "accuracy", "x", "major")], -5.0, [(4, 8, "major")], 0),
        ([("Ufer", "accuracy", "x", "Critical")], -5.0, [(4, 8, "major")], 0),
        ([("Ufer", "accuracy", "x", "minor")] * 2, -2.0, [(4, 8, "minor")], 0),
        ([(",", "fluency", "punctuation", "minor")], -0.1, [(8, 9, "minor")], 0),
        ([(",", "fluency", "punctuation", "major")], -5.0, [(8, 9, "major")], 0),
        ([("Ufer", "non-translation!", "x", "major")], -25.0, [(4, 8, "major")], 0),
        ([("Ufer", "non-translation!", "x", "minor")], -1.0, [(4, 8, "minor")], 0),
        ([("Ufer", "accuracy", "x", "major")] * 6, -25.0, [(4, 8, "major")], 0),
        ([("Ufer", "accuracy", "x", "neutral")], 0.0, [], 0),
        ([("Fluss", "accuracy", "x", "major"), ("", "accuracy", "x", "major"), (7, "a", "x", "minor")], 0.0, [], 3),
        ([("Fluss", "accuracy", "x", "major"), ("Das", "style", "x", "minor")], -1.0, [(0, 3, "minor")], 1),
    ],
)
def test_an_answer_counts_as_written(
    errors: list[tuple[object, str, str, str]], score: float, spans: list[tuple[int, int, str]], dropped: int
) -> None:
    decision = decide_released([Candidate(answer(*errors), logprob=-1.0)], TRANSLATION, "map")
    assert decision.score == pytest.approx(score, abs=1e-12)
    assert [(span.start, span.end, span.severity) for span in decision.annotation] == spans
    assert (decision.dropped, decision.valid, decision.invalid) == (dropped, 1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"errors": 1}',
        '{"errors": [{"error_span": "Ufer"}]}',
        answer(("Ufer", "accuracy", "x", "major")).replace('"accuracy"', "1"),
    ],
)
def test_what_cannot_be_read_is_no_error_and_is_counted(text: str) -> None:
    """As a support it pulls the choice towards "no error"."""
    good = Candidate(answer(("Ufer", "accuracy", "x", "major")), logprob=-1.0)
    bad = Candidate(text, logprob=-2.0)
    decision = decide_released([good, bad, bad], TRANSLATION)
    assert (decision.index, decision.score, len(decision.annotation)) == (1, 0.0, 0)
    assert decision.invalid == 2


def test_ties_go_to_the_first_whatever_the_log_probability() -> None:
    candidates = [Candidate(answer((word, "a", "x", "minor")), logprob=p) for word, p in (("Das", -9.0), ("das", -1.0))]
    assert decide_released(candidates, TRANSLATION, utility="scoresim").index == 0
    assert decide_released(candidates, TRANSLATION, "map").index == 1


def test_what_it_lacks_is_refused() -> None:
    one = Candidate(answer(), logprob=None)
    with pytest.raises(NoValidCandidateError):
        decide_released([], TRANSLATION)
    with pytest.raises(InputError, match="log-probabilities"):
        decide_released([one], TRANSLATION, "map")
    with pytest.raises(InputError, match="candidate 2 has no text"):
        decide_released([one, Candidate(annotation=[])], TRANSLATION)
    for rule, utility in (("majority", "softf1"), ("mbr", "softdice")):
        with pytest.raises(OptionError, match="released-code"):
            decide_released([one], TRANSLATION, rule, utility)
