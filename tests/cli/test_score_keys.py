"""`mbr-esd score` of files with keys, and of several files in one run, over stored candidates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.keys import BILINGUAL
from mbr_esd_metric.adapters.documents.reading import _READERS
from tests.cli.test_score_documents import store
from tests.helpers.command import Command

MODEL = "mbr-esd-demo?candidates=candidates.jsonl&n=1"


@pytest.fixture(autouse=True)
def locales(workdir: Path) -> None:
    texts = {
        "en.json": {"a": "The bank closed.", "b": "He left.", "c": "Stop"},
        "de.json": {"a": "Das Ufer schloss.", "b": "Er ging."},
        "fr.json": {"a": "La banque a fermé.", "d": "Fin"},
    }
    for name, content in texts.items():
        Path(name).write_text(json.dumps(content, indent=2), encoding="utf-8")
    store(
        ("The bank closed.", "Das Ufer schloss.", "Ufer"),
        ("He left.", "Er ging.", None),
        ("The bank closed.", "La banque a fermé.", None),
    )


def test_each_file_is_read_by_key(mbr_esd: Command) -> None:
    result = mbr_esd("score -s en.json -t de.json fr.json --to_json o.json --to_csv e.csv --quiet --model", MODEL)
    assert result.out.splitlines() == [
        "de.json\tSegment a\tscore: 0.8000",
        "de.json\tSegment b\tscore: 1.0000",
        "fr.json\tSegment a\tscore: 1.0000",
        "de.json\tscore: 0.9000",
        "fr.json\tscore: 1.0000",
        "Predictions saved in: o.json.",
    ]
    assert "note: de.json: 1 key of en.json missing: c (line 4)\n" in result.err
    assert "note: fr.json: 2 keys of en.json missing: b (line 3), c (line 4)\n" in result.err
    assert "note: fr.json: 1 key obsolete: d\n" in result.err
    written = json.loads(Path("o.json").read_text(encoding="utf-8"))
    assert {path: [row["id"] for row in rows] for path, rows in written.items()} == {
        "de.json": ["a", "b"],
        "fr.json": ["a"],
    }
    assert Path("e.csv").read_text(encoding="utf-8").splitlines()[1].startswith("de.json,a,major")


def test_several_files_are_marked_in_a_folder(mbr_esd: Command) -> None:
    """Files of one name keep the folders that tell them apart."""
    for language, text in (("de", "Das Ufer schloss."), ("fr", "La banque a fermé.")):
        Path(language).mkdir()
        po = f'msgid ""\nmsgstr "Language: {language}\\n"\n\nmsgid "The bank closed."\nmsgstr "{text}"\n'
        Path(language, "app.po").write_text(po, encoding="utf-8")
    message = mbr_esd("score de/app.po fr/app.po -o marked --model", MODEL, status=1).err
    assert "-o marked: 2 files need a folder; write -o marked/" in message
    result = mbr_esd(
        "score de/app.po fr/app.po -o marked/ --only_system --quiet --model", f"{MODEL}&lp=en-de", status=1
    )
    assert "fr/app.po: unit 1 is ?-fr, not en-de" in result.err
    Path("fr/app.po").write_text(Path("fr/app.po").read_text(encoding="utf-8").replace("Language: fr", ""), "utf-8")
    result = mbr_esd("score de/app.po fr/app.po -o marked/ --only_system --quiet --model", f"{MODEL}&lp=en-de")
    assert result.out.splitlines()[-1] == "marked/: 1 error marked"
    assert "# mbr-esd: major" in Path("marked/de/app.po").read_text(encoding="utf-8")
    assert "# mbr-esd: major" not in Path("marked/fr/app.po").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-s en.json -t de.json -o o.json", "-o o.json: .json files do not support comments; use --to_csv"),
        ("-s en.json -t de.txt", "en.json and de.txt: use files of one kind; key-value files are aligned by key"),
        ("-s en.json -t de.json de.json", "-t de.json is given twice"),
        ("de.json", "de.json has texts in one language; give its source file too: -s SOURCE.json -t de.json"),
        ("-s en.json -t de.json --lp en-fr", "unit a is en-de, not en-fr"),
        ("-s en.json -t de.json --documents d.txt", "--documents d.txt"),
        ("-s a.csv -t b.csv", "b.csv: .csv files contain sources and translations; use mbr-esd score b.csv"),
        ("-s a.txt -t b.xlf", "b.xlf: .xlf files contain sources and translations; use mbr-esd score b.xlf"),
        ("-s a.stringsdict -t b.stringsdict", "b.stringsdict: this format is not supported; convert the file to XLIFF"),
        ("-s a.txt -t qt.ts", "qt.ts: this format is not supported"),
        ("-s a.en -t a.ts", "a.ts has 2 lines and a.en has 1"),  # plain text in Tsonga
    ],
)
def test_what_cannot_be_done(mbr_esd: Command, words: str, message: str) -> None:
    Path("qt.ts").write_text('<?xml version="1.0"?>\n<TS/>', encoding="utf-8")
    Path("a.ts").write_text("Ndzi nkhensile.\nIna.", encoding="utf-8")
    Path("a.en").write_text("Thank you.", encoding="utf-8")
    assert message in mbr_esd("score", words, "--model", MODEL, status=1).err


def test_formats_with_sources_and_translations_are_listed_once() -> None:
    assert tuple(_READERS) == BILINGUAL


PO = 'msgid ""\nmsgstr "Language: {}\\n"\n\nmsgid "He left."\nmsgstr "{}"\n\nmsgid "Stop"\nmsgstr ""\n'
XLIFF = """<xliff version="1.2"><file original="o" source-language="en" target-language="de"><body>
<trans-unit id="a"><source>He left.</source><target>{}</target></trans-unit>
<trans-unit id="b"><source>Stop</source></trans-unit>
<trans-unit id="c" translate="no"><source>OK</source></trans-unit></body></file></xliff>
"""


@pytest.mark.parametrize(
    ("files", "content", "empty"),
    [
        ("-s en.json -t de.json", "{}", ["a", "b", "c"]),
        ("-s en.json -t de.json", '{"a": {"x": "y"}, "b": "", "c": " "}', ["a", "b", "c"]),
        ("de.po", PO.format("de", ""), ["1", "2"]),
        ("de.xlf", XLIFF.format(""), ["o/a", "o/b"]),
        ("de.csv", "source,target,lp\nHe left.,,en-de\nStop,,en-de\n", ["1", "2"]),
        ("de.po", PO.format("de", "Er ging."), ["2"]),
        ("de.xlf", XLIFF.format("Er ging."), ["o/b"]),
        ("-s en.json -t de.json", '{"b": "Er ging.", "c": ""}', ["a", "c"]),
    ],
)
def test_strings_without_a_translation(mbr_esd: Command, files: str, content: str, empty: list[str]) -> None:
    """They are warnings in every kind of file; a file without any translation fails a gate."""
    file, untranslated = files.split()[-1], "ging" not in content
    Path(file).write_text(content, encoding="utf-8")
    outputs = "--sarif o.sarif --summary s.md --junit j.xml --only_system"
    result = mbr_esd("score", files, "--fail-on major", outputs, "--model", MODEL, status=3 if untranslated else 0)
    assert [all(f"{one} (line" in result.err for one in empty), "scores" in Path("s.md").read_text()] == [True, True]
    [run] = json.loads(Path("o.sarif").read_text(encoding="utf-8"))["runs"]
    found = [(one["ruleId"], one["properties"]["key"]) for one in run["results"]]
    assert sorted(found) == [("missing-key", one) for one in empty]
    assert [f"| `{one}` |" in " ".join(Path("s.md").read_text().split()) for one in empty] == [True] * len(empty)
    failed = f"gate failed: {file}: no unit has a translation"
    assert [failed in result.err, failed[13:] in Path("j.xml").read_text()] == [untranslated] * 2
    # What was missing before is not a change.
    Path("old").mkdir()
    for name in {file, "en.json"}:
        Path("old", name).write_text(Path(name).read_text(encoding="utf-8"), encoding="utf-8")
    options = "--changed-from old --fail-on major --sarif o.sarif --model"
    assert "no unit" in mbr_esd("score", files, options, MODEL).out
    assert json.loads(Path("o.sarif").read_text(encoding="utf-8"))["runs"][0]["results"] == []


def test_a_file_that_was_empty_before_fails_no_gate(mbr_esd: Command) -> None:
    """A new string of the source is reported as missing; a file that is new and empty fails."""
    Path("old").mkdir()
    Path("old", "en.json").write_text('{"a": "Go"}', encoding="utf-8")
    Path("en.json").write_text('{"a": "Go", "b": "Stop"}', encoding="utf-8")
    Path("de.json").write_text("{}", encoding="utf-8")
    line = "score -s en.json -t de.json --changed-from old --fail-on major --model"
    Path("old", "de.json").touch()
    assert "gate failed: de.json" in mbr_esd(line, MODEL, status=3).err
    Path("old", "de.json").write_text("{}", encoding="utf-8")
    result = mbr_esd(line, MODEL)
    assert "b (line" in result.err
    assert "gate passed: de.json" in result.err


def test_versions_of_po_with_other_numbers(mbr_esd: Command) -> None:
    """A message before others changes their numbers, and not what they are compared by. English needs no English."""
    Path("old.po").write_text(PO.format("de", "Er ging."), encoding="utf-8")
    new = PO.format("de", "Er ging.").replace('msgid "He', 'msgid "Go"\nmsgstr ""\n\nmsgid "He')
    Path("de.po").write_text(new, encoding="utf-8")
    result = mbr_esd("score de.po --changed-from old.po --fail-on major --model", MODEL)
    assert "note: de.po: 1 unit without a translation: 1 (line 4)\n" in result.err
    Path("old.po").write_text("", encoding="utf-8")
    Path("en.po").write_text(PO.format("en", ""), encoding="utf-8")
    result = mbr_esd("score en.po --changed-from old.po --fail-on major --model", MODEL)
    assert "gate passed: en.po: no unit has a translation" in result.err


def test_a_review_of_what_changed(mbr_esd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """SARIF and annotations have the errors and missing keys with file and line, the summary each changed string."""
    Path("old").mkdir()
    for name, content in {"de.json": '{"b": "Er ging."}', "fr.json": '{"a": "La banque a fermé."}'}.items():
        Path("old", name).write_text(content, encoding="utf-8")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    options = "--changed-from old --sarif o.sarif --summary s.md --fail-on major --only_system --quiet"
    result = mbr_esd("score -s en.json -t de.json fr.json", options, "--model", MODEL, status=3)
    assert [line for line in result.err.splitlines() if line.startswith("::")] == [
        '::error file=de.json,line=2,col=13,endColumn=17::major, accuracy/mistranslation: "Ufer" [a]'
    ]
    [run] = json.loads(Path("o.sarif").read_text(encoding="utf-8"))["runs"]
    assert [one["properties"]["key"] for one in run["results"]] == ["a"]
    summary = Path("s.md").read_text(encoding="utf-8")
    assert "changed strings" in summary
    assert "| `a` | 2 | `The bank closed.` | `Das Ufer schloss.` | 0.8000 |" in " ".join(summary.split())
    # Against nothing, all is new.
    for one in Path("old").iterdir():
        one.write_text("", encoding="utf-8")
    result = mbr_esd("score -s en.json -t de.json fr.json", options, "--model", MODEL, status=3)
    assert [line for line in result.err.splitlines() if line.startswith("::w")] == [
        "::warning file=de.json,line=3::missing-key: c (line 4 of en.json) has no translation",
        "::warning file=fr.json,line=2::missing-key: b (line 3 of en.json) has no translation",
        "::warning file=fr.json,line=2::missing-key: c (line 4 of en.json) has no translation",
    ]
    assert "| `de.json` | `c` | 3 | missing |" in " ".join(Path("s.md").read_text(encoding="utf-8").split())


def test_one_of_several_files_may_have_nothing_to_judge(mbr_esd: Command) -> None:
    """Wildcards match a language that has only been begun, and the source file."""
    for language, flag in (("de", ""), ("fr", "#, fuzzy\n")):
        header = f'msgid ""\nmsgstr "Language: {language}\\nX-Source-Language: en\\n"\n\n'
        po = f'{header}{flag}msgid "He left."\nmsgstr "Er ging."\n'
        Path(f"{language}.po").write_text(po, encoding="utf-8")
    options = "--fail-under .9 --only_system --quiet --model"
    result = mbr_esd("score de.po fr.po", options, MODEL)
    assert result.out == "fr.po: no unit has a translation, so there is nothing to score\nde.po\tscore: 1.0000\n"
    assert (
        "no unit in this file has a translation that is ready (fuzzy; --all)"
        in mbr_esd("score fr.po", options, MODEL, status=1).err
    )
    assert mbr_esd("score -s en.json -t en.json de.json", options, MODEL, status=0).out.startswith("de.json\tscore")
    assert "-t en.json is the source file" in mbr_esd("score -s en.json -t en.json", options, MODEL, status=1).err


def test_each_file_has_its_languages(mbr_esd: Command) -> None:
    """A prompt names them. English is the source where nothing says more."""
    Path("source.json").write_text(Path("en.json").read_text(encoding="utf-8"), encoding="utf-8")
    result = mbr_esd("score -s source.json -t de.json --only_system --model", MODEL)
    assert "note: de.json does not specify its source language; assuming en (override with --lp)" in result.err
    Path("de.json").rename("translation.json")
    message = mbr_esd("score -s source.json -t translation.json --model", MODEL, status=1).err
    assert "translation.json does not specify the languages of all units; specify them with --lp" in message


def test_what_is_missing_is_said_to_be(mbr_esd: Command) -> None:
    """A lost placeholder or tag stands in no translation: in the gate, the summary and comments."""
    for folder, text in (("values", "Press <b>OK</b>, %1$s"), ("values-de", "Drücken Sie OK")):
        Path(folder).mkdir()
        Path(folder, "strings.xml").write_text(f'<resources>\n<string name="a">{text}</string>\n</resources>', "utf-8")
    options = "--fail-on major --summary s.md -o o.xml --only_system --quiet --model mbr-esd-checks"
    result = mbr_esd("score -s values/strings.xml -t values-de/strings.xml", options, status=3)
    assert 'line 2 (major missing from the translation: "<b>", check/tag, major missing from' in result.err
    summary, marked = Path("s.md").read_text(encoding="utf-8"), Path("o.xml").read_text(encoding="utf-8")
    assert "missing from the translation: `%1$s` |" in " ".join(summary.split())
    assert '<!-- mbr-esd: major, check/tag, confidence 1.00: missing from the translation: "</b>" -->' in marked


@pytest.mark.parametrize(
    ("source", "translation", "texts", "found"),
    [
        ("Press <b>OK</b>", "<b>OK</b>", ("Press <b>OK</b>", "<b>OK</b>"), []),
        (
            'See <a href="https://a.org/x">this\\n</a>',
            '<a href="https://b.org/x">Das</a>',
            ('See <a href="https://a.org/x">this\n</a>', '<a href="https://b.org/x">Das</a>'),
            ["https://b.org/x"],
        ),
        ("<xliff:g id='n'>%d</xliff:g> <!-- <b> --> x", "%d x", ("%d x", "%d x"), []),
        ("A \\&lt;i&gt; <i>  \\'b\\'</i><br/>", "<i>B</i>", ("A <i> <i> 'b'</i><br/>", "<i>B</i>"), None),
    ],
)
def test_tags_of_android(
    mbr_esd: Command, source: str, translation: str, texts: tuple[str, str], found: list[str] | None
) -> None:
    """They are part of the text, as in CDATA, and words have their places in the file."""
    head = '<resources xmlns:xliff="urn:x">\n'
    for folder, text in (("values", source), ("values-de", translation)):
        Path(folder).mkdir()
        Path(folder, "strings.xml").write_text(f'{head}<string name="a">{text}</string>\n</resources>', "utf-16")
    mbr_esd(
        "score -s values/strings.xml -t values-de/strings.xml --model mbr-esd-checks --to_json o.json --sarif o.sarif"
    )
    [row] = json.loads(Path("o.json").read_text(encoding="utf-8"))["values-de/strings.xml"]
    assert (row["src"], row["mt"]) == texts
    if found is not None:
        assert [one["text"] for one in row["errors"]] == found
        [run] = json.loads(Path("o.sarif").read_text(encoding="utf-8"))["runs"]
        line = f'<string name="a">{translation}</string>'
        places = [one["locations"][0]["physicalLocation"]["region"] for one in run["results"]]
        assert [line[one["startColumn"] - 1 : one["endColumn"] - 1] for one in places] == found
