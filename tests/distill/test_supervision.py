"""Human annotations in the words of the answer."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.human import read_mqm
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.decoding.segment import decide
from mbr_esd_metric.distill.supervision import Example, HumanAnnotation, Selection, Supervision, merged, mixed, select
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.grammar import output_grammar
from mbr_esd_metric.elicit.prompt import ASKED_CATEGORIES, load_prompt
from mbr_esd_metric.errors import InputError, OptionError


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
            assert error["category"] in ASKED_CATEGORIES
        if rating.annotation and not lost:
            assert decide([Candidate(answer)], rating.target, rule="majority").annotation == rating.annotation
            checked += 1
    assert checked > 300


def test_selection_is_mostly_erroneous_deterministic_and_split_by_source() -> None:
    items = [human(f"s{i % 40}", f"Wort{i} ist hier falsch.", ("falsch", "major", "Other")) for i in range(200)]
    items += [human(f"s{i % 40}", f"Satz {i}.") for i in range(200)]
    limits = Selection(examples=100, clean_share=0.2, validation=0.1)
    chosen = select(items, load_prompt(), limits)
    both = (*chosen.train, *chosen.validation)
    assert len(both) == 100
    assert chosen.clean == 20 == sum(e.answer == '{"errors": []}' for e in both)
    assert chosen == select(items[::-1], load_prompt(), limits)
    assert not {e.group for e in chosen.train} & {e.group for e in chosen.validation}
    assert 5 <= len(chosen.validation) <= 15


def test_an_erroneous_translation_is_never_taught_as_clean() -> None:
    lost = human("s", "a, b, c", (",", "minor", "Fluency/Punctuation"))
    kept = [human(f"k{i}", "x falsch", ("falsch", "major", "Other")) for i in range(3)]
    chosen = select([lost, *kept], load_prompt(), Selection(validation=0, clean_share=0.5))
    assert len(chosen.train) == 3
    assert chosen.inexpressible == 1


def test_merging_keeps_a_held_out_source_out_everywhere() -> None:
    one = [human(f"s{i}", "x falsch", ("falsch", "major", "Other")) for i in range(10)]
    two = [human(f"s{i}", "y falsch", ("falsch", "major", "Other")) for i in range(10)]
    parts = [select(part, load_prompt(), Selection(validation=0.2, seed=seed)) for seed, part in enumerate((one, two))]
    together = merged(parts)
    assert not {e.group for e in together.train} & {e.group for e in together.validation}
    assert len(together.train) + len(together.validation) == 20


def test_limits_that_leave_nothing_are_an_error() -> None:
    with pytest.raises(InputError, match="at most 5 characters"):
        select([human("s", "too long")], load_prompt(), Selection(max_characters=5))
    with pytest.raises(OptionError, match="clean_share"):
        Selection(clean_share=1.0)
    with pytest.raises(OptionError, match="examples"):
        Selection(examples=0)


def test_language_pairs_are_mixed_in_the_shares_that_are_asked_for() -> None:
    lps = ["en-de"] * 40 + ["zh-en"] * 10 + ["en-ru"] * 30
    examples = [Example(str(i), "", str(i), d, clean=i % 5 == 0) for i, d in enumerate(lps)]
    chosen = mixed(Supervision(tuple(examples), (), 16, 0), {"en-de": 2, "zh-en": 1})
    assert chosen.clean == 6  # of the 30 that are left
    assert Counter(example.lp for example in chosen.train) == {"en-de": 20, "zh-en": 10}
    with pytest.raises(InputError, match=r"no example is de-en; there are en-de, en-ru, zh-en"):
        mixed(Supervision(tuple(examples), (), 0, 0), {"de-en": 1})


def test_clean_translations_that_an_error_was_planted_in_come_first() -> None:
    clean = [HumanAnnotation(f"s{i}", f"Satz {i}", "en-de", Annotation([])) for i in range(40)]
    error = Annotation([ErrorSpan(0, 4, "major")])
    wrong = [HumanAnnotation(f"s{i}", f"Wort {i}", "en-de", error, f"Satz {i}") for i in (7, 9)]
    drawn = select([*clean, *wrong], load_prompt("v1"), Selection(clean_share=0.5, validation=0.0))
    assert {example.group for example in drawn.train} == {"s7", "s9"}
    assert drawn.clean == 2
