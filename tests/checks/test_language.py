"""Translations in another language than the file says."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import Context
from tests.helpers.checks import found

ENGLISH = "Please turn off the lights when you leave the room and close the window."
SPANISH = "Por favor, apaga las luces cuando salgas de la habitación y cierra la ventana."
GERMAN = "Bitte schalten Sie das Licht aus, wenn Sie den Raum verlassen, und schließen Sie das Fenster."
NORWEGIAN = "Vennligst slå av lyset når du forlater rommet, og lukk vinduet godt."


@pytest.mark.parametrize(
    ("source", "translation", "languages", "wrong"),
    [
        (ENGLISH, SPANISH, ("en", "de"), True),
        (ENGLISH, SPANISH, (None, "de_AT"), True),
        (ENGLISH, SPANISH, ("en", None), False),
        (ENGLISH, SPANISH, ("en", "es-MX"), False),
        (ENGLISH, GERMAN, ("en", "de"), False),
        # Short texts, near languages, names and quotations.
        ("Your order has been shipped.", "Su pedido ha sido enviado.", ("en", "de"), False),
        (ENGLISH, NORWEGIAN, ("en", "da"), False),
        ("Rio de Janeiro, São Paulo, Belo Horizonte", "Rio de Janeiro, São Paulo, Belo Horizonte", ("en", "de"), False),
        (f"{SPANISH} (a song)", f"{SPANISH} (ein Lied)", ("en", "de"), False),
        # What a program fills is in no language.
        (
            "%(number_of_files)s of %(the_whole_number)s",
            "%(number_of_files)s / %(the_whole_number)s",
            ("en", "ja"),
            False,
        ),
    ],
)
def test_another_language(source: str, translation: str, languages: tuple[str | None, str | None], wrong: bool) -> None:
    """It is marked over the whole translation, without the white space round it."""
    errors = [("language", translation)] if wrong else []
    assert found(source, f" {translation}\n", Context(*languages)) == errors
