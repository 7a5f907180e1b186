"""Planted errors: each kind makes one error, where it says, and clean translations stay as they are."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from planted import PLANTED_KINDS, Planter

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.distill.training_rows import HumanAnnotation

#: Words with the endings of those below, and names that stand in the source as well.
_MORE = " ".join(f"{c}önigen {c}artung {c}erden {c}ichten {c}ungen" for c in "BDFGHKLMNPRSTVWZ")
_NAMES = " ".join(f"{c}anesand" for c in "BDFGHKLMNPRSTVWZ")
TEXT = "Die Regierung hat am 14. Mai nicht mit Angela Merkel über die neuen Regelungen gesprochen, weil sie krank war."
SOURCE = "The government did not talk to Angela Merkel about the new rules on 14 May because she was unwell."


def human(source: str, translation: str, *spans: ErrorSpan) -> HumanAnnotation:
    return HumanAnnotation(source, translation, "en-de", Annotation(spans))


CLEAN = [human(SOURCE, TEXT), human(_NAMES, f"Wort {_NAMES}"), human("x", f"Wort {_MORE}")]


@pytest.mark.parametrize("kind", PLANTED_KINDS)
def test_each_kind_changes_the_text_where_it_says(kind: str) -> None:
    planter, made = Planter(CLEAN), set()
    for seed in range(30):
        edit = PLANTED_KINDS[kind](planter, CLEAN[0], random.Random(seed))
        if edit is None or edit.text == TEXT:  # a name may be drawn for itself; `plant` then takes another kind
            continue
        made.add(edit.text)
        assert 0 <= edit.start < edit.end <= len(edit.text)
        assert TEXT.startswith(edit.text[: edit.start].rstrip())
        touched = edit.text[edit.start : edit.end]
        if kind in ("negation", "omission") and len(edit.text) < len(TEXT):
            assert touched in TEXT  # the word before what is gone
        else:
            # What follows the error is as it was.
            assert TEXT.endswith(edit.text[edit.end :])
    assert made


def test_numbers_and_negations() -> None:
    planter = Planter(CLEAN)
    number = planter.number(CLEAN[0], random.Random(0))
    assert number is not None
    assert number.text[number.start : number.end].isdigit()
    assert "14" not in number.text
    lost = planter.negation(CLEAN[0], random.Random(0))
    assert lost is not None
    assert " nicht " not in lost.text
    assert lost.text[lost.start : lost.end] == "Mai"
    assert planter.negation(human("x", "Sie ist krank."), random.Random(0)) == ("Sie ist nicht krank.", 8, 13, "major")


@pytest.mark.parametrize(
    ("lp", "text", "without", "marked"),
    [
        ("zh-en", "It doesn't rain.", "It does rain.", "does"),
        ("zh-en", "We cannot go.", "We can go.", "can"),
        ("en-de", "Keine Katze, sagte er.", "Eine Katze, sagte er.", "Eine"),
        ("en-de", "Das ist kein Hund.", "Das ist ein Hund.", "ein"),
    ],
)
def test_words_that_deny_lose_it(lp: str, text: str, without: str, marked: str) -> None:
    item = HumanAnnotation("x", text, lp, Annotation([]))
    edit = Planter([item]).negation(item, random.Random(0))
    assert edit is not None
    assert (edit.text, edit.text[edit.start : edit.end]) == (without, marked)


def test_what_is_missing_is_planted_more_often_than_the_rest() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(300):
        made = Planter(CLEAN).plant(CLEAN[0], random.Random(seed))
        assert made is not None
        assert made.translation != TEXT
        kinds[str(made.annotation.spans[0].category).removeprefix("planted/")] += 1
    assert min(kinds["omission"], kinds["negation"]) > 1.5 * max(kinds["order"], kinds["form"], kinds["number"])
    assert set(kinds) == set(PLANTED_KINDS)
