"""Decisions over both sides, as over the translation followed by the source; and confidences of a single answer."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import replace

import pytest

from mbr_esd_metric import Annotation, Candidate, Decision, ErrorSpan, decide
from mbr_esd_metric.core.decision import TokenLogprobs
from mbr_esd_metric.core.rules import SegmentRule, rules
from mbr_esd_metric.core.similarities import SIMILARITIES
from mbr_esd_metric.decoding.decide import decide_corpus
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.errors import InputError, NoValidCandidateError
from mbr_esd_metric.prompting.formats import get_format
from tests.helpers.candidates import answer

MT, SRC = "Der Hund bellt.", "The big dog barks at night."
WRONG, BIG = ErrorSpan(4, 8, "minor"), ErrorSpan(4, 7, "minor", side="source")
NIGHT = ErrorSpan(18, 26, "major", side="source")
ANSWERS = [[], [WRONG], [BIG], [NIGHT], [NIGHT], [NIGHT, WRONG], [NIGHT, BIG], [ErrorSpan(9, 14, "major")]]


def one_text(spans: list[ErrorSpan]) -> Annotation:
    """The same, written out: the source begins where the translation ends."""
    return Annotation(
        replace(s, start=len(MT) + s.start, end=len(MT) + s.end, side="translation") if s.side == "source" else s
        for s in spans
    )


@pytest.mark.parametrize(
    "rule", [name for name, rule in rules(references=False).items() if isinstance(rule, SegmentRule)]
)
@pytest.mark.parametrize("utility", SIMILARITIES.names())
def test_both_sides_are_one_text(rule: str, utility: str) -> None:
    answers = ANSWERS[:1] if rule == "greedy" else ANSWERS
    options = DecisionOptions(rule, utility)
    both = decide_segment([Candidate(annotation=s, logprob=-1.0) for s in answers], MT, options, source=SRC)
    whole = decide_segment([Candidate(annotation=one_text(s), logprob=-1.0) for s in answers], MT + SRC, options)
    assert both.annotation.concatenate_sides(len(MT)) == whole.annotation
    assert [s.confidence for s in both.annotation] == [s.confidence for s in whole.annotation]
    assert replace(both, annotation=whole.annotation) == whole


def omissions(*omitted: str) -> Candidate:
    errors = [
        {"omitted_span": words, "category": "accuracy", "sub_category": "omission", "severity": "major"}
        for words in omitted
    ]
    return Candidate(json.dumps({"errors": errors}), format="json-omissions")


def test_answers_are_read_with_the_source() -> None:
    decision = decide([omissions("at night"), omissions("at night"), omissions()], MT, source=SRC)
    assert list(decision.annotation) == [ErrorSpan(18, 26, "major", "accuracy/omission", 2 / 3, "source")]
    assert decision.mqm == -5
    with pytest.raises(InputError, match="format=json-omissions mark omissions in the source; pass the source"):
        decide([omissions()], MT)
    one_sided = [Candidate(answer("Hund")), Candidate(answer())]
    assert decide(one_sided, MT, source=SRC) == decide(one_sided, MT), "it did not score as the verbs do"
    with pytest.raises(InputError, match="is in the source; join both sides first"):
        decide([Candidate(annotation=[NIGHT])], MT)


def test_omissions_that_are_not_in_the_source_are_counted_and_are_no_error() -> None:
    candidates = [omissions("the moon")] * 2 + [omissions(), omissions("at night")]
    dropped = decide(candidates, MT, source=SRC, rule="majority")
    assert (dropped.mqm, dropped.dropped, dropped.unplaced, dropped.distinct) == (0, 2, 2, 2)


def test_a_human_s_omissions_are_compared_only_where_candidates_have_the_source() -> None:
    human = Annotation([WRONG, NIGHT])

    def oracle(source: str | None, *spans: list[ErrorSpan]) -> Decision:
        return decide([Candidate(annotation=s) for s in spans], MT, rule="oracle", source=source, references=[human])

    assert oracle(None, [], [WRONG]).expected_utility == 1.0
    assert oracle(SRC, [], [WRONG], [WRONG, NIGHT]).annotation == human
    assert oracle(SRC, [], [WRONG]).expected_utility < 1.0


BENCHES = "Die Bänke 🐉 sind laut, die Bänke."


def in_tokens(text: str, seed: int = 1) -> Candidate:
    """The text in random pieces, each with a log-probability, and a closing token."""
    rng = random.Random(seed)
    cuts = sorted({0, len(text), *(rng.randrange(len(text)) for _ in range(len(text) // 3))})
    pieces = [text[a:b].encode() for a, b in itertools.pairwise(cuts)]
    logprobs = [-rng.random() / 9 for _ in range(len(pieces) + 1)]
    return Candidate(text, token_logprobs=TokenLogprobs.spelling([*pieces, b"<end>"], logprobs, text))


def expected(candidate: Candidate, *parts: str) -> float:
    """The product over the tokens with a byte of one of these parts, where each is first, by a plain loop."""
    text, tokens = str(candidate.text).encode(), candidate.token_logprobs
    assert tokens is not None
    spelled = set()
    for part in map(str.encode, parts):
        spelled |= {*range(text.index(part), text.index(part) + len(part))}
    at, total = 0, 0.0
    for size, logprob in zip(tokens.sizes, tokens.logprobs, strict=True):
        total += logprob if spelled & {*range(at, at + size)} else 0.0
        at += size
    return math.exp(total)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("form", "translation", "text", "parts"),
    [
        (
            "json",
            BENCHES,
            answer(("Bänke 🐉", "major"), ("sind", "minor")),
            [('{"error_span": "Bänke 🐉"', "major"), (', {"error_span": "sind"', "minor")],
        ),
        (
            "json",
            'Er sagt "nein" und "nein".',
            answer(('"nein"', "minor"), "und", "und"),
            [('{"error_span": "\\"nein\\""', "minor"), (', {"error_span": "und"', "major")],
        ),
        ("compact", BENCHES, "major <Bänke 🐉> minor <laut>", [("major <Bänke 🐉>",), (" minor <laut>",)]),
    ],
)
def test_the_probability_of_beginning_words_and_severity_but_not_of_the_category(
    seed: int, form: str, translation: str, text: str, parts: list[tuple[str, ...]]
) -> None:
    candidate = in_tokens(text, seed)
    annotation = decide([candidate], translation, format=form).annotation
    assert [span.confidence for span in annotation] == pytest.approx([expected(candidate, *part) for part in parts])


def test_the_probability_of_tags() -> None:
    text, _ = get_format("tags").answer(Annotation([ErrorSpan(4, 11, "major"), ErrorSpan(17, 21, "minor")]), BENCHES)
    units = ["Die=", " Bänke+", " 🐉+", " sind=", " laut-", ",=", " die=", " Bänke=", ".=", "\nScore: -6"]
    assert text == "".join(units)
    tokens = TokenLogprobs.spelling([unit.encode() for unit in units], [-0.1 * i for i in range(10)], text)
    annotation = decide([Candidate(text, token_logprobs=tokens)], BENCHES, format="tags", source="").annotation
    assert [span.confidence for span in annotation] == pytest.approx([math.exp(-0.1 - 0.2), math.exp(-0.4)])


def test_without_tokens_or_with_several_candidates_agreement_is_the_confidence() -> None:
    text = answer(("sind", "minor"))
    one, none = in_tokens(text), in_tokens(answer())
    for candidates, supports, confidence in (
        ([one, one], None, [1.0]),
        ([Candidate(text)], None, [1.0]),
        ([one], [one, none], [0.5]),
        ([none], None, []),
    ):
        assert [span.confidence for span in decide(candidates, BENCHES, supports=supports).annotation] == confidence


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
    pairs = [([Candidate(answer())], BENCHES), ([Candidate("{")], BENCHES)]
    with pytest.raises(NoValidCandidateError, match="^segment 2: no candidate is valid"):
        decide_corpus(pairs, DecisionOptions("mbr-corpus"))
    with pytest.raises(NoValidCandidateError, match=r"^segment 7 of mt\.txt: no candidate"):
        decide_corpus(pairs, DecisionOptions("mbr-corpus"), labels=["", "segment 7 of mt.txt"])
