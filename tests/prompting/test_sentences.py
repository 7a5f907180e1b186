"""Sentences of a text, and their alignment with the source's, against plain loops and brute force."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbr_esd_metric.prompting.sentences import LONGEST, Cut, PairCosts, align, cheapest_path, parts, sentences

#: What texts are made of: stops, quotes, blank lines, emoji, combining marks, scripts without spaces.
PIECES = [
    *("Ja. ", "z. B. das ", "Am 3. Mai ", "He said: “No. Never.” ", '"Stop!" ', "1. ", "... ", "\n\n", "\r\n", "  "),
    *("😀", "👩‍👩‍👧 ", "e\u0301", "B\u0301. ", "你好。", "他说：“是的。”", "これは", "สวัสดี ", "\u2028"),
    *("no stop", "x" * 450),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
SHORT = st.lists(st.text("abc 7É", min_size=1, max_size=30), min_size=1, max_size=4)


@given(st.one_of(TEXTS, st.text()), st.sampled_from(["", "de", "zh", "th", "xx"]))
@settings(max_examples=300)
def test_sentences_join_to_the_very_text(text: str, language: str) -> None:
    cut = sentences(text, language)
    assert "".join(cut) == text
    assert all(piece.strip() for piece in cut) or not text.strip()
    assert all(len(piece.strip()) <= LONGEST + 50 for piece in cut)


@given(TEXTS, TEXTS, st.sampled_from([None, "en-de", "zh-en_US"]))
@settings(max_examples=200)
def test_parts_cover_both_texts_but_for_white_space(source: str, translation: str, lp: str | None) -> None:
    """A plain loop over the parts comes by every character that is not a white space, once and in order."""
    pairs = parts(source, translation, lp)
    of_translation = [(part.start, part.end) for part in pairs]
    of_source = [(part.source_start, part.source_end) for part in pairs]
    for text, places in ((translation, of_translation), (source, of_source)):
        at = 0
        for start, end in places:
            assert at <= start <= end
            assert not text[at:start].strip()
            assert len(pairs) == 1 or text[start:end] == text[start:end].strip() != ""
            at = end
        assert not text[at:].strip()


def every_path(end: Cut, at: Cut = (0, 0)) -> Iterator[list[Cut]]:
    """All alignments, in pairs of 1:1, 1:0, 0:1, 2:1, 1:2 and 2:2."""
    if at == end:
        yield [at]
    for step in ((1, 1), (1, 0), (0, 1), (2, 1), (1, 2), (2, 2)):
        after = (at[0] + step[0], at[1] + step[1])
        if after[0] <= end[0] and after[1] <= end[1]:
            for path in every_path(end, after):
                yield [at, *path]


@given(SHORT, SHORT)
def test_the_cheapest_path_is_that_of_brute_force(source: list[str], translation: list[str]) -> None:
    costs = PairCosts(source, translation)

    def total(path: list[Cut]) -> float:
        return sum(costs.cost(*pair) for pair in pairwise(path))

    best = min(map(total, every_path(costs.size)))
    assert total(cheapest_path(costs)) == pytest.approx(best)


def test_the_cost_is_gale_and_churchs() -> None:
    """By hand: 100 and 110 characters of 110 in all on both sides."""
    costs = PairCosts(["a" * 100, "b" * 10], ["a" * 110])
    delta = 10 / math.sqrt(6.8 * 105)
    assert costs.delta((0, 0), (1, 1)) == pytest.approx(delta)
    assert costs.cost((0, 0), (1, 1)) == pytest.approx(-math.log(0.89 * math.erfc(delta / math.sqrt(2))))
    assert PairCosts(["In 1987, x"], ["1987 ging y"]).cost((0, 0), (1, 1)) == pytest.approx(
        PairCosts(["In 1988, x"], ["1987 ging y"]).cost((0, 0), (1, 1)) - 2
    )


SOURCE = (
    "Good morning, dear friends. I came from Paris in 1987. It was a cold day, and nobody knew that it would rain for "
    "a whole week. We left. My brother Anton went to Berlin with 3 friends. Nobody believed that he would ever come "
    "back."
)
TRANSLATION = (
    "Guten Morgen, liebe Freunde. Ich kam 1987 aus Paris. Es war ein kalter Tag, und niemand wusste, dass es eine "
    "ganze Woche regnen würde. Wir gingen. Mein Bruder Anton ging mit 3 Freunden nach Berlin. Niemand glaubte, dass "
    "er je zurückkäme."
)


def pairs(translation: str) -> list[tuple[str, str]]:
    every = parts(SOURCE, translation, "en-de")
    return [(SOURCE[p.source_start : p.source_end], translation[p.start : p.end]) for p in every]


def test_sentences_are_aligned_one_to_one_and_where_some_are_merged_or_missing() -> None:
    one_to_one = zip(map(str.strip, sentences(SOURCE, "en")), map(str.strip, sentences(TRANSLATION, "de")), strict=True)
    assert pairs(TRANSLATION) == list(one_to_one)
    assert len(pairs(TRANSLATION)) == 6
    assert pairs(TRANSLATION.replace("Freunde. Ich", "Freunde, ich"))[0] == (
        "Good morning, dear friends. I came from Paris in 1987.",
        "Guten Morgen, liebe Freunde, ich kam 1987 aus Paris.",
    )
    left_out = "Es war ein kalter Tag, und niemand wusste, dass es eine ganze Woche regnen würde. "
    begin, name, block, end = pairs(TRANSLATION.replace(left_out, ""))
    assert (begin[1], name[1]) == ("Guten Morgen, liebe Freunde.", "Ich kam 1987 aus Paris.")
    assert block[0].startswith("It was a cold day")
    assert block[1] == "Wir gingen. Mein Bruder Anton ging mit 3 Freunden nach Berlin."
    assert end == ("Nobody believed that he would ever come back.", "Niemand glaubte, dass er je zurückkäme.")


@pytest.mark.parametrize(
    ("piece", "cuts"),
    [
        ("a" * 300 + "." + "b" * 20 + " " + "c" * 200, [301]),  # behind a stop
        ("a" * 90 + "." + "b" * 200 + " " + "c" * 200, [292]),  # that is too near; behind a word
        ("a" * 300 + "," + "b" * 200, [301]),
        ("你" * 390 + "。" + "好" * 390, [391]),
        ("a" * 399 + "e\u0301" + "b" * 99, [401]),  # a letter keeps its accent
        ("a" * 900, [400, 800]),
    ],
)
def test_a_long_piece_is_cut_at_the_best_kind_of_place(piece: str, cuts: list[int]) -> None:
    cut = sentences(piece, "xx")
    assert [*accumulate(map(len, cut))] == [*cuts, len(piece)]


@pytest.mark.parametrize("piece", ["a", '"', "a\u0301", "ab, ", "。", "x" + " " * 500])
def test_the_time_for_sentences_is_linear(piece: str) -> None:
    """A second is ten times what 100,000 characters take; searching all of the rest for each piece took more."""
    began = time.process_time()
    sentences((piece * 100_000)[:100_000], "en")
    assert time.process_time() - began < 2


def test_the_time_for_alignments_is_linear_where_the_numbers_of_sentences_differ() -> None:
    source = [f"The number {number} is here." for number in range(2000)]
    began = time.process_time()
    assert align(source, [f"Die Zahl {number} ist da." for number in range(0, 2000, 2)])[-1][1] == (2000, 1000)
    assert time.process_time() - began < 10


def test_invisible_characters_are_no_sentence_and_half_a_surrogate_pair_is_a_character() -> None:
    assert sentences("\u200b\n\nJa. \u2060\ufeff\n\n") == ("\u200b\n\nJa. \u2060\ufeff\n\n",)
    assert len(parts("One. Two.", "\u200b", "en-de")) == 1
    assert sentences("One \ud83d. Two.", "en") == ("One \ud83d. ", "Two.")
