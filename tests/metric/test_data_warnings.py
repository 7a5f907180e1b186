"""The note on languages: a pair from the texts where py3langid is installed, how to get it where it is not."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from mbr_esd_metric.metric.data_warnings import _checker, data_warning, language_note, suggested_lp

ENGLISH = ["The bank on the corner closed last week.", "It has rained for three days."]
GERMAN = ["Das Ufer an der Ecke schloss letzte Woche.", "Es regnet schon seit drei Tagen."]


def test_without_the_extra_the_note_says_how_to_get_the_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    note = language_note("mbr-esd-llama", ENGLISH, GERMAN)
    assert "such as mbr-esd-llama?lp=en-de" in note
    assert "pip install 'mbr-esd-metric[langid]'" in note


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (("cs", "uk"), ". They look like Czech and Ukrainian: NAME?lp=cs-uk tells it"),
        (("en", "en"), "; name them in the model name, such as NAME?lp=en-de"),
        (("en", "oc"), "; name them in the model name, such as NAME?lp=en-de"),
    ],
)
def test_what_an_identifier_makes_of_the_note(
    codes: tuple[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for py3langid, so that every answer occurs."""
    asked: list[str] = []
    stand_in = ModuleType("py3langid")
    answers = iter(codes)
    stand_in.classify = lambda text: (asked.append(text), (next(answers), -1.0))[1]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "py3langid", stand_in)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    note = language_note("NAME", ENGLISH * 1000, GERMAN)
    assert note == "note: the prompt does not say of what languages the texts are" + said
    assert asked == ["\n".join(ENGLISH), "\n".join(GERMAN)]


def test_the_pair_of_real_texts() -> None:
    pytest.importorskip("py3langid")
    assert suggested_lp(ENGLISH, GERMAN) == "en-de"
    assert suggested_lp(["今日はとても良い天気です。"], ["今天天气很好。"]) == "ja-zh"
    assert suggested_lp(ENGLISH, ENGLISH) is None


@pytest.mark.parametrize(
    ("source", "translation", "found"),
    [
        ("It costs 15 euros.", "Es kostet 51 Euro.", "with other numbers"),
        ("It costs 1,500.50 euros.", "Es kostet 1,500.50 Euro.", None),
        ("See https://example.com/a now.", "Siehe https://example.com/b jetzt.", "with another URL"),
        ("Write to info@example.com.", "Schreib an info@beispiel.com.", "with another e-mail address"),
        ("Press <b>Save</b> now.", "Klicken Sie auf Speichern.", "with other tags"),
        ("%d files were copied.", "Die Dateien wurden kopiert.", "with other placeholders"),
        ("Hello {name}, welcome.", "Hallo {Name}, willkommen.", "with other placeholders"),
        ("Good morning, all of you.", "Guten Morgen allerseits.", None),
    ],
)
def test_what_translate_toolkit_compares(source: str, translation: str, found: str | None) -> None:
    pytest.importorskip("translate")
    assert data_warning(source, translation) == found


def test_without_translate_toolkit_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    _checker.cache_clear()
    assert data_warning("It costs 15 euros.", "Es kostet 51 Euro.") is None
    _checker.cache_clear()
