"""PO: what is read from it, which plural form belongs to which source, and the same bytes with comments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents import Checked, read_document
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from tests.adapters.test_documents import _mark, _read
from tests.helpers.refused import refused

PO = """# A comment.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: de\\n"

# Seen by somebody.
#: file.c:1
msgctxt "menu"
msgid "Open the file"
msgstr "Öffne das Feuer"

msgid "Close"
msgstr ""
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_byte_of_po_but_the_comments_stays(tmp_path: Path, ending: str) -> None:
    """Long lines, no comment, a fuzzy and an obsolete message, plurals, a line too many at the end."""
    odd = PO + (
        'msgid "' + "a word " * 20 + '"\nmsgstr "' + "ein Wort " * 20 + '"\n\n'
        '#, c-format\nmsgctxt "many"\nmsgid "%d dog"\nmsgid_plural ""\n"%d dogs"\n'
        'msgstr[0] "%d Hund"\nmsgstr[1] "%d Hunde"\n\n'
        '#, fuzzy\nmsgctxt "old"\nmsgid "Cat"\nmsgstr "Hund"\n\n'
        '#~ msgid "old"\n#~ msgstr "alt"\n\n\n'
    )
    path = tmp_path / "d.po"
    path.write_bytes(b"\xef\xbb\xbf" + odd.replace("\n", ending).encode())
    document = read_document(path)
    assert (document.empty, document.unready) == (("2",), {"old": "fuzzy"})
    assert "old" in [unit.id for unit in read_document(path, every=True).units]
    assert [(unit.id, unit.source, unit.translation) for unit in document.units[2:]] == [
        ("many[0]", "%d dog", "%d Hund"),
        ("many[1]", "%d dogs", "%d Hunde"),
    ]
    assert _mark(document, tmp_path / "o.po") == path.read_bytes()
    marked = _mark(document, tmp_path / "o.po", umenu="Feuer", umany0="Hund", umany1="e", u3="ein")
    lines = marked.split(ending.encode())
    ours = [line for line in lines if line.startswith(b"# mbr-esd: ")]
    assert [line for line in lines if line not in ours] == path.read_bytes().split(ending.encode())
    assert lines[lines.index(ours[3]) + 1] == b"#, c-format"
    again = read_document(tmp_path / "o.po")
    assert again.units == document.units
    assert _mark(again, tmp_path / "p.po") == path.read_bytes()
    # Two errors on the same words have one comment, the worse one's.
    twice = Annotation([ErrorSpan(0, 2, severity, side="source") for severity in ("minor", "major")])
    document.mark([*[Checked(Annotation(), 1.0)] * 3, Checked(twice, 0.5)], tmp_path / "p.po")
    assert re.findall(b'# mbr-esd: .*"', (tmp_path / "p.po").read_bytes()) == [b'# mbr-esd: [1] major: "%d"']
    # A form that is not judged keeps its comment, and the other forms lose theirs.
    again.mark([*[Checked(Annotation(), 1.0)] * 3, None], tmp_path / "p.po")
    assert re.findall(b'# mbr-esd: .*e"', (tmp_path / "p.po").read_bytes()) == [
        b'# mbr-esd: [1] major, accuracy/mistranslation: "e"'
    ]


def test_po_in_an_encoding_with_an_n(tmp_path: Path) -> None:
    text = PO.replace("UTF-8", "windows-1252")
    document = _read(tmp_path, "w.po", text, "cp1252")
    assert document.units[0].translation == "Öffne das Feuer"
    comment = '# mbr-esd: major, accuracy/mistranslation: "Öffne"\n'
    marked = _mark(document, tmp_path / "o.po", umenu="Öffne").decode("cp1252")
    assert marked == text.replace("somebody.\n", f"somebody.\n{comment}")
    refused("unknown encoding: bogus; save the file as UTF-8", _read, tmp_path, "b.po", PO.replace("UTF-8", "bogus"))
    refused("p.po, line 11: not UTF-8; is the charset of the header right", _read, tmp_path, "p.po", PO, "latin-1")


def _plurals(rule: str, forms: int) -> str:
    """A message in which each form is its number."""
    header = f'msgid ""\nmsgstr ""\n"Plural-Forms: {rule}\\n"\n\n' if rule else ""
    return f'{header}msgid "one"\nmsgid_plural "many"\n' + "".join(f'msgstr[{n}] "{n}"\n' for n in range(forms))


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
    expected = sources.split()
    document = _read(tmp_path, "p.po", _plurals(rule, len(expected)))
    assert [unit.source for unit in document.units] == expected
    assert [unit.translation for unit in document.units] == [str(form) for form in range(len(expected))]
    assert bool(document.notes) == (not rule or "EXPR" in rule or "/0" in rule)


def test_a_message_of_every_kind_is_read_as_gettext_reads_it(tmp_path: Path) -> None:
    """Contexts that come twice, texts over several lines, escapes, flags, comments of any form, no blank lines."""
    content = (
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
        '#no blank\n#.also none\n#, c-format, fuzzy\n#~ msgid "old"\n#~ msgstr "alt"\n'
        'msgctxt   "menu"\nmsgid "a\\"b\\\\n\\n"\n"c"\nmsgstr "x\\ty"\n'
        'msgctxt "menu"\nmsgid "two"\nmsgstr ""\n"zwei\u2028\x0czwei"\n'
        '#| msgid "before"\n#,fuzzy\nmsgid "three"\nmsgstr "drei"\n'
        'msgid "four"\nmsgstr "vier"'
    )
    document = _read(tmp_path, "p.po", content)
    assert [(unit.id, unit.key, unit.source, unit.translation) for unit in document.units] == [
        ("menu", "menu", 'a"b\\n\nc', "x\ty"),
        ("menu (2)", "menu", "two", "zwei\u2028\x0czwei"),
        ("4", "", "four", "vier"),
    ]
    assert dict(document.unready) == {"3": "fuzzy"}
    marked = _mark(document, tmp_path / "o.po", umenu="x", u4="vier").decode()
    assert re.sub("# mbr-esd: .*\n", "", marked) == content
    for broken in ('msgid "a', 'msgid "a "b" c"', "nonsense", '"a"'):
        refused("p.po, line 1: not PO that can be read", _read, tmp_path, "p.po", broken)
