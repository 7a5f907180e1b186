"""PO: what is read from it, which plural form belongs to which source, and the same bytes with comments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.document import Checked, Selection
from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from tests.adapters.test_documents import FILES, _mark, _read
from tests.helpers.refused import refused


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_byte_of_po_but_the_comments_stays(tmp_path: Path, ending: str) -> None:
    """Messages of every kind: fuzzy, obsolete, several with one context, over several lines, no blank lines between."""
    path = tmp_path / "d.po"
    content = (FILES / "messages.po").read_text(encoding="utf-8")
    path.write_bytes(b"\xef\xbb\xbf" + content.replace("\n", ending).encode())
    document = read_document(path)
    assert [
        (unit.segment.label, unit.key, unit.segment.source, unit.segment.translation) for unit in document.units
    ] == [
        ("menu", "menu", "Open the file", "Öffne das Feuer"),
        ("many[0]", "many", "%d dog", "%d Hund"),
        ("many[1]", "many", "%d dogs", "%d Hunde"),
        ("5", "", ("a word " * 20).strip(), ("ein Wort " * 20).strip()),
        ("menu (2)", "menu", 'a"b\\n\nc', "x\ty"),
        ("8", "", "two", "zwei\u2028\x0czwei"),
    ]
    assert (document.empty, document.unready) == (("2",), {"old": "fuzzy", "7": "fuzzy"})
    assert len(read_document(path, Selection(every=True)).units) == 8
    assert _mark(document, tmp_path / "o.po") == path.read_bytes()
    marked = _mark(document, tmp_path / "o.po", umenu="Feuer", umany0="Hund", umany1="e", u5="ein")
    lines = marked.split(ending.encode())
    ours = [line for line in lines if line.startswith(b"# mbr-esd: ")]
    assert [line for line in lines if line not in ours] == path.read_bytes().split(ending.encode())
    assert lines[lines.index(ours[2]) + 1] == b"#, c-format"
    again = read_document(tmp_path / "o.po")
    assert again.units == document.units
    assert _mark(again, tmp_path / "p.po") == path.read_bytes()
    # Two errors on the same words have one comment, the worse one's; a form that is not judged keeps its own.
    twice = Annotation([ErrorSpan(0, 2, severity, side="source") for severity in ("minor", "major")])
    clean = Checked(Annotation(), 1.0)
    again.mark([clean, Checked(twice, 0.5), None, *[clean] * 3], tmp_path / "p.po")
    comments = [
        '# mbr-esd: [1] major, accuracy/mistranslation: "e"',
        '# mbr-esd: [0] major: missing from the translation: "%d"',
    ]
    assert re.findall('# mbr-esd: .*"', (tmp_path / "p.po").read_text(encoding="utf-8")) == comments


def test_po_in_an_encoding_with_an_n(tmp_path: Path) -> None:
    text = (
        '# Head.\nmsgid ""\nmsgstr "Content-Type: text/plain; charset=windows-1252\\n"\n\nmsgid "Open"\nmsgstr "Öffne"'
    )
    document = _read(tmp_path, "w.po", text, "cp1252")
    comment = '# mbr-esd: major, accuracy/mistranslation: "Öffne"\n'
    marked = _mark(document, tmp_path / "o.po", u1="Öffne").decode("cp1252")
    assert marked == text.replace('\nmsgid "Open', f'\n{comment}msgid "Open')
    bogus, utf_8 = (text.replace("windows-1252", name) for name in ("bogus", "UTF-8"))
    refused("unknown encoding: bogus; save the file as UTF-8", _read, tmp_path, "b.po", bogus)
    refused("p.po, line 6: not UTF-8; is the charset of the header right", _read, tmp_path, "p.po", utf_8, "latin-1")


@pytest.mark.parametrize(
    ("rule", "sources"),
    [
        ("nplurals=1; plural=0;", "many"),
        ("nplurals=2; plural=(n != 1);", "one many"),
        ("nplurals=2; plural=(n == 1);", "many one"),
        ("nplurals=2; plural=(n > 1);", "many many"),  # French: the first form is for 0, too
        ("nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);", "one many many"),
        ("nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);",
         "many one many many many many"),
        ("nplurals=4; plural=(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n > 2 && n < 20) ? 2 : 3;", "many " * 4),
        ("nplurals=3; plural=(n==1 ? 0 : n!=0 && n%1000000==0 ? 1 : 2);", "one many many"),
        ("", "one many"),
        ("nplurals=INTEGER; plural=EXPRESSION;", "one many"),
        ("nplurals=2; plural=n/0;", "one many"),
    ],
)  # fmt: skip
def test_the_plural_rule_says_which_form_is_for_one(tmp_path: Path, rule: str, sources: str) -> None:
    header, expected = f'msgid ""\nmsgstr ""\n"Plural-Forms: {rule}\\n"\n\n' if rule else "", sources.split()
    forms = "".join(f'msgstr[{n}] "{n}"\n' for n in range(len(expected)))
    document = _read(tmp_path, "p.po", f'{header}msgid "one"\nmsgid_plural "many"\n{forms}')
    assert [unit.segment.source for unit in document.units] == expected
    assert [unit.segment.translation for unit in document.units] == [str(form) for form in range(len(expected))]
    assert bool(document.notes) == (not rule or "EXPR" in rule or "/0" in rule)


def test_escapes_by_numbers_are_bytes_of_the_encoding(tmp_path: Path) -> None:
    message = r'msgid "\x41\101\7 \"a\\x41\"\n"' + "\n" + r'msgstr "\303\244\xc3\xB6 \\101 \344"' + "\n"
    (unit,) = _read(tmp_path, "n.po", message).units
    assert (unit.segment.source, unit.segment.translation) == ('AA\x07 "a\\x41"\n', "äö \\101 \ufffd")
    latin = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n' + message
    assert _read(tmp_path, "l.po", latin).units[0].segment.translation[-1] == "ä"
