"""Files with keys, one of each format: which texts are paired, and which keys are missing or obsolete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.document import Selection
from mbr_esd_metric.adapters.documents.reading import read_document
from tests.helpers.refused import refused

FILES = Path(__file__).parents[3] / "data" / "strings"

_Expected = tuple[tuple[str, str], list[tuple[int, str, str, str]], dict[str, tuple[int, int]], str]
#: Source and translation -> languages; (line, key, source, translation) of the units; the missing and the obsolete.
PAIRS: dict[tuple[str, str], _Expected] = {
    ("values/strings.xml", "values-de/strings.xml"): (
        ("en", "de"),
        [
            (3, "empty_list", "Nothing here yet. Don't worry,\n add your first harbour!",
             "Noch nichts da. Keine Sorge,\nfüge den ersten Hafen hinzu!"),
            (4, "welcome", "Welcome back, %1$s!", "Willkommen zurück, %1$s!"),
            (5, "quoted", "two blanks stay", "zwei Leerzeichen"),
            (6, "terms", "Read our <a href=https://example.org>terms</a> & go",
             "Lies unsere <a href=https://example.org>Bedingungen</a> & los"),
            (8, "tides[one]", "%d tide", "%d Tide"),
            (9, "tides[other]", "%d tides", "%d Tiden"),
            (12, "days[0]", "Monday", "Montag"),
            (13, "days[1]", "Tuesday", "Mittwoch"),
        ],
        {"removed_soon": (13, 19)},
        "old_key",
    ),
    ("locales/en.json", "locales/de.json"): (
        ("en", "de"),
        [
            (3, "home.title", "Harbours near you", "Häfen in deiner Nähe"),
            (4, "home.days[0]", "Monday", "Montag"),
            (4, "home.days[1]", "Tuesday", "Mittwoch"),
            (6, "item_one", "{{count}} boat", "{{count}} Boot"),
            (7, "item_other", "{{count}} boats", "{{count}} Boote"),
        ],
        {"logout": (8, 6), "quote": (8, 0)},
        "gone",
    ),
    ("app_en.arb", "app_de.arb"): (
        ("en", "de_AT"),
        [
            (3, "greeting", "Hello {name}", "Hallo {name}"),
            (4, "boats", "{count, plural, one{{count} boat} other{{count} boats}}",
             "{count, plural, one{{count} Boot} other{{count} Boote}}"),
        ],
        {},
        "",
    ),
    ("config/en.yml", "config/de.yml"): (
        ("en", "de"),
        [
            (4, "hello", "Hello, %{name}!", "Hallo, %{name}!"),
            (5, "no", "No boats", "Keine Boote"),
            (6, "help", "Two lines\nof help.", "Zwei Zeilen Hilfe."),
            (10, "boats.one", "1 boat", "1 Boot"),
            (11, "boats.other", "%{count} boats", "%{count} Boote"),
            (16, "list[0]", "First", "Erstens"),
            (18, "default.save", "Save", "Speichern"),
            (18, "more.save", "Save", "Speichern"),
            (21, "more.answer", "Yes", "Ja"),
        ],
        {"list[1]": (16, 15)},
        "",
    ),
    ("messages.properties", "messages_de.properties"): (
        ("", "de"),
        [
            (2, "greeting", "Hello, {0}!", "Schön, {0}!"),
            (3, "long", "one two", "eins zwei"),
            (5, "new key", "café", "Kaffee"),
        ],
        {},
        "",
    ),
    ("en.lproj/Localizable.strings", "de.lproj/Localizable.strings"): (
        ("en", "de"),
        [
            (1, "harbours.title", "Harbours", "Häfen"),
            (2, "greeting", 'Hello "%@",\nwelcome!', 'Hallo "%@",\nwillkommen!'),
            (2, "late", "You are %d minutes late", "Du bist %d Minuten zu spät"),
        ],
        {"CFBundleName": (2, 5)},
        "",
    ),
    ("Strings.resx", "Strings.de.resx"): (("", "de"), [(2, "Save", "Save & close", "Speichern & schließen")], {}, ""),
    ("film.en.srt", "film.de.srt"): (
        ("en", "de"),
        [
            (2, "00:00:01.000", "Where is the harbour?", "Wo ist der Hafen?"),
            (6, "00:00:07.000", "Thanks.", "Danke."),
        ],
        {"00:00:04.000": (2, 6)},
        "",
    ),
    # The times differ, so that the cues are paired by number.
    ("film.en.vtt", "film.de.vtt"): (
        ("en", "de"),
        [(3, "1", "Where is the harbour? & you", "Wo ist der Hafen?"), (6, "2", "Behind you.", "Hinter dir.")],
        {},
        "",
    ),
    # Forms that the source lacks belong to its form for other counts.
    ("en.po", "pl.po"): (
        ("en", "pl"),
        [
            (8, "menu|boats[one]", "%d boat", "%d łódź"),
            (8, "menu|boats[1]", "%d boats", "%d łodzie"),
            (8, "menu|boats[other]", "%d boats", "%d łodzi"),
        ],
        {},
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("files", PAIRS, ids=lambda files: files[1])
def test_texts_are_paired_by_key(files: tuple[str, str]) -> None:
    languages, units, missing, obsolete = PAIRS[files]
    document = read_document(FILES / files[1], source=FILES / files[0])
    assert [(one.line, one.key, one.segment.source, one.segment.translation) for one in document.units] == units
    known = [one.segment.known for one in document.units]
    assert {(one.source_language or "", one.target_language or "") for one in known} == {languages}
    assert {one.key: (one.line, one.source_line) for one in document.missing} == missing
    assert " ".join(document.obsolete) == obsolete


@pytest.mark.parametrize(
    ("source", "target", "forms"),
    [
        ("values/strings.xml", "values-pl/strings.xml", ["%d tide", "%d tides", "%d tides", "%d tides"]),
        ("locales/en.json", "locales/pl.json", ["{{count}} boat", *["{{count}} boats"] * 3]),
    ],
)
def test_plural_forms_belong_to_one_or_other(source: str, target: str, forms: list[str]) -> None:
    """None of them is obsolete, though the source has two."""
    document = read_document(FILES / target, source=FILES / source)
    assert [one.segment.source for one in document.units] == forms
    assert document.obsolete == ()


def test_plural_forms_know_their_numbers(tmp_path: Path) -> None:
    """One for 1 alone may leave the number out; one for 21 as well belongs to the source with the number."""
    (tmp_path / "en.json").write_text(
        '{"n_one": "a boat", "n_other": "{{count}} boats", "m": "more"}', encoding="utf-8"
    )
    texts = {"de": ["ein Boot", "{{count}} Boote"], "ru": ["{{count}} лодка", "{{count}} лодки"], "xx": ["a", "b"]}
    found = {}
    for language, (one, other) in texts.items():
        path = tmp_path / f"{language}.json"
        path.write_text(json.dumps({"n_one": one, "n_other": other, "m": one}), encoding="utf-8")
        units = read_document(path, source=tmp_path / "en.json").units
        found[language] = [(unit.segment.source, sorted(unit.segment.known.numbers or ())[:3]) for unit in units]
    assert found == {
        "de": [("a boat", [1]), ("{{count}} boats", [0, 2, 3]), ("more", [])],
        "ru": [("{{count}} boats", [1, 21, 31]), ("{{count}} boats", []), ("more", [])],
        "xx": [("a boat", [1]), ("{{count}} boats", []), ("more", [])],
    }


def test_a_catalogue_has_all_languages() -> None:
    path = FILES / "Localizable.xcstrings"
    document = read_document(path, Selection(lp="en-de"))
    assert [(one.line, one.key, one.segment.source, one.segment.translation) for one in document.units] == [
        (7, "Add harbour", "Add harbour", "Hafen hinzufügen"),
        (18, "boats[one]", "%lld boat", "%lld Boot"),
        (19, "boats[other]", "%lld boats", "%lld Boote"),
    ]
    assert document.unready == {"Old": 'extractionState="stale"'}
    assert [one.key for one in document.missing] == ["Share"]
    refused("translations into de, fr; choose a language, such as --lp en-de", read_document, path)
    refused("no translation into ja; the file's languages are de, fr", read_document, path, Selection(lp="en-ja"))
    refused("the source language is en, not pl", read_document, path, Selection(lp="pl-de"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("de.json", '{\n"a": "b",\n}', "de.json, line 3: not JSON"),
        ("de.json", "[" * 100_000, "not JSON|nested too deeply"),
        ("de.yml", "a: b\nc: [d\n", "de.yml, line [23]: invalid YAML"),
        ("de.yml", "a: b\n---\nc: d\n", "de.yml, line 2: invalid YAML"),
        ("de.properties", "a=b\nc=\\u12\n", r"de.properties, line 2: .*four hexadecimal"),
        ("strings.xml", "<resources>\n<string name='a'>b</resources>", "strings.xml, line 2, unit a: not well-formed"),
        ("strings.xml", "<html/>", "the root element is html; give a file whose root element is resources"),
        ("de.strings", '"a" = "b";\n"c" = "d\n', 'de.strings, line 2: not an entry such as "key" = "text"'),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    refused(message, read_document, path, source=path)


def test_a_file_with_keys_needs_its_source() -> None:
    message = "has texts in one language; give its source file too: -s SOURCE.json -t"
    refused(message, read_document, FILES / "locales" / "de.json")
