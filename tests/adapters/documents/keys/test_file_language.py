"""The language of a file, by its name and folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.keys.file_language import language_of


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("res/values-pt-rBR/strings.xml", "pt-BR"),
        ("res/values-b+sr+Latn/strings.xml", "sr-Latn"),
        ("res/values-de-v29/strings.xml", "de"),
        ("res/values/strings.xml", ""),
        ("res/values-night/strings.xml", ""),
        ("res/values-v29/strings.xml", ""),
        ("de.json", "de"),
        ("locales/fil.json", "fil"),
        ("pt-br.json", "pt-br"),
        ("web/app.json", ""),
        ("zh_TW.yml", "zh-TW"),
        ("locales/pt-BR/common.json", "pt-BR"),
        ("_locales/fil/messages.json", "fil"),
        ("src/app/strings.json", ""),
        ("fr/LC_MESSAGES/app.po", "fr"),
        ("zh-Hans.lproj/Localizable.strings", "zh-Hans"),
        ("Base.lproj/Localizable.strings", ""),
        ("lib/l10n/app_de.arb", "de"),
        ("messages_pt_BR.properties", "pt-BR"),
        ("Strings.zh-Hant.resx", "zh-Hant"),
        ("film.de.srt", "de"),
        ("config/locales/devise.de.yml", "de"),
        ("strings.json", ""),
        ("my_ui.json", ""),
    ],
)
def test_names_and_folders(path: str, language: str) -> None:
    assert language_of(Path("/project") / path) == language
