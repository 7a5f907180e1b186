"""Pairs that look like mistakes in the data, with translate-toolkit and without."""

from __future__ import annotations

import pytest

from mbr_esd_metric.metric.data_warnings import _checker, data_warning


@pytest.mark.parametrize(
    ("source", "translation", "warning"),
    [
        ("The house", "", "blank translation"),
        ("The house", "\u3000\t", "blank translation"),
        ("", "Das Haus", "blank source"),
        ("The house", "The house ", "equal to its source"),
        ("42", "42", None),
        ("The house", "das das, Das das", "one word repeated"),
        ("The house", "die die, die", None),
        ("no no no no", "nein nein nein nein", None),
        ("The house", "啊啊啊啊啊", "one word repeated"),
        ("...", "....... ..", None),
        ("The house is old.", "Das Haus ist alt. Das Haus ist alt.", "said twice"),
        ("Yes, yes. Yes, yes.", "Ja, ja. Ja, ja.", None),
        ("The house is old.", "房子很旧。房子很旧。", "said twice"),
        ("We lost the first game, but we won the second.", "Das erste Spiel.", "much shorter than its source"),
        ("We lost the first game, but we won the second.", "我们输了第一场，但赢了第二场。", None),
        ("We lost the first game, but we won the second.", "我们输了。", "much shorter than its source"),
        ("Hier.", "Here is the address of the hotel that I told you of.", "much longer than its source"),
        ("We lost the first game, but we won the second.", "最初の試合は負けた。", None),
        ("Too short to tell.", "Kurz.", None),
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
def test_pairs_that_look_wrong(source: str, translation: str, warning: str | None) -> None:
    if warning is not None and warning.startswith("with "):
        pytest.importorskip("translate")
    assert data_warning(source, translation) == warning


def test_without_translate_toolkit_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    _checker.cache_clear()
    assert data_warning("It costs 15 euros.", "Es kostet 51 Euro.") is None
    _checker.cache_clear()
