"""Human annotations in the words of the answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import Candidate, CandidateColumns
from mbr_esd_metric.decoding.segment import decide
from mbr_esd_metric.distill.supervision import HumanAnnotation, Limits, choices, select
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import CandidateRecord
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.json import output_grammar
from mbr_esd_metric.prompting.prompt import CATEGORIES


def human(source: str, translation: str, *marked: tuple[str, str, str]) -> HumanAnnotation:
    spans = [
        {"start": translation.rindex(t), "end": translation.rindex(t) + len(t), "severity": s, "category": c}
        for t, s, c in marked
    ]
    return HumanAnnotation(source, translation, "en-de", Annotation(spans))


def test_an_answer_says_what_it_can_and_counts_the_rest() -> None:
    translation = "Ja, das war, wie gesagt, gut."
    item = human("s", translation, ("das", "major", "Accuracy/Mistranslation"), (",", "minor", "Fluency/Punctuation"))
    answer, lost = get_format("json").answer(item.annotation, translation)
    assert lost == 1  # the last comma: its text occurs before
    assert [e["error_span"] for e in json.loads(answer)["errors"]] == ["das"]
    assert get_format("json").answer(Annotation(), translation) == ('{"errors": []}', 0)


def test_real_answers_fit_the_grammar_and_read_back_as_the_annotation(mqm_folder: Path) -> None:
    grammar = re.compile(output_grammar())
    checked = 0
    for rating in read_mqm(mqm_folder / "mqm_ted_ende.tsv").ratings[:1500]:
        answer, lost = get_format("json").answer(rating.annotation, rating.target)
        assert grammar.fullmatch(answer), answer
        for error in json.loads(answer)["errors"]:
            assert error["category"] in CATEGORIES
        if rating.annotation and not lost:
            assert decide([Candidate(answer)], rating.target, rule="majority").annotation == rating.annotation
            checked += 1
    assert checked > 300


CARD = load_card("mbr-esd-llama")


def test_selection_is_mostly_erroneous_and_deterministic() -> None:
    items = [human(f"s{i % 40}", f"Wort{i} ist hier falsch.", ("falsch", "major", "Other")) for i in range(200)]
    items += [human(f"s{i % 40}", f"Satz {i}.") for i in range(200)]
    limits = Limits(examples=100, clean_share=0.2)
    chosen = select(items, CARD, limits)
    assert len(chosen.rows) == 100
    answers = [row.content["completion"][0]["content"] for row in chosen.rows]
    assert chosen.clean == 20 == answers.count('{"errors": []}')
    assert chosen == select(items[::-1], CARD, limits)
    assert len(select(items[200:], CARD, Limits(clean_share=None)).rows) == 200
    row = chosen.rows[0].content
    assert (row["prompt"][0]["role"], row["lp"]) == ("user", "en-de")
    assert "English" in row["prompt"][0]["content"]


def test_an_erroneous_translation_is_never_taught_as_clean() -> None:
    lost = human("s", "a, b, c", (",", "minor", "Fluency/Punctuation"))
    others = [human(f"k{i}", "x falsch", ("falsch", "major", "Other")) for i in range(3)]
    unplaced = HumanAnnotation("u", "x richtig", "en-de", Annotation().with_unplaced(["major"]))
    chosen = select([lost, unplaced, *others], CARD, Limits(clean_share=0.5))
    assert (len(chosen.rows), chosen.inexpressible) == (3, 2)


TEXT = "Der Hund bellt laut"
ERROR, NONE = Annotation([ErrorSpan(4, 8, "major")]), Annotation([])


def record(number: int, *annotations: Annotation) -> CandidateRecord:
    """Its answers are those of the annotations, or none can be read."""
    texts = tuple(get_format("json").answer(one, TEXT)[0] for one in annotations) or ("no answer",)
    columns = CandidateColumns(texts, (None,) * len(texts), (False,) * len(texts))
    return CandidateRecord(str(number), f"source {number}", TEXT, columns, lp="en-de")


def test_what_the_rule_chooses_is_learnt() -> None:
    records = [record(0, ERROR, ERROR, NONE), record(1), *(record(i, NONE, NONE, ERROR) for i in range(2, 9))]
    chosen = choices(records, CARD)
    assert [item.source for item in chosen] == ["source 0", *(f"source {i}" for i in range(2, 9))]  # 1 has no candidate
    assert [len(item.annotation) for item in chosen] == [1] + [0] * 7
    assert chosen[0].lp == "en-de"
    assert choices([record(0, ERROR, NONE, NONE)], load_card("mbr-esd-llama?rule=majority"))[0].annotation == NONE
    with pytest.raises(InputError, match="no segment has a valid candidate; segment '1'"):
        choices([record(1)], CARD)
    with pytest.raises(InputError, match="segment '7': the rule 'map' needs the candidates' log-probabilities"):
        choices([record(7, ERROR, NONE)], load_card("mbr-esd-llama?rule=map"))
