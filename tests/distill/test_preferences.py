"""Pairs against a plain reading of the paper, splits without leakage, files that load."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mbr_esd_metric import soft_f1
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.distill.preferences import (
    EQUAL_UTILITY,
    NO_VALID,
    ONE_ANNOTATION,
    make_pairs,
    preference,
)
from mbr_esd_metric.distill.training_folder import held_out
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.records import CandidateRecord
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.prompting.formats.json import render_answer
from mbr_esd_metric.prompting.prompt import load_prompt

CARD = load_card("mbr-esd-llama")
MT = "Der schnelle Fuchs springt über den faulen Hund."


def answer(*spans: tuple[str, str]) -> str:
    kind = {"category": "accuracy", "sub_category": "x"}
    return render_answer([{"error_span": text, **kind, "severity": severity} for text, severity in spans])


def record(*texts: str, logprobs: Sequence[float] = (), truncated: Sequence[bool] = ()) -> CandidateRecord:
    columns = CandidateColumns(
        texts, tuple(logprobs) or (None,) * len(texts), tuple(truncated) or (False,) * len(texts)
    )
    return CandidateRecord("1", "source 1", MT, columns)


def pair_of(item: CandidateRecord) -> Any:
    """The chosen and the rejected answer, or the reason why there is no pair."""
    row = preference(item, load_prompt(), CARD)
    if isinstance(row, str):
        return row
    assert row.content["chosen_utility"] > row.content["rejected_utility"]
    return row.content["chosen"][0]["content"], row.content["rejected"][0]["content"]


def spans(text: str, mt: str) -> Annotation:
    return Annotation(
        {
            "start": mt.find(e["error_span"]),
            "end": mt.find(e["error_span"]) + len(e["error_span"]),
            "severity": e["severity"],
        }
        for e in json.loads(text)["errors"]
    )


def plain_reading(item: CandidateRecord) -> tuple[int, int] | None:
    """Sum the similarities to all samples; the highest is chosen, the lowest rejected."""
    annotations = [spans(text, item.mt) for text in item.texts]
    utility = [math.fsum(soft_f1(c, s, len(item.mt)) for s in annotations) / len(annotations) for c in annotations]

    def first(target: float) -> int:
        tied = [i for i, u in enumerate(utility) if abs(u - target) < 1e-9]
        return min(tied, key=lambda i: (-(item.columns.logprobs[i] or 0.0), i))

    chosen, rejected = first(max(utility)), first(min(utility))
    if annotations[chosen] == annotations[rejected] or utility[chosen] - utility[rejected] < 1e-9:
        return None
    return chosen, rejected


def test_pairs_are_those_of_the_paper_read_plainly() -> None:
    rng = random.Random(5)
    words = MT.rstrip(".").split()
    some = 0
    for _ in range(120):
        texts = [
            answer(*((w, rng.choice(("major", "minor"))) for w in rng.sample(words, rng.choice((0, 1, 1, 2)))))
            for _ in range(rng.randint(1, 9))
        ]
        item = record(*texts, logprobs=[rng.choice((-1.0, -2.0, -3.0)) for _ in texts])
        pair, expected = pair_of(item), plain_reading(item)
        if expected is None:
            assert pair in (ONE_ANNOTATION, EQUAL_UTILITY)
            continue
        some += 1
        assert [spans(text, MT) for text in pair] == [spans(texts[at], MT) for at in expected]
    assert some > 60


def test_ties_go_to_the_likelier_then_to_the_first() -> None:
    a, b = answer(("Fuchs", "major")), answer(("Hund", "major"))
    reworded = a.replace("accuracy", "style")  # the same annotation in other words
    assert pair_of(record(a, reworded, b, b, b, logprobs=(-5.0, -4.0, -1.0, -1.0, -1.0)))[1] == reworded
    assert pair_of(record(a, reworded, b, b, b, logprobs=(-4.0, -4.0, -1.0, -1.0, -1.0)))[1] == a


def test_segments_without_a_preference_say_why() -> None:
    a = answer(("Fuchs", "major"))
    assert pair_of(record(a, a, a)) == ONE_ANNOTATION
    # Two different annotations have the same mean similarity to each other and themselves.
    assert pair_of(record(a, answer(("Hund.", "major")))) == EQUAL_UTILITY
    assert pair_of(record("no JSON", a, truncated=(False, True))) == NO_VALID


def test_invalid_candidates_are_neither_chosen_nor_rejected() -> None:
    a, b = answer(("Fuchs", "major")), answer()
    assert pair_of(record("garbage", a, a, b, '{"errors": [', truncated=(False,) * 4 + (True,))) == (a, b)


def corpus(sources: int = 20, systems: int = 4) -> list[CandidateRecord]:
    rng = random.Random(1)
    items = []
    for source in range(sources):
        for system in range(systems):
            texts = [answer((w, "major")) for w in rng.sample(MT.rstrip(".").split(), 3)] + [answer()] * 2
            items.append(replace(record(*texts), id=f"{source}-{system}", src=f"s{source}"))
    return items


def test_no_source_is_on_both_sides_and_about_a_tenth_is_held_out() -> None:
    sources = [record.src for record in corpus()]
    held = held_out(sources, "source")
    assert held.count(True) == 8
    assert len(set(zip(sources, held, strict=True))) == len(set(sources))
    assert held_out(sources[::-1], "source") == held[::-1]
    assert held_out(sources, "random").count(True) == 8
    assert held_out(["a", "a"], "random").count(True) == 1
    with pytest.raises(InputError, match="same source"):
        held_out(["a", "a"], "source")


def test_the_report_counts_everything() -> None:
    a = answer(("Fuchs", "major"))
    pairs = make_pairs([*corpus(3, 2), record(a, a), record("x")], CARD)
    text = pairs.report()
    assert "6 pairs of 8 segments" in text
    assert ONE_ANNOTATION in text
    assert NO_VALID in text
    gaps = [row.content["chosen_utility"] - row.content["rejected_utility"] for row in pairs.rows]
    assert f"utility gap: mean {sum(gaps) / 6:.4g}" in text


def test_no_pairs_is_an_error_with_the_reason() -> None:
    a = answer(("Fuchs", "major"))
    with pytest.raises(InputError, match="no preference pair \\(1 segments: all candidates are one annotation"):
        make_pairs([record(a, a)], CARD)
    with pytest.raises(InputError, match="no segments"):
        make_pairs([], CARD)
    for name, message in (
        ("mbr-esd-llama?rule=majority", "expected utility"),
        ("mbr-esd-llama?format=tags", "format=tags"),
        ("mbr-esd-server?server=http://x", "no weights to train"),
    ):
        with pytest.raises(OptionError, match=message):
            make_pairs([record(a, answer())], load_card(name))


def test_a_row_is_a_conversation_with_the_question() -> None:
    item = replace(corpus()[0], lp="en-de")
    (row,) = (row.content for row in make_pairs([item], CARD).rows)
    assert row["prompt"] == [{"role": "user", "content": load_prompt().render("s0", MT, "en-de")}]
    answers = [row[side] for side in ("chosen", "rejected")]
    assert answers == [[{"role": "assistant", "content": text}] for text in pair_of(item)]
    assert (row["id"], row["lp"]) == (item.id, "en-de")
