"""Tags are told from words in angle brackets."""

from __future__ import annotations

import pytest

from tests.helpers.checks import found


@pytest.mark.parametrize(
    ("source", "translation", "errors"),
    [
        ("Usage: copy <file> [options]", "Aufruf: copy <Datei> [Optionen]", []),
        ("Press <Enter> to go on.", "Drücken Sie <Eingabe>, um fortzufahren.", []),
        ("-p <process ID>", "-p <mã tiến trình>", []),
        ("<time> <source>", "<Zeit> <Quelle>", []),
        ("<i>New</i> here", "<em>Neu</em> hier", []),
        ("&lt;b&gt;New&lt;/b&gt; here", "<strong>Neu</strong> hier", []),
        ("One<br>two<br/>three", "Eins zwei<br />drei", []),
        ("<link>Sign in</link> now", "Jetzt anmelden", ["[<link>]", "[</link>]"]),
        ("<0>Sign in</0> now", "Jetzt <0>anmelden", ["[</0>]"]),
        (
            "Go <a href=\"x.html\" target='_blank'>home</a>",
            "Nach Hause",
            ["[<a href=\"x.html\" target='_blank'>]", "[</a>]"],
        ),
        ("Save &lt;b&gt;now&lt;/b&gt;", "Jetzt speichern", ["[&lt;b&gt;]", "[&lt;/b&gt;]"]),
        ("Wait <x/> here", "Hier warten", ["[<x/>]"]),
    ],
)
def test_tags(source: str, translation: str, errors: list[str]) -> None:
    assert found(source, translation) == [("tag", words) for words in errors]
