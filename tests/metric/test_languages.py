"""The note on languages: a pair from the texts where py3langid is installed, how to get it where it is not."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from mbr_esd_metric.metric.languages import language_note, suggested_lp

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
