"""Translators' files: what is read from them, and the same bytes with marks."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric.adapters.documents.document import Checked, Document, issue_type
from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.segment import Context, Segment
from mbr_esd_metric.metric.data_warnings import data_warning
from tests.helpers.refused import refused

FILES = Path(__file__).parents[1] / "data" / "ratings"
PAGE, SEGMENTS, MEMORY = ((FILES / name).read_bytes().decode() for name in ("page.xlf", "segments.xliff", "memory.tmx"))
XML = [("p.xlf", PAGE), ("p.xliff", SEGMENTS), ("m.tmx", MEMORY)]


def _read(folder: Path, name: str, content: str, encoding: str = "utf-8") -> Document:
    path = folder / name
    path.write_bytes(content.encode(encoding))
    return read_document(path)


def _mark(document: Document, output: Path, *annotations: Annotation, **words: str) -> bytes:
    """The file with these annotations, or with errors on these words of the units of these ids (after `u`)."""
    for unit in () if annotations else document.units:
        word = words.get("u" + re.sub(r"\W", "", unit.segment.label), "")
        at = unit.segment.translation.index(word)
        spans = [ErrorSpan(at, at + len(word), "major", "accuracy/mistranslation")] if word else []
        annotations = (*annotations, Annotation(spans))
    document.mark([Checked(annotation, 0.5) for annotation in annotations], output)
    return output.read_bytes()


def _without_codes(document: Document) -> list[Segment]:
    segments = [unit.segment for unit in document.units]
    codes: dict[str, Any] = {"source_codes": (), "translation_codes": ()}
    return [replace(one, known=replace(one.known, **codes)) for one in segments]


def test_texts_are_without_markup(tmp_path: Path) -> None:
    """Data of codes are of their unit."""
    page, pair = read_document(FILES / "page.xlf"), Context("en", "de")
    of_file: dict[str, Any] = {"document": "a.html", "known": Context("en-US", "de-DE")}
    assert _without_codes(page) == [
        Segment("Click the button & go", "Klick auf den Knöpf\n <& ab", "a.html/1", **of_file),
        Segment("Yes", "Ja", "a.html/4", **of_file),
    ]
    assert page.empty == ("a.html/2", "a.html/3")
    segments = read_document(FILES / "segments.xliff")
    assert _without_codes(segments) == [
        Segment("One two {0}.", "Eins zwei {0}.", "f1/u1/s1", document="f1", known=pair),
        Segment("Three\nfour.", "Drei\nvier.", "f1/u2", document="f1", known=pair),
    ]
    assert segments.unready == {"f1/u1/s2": 'state="initial"'}
    memory = read_document(FILES / "memory.tmx")
    assert _without_codes(memory) == [Segment("The house", "Das Haus", "a", known=pair)]
    rows = "7\tA dog\tEin Hund\ten-de\n8\tA cat\t\ten-de\n9\t\tEin Tier\ten-de\n"
    table = _read(tmp_path, "t.tsv", f"key\tsource\ttarget\tlp\n{rows}")
    texts = [Segment("A dog", "Ein Hund", "7", known=pair), Segment("A cat", "", "8", known=pair)]
    assert (_without_codes(table), table.empty) == (texts, ("9",))


@pytest.mark.parametrize(("name", "content"), XML)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_every_byte_but_the_marks_stays(tmp_path: Path, name: str, content: str, encoding: str) -> None:
    if not encoding.startswith("utf-8"):
        content = f'<?xml version="1.0" encoding="{encoding}"?>' + re.sub("^<[?].*?[?]>", "", content)
    document = _read(tmp_path, name, content, encoding)
    out = tmp_path / f"out{Path(name).suffix}"
    assert _mark(document, out) == document.path.read_bytes()

    both = [ErrorSpan(0, 2, "minor"), ErrorSpan(0, 3, "major", None, 0.5, "source")]
    lengths = [len(unit.segment.translation) for unit in document.units]
    errors = [[ErrorSpan(1, length, "major", 'a "quoted" <category>'), *both] for length in lengths]
    marked = _mark(document, out, *map(Annotation, errors)).decode(encoding)
    ElementTree.parse(out)
    again = read_document(out)
    assert again.units == document.units
    assert re.search(r"<(mrk|xlf:mrk|hi) [^<]*?mbr-esd-[^<]*?>", marked)
    # Marked again without errors, it is the file that it was, but for the name of the marks' vocabulary.
    clean = _mark(again, tmp_path / f"clean{Path(name).suffix}").decode(encoding)
    clean = clean if "xmlns:its" in content else clean.replace(' xmlns:its="http://www.w3.org/2005/11/its"', "")
    assert clean.replace(' its:version="2.0"', "") == document.path.read_bytes().decode(encoding)


def test_marks_never_cross_a_tag(tmp_path: Path) -> None:
    """They have their parent's prefix, also beside a default namespace that is another one."""
    document = read_document(FILES / "page.xlf")
    _mark(document, tmp_path / "o.xlf", uahtml1="auf den Knöpf\n <")
    mrk, issue = "{urn:oasis:names:tc:xliff:document:%s}mrk", "{http://www.w3.org/2005/11/its}locQualityIssue"
    marks = list(ElementTree.parse(tmp_path / "o.xlf").iter(mrk % "1.2"))
    assert ["".join(mark.itertext()) for mark in marks] == ["auf ", "den", " Knöpf<br> <& ab"]
    comment = 'major, accuracy/mistranslation: "auf den Knöpf  <"'
    keys = ("mtype", f"{issue}Type", f"{issue}Severity", f"{issue}Comment")
    assert {tuple(map(mark.get, keys)) for mark in marks} == {("x-its", "mistranslation", "100", comment)}
    omission = Annotation([ErrorSpan(4, 7, "minor", None, None, "source")])
    _mark(read_document(FILES / "segments.xliff"), tmp_path / "o.xliff", omission, Annotation())
    (mark,) = ElementTree.parse(tmp_path / "o.xliff").iter(mrk % "2.0")
    assert (mark.text, mark.get("type"), mark.get(f"{issue}Type")) == ("two", "its:generic", "omission")
    # An entity that only the DTD knows is a word.
    content = MEMORY.replace("<tmx", '<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx').replace("The house", "The&nbsp;house")
    document = _read(tmp_path, "m.tmx", content)
    assert document.units[0].segment.source == "The&nbsp;house"
    assert b"The<hi x" in _mark(document, tmp_path / "o.tmx", omission)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.xlf", PAGE.replace("</body>", ""), "p.xlf, line 11: not well-formed XML (mismatched tag)"),
        ("p.xlf", PAGE.replace("</source>", "&", 1), "p.xlf, line 4, unit a.html/1: not well-formed XML"),
        ("p.tmx", MEMORY.replace("</seg>", "&", 1), "p.tmx, line 2, unit a: not well-formed XML"),
        ("p.xlf", "<?xml version='1.0' encoding='bogus'?><xliff/>", "p.xlf: unknown encoding: bogus; save the file as"),
        ("p.xlf", "<html/>", "the root element is html"),
        ("p.xlf", '<xliff version="1.2"/>', "no unit in this file has a translation"),
        ("p.xlf", '<!DOCTYPE x [<!ENTITY a "b">]><xliff version="1.2"/>', "its own entities"),
        ("p.xlf", '<?xml version="1.0" encoding="big5"?><xliff version="1.2"/>', "save the file as UTF-8"),
        ("p.xlf", '<?xml version="1.0" encoding="unicode_escape"?><xliff version="1.2"/>', "save the file as UTF-8"),
        # The time grew with the square of the depth: minutes for 1 MB.
        ("p.xlf", '<xliff version="1.2">' + "\n<g>" * 100_000, "line 201: more than 200 nested elements"),
        ("p.docx", "", "give a file that ends in .xlf"),
        ("t.tsv", 'source\ttarget\nA dog\t"Ein\nHund\n', "t.tsv, line 3: 1 column, and 2 in the header; perhaps"),
        ("t.csv", "source,target\nA dog,Ein Hund\n\nA cat,Eine Katze\n", "line 3: 0 columns, and 2 in the header"),
        ("t.csv", "a,b\n", "line 1: no column source or src"),
        ("t.csv", 'source,target\nYes,Ja\nA dog,"Ein\nNo,Nein\n', "t.csv, line 3: an unbalanced quotation mark"),
        ("t.csv", 'source,target\nYes,Ja\nA dog,"Ein" Hund\nNo,Nein\n', "t.csv, line 3: an unbalanced quotation mark"),
        ("t.csv", "source,target\nYes,Ja\nA dog,E\rn\nNo,Nein\n", "t.csv, line 3: a carriage"),
        ("p.po", 'msgid "a', "p.po, line 1: invalid PO"),
        ("p.po", 'msgid "a "b" c"', "p.po, line 1: invalid PO"),
        ("p.po", '"a"', "p.po, line 1: invalid PO"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    refused(re.escape(message), _read, tmp_path, name, content)
    refused("no such file", read_document, tmp_path / "none.xlf")


_TEXTS = st.text("ab <&😀\n", max_size=5)


@given(st.lists(st.tuples(_TEXTS, st.sampled_from(["<bx/>", "<g>", "</g>", "<!--c-->", ""]))), st.data())
def test_marks_stand_round_the_words(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    raw = ""
    for text, tag in parts:
        raw += text.replace("&", "&amp;").replace("<", "&lt;")
        raw += tag if tag != "</g>" or raw.count("<g>") > raw.count("</g>") else ""
    raw += "</g>" * (raw.count("<g>") - raw.count("</g>"))
    length = len("".join(text for text, _ in parts).strip())
    if not length:
        return
    start = data.draw(st.integers(0, length - 1))
    end = data.draw(st.integers(start + 1, length))
    with tempfile.TemporaryDirectory() as folder:
        document = _read(Path(folder), "m.tmx", MEMORY.replace("The house", raw))
        source = document.units[0].segment.source
        assert source == "".join(text for text, _ in parts).strip()
        span = ErrorSpan(start, end, "minor", side="source")
        tree = ElementTree.fromstring(_mark(document, Path(folder, "o.tmx"), Annotation([span])))
        assert "".join("".join(mark.itertext()) for mark in tree.iter("hi")) == source[start:end]
        clean = _mark(read_document(Path(folder, "o.tmx")), Path(folder, "c.tmx"))
        assert clean == document.path.read_bytes()


@pytest.mark.parametrize(
    ("name", "content"),
    [*XML[:2], ("t.csv", "source,target\nYes,Ja\n"), ("p.po", 'msgid "Yes"\nmsgstr "Ja"\n')],
)
def test_what_a_model_wrote_stays_harmless(tmp_path: Path, name: str, content: str) -> None:
    """Markup, control characters and line ends in a correction and its reason."""
    document = _read(tmp_path, name, content)
    span = ErrorSpan(0, 1, "major", correction='<b>"&\x00\x1b[31m\n', reason="=cmd|'x'\r\n-->", agreement=0.5)
    annotations = [*[Annotation()] * (len(document.units) - 1), Annotation([span])]
    marked = _mark(document, tmp_path / f"o{name}", *annotations).decode()
    assert read_document(tmp_path / f"o{name}").units == document.units
    if name == "t.csv":
        assert {"correction", "reason", "agreement"} <= set(json.loads(next(csv.reader([marked.split("\n")[1]]))[3])[0])
    else:
        elements = [] if name == "p.po" else ElementTree.fromstring(marked).iter()
        comments = [value for one in elements for value in one.attrib.values()] or marked.split("\n")
        (comment,) = (re.sub(" +", " ", one) for one in comments if "mbr-esd: " in one or " -> " in one)
        assert comment.endswith(""" -> "<b>"&\u2400\u241b[31m " (=cmd|'x' -->)""")


def test_checks_have_types_of_its() -> None:
    issues = {"check/number": "numbers", "check/repetition": "duplication", "check/url": "other"}
    assert {category: issue_type(ErrorSpan(0, 1, "major", category)) for category in issues} == issues


def test_most_sources_that_are_keys_are_a_data_warning(tmp_path: Path) -> None:
    """Their texts stand in another file. A file of texts may have some that look like keys."""
    warning = "a key in place of its source"
    for keys in (["menu.file.open", "menu.file.close"], ["MENU_OPEN", "btn-save", "menuClose", "A text."], ["a:b/c"]):
        content = "".join(f'msgid "{key}"\nmsgstr "Datei {number}"\n\n' for number, key in enumerate(keys))
        document = _read(tmp_path, "k.po", content)
        errors = [
            data_warning(one.source, one.translation, [], one.known.source_is_key)
            for one in (unit.segment for unit in document.units)
        ]
        assert errors == [None if " " in key else warning for key in keys]
        assert "most sources are keys" in document.notes[0]
    table = "source,target\nREADME.md,README.md\nSign-in,Sign-in\nand/or,und/oder\ne-mail,E-Mail\nOpen,Öffnen\n"
    for content in (table, table + "menu.open,Ein Menü\n", "source,target\nGitHub,GitHub\n"):
        document = _read(tmp_path, "t.csv", content)
        assert not any(unit.segment.known.source_is_key for unit in document.units)
        assert not document.notes
