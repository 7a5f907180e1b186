"""Where an address ends, and which addresses are one in two languages."""

from __future__ import annotations

import pytest

from tests.helpers.checks import found


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Visit https://example.org/help to learn more.", "请访问https://example.org/help了解更多信息。"),
        ("Visit https://example.org/help.", "https://example.org/help를 방문하세요."),
        ("See https://example.org/help, please.", "انظر https://example.org/help، من فضلك."),
        ("See https://example.org/help.", "देखें https://example.org/help।"),
        ("Write to info@example.org for help.", "如需帮助，请发邮件至info@example.org联系我们。"),
        ("Visit www.example.com", "Siirry sivulle www.example.com:iin"),
        ("at https://example.com", "a https://example.com-on"),
        ("Mail info@example.com", "info@example.com'a yazın"),
        ("http://example.com/a?b=1&amp;c=2", "https://example.com/a?b=1&c=2"),
        ("See https://example.com/a_(b).", "Siehe (https://example.com/a_(b))."),
        ("https://example.com, https://example.com!", "https://example.com"),
        ("See https://example.com.", "Siehe example.com."),
        # What is localised.
        ("See https://en.wikipedia.org/wiki/Bank.", "Siehe https://de.wikipedia.org/wiki/Bank_(Geld)."),
        ("Read https://example.org/en/help first.", "Lesen Sie https://example.org/de/hilfe."),
        ("Read https://example.org/help first.", "Lesen Sie https://example.org/fr/help."),
        ("See https://example.com/help", "Siehe https://example.de/hilfe"),
        ("https://example.com/?lang=en", "https://example.com/?lang=fr"),
        ("Write to info@example.com.", "Schreiben Sie an kontakt@example.com."),
        ("Write to info@example.com.", "Écrivez à info@example.fr."),
        ("https://example.org/about-us", "https://example.org/ueber-uns"),
        ("新闻 - 中新网", "News - www.chinanews.com"),  # the name of a site
    ],
)
def test_good_addresses(source: str, translation: str) -> None:
    assert found(source, translation) == []


@pytest.mark.parametrize(
    ("source", "translation", "errors"),
    [
        ("See https://a.com/x", "Siehe https://a.com/y", [("url", "https://a.com/y")]),
        ("See https://example.com/help", "请看https://exmaple.com/help吧", [("url", "https://exmaple.com/help")]),
        ("See https://example.com/help", "Siehe https://example.com/hepl", [("url", "https://example.com/hepl")]),
        ("See https://example.com/v2", "Siehe https://example.com/v3", [("url", "https://example.com/v3")]),
        ("See https://example.com/a", "Siehe dort", [("url", "[https://example.com/a]")]),
        ("See our pages", "Siehe https://a.com/x", [("url", "https://a.com/x")]),
        ("Mail a@b.com", "Mail a@c.com", [("email", "a@c.com")]),
        ("Mail info@example.com", "Mail ifno@example.com", [("email", "ifno@example.com")]),
    ],
)
def test_wrong_addresses(source: str, translation: str, errors: list[tuple[str, str]]) -> None:
    assert found(source, translation) == errors
