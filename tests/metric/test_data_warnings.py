"""Pairs that look like mistakes in the data, by the language of the translation and by what nobody sees."""

from __future__ import annotations

import pytest

from mbr_esd_metric.metric.data_warnings import data_warning

ENGLISH = "The agreement was signed by the two presidents on Tuesday afternoon."
SPANISH = "El acuerdo fue firmado por los dos presidentes el martes por la tarde."
GERMAN = "Das Abkommen wurde am Dienstagnachmittag von den beiden Präsidenten unterzeichnet."


@pytest.mark.parametrize(
    ("source", "translation", "lp", "warning"),
    [
        (ENGLISH, SPANISH, "en-de", "in another language"),
        (ENGLISH, SPANISH, "en-de_AT", "in another language"),
        (ENGLISH, SPANISH, None, None),
        (ENGLISH, SPANISH, "en-es", None),
        (ENGLISH, GERMAN, "eng_Latn-deu_Latn", None),
        (GERMAN, ENGLISH, "en-de", "in the source language"),
        (
            SPANISH,
            "El acuerdo fue firmado el martes por los dos presidentes.",
            "es-en",
            "in the source language",
        ),
        ("Press Save.", "Pulse Guardar ahora.", "en-de", None),
        ("The bank closed.", "\u200b", None, "blank translation"),
        ("\u2060\u200d", "Die Bank", None, "blank source"),
        (
            "We lost all <b>15</b> games of the last year.",
            "Wir verloren 51.",
            "en-de",
            "much shorter than its source, with other numbers, with other tags",
        ),
    ],
)
def test_pairs_that_look_wrong(source: str, translation: str, lp: str | None, warning: str | None) -> None:
    assert data_warning(source, translation, lp) == warning
