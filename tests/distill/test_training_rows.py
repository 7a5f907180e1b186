"""Pairs against a plain reading of the paper; human annotations in the words of the answer."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric import soft_f1
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.decoding.decide import decide
from mbr_esd_metric.distill.training_folder import held_out
from mbr_esd_metric.distill.training_rows import (
    EQUAL_UTILITY,
    ONE_ANNOTATION,
    AnnotatedSegment,
    choices,
    make_pairs,
    preference,
    select,
)
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.records import CandidateRecord
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.json import output_grammar
from mbr_esd_metric.prompting.prompt import load_prompt
from tests.helpers.candidates import answer

CARD = load_card("mbr-esd-llama")
MT = "Der schnelle Fuchs springt über den faulen Hund."
WORDS = MT.rstrip(".").split()


def record(
    *texts: str,
    logprobs: Sequence[float] = (),
    truncated: Sequence[bool] = (),
    number: int = 1,
    source: str = "source 1",
    lp: str | None = None,
) -> CandidateRecord:
    n = len(texts)
    columns = CandidateColumns(texts, tuple(logprobs) or (None,) * n, tuple(truncated) or (False,) * n)
    return CandidateRecord(Segment(source, MT, str(number)), columns, lp=lp)


def pair_of(item: CandidateRecord) -> Any:
    """The chosen and the rejected answer, or the reason why there is no pair."""
    row = preference(item, decide(item.columns, item.segment.translation), load_prompt())
    if isinstance(row, str):
        return row
    assert row.content["chosen_utility"] > row.content["rejected_utility"]
    return row.content["chosen"][0]["content"], row.content["rejected"][0]["content"]


def plain_reading(item: CandidateRecord) -> tuple[str, str] | None:
    """Sum the similarities to all samples; the highest is chosen, the lowest rejected."""
    parser = get_format("json").parser(MT)
    annotations = [parser.parse(text).annotation for text in item.texts]
    utility = [math.fsum(soft_f1(c, s, len(MT)) for s in annotations) / len(annotations) for c in annotations]

    def first(target: float) -> int:
        tied = [i for i, u in enumerate(utility) if abs(u - target) < 1e-9]
        return min(tied, key=lambda i: (-(item.columns.logprobs[i] or 0.0), i))

    chosen, rejected = first(max(utility)), first(min(utility))
    if annotations[chosen] == annotations[rejected] or utility[chosen] - utility[rejected] < 1e-9:
        return None
    return item.texts[chosen], item.texts[rejected]


def test_pairs_are_those_of_the_paper_read_plainly() -> None:
    rng = random.Random(5)
    some = 0
    for _ in range(120):
        texts = [
            answer(*((w, rng.choice(("major", "minor"))) for w in rng.sample(WORDS, rng.choice((0, 1, 1, 2)))))
            for _ in range(rng.randint(1, 9))
        ]
        item = record(*texts, logprobs=[rng.choice((-1.0, -2.0, -3.0)) for _ in texts])
        pair, expected = pair_of(item), plain_reading(item)
        some += expected is not None
        assert pair == expected or (expected is None and pair in (ONE_ANNOTATION, EQUAL_UTILITY))
    assert some > 60


def test_ties_invalid_candidates_and_segments_without_a_preference() -> None:
    a, b, none = answer("Fuchs"), answer("Hund"), answer()
    reworded = a.replace("accuracy", "style")  # the same annotation in other words
    assert pair_of(record(a, reworded, b, b, b, logprobs=(-5.0, -4.0, -1.0, -1.0, -1.0)))[1] == reworded
    assert pair_of(record(a, reworded, b, b, b, logprobs=(-4.0, -4.0, -1.0, -1.0, -1.0)))[1] == a
    assert pair_of(record("garbage", a, a, none, '{"errors": [', truncated=(False,) * 4 + (True,))) == (a, none)
    assert pair_of(record(a, a, a)) == ONE_ANNOTATION
    # Two different annotations have the same mean similarity to each other and themselves.
    assert pair_of(record(a, answer("Hund."))) == EQUAL_UTILITY


def corpus(sources: int = 20, systems: int = 4) -> list[CandidateRecord]:
    rng = random.Random(1)
    items = []
    for number in range(sources * systems):
        texts = [answer(word) for word in rng.sample(WORDS, 3)] + [answer()] * 2
        items.append(record(*texts, number=number, source=f"s{number // systems}", lp="en-de"))
    return items


def test_no_source_is_on_both_sides_and_about_a_tenth_is_held_out() -> None:
    sources = [record.segment.source for record in corpus()]
    held = held_out(sources)
    assert held.count(True) == 8
    assert len(set(zip(sources, held, strict=True))) == len(set(sources))
    assert held_out(sources[::-1]) == held[::-1]
    with pytest.raises(InputError, match="same source"):
        held_out(["a", "a"])


def test_rows_and_their_report() -> None:
    a = answer("Fuchs")
    items = corpus(3, 2)
    pairs = make_pairs([*items, record(a, a, "y"), record("x")], CARD)
    unread = "no candidate is valid (1 not JSON); the first answer is 'x'"
    assert pairs.report.splitlines()[:4] == [
        "6 pairs of 8 segments",
        "       1  no pair: all candidates have the same annotation",
        f"       1  no pair: no valid candidate (segment '1': {unread})",
        "  1 candidate invalid: not JSON",
    ]
    row = pairs.rows[0].content
    assert row["prompt"] == [{"role": "user", "content": load_prompt().render("s0", MT, "en-de")}]
    answers = [row[side] for side in ("chosen", "rejected")]
    assert answers == [[{"role": "assistant", "content": text}] for text in pair_of(items[0])]
    assert (row["id"], row["lp"]) == (items[0].segment.label, "en-de")
    for records, message in (
        ([record(a, a)], r"no preference pairs \(1 segment: all candidates have the same annotation"),
        ([record("x")], r"\(1 segment: no valid candidate; segment '1': no candidate is valid \(1 not JSON\)"),
        ([], "no segments"),
    ):
        with pytest.raises(InputError, match=message):
            make_pairs(records, CARD)
    for name, message in (
        ("mbr-esd-llama?rule=majority", "expected utility"),
        ("mbr-esd-llama?format=tags", "format=tags"),
        ("mbr-esd-server?server=http://x", "no weights to train"),
    ):
        with pytest.raises(OptionError, match=message):
            make_pairs([record(a, answer())], load_card(name))


def human(source: str, translation: str, *marked: tuple[str, Severity, str]) -> AnnotatedSegment:
    spans = []
    for text, severity, category in marked:
        at = translation.rindex(text)
        spans.append(ErrorSpan(at, at + len(text), severity, category))
    return AnnotatedSegment(Segment(source, translation), Annotation(spans), "en-de")


def test_real_answers_fit_the_grammar(mqm_folder: Path) -> None:
    grammar = re.compile(output_grammar())
    for rating in read_mqm(mqm_folder / "mqm_ted_ende.tsv").ratings[:1500]:
        text, _ = get_format("json").answer(rating.annotation, rating.segment.translation)
        assert grammar.fullmatch(text), text


def test_selection_is_mostly_erroneous_and_deterministic() -> None:
    items = [human(f"s{i % 40}", f"Wort{i} ist hier falsch.", ("falsch", "major", "Other")) for i in range(200)]
    items += [human(f"s{i % 40}", f"Satz {i}.") for i in range(200)]
    chosen = select(items, CARD, examples=100, clean_share=0.2)
    answers = [row.content["completion"][0]["content"] for row in chosen.rows]
    assert (len(answers), chosen.clean, answers.count('{"errors": []}')) == (100, 20, 20)
    assert chosen == select(items[::-1], CARD, examples=100, clean_share=0.2)
    assert len(select(items[200:], CARD, clean_share=None).rows) == 200
    assert "English" in chosen.rows[0].content["prompt"][0]["content"]


def test_an_erroneous_translation_is_never_taught_as_clean() -> None:
    lost = human("s", "a, b, c", (",", "minor", "Fluency/Punctuation"))  # its text occurs before
    others = [human(f"k{i}", "x falsch", ("falsch", "major", "Other")) for i in range(3)]
    unplaced = AnnotatedSegment(Segment("u", "x richtig"), Annotation().with_unplaced(["major"]), "en-de")
    chosen = select([lost, unplaced, *others], CARD, clean_share=0.5)
    assert (len(chosen.rows), chosen.inexpressible) == (3, 2)


def test_what_the_rule_chooses_is_learnt() -> None:
    error, clean = answer("Fuchs"), answer()
    texts = [(error, error, clean), ("no answer",), (clean, clean, error)]
    records = [record(*some, number=i, source=f"source {i}", lp="en-de") for i, some in enumerate(texts)]
    chosen = choices(records, CARD)
    assert [(item.segment.source, len(item.annotation), item.lp) for item in chosen] == [
        ("source 0", 1, "en-de"),
        ("source 2", 0, "en-de"),
    ]
    with pytest.raises(InputError, match="no segment has a valid candidate; segment '1'"):
        choices([records[1]], CARD)
    with pytest.raises(InputError, match="segment '1': the rule 'map' needs the candidates' log-probabilities"):
        choices([record(error, clean)], load_card("mbr-esd-llama?rule=map"))
