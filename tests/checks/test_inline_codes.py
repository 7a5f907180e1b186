"""Inline codes of translators' files; those of whole files are in `tests/adapters/documents/test_xml_files.py`."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import Context, InlineCode
from tests.helpers.checks import found


def codes(text: str, *names: str) -> tuple[InlineCode, ...]:
    """A tag `<g id="NAME">` round the word of each name, or at the end; of a name with a slash `<x id="NAME"/>`."""
    places = ((text.find(name.strip("/")), name) for name in names)
    return tuple(
        InlineCode(*((at, at + len(name)) if at >= 0 else (len(text),) * 2), name, name, name.endswith("/"))
        for at, name in places
    )


@pytest.mark.parametrize(
    ("before", "after", "errors"),
    [
        (["house"], ["Haus"], [("tag", "Haus")]),  # one for another
        (["house"], [], [("tag", "[house]")]),
        ([], ["Haus"], [("tag", "Haus")]),
        (["1", "2"], ["2", "1"], []),
        (["1"], ["1", "1"], []),
        (["1/"], ["1/", "1/"], [("tag", "Haus.")]),
        (["1/", "1/"], ["1/"], [("tag", "[house.]")]),
        (["house", "1"], [], [("tag", "[house]"), ("tag", "[house.]")]),
    ],
)
def test_codes_that_differ(before: list[str], after: list[str], errors: list[tuple[str, str]]) -> None:
    source, translation = "An old house.", "Ein altes Haus."
    context = Context("en", "de", None, codes(source, *before), codes(translation, *after))
    assert found(source, translation, context) == errors
