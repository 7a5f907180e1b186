"""`mbr-esd score project.xlf -o checked.xlf` over stored candidates."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.documents import read_document
from mbr_esd_metric.cli.score_inputs import Texts
from mbr_esd_metric.cli.score_outputs import write_errors_of
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command

XLIFF = """<xliff version="1.2"><file source-language="en-GB" target-language="de" original="o"><body>
<trans-unit id="a"><source>The bank closed.</source><target>Das <g id="1">Ufer</g> schloss.</target></trans-unit>
<trans-unit id="b"><source>He left.</source><target>Er ging.</target></trans-unit>
<trans-unit id="c"><source>New</source><target/></trans-unit>
</body></file></xliff>
"""
PAIRS = [("The bank closed.", "Das Ufer schloss.", ["Ufer"]), ("He left.", "Er ging.", [])]


@pytest.fixture
def project(workdir: Path) -> str:
    """Returns the model."""
    Path("project.xlf").write_text(XLIFF, encoding="utf-8")
    write_records("candidates.jsonl", [record(source, mt, answer(*words)) for source, mt, words in PAIRS])
    return "mbr-esd-demo?candidates=candidates.jsonl&n=1"


def test_a_file_comes_back_with_its_errors(project: str, mbr_esd: Command) -> None:
    result = mbr_esd("score project.xlf -o checked.xlf --to_csv e.csv --model", project)
    assert result.out.splitlines() == [
        "project.xlf\tSegment o/a\tscore: 0.8000",
        "project.xlf\tSegment o/b\tscore: 1.0000",
        "project.xlf\tscore: 0.9000",
        "checked.xlf: 1 error marked",
    ]
    assert "note: project.xlf: 1 unit left out (1 without source or translation), such as o/c" in result.err
    checked = Path("checked.xlf").read_text(encoding="utf-8")
    assert '<g id="1"><mrk mid="mbr-esd-1" mtype="x-its" its:locQualityIssueType="mistranslation"' in checked
    (row,) = csv.DictReader(Path("e.csv").read_text(encoding="utf-8").splitlines())
    assert (row["id"], row["severity"], row["text"], row["start"]) == ("o/a", "major", "Ufer", "4")
    # Scored again, the marked file gives itself.
    mbr_esd("score checked.xlf -o again.xlf --model", project, "--quiet")
    assert Path("again.xlf").read_text(encoding="utf-8") == checked


def test_no_terminal_obeys_a_units_name(project: str, mbr_esd: Command) -> None:
    Path("project.xlf").write_text(XLIFF.replace('id="c"', 'id="&#x9b;31m"'), encoding="utf-8")
    assert "such as o/\ufffd31m" in mbr_esd("score project.xlf --model", project).err


def test_languages_without_a_name_or_that_no_prompt_names(project: str, mbr_esd: Command) -> None:
    Path("bare.xlf").write_text(XLIFF.replace(' target-language="de"', ""), encoding="utf-8")
    mbr_esd("score bare.xlf --lp en-de --model", project, "--quiet")
    # A code without a name is in the prompt as it stands; a region tells nothing of the language.
    Path("qq.xlf").write_text(XLIFF.replace('"de"', '"qq"'), encoding="utf-8")
    mbr_esd("score qq.xlf --model", project, "--quiet")
    Path("filipino.xlf").write_text(XLIFF.replace('"de"', '"fil-PH"'), encoding="utf-8")
    mbr_esd("score filipino.xlf --lp en-US-fil --model", project, "--quiet")
    # A prompt that names no languages needs none, nor one pair of them.
    Path("prompt.txt").write_text("{source}\n{translation}", encoding="utf-8")
    for name in ("bare.xlf", "qq.xlf"):
        mbr_esd("score", name, f"--model {project}&prompt=prompt.txt")


def test_units_that_are_not_ready_are_counted(project: str, mbr_esd: Command) -> None:
    Path("project.xlf").write_text(XLIFF.replace("<target>Er", '<target state="new">Er'), encoding="utf-8")
    result = mbr_esd("score project.xlf --model", project, "--only_system")
    assert '2 units left out (1 without source or translation, 1 state="new")' in result.err
    assert result.out == "project.xlf\tscore: 0.8000\n"
    assert mbr_esd("score project.xlf --model", project, "--only_system --all").out == "project.xlf\tscore: 0.9000\n"


def test_quoted_tables_and_errors_that_begin_as_formulas(project: str, mbr_esd: Command) -> None:
    texts = ('=1+1 "Ja', '"=1+1 "Ja"')
    write_records("candidates.jsonl", [record("Yes", text, answer("=1+1")) for text in texts])
    for cell, whole, span in (('"=1+1 "Ja"', '"=1+1 "Ja"', "1"), ('"=1+1 ""Ja"', "'=1+1 \"Ja", "0")):
        Path("t.tsv").write_text(f"source\ttarget\tlp\nYes\t{cell}\ten-de\n", encoding="utf-8")
        mbr_esd("score t.tsv --to_csv e.csv --model", project, "--quiet")
        (row,) = csv.DictReader(Path("e.csv").read_text(encoding="utf-8").splitlines())
        assert (row["translation"], row["text"], row["start"]) == (whole, "'=1+1", span)


def test_a_pair_chooses_among_the_languages_of_a_file(project: str, mbr_esd: Command) -> None:
    """Units in others are left out and counted, and stay as they are."""
    Path("t.csv").write_text("id,source,target,lp\na,Yes,Ja,en-de\nb,Yes,Oui,en-fr\n", encoding="utf-8")
    write_records("candidates.jsonl", [record("Yes", "Ja", answer("Ja")), record("Yes", "Oui", answer())])
    message = mbr_esd("score t.csv --model", project, status=1).err
    assert "names no one language pair (en-de (unit a), en-fr (unit b)); name it with --lp" in message
    result = mbr_esd("score t.csv -o o.csv --lp en-de --only_system --model", project)
    assert "t.csv: 1 unit left out (1 not en-de), such as b" in result.err
    assert Path("o.csv").read_text(encoding="utf-8").splitlines()[2] == "b,Yes,Oui,en-fr,,"
    mbr_esd("score t.csv --lp en-de --only_system --model", f"{project}&lp=en-fr", status=1)


def test_codes_that_are_lost_are_data_warnings(project: str, mbr_esd: Command) -> None:
    Path("project.xlf").write_text(XLIFF.replace('<g id="1">Ufer</g>', "Ufer").replace("bank", '<g id="1">bank</g>'))
    result = mbr_esd("score project.xlf --to_json o.json --model", project)
    assert "1 with other tags (unit o/a of project.xlf)" in result.err
    assert json.loads(Path("o.json").read_text())["project.xlf"][0]["data_warning"] == "with other tags"


CHANGED = {
    "xlf": XLIFF,
    "csv": "id,source,target\na,The bank closed.,Das Ufer schloss.\nb,He left.,Er ging.\n",
    "tsv": "source\ttarget\nThe bank closed.\tDas Ufer schloss.\nHe left.\tEr ging.\n",
    "po": 'msgid "The bank closed."\nmsgstr "Das Ufer schloss."\n\nmsgid "He left."\nmsgstr "Er ging."\n',
    "tmx": '<tmx version="1.4"><header srclang="en"/><body>'
    '<tu><tuv xml:lang="en"><seg>The bank closed.</seg></tuv><tuv xml:lang="de"><seg>Das Ufer schloss.</seg></tuv></tu>'
    '<tu><tuv xml:lang="en"><seg>He left.</seg></tuv><tuv xml:lang="de"><seg>Er ging.</seg></tuv></tu></body></tmx>',
}


@pytest.mark.parametrize("ending", CHANGED)
def test_only_what_changed_is_judged(project: str, mbr_esd: Command, ending: str) -> None:
    """The others keep their marks; nothing that changed passes every gate; an empty old file has nothing."""
    content, file = CHANGED[ending], f"new.{ending}"
    Path("old").write_text(content, encoding="utf-8")
    write_records("candidates.jsonl", [record(source, mt, answer(*words)) for source, mt, words in PAIRS])
    Path(file).write_text(content, encoding="utf-8")
    model = f"--model {project}&lp=en-de"
    mbr_esd(f"score {file} -o marked.{ending}", model, "--quiet")
    whole = Path(f"marked.{ending}").read_text(encoding="utf-8")
    # The first unit has an error, and its mark stays while the second, which is new, is judged alone.
    Path(file).write_text(whole.replace("Er ging.", "Er lief."), encoding="utf-8")
    write_records("candidates.jsonl", [record("He left.", "Er lief.", answer("lief"))])
    score = f"score {file} --changed-from old -o out.{ending} --to_json o.json --fail-under .5 --summary s.md"
    result = mbr_esd(score, model, "--quiet --only_system")
    assert result.out.splitlines()[0] == f"{file}\tscore: 0.8000"
    assert "1 unit left out (1 as in old)" in result.err or "2 units left out (1 without" in result.err
    assert [row["mt"] for row in json.loads(Path("o.json").read_text(encoding="utf-8"))[file]] == ["Er lief."]
    assert "1 of 2 units differs from old" in Path("s.md").read_text(encoding="utf-8")
    marked = Path(f"out.{ending}").read_text(encoding="utf-8")
    before = whole.partition("He left.")[0]
    assert marked.startswith(before.rpartition("\n")[0] or before)
    assert marked != Path(file).read_text(encoding="utf-8")
    # What was marked is no change.
    outputs = f"-o out.{ending} --to_json o.json --to_csv e.csv --summary s.md --junit j.xml"
    result = mbr_esd(f"score marked.{ending} --changed-from old --fail-under 1", outputs, model, "--quiet")
    assert result.out == f"marked.{ending}: no unit differs from old, so nothing is judged\n" + (
        f"Predictions saved in: o.json.\nout.{ending}: 0 errors marked\n"
    )
    assert Path(f"out.{ending}").read_text(encoding="utf-8") == whole
    assert "no unit differs" in Path("j.xml").read_text(encoding="utf-8")
    assert f"✅ marked.{ending}: no unit differs from old" in Path("s.md").read_text(encoding="utf-8")
    Path("empty").touch()
    write_records("candidates.jsonl", [record(source, mt, answer(*words)) for source, mt, words in PAIRS])
    output = mbr_esd(f"score marked.{ending} --changed-from empty", model, "--quiet --only_system").out
    assert output == f"marked.{ending}\tscore: 0.9000\n"


def test_corrections_in_a_summary_a_table_and_a_file(project: str, mbr_esd: Command) -> None:
    """What a model says is no markup there; a correction that deletes is a dash."""
    kind = {"category": "style", "sub_category": "", "severity": "minor"}
    answers = [
        {"error_span": "<b>|`x", **kind, "correction": "", "reason": "![](http://x) |\n- no"},
        {"error_span": "Nein", **kind, "correction": "=Doch", "reason": ""},
    ]
    texts = ["Ja <b>|`x", "Nein"]
    Path("t.csv").write_text("source,target\nYes,Ja <b>|`x\nYes,Nein\n", encoding="utf-8")
    write_records(
        "candidates.jsonl",
        [
            record("Yes", mt, json.dumps({"errors": [one]}), format="json-corrections")
            for mt, one in zip(texts, answers, strict=True)
        ],
    )
    outputs = "--summary s.md --to_csv e.csv -o o.csv --to_json o.json"
    mbr_esd("score t.csv --lp en-de", outputs, "--model", f"{project}&format=json-corrections")
    one, two = (
        line for line in Path("s.md").read_text(encoding="utf-8").splitlines() if line.endswith("|") and "`" in line
    )
    assert [cell.strip() for cell in one.replace(r"\|", "/").strip("|").split("|")] == [
        "`1`", "`<b>/'x`", "`minor`", "`style`", "\N{EM DASH}", "`![](http://x) / - no`",
    ]  # fmt: skip
    assert "`=Doch`" in two
    rows = list(csv.DictReader(Path("e.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["correction"], row["agreement"]) for row in rows] == [("", "1.0"), ("'=Doch", "1.0")]
    assert '""correction"": ""=Doch""' in Path("o.csv").read_text(encoding="utf-8")


def test_a_unit_that_a_server_refused_has_no_score_and_no_errors(workdir: Path) -> None:
    """Not "[]", which says that it has none."""
    Path("t.csv").write_text("source,target\nYes,Ja\nNo,Nein\n", encoding="utf-8")
    document = read_document("t.csv")
    rows: list[dict[str, Any]] = [{"COMET": 1.0, "errors": []}, {"refused": "filtered"}]
    texts = Texts(["Yes", "No"], {"t.csv": ["Ja", "Nein"]}, "12", ["", ""], document)
    assert write_errors_of(texts, {"t.csv": rows}, None, "o.csv") == "o.csv: 0 errors marked"
    assert Path("o.csv").read_text(encoding="utf-8").splitlines()[1:] == ["Yes,Ja,1.0,[]", "No,Nein,,"]
