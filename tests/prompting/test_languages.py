"""Languages: pairs of codes, names, and the language of a text."""

from __future__ import annotations

import logging

import pytest

from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.prompting.languages import (
    language_name,
    language_names,
    language_note,
    language_pair,
    other_language,
)

ENGLISH = ["The bank on the corner closed last week.", "It has rained for three days."]
GERMAN = ["Das Ufer an der Ecke schloss letzte Woche.", "Es regnet schon seit drei Tagen."]
SPANISH = "El acuerdo fue firmado por los dos presidentes el martes por la tarde."


@pytest.mark.parametrize(
    ("lp", "codes", "names"),
    [
        ("en-de", ("en", "de"), ("English", "German")),
        ("en-zh-CN", ("en", "zh-CN"), ("English", "Chinese")),
        ("zh-cn-en", ("zh-cn", "en"), ("Chinese", "English")),
        ("pt-br-en-us", ("pt-br", "en-us"), ("Portuguese", "English")),
        ("zh-Hant-TW-en", ("zh-Hant-TW", "en"), ("Chinese", "English")),
        ("en-es-419", ("en", "es-419"), ("English", "Spanish")),
        ("eng_Latn-lld_Latn", ("eng_Latn", "lld_Latn"), ("English", "Ladin")),
        ("pt_BR-sr_Latn", ("pt_BR", "sr_Latn"), ("Portuguese", "Serbian")),
        ("en-fil", ("en", "fil"), ("English", "Filipino")),
        ("en-iw", ("en", "iw"), ("English", "Hebrew")),
        ("in-ckb", ("in", "ckb"), ("Indonesian", "Central Kurdish")),
        ("ku-mi", ("ku", "mi"), ("Kurdish", "Māori")),
        ("en-yue", ("en", "yue"), ("English", "Cantonese")),
        ("en-tl", ("en", "tl"), ("English", "Tagalog")),  # stored candidates have this name
    ],
)
def test_pairs_and_names(lp: str, codes: tuple[str, str], names: tuple[str, str]) -> None:
    assert language_pair(lp) == codes
    assert language_names(lp) == names


@pytest.mark.parametrize("lp", ["en", "en-", "-de", "", "en--de", "a-b-c-d-e"])
def test_what_is_no_pair_is_refused(lp: str) -> None:
    with pytest.raises(OptionError, match="two language codes such as 'en-de'"):
        language_pair(lp)


def test_an_unknown_code_is_its_own_name_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    language_name.cache_clear()
    with caplog.at_level(logging.WARNING, "mbr_esd_metric"):
        assert [language_names("en-xx_Latn") for _ in range(3)] == [("English", "xx_Latn")] * 3
    assert len(caplog.records) == 1
    assert "'xx_Latn'" in caplog.text


@pytest.mark.parametrize(
    ("text", "code", "other"),
    [
        (SPANISH, "de", "es"),
        (SPANISH.upper(), "de-DE", "es"),
        (SPANISH, "spa_Latn", None),
        (SPANISH[:40], "de", None),  # fewer than 40 letters
        ("Mr. Yoshiro Matsumoto (Takachihara, Yamatsuri) – Fukushima, Ibaraki, Tochigi", "en", None),
        (SPANISH, "lld", None),  # nothing is known of Ladin
        ("Predsjednik je u utorak rekao da će vlada povećati plaće učitelja.", "sr", None),
        ("Нам также звонили из офиса Рахула Ганди и предложили поддержку.", "ru", None),  # Serbian, py3langid thinks
        ("Привет, как дела? Мы поедем завтра на озеро и будем купаться.", "uk", "ru"),
        ("زانیاری: هەوڵ بدە دوورترین توخمەکان کەمێک لە یەکتر نزیک بکەوە.", "ku", None),
    ],
)
def test_a_text_in_another_language_where_that_is_sure(text: str, code: str, other: str | None) -> None:
    assert other_language(text, code) == other


def test_the_note_on_languages_names_a_pair() -> None:
    assert "They look like English and German: add lp=en-de to the" in language_note(ENGLISH * 999, GERMAN)
    assert "add lp=ja-zh to" in language_note(["今日はとても良い天気です。"], ["今天天气很好。"])
    german = [f"Das Abkommen wurde am {day}. von den beiden Präsidenten unterzeichnet." for day in range(1, 20)]
    spanish = [f"{SPANISH} {number}" for number in range(9)]
    assert "The translations look like German and Spanish: score each" in language_note(ENGLISH, [*spanish, *german])
    assert "They look like English and German" in language_note(ENGLISH, [SPANISH, *german])
    assert language_note(ENGLISH, ENGLISH).endswith("add them to the model's name, such as lp=en-de")
