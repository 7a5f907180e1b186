"""Translations that are spoilt as a whole: what is wrong in them, and what of the source they leave out."""

from __future__ import annotations

import random

import pytest
from spoilt import KINDS, Pair, Spoiler, Spoilt, join

ONE = Pair("The dog barks loudly, the cat sleeps.", "Der Hund bellt laut, die Katze schläft.", "en-de")
TWO = Pair("We sold three old books last year.", "Wir haben letztes Jahr drei alte Bücher verkauft.", "en-de")
OTHERS = [
    Pair("Завтра он придёт сюда с друзьями.", "Tomorrow he comes here with friends.", "ru-en"),
    Pair("昨天我们去了北京看望朋友。", "Yesterday we went to Beijing to see friends.", "zh-en"),
]
PAIRS = [pair for one in (ONE, TWO, *OTHERS) for pair in (one, one.swapped())]


def made(kind: str, pair: Pair = ONE, seeds: int = 40) -> list[Spoilt]:
    spoiler = Spoiler(PAIRS)
    spoilt = (spoiler.spoil(pair, kind, random.Random(seed)) for seed in range(seeds))
    return [one for one in spoilt if one is not None]


def texts(spoilt: Spoilt) -> tuple[list[str], list[str]]:
    wrong = [spoilt.translation[start:end] for start, end in spoilt.wrong]
    return wrong, [spoilt.good.source[start:end] for start, end in spoilt.missing]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "words"])
@pytest.mark.parametrize("pair", PAIRS[:2])
def test_each_kind_differs_from_the_good_translation_and_says_how(kind: str, pair: Pair) -> None:
    translations = made(kind, pair)
    assert translations
    for one in translations:
        assert one.kind == kind
        assert one.translation != one.good.translation
        assert one.wrong or one.missing
        assert all(0 <= start < end <= len(one.translation) for start, end in one.wrong)
        assert all(0 <= start < end <= len(one.good.source) for start, end in (*one.missing, *one.unsure))


def test_what_is_left_out_is_in_the_source_and_nothing_else_is_wrong() -> None:
    for one in made("segment"):
        assert texts(one) in (([], [ONE.source]), ([], [TWO.source]))
        assert one.translation in (ONE.translation, TWO.translation)
    for one in made("clause"):
        assert texts(one)[1] in (["The dog barks loudly, "], ["the cat sleeps."])
    assert {one.translation for one in made("clause")} == {"Der Hund bellt laut.", "Die Katze schläft."}


def test_a_copy_is_wrong_and_lacks_nothing_and_another_segment_lacks_everything() -> None:
    assert {str(texts(one)) for one in made("copied")} == {str(([ONE.source], []))}
    for one in made("unrelated"):
        assert texts(one) == ([TWO.translation], [ONE.source])
    for one in made("language"):
        assert texts(one) == ([one.translation], [ONE.source])
        assert one.translation not in (ONE.translation, TWO.translation)


def test_one_of_two_segments_is_copied_or_another() -> None:
    for one in made("half_copied"):
        (copied,), missing = texts(one)
        assert copied in (ONE.source, TWO.source)
        assert not missing
    spoiler = Spoiler([*PAIRS, Pair("Good morning to you all.", "Guten Morgen euch allen.", "en-de")])
    for seed in range(20):
        one = spoiler.spoil(ONE, "half_unrelated", random.Random(seed))
        if one is not None:
            (wrong,), (missing,) = texts(one)
            assert wrong in one.translation
            assert missing in one.good.source


def test_the_second_time_is_wrong() -> None:
    for one in made("twice"):
        assert one.translation == f"{ONE.translation} {ONE.translation}"
        assert one.wrong == ((len(ONE.translation) + 1, len(one.translation)),)
    for one in made("half_twice"):
        (again,), _ = texts(one)
        assert one.translation[: one.wrong[0][0]].rstrip().endswith(again)


def test_links_tell_what_a_cut_leaves_out() -> None:
    """Words of both texts side by side: a b c d ... and A B C D ..."""
    words = "abcdefghij"
    places = tuple((2 * i, 2 * i + 1) for i in range(10))
    pair = Pair(" ".join(words), " ".join(words.upper()), "en-de", tuple(zip(places, places, strict=True)))
    for kind in ("cut", "words"):
        for one in made(kind, pair):
            assert texts(one)[1] == [word for word in words if word.upper() not in one.translation]
            assert not one.unsure
    assert made("words") == [], "where nothing is linked nothing is known"
    for one in made("cut", Pair(pair.source, pair.translation, "en-de")):
        assert one.unsure, "at the edge of a cut"
        assert not {word.upper() for word in texts(one)[1]} & set(one.translation.split())


def test_texts_are_joined_as_their_script_is() -> None:
    assert join("Es regnet.", "Gut.") == "Es regnet. Gut."
    assert join("下雨了。", "好。") == "下雨了。好。"
    both = ONE.joined(TWO)
    assert both.source == f"{ONE.source} {TWO.source}"
    assert ONE.swapped().lp == "de-en"
    assert ONE.swapped().swapped() == ONE
