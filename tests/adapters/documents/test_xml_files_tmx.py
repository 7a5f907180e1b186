"""TMX: which of its languages are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents import read_document
from tests.adapters.test_documents import _read
from tests.helpers.refused import refused


def _tmx(*units: dict[str, str], header: str = "en") -> str:
    """A unit is language -> text."""
    body = "".join(
        f'<tu tuid="{number}">'
        + "".join(f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>' for language, text in unit.items())
        + "</tu>"
        for number, unit in enumerate(units, 1)
    )
    return f'<tmx version="1.4"><header srclang="{header}"/><body>{body}</body></tmx>'


YES, DOOR = {"en": "Yes", "ar": "نعم", "de": "Ja", "fr": "Oui"}, {"en": "A door", "de": "Eine Tür", "fr": "Une porte"}


@pytest.mark.parametrize(
    ("header", "unit", "languages", "first"),
    [
        ("en", "", "de-DE en-US", "en-US"),
        ("de", ' srclang="en"', "de-DE en-US", "en-US"),
        ("EN-GB", "", "en-US de en-gb", "en-gb"),
        ("*all*", "", "de-DE en-US", "de-DE"),
    ],
)
def test_the_source_language_of_tmx(tmp_path: Path, header: str, unit: str, languages: str, first: str) -> None:
    content = _tmx({one: one for one in languages.split()}, header=header).replace("<tu", f"<tu{unit}", 1)
    (both,) = _read(tmp_path, "p.tmx", content).units
    assert both.languages == (both.source, both.translation)
    assert (both.source, both.translation[:2] == first[:2]) == (first, False)
    content = re.sub('srclang="[^"]*"', 'srclang="fr"', content)
    refused("unit 1: no text in the source language fr", _read, tmp_path, "p.tmx", content)


def test_the_language_pair_chooses_among_several_languages(tmp_path: Path) -> None:
    """Without one they are refused with their list; units that lack it are left out."""
    path, message = tmp_path / "p.tmx", "translations into ar, de, fr; choose a language, such as --lp en-ar"
    refused(message, _read, tmp_path, "p.tmx", _tmx(YES, DOOR))
    for lp, texts, empty in (
        ("en_US-fr-CA", [("Yes", "Oui"), ("A door", "Une porte")], ()),
        ("en-ar", [("Yes", "نعم")], ("2",)),
        ("de-fr", [("Ja", "Oui"), ("Eine Tür", "Une porte")], ()),
    ):
        document = read_document(path, lp=lp)
        assert [(unit.source, unit.translation) for unit in document.units] == texts
        assert document.empty == empty
    refused("no unit in en and ja; the file's languages are en, ar, de, fr", read_document, path, lp="en-ja")
    # Also where no unit has more than two languages.
    two = _tmx({"en": "Yes", "de": "Ja"}, {"en": "Yes", "fr": "Oui"})
    refused("translations into de, fr", _read, tmp_path, "q.tmx", two)


def test_regions_are_told_apart(tmp_path: Path) -> None:
    content = _tmx({"en-US": "Color", "pt-PT": "Cor", "pt-BR": "Côr", "en-GB": "Colour"}, header="*all*")
    refused("translations into pt-PT, pt-BR; choose", _read, tmp_path, "p.tmx", content)
    for lp, translation in (("en-pt", "Cor"), ("en-pt-BR", "Côr"), ("en-pt_BR", "Côr"), ("en-US-en-GB", "Colour")):
        (unit,) = read_document(tmp_path / "p.tmx", lp=lp).units
        assert (unit.source, unit.translation) == ("Color", translation)
