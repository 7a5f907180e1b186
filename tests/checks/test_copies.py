"""Whole sentences of another language are copies; names, commands and what two languages share are none."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, Context
from tests.helpers.checks import found


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m message",
        "pip install mbr-esd-metric",
        "npm run build",
        "in de Jong's work",
        "er det ikke",
        "Tom is warm.",
        "Jeg venter her.",
        "vi er glade for det",
        "como sempre falamos aqui",
        "kako si danas prijatelju",
        "我們今天去看電影吧",
        "menu restaurant a la carte",
        "point of no return",
        "Lord of the Rings",
        "SELECT name FROM users WHERE id = 1",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.",
        "Det er ikke så lett å si hva som er best for oss alle i dag.",
    ],
)
def test_what_may_stay_as_it_is(text: str) -> None:
    assert found(text, text) == []


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("Enter your password", UNKNOWN),
        ("It is the old house.", UNKNOWN),
        ("Your order has been shipped, and we will write to you soon.", Context("en", "de")),
        ("Wir freuen uns sehr, Sie bald wieder bei uns begrüßen zu dürfen.", UNKNOWN),
        ("Das ist ein altes Haus.", Context("de", "fr")),
        ("The disease lasted from 2 weeks to 60 months (median, 4 months) in all of them.", Context("en", "zh")),
        ("Las mujeres de la ciudad (42%, 230/545) son más propensas a los riesgos de la guerra.", Context("es", "en")),
        ("今天天气很好，我们去公园吧。", UNKNOWN),
        ("今天天气很好，我们去公园吧", Context("zh", "en")),
    ],
)
def test_sentences_that_are_copied(text: str, context: Context) -> None:
    assert found(text, text.upper(), context) == [("copy", text.upper())]


@pytest.mark.parametrize("target", ["de", "fr", "ja"])
@pytest.mark.parametrize(
    "text",
    [
        "Click the button to continue.",
        "Choose a payment method before checking out.",
        "Password must be at least 8 characters.",
        "The meeting starts at 2:30 p.m. on Friday.",
        "We deliver within 48 hours.",
        "Unable to connect to the server",
    ],
)
def test_short_english_sentences(text: str, target: str) -> None:
    assert found(text, text, Context("en", target)) == [("copy", text)]


@pytest.mark.parametrize("target", ["de", "fr", "ja"])
@pytest.mark.parametrize(
    "text",
    [
        "E-Mail: max@example.com",
        "New York Times",
        "Rock and Roll",
        "The Lord of the Rings: The Return of the King",
        "Department of the Interior of the US",
        "by Bram Moolenaar et al.",
        "Made in Germany",
        "state of the art",
        "Last but not least.",
        "Never change a running system.",
        "numpy, scipy, pandas and matplotlib",
        "git push origin main",
        "cover-from-description-mode",
        "Il faut bien le faire.",
        "ipso facto et ceteris paribus in toto",
    ],
)
def test_what_english_texts_share_with_translations(text: str, target: str) -> None:
    assert found(text, text, Context("en", target)) == []


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("Update: Selective adrenal venous sampling (AVS) – Indication, technique, and significance.", "de", "en"),
        ("Ich bin ein Berliner.", "fr", "de"),
        ("Ich will dir helfen.", "cs", "de"),
        ("My hand is in warm water.", "en", "af"),
    ],
)
def test_a_source_in_the_language_of_the_translation(text: str, source: str, target: str) -> None:
    assert found(text, text, Context(source, target)) == []


def test_a_sentence_in_another_script() -> None:
    text = "Нажмите кнопку для продолжения"
    assert found(text, text, Context("ru", "en")) == [("copy", text)]


@pytest.mark.parametrize("languages", [("en_GB", "en-US"), ("hr", "sr_Latn"), ("zh_CN", "zh_TW")])
def test_languages_that_share_sentences(languages: tuple[str, str]) -> None:
    text = "Please enter your password." if languages[0] == "en_GB" else "Ovo je vaša nova lozinka."
    assert found(text, text, Context(*languages)) == []
