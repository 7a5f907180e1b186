"""XLIFF of CAT tools: segments, states, inline codes; and which of its languages are read of a TMX."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mbr_esd_metric.adapters.documents import Document, read_document
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from tests.adapters.test_documents import FILES, _mark, _read
from tests.helpers.refused import refused

ROOT = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="f" source-language="en" '
    'target-language="de"><header/><body>{}</body></file></xliff>'
)

ITS = ' xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0"'


def _texts(document: Document) -> list[tuple[str, str, str]]:
    return [(unit.id, unit.source, unit.translation) for unit in document.units]


def test_segments_of_trados_are_units(tmp_path: Path) -> None:
    """In any order and at any depth; states of segments count as states of targets do, and what is deleted is gone."""
    path = FILES / "trados.sdlxliff"
    document = read_document(path)
    expected = [(f"f/u/{n}", f"Source {n}.", f"Ziel {n}.") for n in (0, 1, 5)]
    assert _texts(document) == [*expected, ("f/w", "The new one", "Der neue")]
    assert document.empty == ("f/u/6", "f/v/8")
    assert list(document.unready.values()) == ["no conf", 'conf="RejectedSignOff"', 'locked="true"']
    assert len(read_document(path, every=True).units) == 7
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
    assert [(unit.id, unit.document) for unit in document.units] == [("5", "g"), ("11", ""), ("12 (2)", "")]
    assert document.empty == ("7",)  # codes alone
    every = read_document(FILES / "states.mqxliff", every=True)
    assert (len(every.units), every.units[5].translation, dict(every.unready)) == (12, "Er", {})


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('First<x id="LINE_BREAK" ctype="lb" equiv-text="&lt;br/&gt;"/>second', "First\nsecond"),
        ('First<ph id="1" ctype="x-lb">{}</ph>second', "First\nsecond"),
        ('First<ph id="1" type="fmt" subType="xlf:lb"/>second', "First\nsecond"),
        ('First<ph x="1" type="lb"/>second', "First\nsecond"),
        ('First<ph id="1">&lt;br /&gt;</ph>second', "First\nsecond"),
        ('First<ph id="1">\\n</ph>second', "First\nsecond"),
        ('First.<ph id="1">&lt;/p&gt; &lt;p class="a"&gt;</ph>Second', "First.\nSecond"),
        ('First<ut>{\\par }</ut>second', "First\nsecond"),
        ('First<ph id="1"> </ph>second', "First second"),
        ('First<ph id="1">&lt;mq:ch val="&#10;" /&gt;</ph>second', "First\nsecond"),
        ('10<ph id="1">&lt;mq:ch val="&#160;" /&gt;</ph>km', "10\u00a0km"),
        ('First<it pos="begin" id="1">&lt;br&gt;</it>second', "First\nsecond"),
        ('First<ph id="7" dataRef="d1"/>second', "First\nsecond"),
        ('You have <x id="1" equiv-text="{{count}}"/> new', "You have {{count}} new"),
        ('You have <ph id="1" disp="{n}"/> new', "You have {n} new"),
        ('You have <ph id="1">%1$s</ph> new', "You have %1$s new"),
        ('You have <ph id="1" dataRef="d2"/> new', "You have ${n} new"),
        ('an <x id="1" ctype="x-b" equiv-text="&lt;b&gt;"/>un<x id="2" equiv-text="&lt;/b&gt;"/>happy', "an unhappy"),
        ('an <bpt id="1">&lt;b&gt;</bpt>un<ept id="1">&lt;/b&gt;</ept>happy', "an unhappy"),
        ('an <g id="1">un</g>happy <bx id="1"/>e<ex id="1"/>nd', "an unhappy end"),
        ('an <g id="1" ctype="x-lb">un</g>happy end', "an unhappy end"),
        ('First<x id="1"/>second', "First second"),
        ('First<x id="1"/>, second <x id="2"/> third<ph id="3">{\\b}</ph>', "First, second  third"),
        ('A <ph id="1">&lt;img src="a>b"/&gt;<sub>not text</sub></ph>picture', "A picture"),
    ],
)  # fmt: skip
def test_inline_codes_show_what_they_stand_for(tmp_path: Path, raw: str, text: str) -> None:
    """A mark round each character divides none of them."""
    tags = "".join(f'<tag id="{id_}"><ph>{code}</ph></tag>' for id_, code in (("d1", "&lt;br/>"), ("d2", "${n}")))
    unit = f'<trans-unit id="1"><source>Yes</source><target>{raw}</target></trans-unit>'
    content = ROOT.format(f"<tag-defs>{tags}</tag-defs>{unit}")
    document = _read(tmp_path, "p.xlf", content)
    assert document.units[0].translation == text
    spans = [ErrorSpan(at, at + 1, "minor") for at in range(len(text))]
    ElementTree.fromstring(_mark(document, tmp_path / "o.xlf", Annotation(spans)))
    again = read_document(tmp_path / "o.xlf")
    assert again.units == document.units
    assert _mark(again, tmp_path / "c.xlf").decode().replace(ITS, "") == content


@pytest.mark.parametrize(
    ("source", "target", "warning"),
    [
        ('<x id="1"/> new from <x id="2"/>', '<x id="2"/> neue', "with other placeholders"),
        ('<x id="1"/> new from <x id="2"/>', 'von <x id="2"/> neue <x id="1"/>', None),
        ('<x id="1" equiv-text="{n}"/> new', '<x id="a" equiv-text="{n}"/> neue', None),
        ('<x id="1" equiv-text="{n}"/> new', '<x id="1"/> neue', None),
        ('<ph x="1">{0}</ph> new', "<ph x='1'>{0}</ph> neue", None),
        ("<ph>{0}</ph> new", "<ph>{1}</ph> neue", "with other placeholders"),
        ('One<ph type="lb"/>two', "Eins zwei", "with other placeholders"),
        ('<g id="1">new</g> one', "neu", "with other tags"),
        ('<g id="1">new one</g>', '<g id="1">neu</g> und <g id="1">eins</g>', None),
        ('<bpt i="1">&lt;b></bpt>new<ept i="1">&lt;/b></ept>', "neu", "with other tags"),
    ],
)
def test_codes_that_differ_are_a_data_warning(tmp_path: Path, source: str, target: str, warning: str | None) -> None:
    unit = f'<trans-unit id="1"><source>{source}</source><target>{target}</target></trans-unit>'
    (one,) = _read(tmp_path, "p.xlf", ROOT.format(unit)).units
    assert one.data_warning == warning


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
