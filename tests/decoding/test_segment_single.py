"""Confidences of a single answer: the probability of the tokens that say a span, in every answer format."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide
from mbr_esd_metric.core.candidate import TokenLogprobs
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import NoValidCandidateError

MT = "Die Bänke 🐉 sind laut, die Bänke."
ERROR = '{{"error_span": "{}", "category": "{}", "sub_category": "x", "severity": "{}"}}'


def json_answer(*errors: tuple[str, str, str]) -> str:
    return '{"errors": [' + ", ".join(ERROR.format(*error) for error in errors) + "]}"


def tokens(text: str, rng: random.Random) -> tuple[list[str], TokenLogprobs]:
    """A text in random pieces, each with a log-probability, and a closing token."""
    cuts = sorted({0, len(text), *(rng.randrange(len(text)) for _ in range(len(text) // 3))})
    pieces = [text[a:b] for a, b in itertools.pairwise(cuts)]
    logprobs = [-rng.random() / 9 for _ in range(len(pieces) + 1)]
    made = TokenLogprobs.spelling([*(piece.encode() for piece in pieces), b"<end>"], logprobs, text)
    assert made is not None
    return pieces, made


def expected(text: str, pieces: list[str], made: TokenLogprobs, *parts: str) -> float:
    """The product over the pieces that have a character of one of these parts of the text, by a plain loop."""
    characters = set()
    for part in parts:
        assert text.count(part) == 1, part
        characters |= set(range(text.index(part), text.index(part) + len(part)))
    at, total = 0, 0.0
    for piece, logprob in zip(pieces, made.logprobs, strict=False):
        total += logprob if characters & set(range(at, at + len(piece))) else 0.0
        at += len(piece)
    return math.exp(total)


@pytest.mark.parametrize("seed", range(5))
def test_the_probability_of_beginning_words_and_severity_but_not_of_the_category(seed: int) -> None:
    text = json_answer(("Bänke 🐉", "fluency", "major"), ("sind", "style", "minor"))
    pieces, made = tokens(text, random.Random(seed))
    decision = decide([Candidate(text, token_logprobs=made)], MT)
    first, second = decision.annotation
    assert first.confidence == pytest.approx(expected(text, pieces, made, '{"error_span": "Bänke 🐉"', "major"))
    assert second.confidence == pytest.approx(expected(text, pieces, made, ', {"error_span": "sind"', "minor"))
    assert decision.mqm == -6


def test_escapes_and_a_repeated_span() -> None:
    mt = 'Er sagt "nein" und "nein".'
    text = json_answer(('\\"nein\\"', "style", "minor"), ("und", "style", "major"), ("und", "fluency", "major"))
    pieces, made = tokens(text, random.Random(1))
    first, second = decide([Candidate(text, token_logprobs=made)], mt).annotation
    assert first.confidence == pytest.approx(expected(text, pieces, made, '{"error_span": "\\"nein\\""', "minor"))
    assert second.confidence == pytest.approx(
        math.exp(made.total([(text.index(', {"error_span": "und"'), text.index('"und"') + 5), _severity(text, 2)]))
    )
    both = json_answer(("die", "style", "minor"), ("nke", "style", "major"), ("nke", "style", "major"))
    pieces, made = tokens(both, random.Random(2))
    annotation = decide([Candidate(both, token_logprobs=made)], "die Bänke, Bänke", location="successive").annotation
    assert len({span.confidence for span in annotation}) == 3


def _severity(text: str, number: int) -> tuple[int, int]:
    start = -1
    for _ in range(number):
        start = text.index('"severity": "', start + 1)
    return start + 13, start + 18


def test_compact_and_tags() -> None:
    compact = "major <Bänke 🐉> minor <laut>"
    pieces, made = tokens(compact, random.Random(3))
    first, second = decide([Candidate(compact, token_logprobs=made)], MT, format="compact").annotation
    assert first.confidence == pytest.approx(expected(compact, pieces, made, "major <Bänke 🐉>"))
    assert second.confidence == pytest.approx(expected(compact, pieces, made, " minor <laut>"))

    tags = get_format("tags").answer(Annotation([ErrorSpan(4, 11, "major"), ErrorSpan(17, 21, "minor")]), MT)[0]
    units = ["Die=", " Bänke+", " 🐉+", " sind=", " laut-", ",=", " die=", " Bänke=", ".=", "\nScore: -6"]
    assert tags == "".join(units)
    made_ = TokenLogprobs.spelling([unit.encode() for unit in units], [-0.1 * i for i in range(10)], tags)
    first, second = decide([Candidate(tags, token_logprobs=made_)], MT, format="tags", source="").annotation
    assert first.confidence == pytest.approx(math.exp(-0.1 - 0.2))
    assert second.confidence == pytest.approx(math.exp(-0.4))


@pytest.mark.parametrize("name", ["json", "compact", "tags"])
def test_every_span_has_its_range(name: str) -> None:
    answers = get_format(name)
    annotation = Annotation([ErrorSpan(0, 3, "minor"), ErrorSpan(4, 9, "major"), ErrorSpan(17, 21, "minor")])
    text, lost = answers.answer(annotation, MT)
    assert not lost
    parser = answers.parser(MT)
    assert set(parser.ranges(text)) == set(annotation.key)
    for broken in (text[:-3], "x", text + "x", "", "\ud800"):
        assert set(parser.ranges(broken)) <= set(annotation.key)


def test_without_tokens_or_with_several_candidates_agreement_is_the_confidence() -> None:
    text = json_answer(("sind", "style", "minor"))
    _, made = tokens(text, random.Random(1))
    one = Candidate(text, token_logprobs=made)
    none = Candidate(json_answer(), token_logprobs=tokens(json_answer(), random.Random(1))[1])
    for candidates, supports, confidence in (
        ([one, one], None, [1.0]),
        ([Candidate(text)], None, [1.0]),
        ([one], [one, none], [0.5]),
        ([none], None, []),
    ):
        assert [span.confidence for span in decide(candidates, MT, supports=supports).annotation] == confidence


def test_rules_over_a_whole_set_have_them_too() -> None:
    text = json_answer(("sind", "style", "minor"))
    pieces, made = tokens(text, random.Random(1))
    options = DecisionOptions("mbr-corpus")
    (decision,) = decide_corpus([([Candidate(text, token_logprobs=made)], MT)], options).decisions
    (span,) = decision.annotation
    assert span.confidence == pytest.approx(expected(text, pieces, made, '{"error_span": "sind"', "minor"))


def test_tokens_that_spell_something_else_are_none() -> None:
    assert TokenLogprobs.spelling([b"ab", b"d"], [-1.0, -1.0], "abc") is None
    assert TokenLogprobs.spelling([b"ab"], [-1.0], "abc") is None
    # Half a character at the end of an answer that was cut is not in its text.
    assert TokenLogprobs.spelling([b"ab", "ü".encode()[:1]], [-1.0, -2.0], "ab") == TokenLogprobs((2, 0), (-1.0, -2.0))
    split = TokenLogprobs.spelling(["ü".encode()[:1], "ü".encode()[1:]], [-1.0, -2.0], "ü")
    assert split is not None
    assert split.total([(0, 2)]) == -3
    assert split.total([(0, 1)]) == -1


def test_an_error_of_a_whole_set_names_the_segment_from_1_or_by_its_label() -> None:
    pairs = [([Candidate(json_answer())], MT), ([Candidate("{")], MT)]
    with pytest.raises(NoValidCandidateError, match="^segment 2: none of the 1 candidates"):
        decide_corpus(pairs, DecisionOptions("mbr-corpus"))
    with pytest.raises(NoValidCandidateError, match=r"^segment 7 of mt\.txt: none"):
        decide_corpus(pairs, DecisionOptions("mbr-corpus"), labels=["", "segment 7 of mt.txt"])
