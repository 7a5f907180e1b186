"""XLIFF of CAT tools: segments, states, inline codes; and which of its languages are read of a TMX."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from mbr_esd_metric.adapters.documents.document import Document, Selection
from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.segment import Context
from tests.adapters.test_documents import FILES, _mark, _read
from tests.helpers.checks import found
from tests.helpers.refused import refused

ITS = ' xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0"'


def _texts(document: Document) -> list[tuple[str, str, str]]:
    return [(unit.segment.label, unit.segment.source, unit.segment.translation) for unit in document.units]


def test_segments_of_trados_are_units(tmp_path: Path) -> None:
    """In any order and at any depth; states of segments count as states of targets do, and what is deleted is gone."""
    path = FILES / "trados.sdlxliff"
    document = read_document(path)
    expected = [(f"f/u/{n}", f"Source {n}.", f"Ziel {n}.") for n in (0, 1, 5)]
    assert _texts(document) == [*expected, ("f/w", "The new one", "Der neue")]
    assert document.empty == ("f/u/6", "f/v/8")
    assert list(document.unready.values()) == ["no conf", 'conf="RejectedSignOff"', 'locked="true"']
    assert len(read_document(path, Selection(every=True)).units) == 7
    # Each is marked by itself, in `seg-source` too; marked again without errors, the file is as it was.
    both = Annotation([ErrorSpan(0, 4, "major"), ErrorSpan(0, 6, "minor", side="source")])
    marked = _mark(document, tmp_path / "o.sdlxliff", *[both] * 3, Annotation()).decode()
    assert len(re.findall(r"<mrk mtype=.seg. mid=...><mrk mid=.mbr-esd-\d. [^>]*>Source</mrk> \d", marked)) == 3
    assert len(re.findall(r"<g id='1'><mrk mid=.mbr-esd-\d. [^>]*>Ziel</mrk> \d.</g>", marked)) == 3
    again = read_document(tmp_path / "o.sdlxliff")
    assert again.units == document.units
    assert _mark(again, tmp_path / "c.sdlxliff").decode().replace(ITS, "") == path.read_text(encoding="utf-8")


def test_segments_without_definitions_or_partners() -> None:
    """Okapi numbers them anew in each unit and writes no states; a target that is not segmented is one text."""
    document = read_document(FILES / "okapi.xlf")
    assert _texts(document) == [
        ("f/0/0", "One.", "Eins."), ("f/0/1", "Two.", "Zwei."), ("f/1/0", "Three.", "Drei."),
        ("f/2", "Four. Five.", "Vier."), ("f/3/a", "Six.", "Sechs."),
    ]  # fmt: skip
    assert document.empty == ("f/1/1",)


def test_units_that_are_not_ready() -> None:
    """By the states of XLIFF itself, of memoQ and of Phrase."""
    document = read_document(FILES / "states.mqxliff")
    assert document.unready == {
        "1": 'state="new"',
        "2": 'state="needs-translation"',
        "3": 'translate="no"',
        "4": 'translate="no"',
        "6": "a second target",
        "8": 'status="NotStarted"',
        "9": 'status="Rejected"',
        "10": 'locked="locked"',
        "12": 'locked="true"',
    }
    assert [(unit.segment.label, unit.segment.document) for unit in document.units] == [
        ("5", "g"),
        ("11", ""),
        ("12 (2)", ""),
    ]
    assert document.empty == ("7",)  # codes alone
    every = read_document(FILES / "states.mqxliff", Selection(every=True))
    assert (len(every.units), every.units[5].segment.translation, dict(every.unready)) == (12, "Er", {})


def test_inline_codes_show_what_they_stand_for(tmp_path: Path) -> None:
    """A mark round each character divides none of them."""
    document = read_document(FILES / "codes.xlf")
    texts = [unit.segment.translation for unit in document.units]
    assert texts == [
        *["First\nsecond"] * 10,
        "First.\nSecond",
        *["First second"] * 2,
        "10\xa0km",
        "You have {{count}} new",
        "You have {n} new",
        "You have %1$s new",
        "You have ${n} new",
        *["an unhappy"] * 2,
        *["an unhappy end"] * 2,
        "First, second  third",
        "A picture",
    ]
    spans = [Annotation(ErrorSpan(at, at + 1, "minor") for at in range(len(text))) for text in texts]
    ElementTree.fromstring(_mark(document, tmp_path / "o.xlf", *spans))
    again = read_document(tmp_path / "o.xlf")
    assert again.units == document.units
    assert _mark(again, tmp_path / "c.xlf").decode().replace(ITS, "") == document.path.read_text(encoding="utf-8")


def test_codes_that_differ_are_errors() -> None:
    """A lost one is marked in the source, in brackets: the text inside it, or the word beside it."""
    document = read_document(FILES / "other_codes.xlf")
    assert len(document.units) == 11
    errors = {
        unit.segment.label: found(unit.segment.source, unit.segment.translation, unit.segment.known)
        for unit in document.units
    }
    assert {name: one for name, one in errors.items() if one} == {
        "lost placeholder": [("tag", "[new]")],
        "another placeholder": [("placeholder", "{1}")],
        "lost line break": [("tag", "[One]")],
        "lost tag": [("tag", "[new]")],
        "lost pair": [("tag", "[new]")],
        "an empty pair": [("tag", "[here]")],
    }


def test_the_source_language_of_tmx(tmp_path: Path) -> None:
    """That of the unit before that of the header, in its region where there is one."""
    units = read_document(FILES / "sources.tmx").units
    assert [unit.segment.known for unit in units] == [Context("en-US", "de-DE"), Context("en-gb", "de")]
    french = (FILES / "sources.tmx").read_text(encoding="utf-8").replace('srclang="en"', 'srclang="fr"')
    refused("unit 1: no text in the source language fr", _read, tmp_path, "p.tmx", french)


def test_the_language_pair_chooses_among_several_languages() -> None:
    """Without one they are refused with their list; units that lack it are left out."""
    path, message = FILES / "four-languages.tmx", "translations into ar, de, fr; choose a language, such as --lp en-ar"
    refused(message, read_document, path)
    for lp, texts, empty in (
        ("en_US-fr-CA", [("Yes", "Oui"), ("A door", "Une porte")], ()),
        ("en-ar", [("Yes", "نعم")], ("2",)),
        ("de-fr", [("Ja", "Oui"), ("Eine Tür", "Une porte")], ()),
    ):
        document = read_document(path, Selection(lp=lp))
        assert [(unit.segment.source, unit.segment.translation) for unit in document.units] == texts
        assert document.empty == empty
    refused("no unit in en and ja; the file's languages are en, ar, de, fr", read_document, path, Selection(lp="en-ja"))
    # Also where no unit has more than two languages.
    refused("translations into de, fr", read_document, FILES / "two-targets.tmx")


def test_regions_are_told_apart() -> None:
    """Where any text may be the source, the first is."""
    path = FILES / "regions.tmx"
    refused("translations into pt-PT, pt-BR; choose", read_document, path)
    for lp, translation in (("en-pt", "Cor"), ("en-pt-BR", "Côr"), ("en-pt_BR", "Côr"), ("en-US-en-GB", "Colour")):
        (unit,) = read_document(path, Selection(lp=lp)).units
        assert (unit.segment.source, unit.segment.translation) == ("Color", translation)


def test_a_note_names_the_variant_that_is_taken(tmp_path: Path) -> None:
    """Of several texts in one language; that of the pair's region, or else the first."""
    variants = "".join(
        f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'
        for language, text in (("en", "Door"), ("de-AT", "Türe"), ("de", "Tür"), ("de", "Pforte"))
    )
    path = tmp_path / "m.tmx"
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body><tu tuid="a">{variants}</tu></body></tmx>')
    for lp, text, taken in (("en-de", "Tür", "de"), ("en-de-AT", "Türe", "de-AT"), ("en-de-CH", "Türe", "de-AT")):
        document = read_document(path, Selection(lp=lp))
        assert [unit.segment.translation for unit in document.units] == [text]
        assert document.notes == (
            "1 unit with several texts in one language, of which one is read, such as unit a: the first in "
            f"{taken} of de-AT, de, de",
        )
    assert not read_document(FILES / "memory.tmx").notes
