"""The grammar of grounded spans against a plain enumeration of what it may admit."""

from __future__ import annotations

import re

import pytest

from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.json import output_grammar
from mbr_esd_metric.prompting.words import pieces, word_count
from tests.helpers.candidates import answer

TEXTS = [
    'Die "Katze" saß (1.5) auf\nder\tMatte, l\'eau Haus-Tür.',
    "我喜欢喝 tea。",
    "これはペンです!",
    "นี่คือ cat",
    "e\u0301te\u0301 cafe\u0301",
    "a",
    "x\\y [z]* a|b ^$ {2}",
    "tab\x01bell \x7f DEL",
    "eins zwei eins zwei eins",
]


@pytest.mark.parametrize("text", TEXTS)
def test_it_admits_runs_of_words_and_nothing_else(text: str) -> None:
    parts = pieces(text)
    assert "".join(parts) == text
    words = [i for i, part in enumerate(parts) if not part.isspace()]
    admitted = {"".join(parts[i : j + 1]) for i in words for j in words if j >= i}
    admitted = {span for span in admitted if not re.search(r"[\x01\x7f]", span)}
    grammar, free = re.compile(get_format("json").grammar(text, True)), re.compile(output_grammar())
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            span = text[start:end]
            assert bool(grammar.fullmatch(answer(span))) == (span in admitted), span
            assert span not in admitted or free.fullmatch(answer(span)), span
    assert not grammar.fullmatch(answer("anderswo"))
    assert grammar.fullmatch('{"errors": []}')


def test_words_are_cut_where_a_reader_would() -> None:
    assert pieces("l'eau, Haus-Tür!") == ["l'eau", ",", " ", "Haus-Tür", "!"]
    assert pieces("我喝tea。") == ["我", "喝", "tea", "。"]


def test_it_stays_short_and_shallow() -> None:
    grammar = get_format("json").grammar(" ".join(f"Wort{i}" for i in range(400)), True)
    assert len(grammar) < 200_000
    depth = deepest = 0
    for bracket in re.findall(r"(?<!\\)[()]", grammar):
        depth += 1 if bracket == "(" else -1
        deepest = max(deepest, depth)
    assert deepest < 20


def test_words_of_every_script_are_counted() -> None:
    assert word_count("") == word_count(" \n… —") == 0
    assert word_count("Zwei Wörter, drei-fach!") == 3
    assert word_count("한국어 문장은 띄어쓰기가 있다") == 4
    assert word_count("私はGoogleで働く") == 3
