"""`format=gemba-mqm` and `esa`: answers of other people's judges, and the scores that they state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric import Candidate, DecisionOptions, decide
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.formats.gemba_mqm import gemba_score
from mbr_esd_metric.elicit.parse import Invalid, Parsed
from mbr_esd_metric.errors import InputError

SRC = "The bank on the corner closed last week."
MT = "Das Ufer an der Ecke schloss."
ANSWER = """\
Critical:
no-error
Major:
accuracy/mistranslation - "Ufer"
accuracy/omission - "last week"
Minor:
fluency/grammar - "schloss"
"""
NOTHING = "Critical:\nno-error\nMajor:\nno-error\nMinor:\nno-error"


def read(text: str, name: str = "gemba-mqm") -> Parsed | Invalid:
    return get_format(name).parser(MT, source=SRC).parse(text)


def test_the_lists_become_spans_of_both_sides() -> None:
    parsed = read(ANSWER)
    assert isinstance(parsed, Parsed)
    assert [(s.start, s.end, s.severity, s.category, s.side) for s in parsed.annotation] == [
        (4, 8, "major", "accuracy/mistranslation", "translation"),
        (21, 28, "minor", "fluency/grammar", "translation"),
        (30, 39, "major", "accuracy/omission", "source"),
    ]


@pytest.mark.parametrize(
    ("text", "spans", "lost"),
    [
        (ANSWER.upper().replace("UFER", "Ufer").replace("SCHLOSS", "schloss").replace("LAST WEEK", "last week"), 3, 0),
        (NOTHING, 0, 0),
        ('Major:\nnon-translation - "Das Ufer"', 1, 0),
        ('Minor:\naccuracy/addition - "nicht da"', 0, 1),
        ("Minor:\nthe style is awkward", 0, 1),  # no words in quotes: counted, and no place
        ('Minor:\nstyle/awkward - "an" and "der Ecke"', 0, 1),
    ],
)
def test_what_is_read(text: str, spans: int, lost: int) -> None:
    parsed = read(text)
    assert isinstance(parsed, Parsed)
    assert (len(parsed.annotation), parsed.dropped) == (spans, lost)


@pytest.mark.parametrize(
    "text",
    ["", "no-error", "The translation is fine.", "Critical:\nno-error\nMajor:", NOTHING[:-8], '"Ufer"\n' + ANSWER],
)
def test_what_is_cut_or_in_another_form_is_never_no_error(text: str) -> None:
    assert isinstance(read(text), Invalid)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (NOTHING, 0),
        (ANSWER, -11),
        ("", 0),  # whatever cannot be read has no error there
        ("The translation is fine.", 0),
        ('Critical:\naccuracy - "a"', -25),
        ('Minor:\nnon-translation - "a"', -25),
        ("Minor:\n" + "\n".join(f'style - "{i}"' for i in range(9)), -5),  # five errors count
        ("Major:\n" + "\n".join(f'style - "{i}"' for i in range(9)), -25),
        ('Major:\nno-error beside accuracy - "a"\nMinor:\nx', -1),
    ],
)
def test_the_score_of_gembas_own_reading(text: str, score: float) -> None:
    assert gemba_score(text) == score


def test_the_score_of_real_answers_is_that_of_gembas_parser() -> None:
    """Answers of SmolLM2-135M-Instruct to GEMBA's own question, without a grammar; scores of its `parse_mqm_answer`."""
    scores = json.loads((Path(__file__).parents[1] / "golden" / "gemba_answers.json").read_text(encoding="utf-8"))
    assert len(scores) == 102
    assert {text: gemba_score(text) for text in scores} == scores


def test_score_given_is_the_mean_of_the_stated_scores() -> None:
    candidates = [
        Candidate("major <Ufer>\nscore 60"),
        Candidate("major <Ufer>\nscore 80"),
        Candidate("none\nscore 100"),
    ]
    decision = decide(candidates, MT, format="esa", score="given", source=SRC)
    assert decision.mqm == pytest.approx(25 * (0.8 - 1))
    assert decision.annotation == Annotation([ErrorSpan(4, 8, "major")])
    invalid = decide([*candidates, Candidate("score 3")], MT, format="esa", score="given", source=SRC)
    assert (invalid.mqm, invalid.invalid) == (pytest.approx(-5.0), 1)
    with pytest.raises(InputError, match="candidate 1 states no score"):
        decide([Candidate('{"errors": []}')], MT, score="given")


def test_the_stated_score_is_gembas() -> None:
    options = DecisionOptions("greedy", format="gemba-mqm", score="given", invalid="empty")
    for text, score, errors in ((ANSWER, -11.0, 3), ("The translation is fine.", 0.0, 0)):
        decision = decide([Candidate(text)], MT, options, source=SRC)
        assert (decision.mqm, len(decision.annotation)) == (score, errors)
