"""Words are repeated on purpose in most languages."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, Context
from tests.helpers.checks import found


@pytest.mark.parametrize(
    "translation",
    [
        "Cô ấy luôn luôn vui.",
        "Yavaş yavaş bana baktı.",
        "بتاؤ تم نے کیا کیا خریدا۔",
        "לאט לאט הוא הגיע.",
        "Alikuja haraka haraka.",
        "Было еле еле видно.",
        "He is very very happy.",
        "Il faut faire faire un devis.",
        "in der der Mann wohnt",
        "Mit mit Schokolade überzogenen Nüssen",
        "Het schijnt dat dat waar is.",
        "It is what it is is no answer.",
        "Sie las das in der Der Spiegel.",
        "Az az álmom, hogy művész legyek.",
    ],
)
def test_words_that_are_repeated_on_purpose(translation: str) -> None:
    assert found("A source.", translation) == []


@pytest.mark.parametrize(
    ("translation", "context", "words"),
    [
        ("This is the the house.", UNKNOWN, "the"),
        ("The the house is old.", UNKNOWN, "the"),
        ("Brot und und Butter", UNKNOWN, "und"),
        ("Öffnen Sie die neue Datei mit Dateien dateien dateien.", UNKNOWN, None),
        ("Sie haben diese gelöscht gelöscht.", Context("en", "de"), "gelöscht"),
        ("Das ist wirklich wirklich gut.", Context("en", "de"), None),
        ("Wählen Sie eine Datei datei aus.", Context("en", "de"), "datei"),
        ("Wählen Sie bitte aus aus.", Context("en", "de"), None),
        ("The house has a new roof roof.", Context("de", "en"), "roof"),
        ("The house has a new roof roof.", Context("de", None), None),
        ("The problem that he has has many causes.", Context("de", "en"), None),
        ("Ze hebben het gehad gehad.", Context("en", "nl"), None),
        ("Il faut faire faire un devis.", Context("en", "fr"), None),
    ],
)
def test_words_that_no_sentence_repeats(translation: str, context: Context, words: str | None) -> None:
    assert found("A source.", translation, context) == ([("repetition", words)] if words else [])
    assert found("A source, a source a a, bye bye.", translation, context) == []
