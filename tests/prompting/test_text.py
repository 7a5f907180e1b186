"""Blank texts, words that a model did not copy exactly, and the grammar of the pieces of a text."""

from __future__ import annotations

import re
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.json import output_grammar
from mbr_esd_metric.prompting.parse import Parsed
from mbr_esd_metric.prompting.pieces import pieces, word_count
from mbr_esd_metric.prompting.text import FoldedText, is_blank, is_untranslated
from tests.helpers.candidates import answer


def test_a_text_without_a_visible_character_is_blank() -> None:
    unseen = ["", " \n\t", "\u200b", "\ufeff", "\u2060\u200d", "\u00ad", "\u200e\u061c", "\x00\x1b", "\u3000\u2028"]
    unseen += ["\u2800", "\u3164", "\ufe0f", "\U000e0041", "\u00a0\u202f", "\u034f"]
    for text in unseen:
        assert is_untranslated("The bank closed.", text), ascii(text)
        assert not is_untranslated(text, text)
    assert not any(map(is_blank, (".", "\u0301", "\u200ba", "0", "🙂", "\ue000", "नि")))


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("Il a dit : «\u00a0non\u202f».", "« non »", "«\u00a0non\u202f»"),
        ("Zwei  Blanks\nhier", "Zwei Blanks hier", "Zwei  Blanks\nhier"),
        ("Les e\u0301le\u0300ves sont", "élèves", "e\u0301le\u0300ves"),
        ("Les élèves sont", "e\u0301le\u0300ves", "élèves"),
        ("\u1112\u1161\u11ab국", "한국", "\u1112\u1161\u11ab국"),
        ("Das ist „falsch“ so.", '"falsch"', "„falsch“"),
        ("Das ist 'falsch' so.", "‚falsch‘", "'falsch'"),
        ("l’homme", "l'homme", "l’homme"),
        ("1990–1995 − 7", "1990-1995 - 7", "1990–1995 − 7"),
        ("Die Donau\u00addampfer fahren.", "Donaudampfer", "Donau\u00addampfer"),
        ("Donaudampfer", "Donau\u00addampfer", "Donaudampfer"),
        ("می\u200cخواهم", "میخواهم", "می\u200cخواهم"),
        ("Der Hund", "Hund ", "Hund"),
        ("Der Hund", "hund", None),
        ("Les élèves", "eleves", None),
        ("é", "e", None),
        ("각", "가", None),
        ("a b", "\u00a0", None),
        ("a", "\u00ad", None),
    ],
    ids=ascii,
)
def test_words_with_other_blanks_quotes_hyphens_and_accents_are_found(text: str, words: str, found: str | None) -> None:
    place = FoldedText(text).find(words)
    assert (place and text[slice(*place)]) == found


@given(st.text(st.sampled_from('aé\u0301\u0300 \u00a0\u00ad„“"–-ß각\u1100\u1161\u11a8\u09c7\u09be'), max_size=12))
def test_the_folded_text_is_made_of_the_original(text: str) -> None:
    """Whatever piece of the folded text is found stands at a place that folds to it."""
    folded = FoldedText(text)
    assert normalize("NFC", folded.text) == folded.text or "\u00ad" in text
    for start in range(len(folded.text)):
        for end in range(start + 1, len(folded.text) + 1):
            place = folded.find(folded.text[start:end])
            if place is not None:
                assert FoldedText(text[slice(*place)]).text.strip() == folded.text[start:end].strip()


def test_exact_words_are_meant_first_and_successive_ones_and_omissions_are_found_too() -> None:
    """Of a text with both, the exact words are meant, although they stand later."""
    parser = get_format("json").parser('Ein „Hund“ und ein "Hund"; Donau\u00addampfer.')
    for written, start, end, inexact in (('"Hund"', 19, 25, 0), ("Donaudampfer", 27, 40, 1)):
        located = Annotation([ErrorSpan(start, end, "major")])
        assert parser.parse(answer(written)) == Parsed(located, inexact=inexact)
    parser = get_format("json-omissions").parser("l’eau, l’eau", "successive", "water\u00a0here")
    omitted = answer("water here").replace("error_span", "omitted_span")
    parsed = parser.parse(answer("l'eau", "l'eau", "l'eau")[:-2] + ", " + omitted[12:])
    places = [ErrorSpan(0, 5, "major"), ErrorSpan(7, 12, "major"), ErrorSpan(0, 10, "major", side="source")]
    assert parsed == Parsed(Annotation(places), 1, inexact=3)


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


def test_words_are_cut_where_a_reader_would_and_counted() -> None:
    assert pieces("l'eau, Haus-Tür!") == ["l'eau", ",", " ", "Haus-Tür", "!"]
    assert pieces("我喝tea。") == ["我", "喝", "tea", "。"]
    counts = {"": 0, " \n… —": 0, "Zwei Wörter, drei-fach!": 3, "한국어 문장": 2, "私はGoogleで働く": 3}
    assert {text: word_count(text) for text in counts} == counts


def test_a_grammar_of_many_words_stays_short() -> None:
    assert len(get_format("json").grammar(" ".join(f"Wort{i}" for i in range(400)), True)) < 200_000
