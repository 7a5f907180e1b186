"""Translations that are spoilt as a whole: what is wrong in them, and what of the source they leave out."""

from __future__ import annotations

import random

import pytest
from spoilt import KINDS, Pair, Spoiler, Spoilt

ONE = Pair("The dog barks loudly, the cat sleeps.", "Der Hund bellt laut, die Katze schläft.", "en-de")
TWO = Pair("We sold three old books last year.", "Wir haben letztes Jahr drei alte Bücher verkauft.", "en-de")
CHINESE = Pair("昨天我们去了北京看望朋友。", "Yesterday we went to Beijing to see friends.", "zh-en")
PAIRS = [pair for one in (ONE, TWO, CHINESE) for pair in (one, one.swapped())]


def made(kind: str, pair: Pair = ONE) -> list[Spoilt]:
    spoilt = (Spoiler(PAIRS).spoil(pair, kind, random.Random(seed)) for seed in range(40))
    return [one for one in spoilt if one is not None]


def texts(spoilt: Spoilt) -> tuple[str, list[str], list[str]]:
    """The translation, and the texts that are wrong in it and missing of the source."""
    wrong = [spoilt.translation[start:end] for start, end in spoilt.wrong]
    return spoilt.translation, wrong, [spoilt.good.source[start:end] for start, end in spoilt.missing]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "words"])
def test_each_kind_differs_from_the_good_translation_and_says_how(kind: str) -> None:
    translations = made(kind)
    assert translations
    for one in translations:
        assert one.translation != one.good.translation
        assert one.wrong or one.missing
        assert all(0 <= start < end <= len(one.translation) for start, end in one.wrong)
        assert all(0 <= start < end <= len(one.good.source) for start, end in (*one.missing, *one.unsure))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("segment", [(ONE.translation, [], [TWO.source]), (TWO.translation, [], [ONE.source])]),
        ("clause", [("Der Hund bellt laut.", [], ["the cat sleeps."])]),
        ("clause", [("Die Katze schläft.", [], ["The dog barks loudly, "])]),
        ("copied", [(ONE.source, [ONE.source], [])]),
        ("unrelated", [(TWO.translation, [TWO.translation], [ONE.source])]),
        ("twice", [(f"{ONE.translation} {ONE.translation}", [ONE.translation], [])]),
    ],
)
def test_what_is_wrong_and_what_is_left_out(kind: str, expected: list[tuple[str, list[str], list[str]]]) -> None:
    found = [texts(one) for one in made(kind)]
    assert [one for one in expected if one not in found] == []
