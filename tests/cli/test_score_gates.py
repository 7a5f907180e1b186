"""Gates of `mbr-esd score`: the mean, single segments and severities; what they say, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command

MODEL = "mbr-esd-demo?candidates=c.jsonl&n=1"
PLAIN = f"score -s src.txt -t mt.txt --quiet --only_system --model {MODEL}"
FILES = Path(__file__).parents[1] / "data" / "ratings"


@pytest.fixture(autouse=True)
def files(workdir: Path) -> None:
    """Forty segments; the third has a minor error, the last one a major and a minor one."""
    marks = {3: (("w3", "minor"),), 40: (("w40", "major"), ("falsch", "minor"))}
    texts = [(f"source {n}", f"falsch w{n}", answer(*marks.get(n, ()))) for n in range(1, 41)]
    write_records("c.jsonl", [record(*one) for one in texts])
    Path("src.txt").write_text("".join(f"{source}\n" for source, _, _ in texts))
    Path("mt.txt").write_text("".join(f"{translation}\n" for _, translation, _ in texts))


def test_a_gate_sees_a_segment_that_the_mean_hides(mbr_esd: Command) -> None:
    """All gates of a run are evaluated, each with its line; JUnit has a case for each segment that fails."""
    gates = "--fail-under 0.9 --min-segment 0.9 --fail-on major --junit j.xml --summary s.md"
    said = [line for line in mbr_esd(PLAIN, gates, status=3).err.splitlines() if "gate" in line]
    assert said == [
        "mbr-esd score: gate passed: mt.txt scores 0.9930, at least 0.9",
        "mbr-esd score: gate failed: 1 segment of mt.txt scored less than 0.9: mt.txt, line 40 (0.7600)",
        "mbr-esd score: gate failed: 1 segment of mt.txt with a major error: mt.txt, line 40 "
        '(major "w40", accuracy/mistranslation)',
    ]
    summary = Path("s.md").read_text(encoding="utf-8")
    assert all(line.partition("gate failed: ")[2] in summary for line in said[1:])
    suite = ElementTree.parse("j.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("5", "4")
    cases = [(case.get("name"), case.get("file"), case.get("line")) for case in suite.findall("testcase")]
    assert cases == [
        ("mt.txt --fail-under 0.9", None, None),
        ("mt.txt --min-segment 0.9", None, None),
        ("mt.txt --min-segment 0.9: mt.txt, line 40", "mt.txt", "40"),
        ("mt.txt --fail-on major", None, None),
        ("mt.txt --fail-on major: mt.txt, line 40", "mt.txt", "40"),
    ]


def test_gates_say_why_they_pass(mbr_esd: Command) -> None:
    said = mbr_esd(PLAIN, "--min-segment 0.76").err
    assert "gate passed: the lowest score of mt.txt is 0.7600 (mt.txt, line 40), at least 0.76" in said
    Path("src.txt").write_text("source 1\nsource 2\n")
    Path("mt.txt").write_text("falsch w1\nfalsch w2\n")
    assert "gate passed: no segment of mt.txt has an error" in mbr_esd(PLAIN, "--fail-on minor").err
    assert "must be a score in [0, 1]" in mbr_esd(PLAIN, "--min-segment 2", status=1).err


def test_a_minor_error_and_a_blank_translation_fail(mbr_esd: Command) -> None:
    Path("mt.txt").write_text(Path("mt.txt").read_text().replace("falsch w7\n", "\n"))
    said = mbr_esd(PLAIN, "--fail-on minor", status=3).err
    assert "3 segments of mt.txt with an error: mt.txt, line 3 (minor" in said
    assert "; mt.txt, line 7 (major: a blank translation); mt.txt, line 40 (major" in said
    assert "2 segments of mt.txt with a major error" in mbr_esd(PLAIN, "--fail-on major", status=3).err
    skipped = PLAIN.replace("n=1", "n=1&blank=skip")
    assert "1 segment of mt.txt scored less than 0.8" in mbr_esd(skipped, "--min-segment 0.8", status=3).err


PO = 'msgid ""\nmsgstr "Language: de\\n"\n\n# A comment.\nmsgctxt "door"\nmsgid "The door"\nmsgstr "Die Tür"\n'


@pytest.mark.parametrize(
    ("name", "content", "named", "line"),
    [
        ("a.po", PO, "door", 5),
        ("a.csv", 'source,target\n"One,\ntwo",Eins\nThe door,Die Tür\n', "2", 4),
        ("a.xlf", None, "door", 8),
        ("a.tmx", None, "1", 7),
    ],
)
def test_a_unit_of_a_file_has_its_line(name: str, content: str | None, named: str, line: int, mbr_esd: Command) -> None:
    """In JSON, in the line of a gate, and where another file is compared."""
    xliff = (
        '<?xml version="1.0"?>\n<xliff version="1.2">\n<file source-language="en" target-language="de">\n<body>\n'
        '<trans-unit id="door">\n\n<source>The door</source>\n<target>Die\nTür</target>\n</trans-unit>\n</body>\n'
        "</file>\n</xliff>\n"
    )
    tmx = (
        '<?xml version="1.0"?>\n<tmx version="1.4">\n<header srclang="en"/>\n<body>\n<tu>\n'
        '<tuv xml:lang="en"><seg>The door</seg></tuv>\n<tuv xml:lang="de"><seg>Die Tür</seg></tuv>\n</tu>\n'
        "</body>\n</tmx>\n"
    )
    Path(name).write_text(content or (xliff if name == "a.xlf" else tmx), encoding="utf-8")
    pairs = [("The door", "Die Tür"), ("The door", "Die\nTür"), ("One,\ntwo", "Eins")]
    write_records("c.jsonl", [record(source, mt, answer("Tür" if "T" in mt else "Eins")) for source, mt in pairs])
    said = mbr_esd(f"score {name} --lp en-de --quiet --fail-on major --to_json o.json --model {MODEL}", status=3).err
    unit = "" if named == str(line) else f"unit {named}, "
    assert f"{name}, {unit}line {line} (major" in said
    row = json.loads(Path("o.json").read_text(encoding="utf-8"))[name][-1]
    assert (row["id"], row["line"]) == (named, line)
    row["COMET"] = 0.95
    Path("old.json").write_text(json.dumps({name: [row, row]}))
    row["COMET"] = 0.25
    Path("new.json").write_text(json.dumps({f"new-{name}": [row, row]}))
    said = mbr_esd("compare old.json new.json --max-drop 0.5", status=3).err
    assert f"(new-{name}, {unit}line {line}" in said or f": new-{name}, {unit}line {line} (0.9500 to 0.2500)" in said


def test_a_model_without_spans_has_no_severities(mbr_esd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("comet")
    import mbr_esd_metric.adapters.comet.checkpoints as checkpoints

    class Regression:
        needs_references = has_spans = False

        def __init__(self, *_: object) -> None: ...

    monkeypatch.setattr(checkpoints, "CometCheckpoint", Regression)
    said = mbr_esd("score -s src.txt -t mt.txt --model Unbabel/wmt20-comet-qe-da --fail-on major", status=1).err
    assert "marks no error spans; use --min-segment" in said
