"""Pairs that look like mistakes in the data, with translate-toolkit and without."""

from __future__ import annotations

import pytest

from mbr_esd_metric.metric.data_warnings import _checker, data_warning


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
