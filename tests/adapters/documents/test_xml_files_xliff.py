"""XLIFF of CAT tools: segments, states, prefixes, inline codes."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mbr_esd_metric.adapters.documents import Document, read_document
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from tests.adapters.test_documents import TWO, _mark, _read

ROOT = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0"'
    ' xmlns:mq="MQXliff" xmlns:m="http://www.memsource.com/mxlf/2.0">'
    '<file original="f" source-language="en" target-language="de"><header/><body>{}</body></file></xliff>'
)

ITS = ' xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0"'


def _segment(mid: str, text: str) -> str:
    return f'<mrk mtype="seg" mid="{mid}">{text}</mrk>'


def _segmented(sources: list[str], targets: list[str], definitions: str = "") -> str:
    """Each text has the number of its segment before a colon."""
    one, two = (" ".join(_segment(*text.split(":")) for text in side) for side in (sources, targets))
    whole = " ".join(text.partition(":")[2] for text in sources)
    return f"<source>{whole}</source><seg-source>{one}</seg-source><target>{two}</target>{definitions}"


def _texts(document: Document) -> list[tuple[str, str, str]]:
    return [(unit.id, unit.source, unit.translation) for unit in document.units]


def test_segments_of_trados_are_units(tmp_path: Path) -> None:
    """In any order and at any depth; states of segments count as states of targets do."""
    states = (
        'conf="Translated"', 'conf="Draft" origin="mt"', "", 'conf="RejectedSignOff"',
        'conf="ApprovedSignOff" locked="true"', 'conf="ApprovedTranslation" locked="false"',
    )  # fmt: skip
    segs = "".join(f'<sdl:seg id="{mid}" {state}/>' for mid, state in enumerate(states))
    sources = [f"{n}:Source {n}." for n in range(7)]
    targets = [f"{n}:<g id='1'>Ziel {n}.</g>" for n in (2, 1, 0, 3, 4, 5)] + ["6:"]
    old = f"<alt-trans><target>{_segment('0', 'Alt')}</target></alt-trans>"
    content = ROOT.format(
        f'<trans-unit id="u">{_segmented(sources, targets, f"<sdl:seg-defs>{segs}</sdl:seg-defs>")}{old}</trans-unit>'
        f'<trans-unit id="v"><source>No</source><seg-source><g>{_segment("8", "No")}</g></seg-source></trans-unit>'
        '<trans-unit id="w"><source>Yes</source><target>Ja</target></trans-unit>'
    )
    document = _read(tmp_path, "p.sdlxliff", content)
    expected = [(f"f/u/{n}", f"Source {n}.", f"Ziel {n}.") for n in (0, 1, 5)]
    assert _texts(document) == [*expected, ("f/w", "Yes", "Ja")]
    assert document.empty == ("f/u/6", "f/v/8")
    assert list(document.unready.values()) == ["no conf", 'conf="RejectedSignOff"', 'locked="true"']
    assert len(read_document(tmp_path / "p.sdlxliff", every=True).units) == 7
    # Each is marked by itself, in `seg-source` too; marked again without errors, the file is as it was.
    both = Annotation([ErrorSpan(0, 4, "major"), ErrorSpan(0, 6, "minor", side="source")])
    marked = _mark(document, tmp_path / "o.sdlxliff", *[both] * 3, Annotation()).decode()
    assert len(re.findall(r"<mrk mtype=.seg. mid=...><mrk mid=.mbr-esd-\d. [^>]*>Source</mrk> \d", marked)) == 3
    assert len(re.findall(r"<g id='1'><mrk mid=.mbr-esd-\d. [^>]*>Ziel</mrk> \d.</g>", marked)) == 3
    again = read_document(tmp_path / "o.sdlxliff")
    assert again.units == document.units
    assert _mark(again, tmp_path / "c.sdlxliff").decode().replace(ITS, "") == content


def test_segments_without_definitions_or_partners(tmp_path: Path) -> None:
    """Okapi numbers them anew in each unit and writes no states; a target that is not segmented is one text."""
    first = _segmented(["0:One.", "1:Two."], ["0:Eins.", "1:Zwei."])
    second = _segmented(["0:Three."], ["0:Drei.", "1:Mehr."])
    third = "<source>Four. Five.</source><seg-source>" + _segment("0", "Four.") + "</seg-source><target>Vier.</target>"
    fourth = f"<source>{_segment('a', 'Six.')}</source><target>{_segment('a', 'Sechs.')}</target>"
    units = "".join(f'<trans-unit id="{n}">{one}</trans-unit>' for n, one in enumerate((first, second, third, fourth)))
    document = _read(tmp_path, "p.xlf", ROOT.format(units))
    assert _texts(document) == [
        ("f/0/0", "One.", "Eins."), ("f/0/1", "Two.", "Zwei."), ("f/1/0", "Three.", "Drei."),
        ("f/2", "Four. Five.", "Vier."), ("f/3/a", "Six.", "Sechs."),
    ]  # fmt: skip
    assert document.empty == ("f/1/1",)


@pytest.mark.parametrize(
    ("name", "attributes", "why"),
    [
        ("p.mqxliff", 'mq:status="NotStarted" mq:locked="no"', 'status="NotStarted"'),
        ("p.mqxliff", 'mq:status="Rejected"', 'status="Rejected"'),
        ("p.mqxliff", 'mq:status="ManuallyConfirmed" mq:locked="locked"', 'locked="locked"'),
        ("p.mqxliff", 'mq:status="PartiallyEdited" mq:locked="no"', None),
        ("p.mxliff", 'm:locked="true" m:confirmed="1"', 'locked="true"'),
        ("p.mxliff", 'm:locked="false" m:confirmed="0"', None),
    ],
)
def test_states_of_memoq_and_phrase(tmp_path: Path, name: str, attributes: str, why: str | None) -> None:
    content = ROOT.format(
        f'<trans-unit id="1" {attributes}><source>Yes</source><target>Ja</target></trans-unit>'
        '<trans-unit id="1"><source>No</source><target>Nein</target></trans-unit>'
    )
    document = _read(tmp_path, name, content)
    assert list(document.unready.values()) == ([] if why is None else [why])
    assert [unit.id for unit in document.units] == (["f/1"] if why is None else []) + ["f/1 (2)"]


@pytest.mark.parametrize("prefix", ["xlf:", "x-1.2:"])
@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_marks_have_their_parents_prefix(tmp_path: Path, prefix: str, version: str) -> None:
    """Also beside a default namespace that is another one."""
    name = f"urn:oasis:names:tc:xliff:document:{version}"
    unit = "<unit id='1'><segment>{0}</segment></unit>" if version == "2.0" else "<trans-unit id='1'>{0}</trans-unit>"
    pair = "<source>The bank <g>closed</g>.</source><target>Das <g>Ufer</g>.</target>"
    plain = f'<xliff version="{version}" srcLang="en" trgLang="de"><file>{unit.format(pair)}</file></xliff>'
    spaces = f' xmlns:{prefix[:-1]}="{name}" xmlns="urn:other"'
    content = re.sub("<(/?)", rf"<\1{prefix}", plain).replace(' version="', f'{spaces} version="', 1)
    document = _read(tmp_path, "p.xlf", content)
    marked = _mark(document, tmp_path / "o.xlf", u1="Ufer")
    marks = [element for element in ElementTree.fromstring(marked).iter() if element.tag == f"{{{name}}}mrk"]
    assert [mark.text for mark in marks] == ["Ufer"]
    assert read_document(tmp_path / "o.xlf").units == document.units


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


def test_codes_are_of_their_unit(tmp_path: Path) -> None:
    units = "".join(
        f'<unit id="{n}"><originalData><data id="d">{data}</data></originalData><segment><source>One<ph id="1" '
        'dataRef="d"/>two</source><target>Eins<ph id="1" dataRef="d"/>zwei</target></segment></unit>'
        for n, data in enumerate(("{0}", "&lt;br/&gt;"))
    )
    document = _read(tmp_path, "q.xlf", f'<xliff version="2.0" srcLang="en" trgLang="de"><file>{units}</file></xliff>')
    assert [unit.source for unit in document.units] == ["One{0}two", "One\ntwo"]


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


def _unit(number: int, target: str, **attributes: str) -> str:
    more = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<trans-unit id="{number}"{more}><source>Source</source>{target}</trans-unit>'


def test_units_of_xliff_that_are_not_ready(tmp_path: Path) -> None:
    ready = '<target state="translated">Er</target>'
    one = (
        '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
        + _unit(1, '<target state="new">Source</target>')
        + _unit(2, '<target state="needs-translation">Source</target>')
        + _unit(3, ready, translate="no")
        + f'<group id="g" translate="no">{_unit(4, ready)}{_unit(5, ready, translate="yes")}</group>'
        + _unit(6, f"{ready}<target>Zweite</target>")
        + _unit(8, '<target><x id="ICU" equiv-text="{x}"/></target>')
        + _unit(7, '<target>Der <mrk mtype="x-sdl-deleted" sdl:revid="r">alte</mrk>neue</target>')
        + "</body></file></xliff>"
    ).replace("<xliff", '<xliff xmlns:sdl="urn:s"')
    document = _read(tmp_path, "p.sdlxliff", one)
    units = [(unit.id, unit.document, unit.translation) for unit in document.units]
    assert units == [("5", "g", "Er"), ("7", "", "Der neue")]
    assert document.empty == ("8",)  # codes alone
    states = {"1": 'state="new"', "2": 'state="needs-translation"', "6": "a second target"}
    assert document.unready == states | dict.fromkeys("34", 'translate="no"')
    every = read_document(tmp_path / "p.sdlxliff", every=True)
    assert [unit.id for unit in every.units] == list("1234567")
    assert (every.units[5].translation, dict(every.unready)) == ("Er", {})
    two = TWO.replace("<segment", '<segment state="initial"', 1)
    assert list(_read(tmp_path, "q.xlf", two).unready.values()) == ['state="initial"']
