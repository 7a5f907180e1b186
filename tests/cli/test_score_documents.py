"""`mbr-esd score project.xlf -o checked.xlf` over stored candidates."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main

XLIFF = """<xliff version="1.2"><file source-language="en-GB" target-language="de" original="o"><body>
<trans-unit id="a"><source>The bank closed.</source><target>Das <g id="1">Ufer</g> schloss.</target></trans-unit>
<trans-unit id="b"><source>He left.</source><target>Er ging.</target></trans-unit>
<trans-unit id="c"><source>New</source><target/></trans-unit>
</body></file></xliff>
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the model."""
    monkeypatch.chdir(tmp_path)
    Path("project.xlf").write_text(XLIFF, encoding="utf-8")
    pairs = {"The bank closed.": ("Das Ufer schloss.", "Ufer"), "He left.": ("Er ging.", "")}
    with Path("candidates.jsonl").open("w", encoding="utf-8") as file:
        for source, (translation, words) in pairs.items():
            error = {"error_span": words, "category": "accuracy", "sub_category": "mistranslation", "severity": "major"}
            answer = {"text": json.dumps({"errors": [error] if words else []}), "logprob": -1.0}
            record = {"id": source, "src": source, "mt": translation, "candidates": [answer]}
            file.write(json.dumps(record) + "\n")
    return "mbr-esd-demo?engine=replay&candidates=candidates.jsonl&n=1"


def test_a_file_comes_back_with_its_errors(project: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "project.xlf", "-o", "checked.xlf", "--to_csv", "e.csv", "--model", project]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "project.xlf\tSegment o/a\tscore: 0.8000",
        "project.xlf\tSegment o/b\tscore: 1.0000",
        "project.xlf\tscore: 0.9000",
        "checked.xlf: 1 error marked",
    ]
    assert "note: project.xlf: 1 unit left out (1 without source or translation), such as o/c" in told.err
    said = Path("checked.xlf").read_text(encoding="utf-8")
    assert '<g id="1"><mrk mid="mbr-esd-1" mtype="x-its" its:locQualityIssueType="mistranslation"' in said
    (row,) = csv.DictReader(Path("e.csv").read_text(encoding="utf-8").splitlines())
    assert (row["id"], row["severity"], row["text"], row["start"]) == ("o/a", "major", "Ufer", "4")
    # Scored again, the marked file gives itself.
    assert main(["score", "checked.xlf", "-o", "again.xlf", "--model", project, "--quiet"]) == 0
    assert Path("again.xlf").read_text(encoding="utf-8") == said


def test_no_terminal_obeys_a_units_name(project: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("project.xlf").write_text(XLIFF.replace('id="c"', 'id="&#x9b;31m"'), encoding="utf-8")
    assert main(["score", "project.xlf", "--model", project]) == 0
    assert "such as o/\ufffd31m" in capsys.readouterr().err


def test_languages_and_options_that_do_not_fit(project: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["project.xlf", "--lp", "en-fr"], "unit o/a is en-de, not en-fr"),
        (["project.xlf", "-s", "x", "-t", "y"], "has both texts; leave -s and -t out"),
        (["-s", "x"], "give a source file with -s and translations with -t"),
        (["-s", "x", "-t", "y", "-o", "z"], "-o z changes nothing with plain texts"),
        (["project.xlf", "-o", "project.xlf"], "project.xlf is an input"),
        (["bare.xlf"], "names no one language pair (none); name it with --lp"),
        (["bare.xlf", "--lp", "de-en"], "bare.xlf: unit o/a is en-?, not de-en; give one that fits"),
        (["qq.xlf"], "qq.xlf, unit o/a: language pair 'en-qq': unknown language code 'qq'"),
    ):
        Path("qq.xlf").write_text(XLIFF.replace('"de"', '"qq"'), encoding="utf-8")
        Path("bare.xlf").write_text(XLIFF.replace(' target-language="de"', ""), encoding="utf-8")
        assert main(["score", *words, "--model", project, "--quiet"]) == 1
        assert said in capsys.readouterr().err
    assert main(["score", "bare.xlf", "--lp", "en-de", "--model", project, "--quiet"]) == 0
    # A prompt that names no languages needs none, nor one pair of them.
    Path("prompt.txt").write_text("{source}\n{translation}", encoding="utf-8")
    project += "&prompt=prompt.txt"
    for name in ("bare.xlf", "qq.xlf"):
        assert main(["score", name, "--model", project, "--quiet"]) == 0
    assert main(["score", "bare.xlf", "--lp", "de-en", "--model", project, "--quiet"]) == 1
    assert main(["score", "bare.xlf", "--model", f"{project}+mbr-esd-demo", "--quiet"]) == 1
    assert "names no one language pair (none)" in capsys.readouterr().err


def test_units_that_are_not_ready_are_counted(project: str, capsys: pytest.CaptureFixture[str]) -> None:
    new = XLIFF.replace("<target>Er", '<target state="new">Er')
    Path("project.xlf").write_text(new, encoding="utf-8")
    assert main(["score", "project.xlf", "--model", project, "--only_system"]) == 0
    told = capsys.readouterr()
    assert '2 units left out (1 without source or translation, 1 state="new")' in told.err
    assert told.out == "project.xlf\tscore: 0.8000\n"
    assert main(["score", "project.xlf", "--model", project, "--only_system", "--all"]) == 0
    assert capsys.readouterr().out == "project.xlf\tscore: 0.9000\n"


def test_quoted_tables_and_errors_that_begin_as_formulas(project: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Path("candidates.jsonl").open("a", encoding="utf-8") as file:
        error = {"error_span": "=1+1", "category": "style", "sub_category": "awkward", "severity": "minor"}
        for translation in ('=1+1 "Ja', '"=1+1 "Ja"'):
            answer = {"text": json.dumps({"errors": [error]}), "logprob": -1.0}
            file.write(json.dumps({"id": translation, "src": "Yes", "mt": translation, "candidates": [answer]}) + "\n")
    for cell, whole, span in (('"=1+1 "Ja"', '"=1+1 "Ja"', "1"), ('"=1+1 ""Ja"', "'=1+1 \"Ja", "0")):
        Path("t.tsv").write_text(f"source\ttarget\tlp\nYes\t{cell}\ten-de\n", encoding="utf-8")
        assert main(["score", "t.tsv", "--to_csv", "e.csv", "--model", project, "--quiet"]) == 0
        (row,) = csv.DictReader(Path("e.csv").read_text(encoding="utf-8").splitlines())
        assert (row["translation"], row["text"], row["start"]) == (whole, "'=1+1", span)
