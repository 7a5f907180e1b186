"""Pairs that look like mistakes in the data."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, errors_of
from mbr_esd_metric.metric.data_warnings import data_warning
from mbr_esd_metric.prompting.languages import language_pair

ENGLISH = "The agreement was signed by the two presidents on Tuesday afternoon."
SPANISH = "El acuerdo fue firmado por los dos presidentes el martes por la tarde."
GERMAN = "Das Abkommen wurde am Dienstagnachmittag von den beiden Präsidenten unterzeichnet."


GAMES = "We lost the first game, but we won the second."


@pytest.mark.parametrize(
    ("source", "translation", "warning"),
    [
        ("The house", "\u3000\t", "blank translation"),
        ("The bank closed.", "\u200b", "blank translation"),
        ("\u2060\u200d", "Die Bank", "blank source"),
        ("The house", "The house ", None),
        ("The house is where they live now.", "The house is where they live now. ", "equal to its source"),
        ("42", "42", None),
        ("The house", "das das, Das das", "one word repeated"),
        ("The house", "die die, die", None),
        ("no no no no", "nein nein nein nein", None),
        ("The house", "啊啊啊啊啊", "one word repeated"),
        ("...", "....... ..", None),
        ("The house is old.", "Das Haus ist alt. Das Haus ist alt.", "said twice"),
        ("Yes, yes. Yes, yes.", "Ja, ja. Ja, ja.", None),
        ("The house is old.", "房子很旧。房子很旧。", "said twice"),
        (GAMES, "Das erste Spiel.", "much shorter than its source"),
        (GAMES, "我们输了第一场，但赢了第二场。", None),
        (GAMES, "我们输了。", "much shorter than its source"),
        (GAMES, "最初の試合は負けた。", None),
        ("Hier.", "Here is the address of the hotel that I told you of.", "much longer than its source"),
        ("Restart to apply.", "Starten Sie neu, um die Änderungen zu übernehmen.", None),
        ("It costs 15 euros.", "Es kostet 51 Euro.", "with other numbers"),
        ("See https://example.com/a now.", "Siehe https://example.com/b jetzt.", "with other URLs"),
        (
            "We lost all <b>15</b> games of the last year.",
            "Wir verloren 51.",
            "much shorter than its source, with other numbers, with other tags",
        ),
    ],
)
def test_pairs_that_look_wrong(source: str, translation: str, warning: str | None) -> None:
    assert _warning(source, translation) == warning


@pytest.mark.parametrize(
    ("source", "translation", "lp", "warning"),
    [
        (ENGLISH, SPANISH, "en-de", "in another language"),
        (ENGLISH, SPANISH, "en-de_AT", "in another language"),
        (ENGLISH, SPANISH, None, None),
        (ENGLISH, SPANISH, "en-es", None),
        (ENGLISH, GERMAN, "eng_Latn-deu_Latn", None),
        (GERMAN, ENGLISH, "en-de", "in another language"),
        ("Press Save.", "Pulse Guardar ahora.", "en-de", None),
    ],
)
def test_translations_in_another_language(source: str, translation: str, lp: str | None, warning: str | None) -> None:
    assert _warning(source, translation, lp) == warning


def _warning(source: str, translation: str, lp: str | None = None) -> str | None:
    known = UNKNOWN.with_languages(*language_pair(lp)) if lp else UNKNOWN
    return data_warning(source, translation, errors_of(source, translation, known))
