"""Corrections: the choice against brute force, and that they change no decision; the corrected translation."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterable
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import sentence_chrf

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide, decide_many
from mbr_esd_metric.core.corrections import corrected, not_applied, proposals, with_corrections
from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.core.similarities import SIMILARITIES
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.parse import Parsed

MT = "Der Hund, der 🐉 bellt laut."
TEXTS = ["", "Katze", "Die Katze", "die Katze", "Kater", 'a "b" }, {', MT]
PLACES = [(0, 3), (4, 8), (4, 15), (14, 15), (16, 27)]


def utility(one: str, other: str) -> float:
    if one == other:
        return 1.0
    if "" in (one, other):
        return 0.0
    return (sentence_chrf(one, [other]).score + sentence_chrf(other, [one]).score) / 200


def brute_force(place: tuple[int, int], candidates: list[Candidate], weights: list[float]) -> tuple[str, str, float]:
    """Correction, reason and agreement of a place."""
    said = [
        (span.correction, span.reason, weight, candidate.logprob, number)
        for number, (candidate, weight) in enumerate(zip(candidates, weights, strict=True))
        for span in candidate.annotation or ()
        if (span.start, span.end) == place and span.correction is not None
    ]
    total = sum(weight for _, _, weight, _, _ in said)
    expected = [sum(w / total * utility(text, other) for other, _, w, _, _ in said) for text, *_ in said]
    likeliest = [(-logprob, number) for _, _, _, logprob, number in said]
    best = min((key, at) for at, key in enumerate(likeliest) if expected[at] >= max(expected) - 1e-9)[1]
    text, reason = said[best][:2]
    return text, reason, sum(one[2] for one in said if one[0] == text) / total


def sampled(rng: random.Random, n: int) -> list[Candidate]:
    """Candidates with corrections of few places, with their own probabilities."""
    made = []
    for number in range(n):
        places = rng.sample(PLACES, rng.randrange(3))
        spans = [
            ErrorSpan(*place, rng.choice(["major", "minor"]), correction=rng.choice(TEXTS), reason=f"reason {number}")
            for place in places
        ]
        made.append(Candidate(annotation=spans, logprob=-rng.choice([1.0, 2.0, 3.5])))
    return made


@given(st.randoms(use_true_random=False), st.integers(1, 16))
def test_the_choice_is_that_of_brute_force(rng: random.Random, n: int) -> None:
    candidates = sampled(rng, n)
    for rule in ("mbr", "majority", "map"):
        decision = decide(candidates, MT, rule=rule)
        for span in decision.annotation:
            text, reason, agreement = brute_force((span.start, span.end), candidates, [1 / n] * n)
            assert (span.correction, span.reason) == (text, reason)
            assert span.agreement == pytest.approx(agreement, abs=1e-12)


def test_sixteen_different_corrections_and_the_weights_of_a_model() -> None:
    texts = [f"Die {word} Katze{end}" for word in ("alte", "alter", "junge", "neue") for end in ("", "n", "!", " da")]
    logprobs = [-2.0 - number / 3 for number in range(16)]
    mass = [math.exp(one) for one in logprobs]
    spans = [ErrorSpan(4, 8, "minor", correction=text, reason=text) for text in texts]
    candidates = [Candidate(annotation=[one], logprob=p) for one, p in zip(spans, logprobs, strict=True)]
    answers = get_format("json-corrections")
    written = [Candidate(answers.answer(Annotation(one.annotation), MT)[0], logprob=one.logprob) for one in candidates]
    for weights, shares in (("uniform", [1 / 16] * 16), ("model", [one / sum(mass) for one in mass])):
        (span,) = decide(written, MT, weights=weights, format="json-corrections").annotation
        text, reason, agreement = brute_force((4, 8), candidates, shares)
        assert (span.correction, span.reason, span.agreement) == (text, reason, pytest.approx(agreement))


def bare(spans: Iterable[ErrorSpan]) -> list[ErrorSpan]:
    return [replace(one, correction=None, reason=None, agreement=None) for one in spans]


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_corrections_change_no_decision(rng: random.Random) -> None:
    candidates = sampled(rng, 9)
    without = [replace(one, annotation=bare(one.annotation or ())) for one in candidates]
    for rule, utility in itertools.product(rules(references=False), SIMILARITIES.names()):
        options = {"rule": rule, "weights": rng.choice(["uniform", "model"])}
        options["score"] = rng.choice(["chosen", "expected"])
        if rule == "greedy":
            continue
        if not rule.endswith("corpus"):
            options["utility"] = utility
        (one,), (other,) = (decide_many([(some, MT)], **options) for some in (candidates, without))
        assert repr(replace(one, annotation=one.annotation.with_spans(bare(one.annotation)))) == repr(other)


@given(st.lists(st.sampled_from(PLACES)), st.randoms(use_true_random=False))
def test_corrections_by_the_own_words_change_nothing(places: list[tuple[int, int]], rng: random.Random) -> None:
    spans = [ErrorSpan(a, b, rng.choice(["major", "minor"]), correction=MT[a:b]) for a, b in places]
    assert corrected(MT, Annotation(spans)) == MT
    assert corrected(MT, Annotation([replace(one, correction=None) for one in spans])) == MT


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(4, 8, "minor", "Kater"), (14, 16, "minor", "")], "Der Kater, der bellt laut."),
        ([(4, 8, "major", "A"), (4, 15, "minor", "B")], "Der A, der 🐉 bellt laut."),  # the more severe
        ([(4, 8, "minor", "A"), (4, 15, "minor", "B")], "Der B bellt laut."),  # the longer
        ([(0, 4, "minor", "A "), (3, 7, "minor", "B")], "A Hund, der 🐉 bellt laut."),  # the first
        ([(0, 8, "major", None), (4, 8, "minor", "A")], "Der A, der 🐉 bellt laut."),
        ([(0, 3, "minor", "A"), (3, 8, "minor", "B")], "AB, der 🐉 bellt laut."),
        ([], MT),
    ],
)
def test_the_corrected_translation(spans: list[tuple[int, int, str, str | None]], expected: str) -> None:
    annotation = Annotation([ErrorSpan(a, b, severity, correction=text) for a, b, severity, text in spans])
    assert corrected(MT, annotation) == expected


def test_a_correction_whose_place_is_ambiguous_is_not_applied() -> None:
    """What a model gives is the words; what has offsets of its own is applied."""
    text = "Er sah den Hund und den Katze, in Berlin. 开门，关门。"
    for words, is_clear in (("den", False), (",", True), ("in", True), ("er", False), ("Katze", True), ("门", False)):
        error = {"error_span": words, "category": "a", "sub_category": "b", "severity": "minor", "correction": "X"}
        parsed = get_format("json-corrections").parser(text).parse(json.dumps({"errors": [error]}))
        assert isinstance(parsed, Parsed)
        decided = with_corrections(parsed.annotation, proposals([parsed.annotation], [1.0], [None]))
        for annotation in (parsed.annotation, decided, Annotation([asdict(span) for span in decided])):
            assert corrected(text, annotation) == (text.replace(words, "X", 1) if is_clear else text), words
            assert not_applied(annotation) == (not is_clear)
            assert ("ambiguous" in annotation.spans[0].correction_fields) == (not is_clear)
        given = Annotation([replace(span, ambiguous=False) for span in decided])
        assert "X" in corrected(text, given)


def test_a_correction_of_another_kind_is_an_error() -> None:
    for name, value in (("correction", 1), ("reason", b""), ("agreement", 2.0), ("agreement", "1")):
        with pytest.raises(InputError, match=name):
            Annotation([{"start": 0, "end": 1, "severity": "minor", name: value}])
