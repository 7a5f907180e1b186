"""Gates: `score --fail-under`, `compare --fail-if-worse`, their files, closed pipes, and the examples for CI."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command
from tests.helpers.document import ROOT

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def files(workdir: Path) -> None:
    """Twenty segments: the old system has one error in two, the new one in eighteen, the same as the old."""
    for name, wrong in (("old", range(2)), ("new", range(18)), ("same", range(1, 4))):
        texts = [answer("one") if number in wrong else answer() for number in range(20)]
        records = [record(f"source {n}", "one two", *[texts[n]] * 3, number=n, system=name) for n in range(20)]
        write_records(f"{name}.jsonl", records[:: -1 if name == "new" else 1])  # in another order
    Path("src.txt").write_text("".join(f"source {n}\n" for n in range(20)))
    Path("mt.txt").write_text("one two\n" * 20)


def run_bash(line: str, folder: Path, *, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a line in bash with a program `mbr-esd`, which is put into the folder, and these variables."""
    program = folder / "mbr-esd"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mbr_esd_metric "$@"\n')
    program.chmod(0o755)
    places = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(EXAMPLES.parents[1])}
    command, environment = ["bash", "-o", "pipefail", "-ec", line], {**os.environ, **places, **variables}
    return subprocess.run(command, cwd=cwd or folder, env=environment, capture_output=True, text=True)


MODEL = "mbr-esd-demo?candidates=new.jsonl&n=3"
SCORE = f"score -s src.txt -t mt.txt --model {MODEL} --quiet --only_system"


def test_a_score_below_the_limit_ends_with_3(files: None, mbr_esd: Command) -> None:
    outputs = "--summary out.md --junit out.xml"
    message = mbr_esd(SCORE, "--fail-under 0.82", outputs).err  # at the limit, whatever rounding says
    assert message == "mbr-esd score: gate passed: mt.txt scores 0.8200, at least 0.82\n"
    assert "✅ mt.txt scores 0.8200, at least 0.82" in Path("out.md").read_text(encoding="utf-8")
    message = mbr_esd(SCORE, "--fail-under 0.83", outputs, status=3).err
    assert message == "mbr-esd score: gate failed: mt.txt scores 0.8200, less than 0.83\n"
    summary = Path("out.md").read_text(encoding="utf-8")
    assert "❌ mt.txt scores 0.8200, less than 0.83" in summary
    assert re.search(r"\| +0\.8200 \|", summary)
    suite = ElementTree.parse("out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    Path("some.csv").write_text("source,target\nsource 0,one two\nsource 1,\n")
    message = mbr_esd(f"score some.csv --lp en-de --model {MODEL} --quiet -o out.csv --fail-under 0.5", status=3).err
    assert "gate failed: some.csv scores 0.4000" in message
    assert Path("out.csv").read_text().splitlines()[2] == "source 1,,0.0,[]"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{SCORE} --junit y", "--junit y has no effect with a run without a gate"),
        (f"{SCORE} --fail-under -1", "--fail-under -1: must be a score in [0, 1]"),
        (f"{SCORE} --fail-under 0.5 --to_json y --junit y", "y is given twice"),
        ("compare old.jsonl --fail-if-worse", "exactly two systems, old and new (got 1)"),
        ("compare empty.jsonl", "empty.jsonl: the file is empty"),
    ],
)
def test_what_is_no_gate(files: None, mbr_esd: Command, words: str, message: str) -> None:
    Path("empty.jsonl").touch()
    assert message in mbr_esd(words, status=1).err
    assert not Path("y").exists()


def test_a_worse_system_ends_with_3(files: None, mbr_esd: Command) -> None:
    message = mbr_esd("compare old.jsonl new.jsonl --fail-if-worse --summary out.md --junit o.xml", status=3).err
    assert "gate failed: new is worse than old by 0.1600 (p = " in message
    assert "new is worse" in Path("out.md").read_text(encoding="utf-8")
    mbr_esd("compare new.jsonl old.jsonl --fail-if-worse")
    mbr_esd("compare old.jsonl same.jsonl --fail-if-worse")
    mbr_esd("compare --fail-if-worse old.jsonl same.jsonl")
    blank = Path("old.jsonl").read_text(encoding="utf-8").replace('"one two"', '""').replace('"old"', '"blank"')
    Path("blank.jsonl").write_text(blank.replace("one", "two"), encoding="utf-8")
    message = mbr_esd("compare old.jsonl blank.jsonl --fail-if-worse", status=3).err
    assert "gate failed: blank is worse than old by 0.9800" in message


def test_two_systems_of_a_file_are_chosen(files: None, mbr_esd: Command) -> None:
    both = Path("old.jsonl").read_bytes() + Path("new.jsonl").read_bytes()
    Path("all.jsonl").write_bytes(both + Path("same.jsonl").read_bytes())
    mbr_esd("decide all.jsonl -o decided.jsonl --quiet")
    for file in ("all.jsonl", "decided.jsonl"):
        assert "choose them with --systems" in mbr_esd("compare", file, "--fail-if-worse", status=1).err
        mbr_esd("compare", file, "--systems old.txt same --fail-if-worse")  # as `score` prints it
        message = mbr_esd("compare", file, "--systems old new --fail-if-worse", status=3).err
        assert "gate failed: new is worse than old by 0.1600" in message
    output = mbr_esd("compare all.jsonl --systems new old --table json").out
    assert [row["system"] for row in json.loads(output)[0]["rows"]] == ["old", "new"]
    assert "unknown system 'od'; did you mean 'old'" in mbr_esd("compare all.jsonl --systems od new", status=1).err


@pytest.mark.parametrize("ending", ["json", "jsonl", "decided.jsonl"])
def test_what_score_wrote_is_compared(files: None, mbr_esd: Command, ending: str) -> None:
    """Systems of one name are told apart by their files."""
    for name in ("old", "new"):
        mbr_esd(SCORE.replace("new.jsonl", f"{name}.jsonl"), f"--to_json {name}.json")
        mbr_esd(f"decide {name}.jsonl -o {name}.decided.jsonl --quiet")
    output = mbr_esd(f"compare old.{ending} new.{ending} --fail-if-worse --table json", status=3).out
    systems, pairs, _ = json.loads(output)
    scores = [(row["system"], row["score"], row["mqm"]) for row in systems["rows"]]
    assert scores == [("old", pytest.approx(0.98), -0.5), ("new", pytest.approx(0.82), -4.5)]
    (row,) = pairs["rows"]
    assert (row["a"], row["b"], row["segments"], row["difference"]) == ("old", "new", 20, pytest.approx(-0.16))


def _comet(path: str, *, model: str | None = None, signature: str | None = None, **systems: list[float]) -> None:
    stated = {key: value for key, value in (("model", model), ("signature", signature)) if value is not None}
    rows = {
        f"{name}.txt": [{"src": f"s{n}", "mt": f"{name} {n}", "COMET": x, **stated} for n, x in enumerate(scores)]
        for name, scores in systems.items()
    }
    Path(path).write_text(json.dumps(rows))


@pytest.mark.parametrize(
    ("files", "names"),
    [
        # A system called as another file is; a name in one file alone; names that cross; files of one name.
        ({"old": ["base", "new"], "new": ["base"]}, ["old/base", "old/new", "new/base"]),
        ({"a": ["mt"], "b": ["mt"], "c": ["other"]}, ["a", "b", "other"]),
        ({"a": ["b"], "b": ["a"]}, ["a/b", "b/a"]),
        ({"x/out": ["mt.de"], "y/out": ["mt.de", "mt.fr"]}, ["x/out", "y/out/mt.de", "mt.fr"]),
    ],
)
def test_no_system_takes_anothers_name(
    workdir: Path, files: dict[str, list[str]], names: list[str], mbr_esd: Command
) -> None:
    scores = itertools.count(1, -0.1)
    for path, systems in files.items():
        Path(path).parent.mkdir(exist_ok=True)
        _comet(f"{path}.json", **{system: [next(scores)] * 2 for system in systems})
    output = mbr_esd("compare", *(f"{path}.json" for path in files), "--table json").out
    assert [row["system"] for row in json.loads(output)[0]["rows"]] == names  # the best first


def test_equal_means_are_equal(workdir: Path, mbr_esd: Command) -> None:
    """Sums in another order, and numbers in single precision; a true difference of any size is said in its digits."""
    _comet("a.json", a=[0.1 + 0.2] * 9)
    _comet("b.json", b=[0.3] * 9)
    _comet("c.json", c=[0.3 - 6e-8] * 9)
    for pair in ("a.json b.json", "b.json a.json", "b.json c.json"):
        rows = json.loads(mbr_esd(f"compare {pair} --fail-if-worse --table json").out)[1]["rows"]
        assert (rows[0]["p"], rows[0]["verdict"]) == (1.0, "no difference shown")
    _comet("d.json", d=[0.3 - 2e-5] * 9)
    assert "d is worse than b by 2.000e-05 (p = " in mbr_esd("compare b.json d.json --fail-if-worse", status=3).err


def test_a_catastrophe_in_one_segment_closes_the_gate(workdir: Path, mbr_esd: Command) -> None:
    """No test of means sees one segment of forty: the new system is better on average."""
    old, new = [0.9] * 40, [0.92] * 39 + [0.2]
    _comet("o.json", old=old, new=new)
    command = "compare o.json --fail-if-worse --summary s.md --junit j.xml"
    assert (
        "gate passed: the mean of new is higher than that of old by 0.002000, but the difference is not"
        in mbr_esd(command).err
    )
    result = mbr_esd(command, "--max-drop 0.3", status=3)
    mean, drop = result.err.splitlines()
    assert mean.startswith("mbr-esd compare: gate passed: the mean of new")
    place = "new.txt, segment 40"
    assert drop == (
        f"mbr-esd compare: gate failed: 1 segment of new scored more than 0.3 below old: {place} (0.9000 to 0.2000)"
    )
    summary = Path("s.md").read_text(encoding="utf-8")
    assert f"❌ 1 segment of new scored more than 0.3 below old: {place}" in summary
    assert re.search(rf"\| {place} +\| +0\.9000 \| +0\.2000 \| +0\.7000 \| +new 39 ", summary)
    cases = ElementTree.parse("j.xml").getroot().findall("testsuite/testcase")
    failed = [(case.get("name"), case.get("file")) for case in cases if case.find("failure") is not None]
    assert failed == [
        ("new against old --max-drop 0.3", None),
        (f"new against old --max-drop 0.3: {place}", "new.txt"),
    ]
    said = mbr_esd("compare o.json --max-drop 0.7").err
    assert said == (
        "mbr-esd compare: gate passed: no segment of new scored more than 0.7 below old; the largest drop is 0.7000 "
        f"({place})\n"
    )
    assert "must be a score difference of 0 or more" in mbr_esd("compare o.json --max-drop -1", status=1).err


def test_the_five_largest_drops_are_named_without_a_gate(workdir: Path, mbr_esd: Command) -> None:
    _comet("o.json", old=[0.9] * 10, new=[0.9, 1.0, *(0.1 * n for n in range(1, 9))])
    rows = json.loads(mbr_esd("compare o.json --table json").out)[2]["rows"]
    assert [row["drop"] for row in rows] == pytest.approx([0.8, 0.7, 0.6, 0.5, 0.4])
    assert rows[0]["segment"] == "new.txt, segment 3"
    _comet("same.json", old=[0.9] * 10, new=[0.9] * 10)
    assert "largest drops" not in mbr_esd("compare same.json").out


def test_what_the_small_model_can_decide_is_said(workdir: Path, mbr_esd: Command) -> None:
    others = dict.fromkeys(("mbr-esd-llama", "small-bert-qe", "small", None), False)
    for model, said in {"mbr-esd-small?rule=greedy": True, **others}.items():
        _comet("o.json", model=model, o=[0.5] * 3)
        assert ("which of two good systems" in mbr_esd("compare o.json").out) == said
    (line,) = [line for line in mbr_esd("models").out.splitlines() if "which of two good systems" in line]
    assert len(line) < 400
    assert re.search(r"AUC \.\d\d to .*\(\.\d\d to \.\d\d of pairs right; .* COMET .*docs/small-model\.md", line)


def test_scores_of_several_models_pass_no_gate(workdir: Path, mbr_esd: Command) -> None:
    for name, model in (("old", "mbr-esd-llama"), ("new", "mbr-esd-llama?n=8"), ("other", "Unbabel/XCOMET-XL")):
        _comet(f"{name}.json", model=model, **{name: [0.5] * 3})
    assert "several models" not in mbr_esd("compare old.json new.json --fail-if-worse").out
    result = mbr_esd("compare old.json other.json --fail-if-worse", status=3)
    models = "scores of several models (Unbabel/XCOMET-XL, mbr-esd-llama)"
    assert f"{models}; score both systems with one" in result.err
    assert f"{models} cannot be compared" in result.out
    assert "verdict" not in result.out


SIGNED = "mbr-esd|model:small-1|engine:tagger|d:mbr|n:16|t:1.0|mqm:paper|blank:worst|v:1".replace


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("|blank", "|score:expected|blank"), "score: unset and expected"),
        (("model:small-1", "model:small-2"), "model: small-1 and small-2"),  # two folders of one name
        (("n:16|t:1.0", "n:64|t:2.0"), "n: 16 and 64, t: 1.0 and 2.0"),
        (("|blank", "|shots:0a1b2c3d|blank"), "shots: unset and 0a1b2c3d"),
    ],
)
def test_scores_of_different_settings_pass_no_gate(
    workdir: Path, change: tuple[str, str], problem: str, mbr_esd: Command
) -> None:
    """Identical translations by one model's name differ where its options do."""
    _comet("old.json", model="final", signature=SIGNED("", ""), old=[0.9] * 8)
    _comet("new.json", model="final", signature=SIGNED(*change), new=[0.4] * 8)
    result = mbr_esd("compare old.json new.json --fail-if-worse", status=3)
    assert f"scores of different settings ({problem}); score both systems with one model" in result.err
    assert f"scores of different settings ({problem}) cannot be compared" in result.out
    assert "verdict" not in result.out


def test_what_leaves_the_settings_open_is_a_note(workdir: Path, mbr_esd: Command) -> None:
    _comet("old.json", model="final", signature=SIGNED("", ""), old=[0.9] * 8)
    _comet("renamed.json", model="best", signature=SIGNED("", ""), new=[0.9] * 8)
    _comet("released.json", model="final", signature=SIGNED("v:1", "v:2"), new=[0.9] * 8)
    _comet("unsigned.json", model="final", new=[0.9] * 8)
    for name, note in (
        ("renamed", None),
        ("released", "scores of releases 1 and 2"),
        ("unsigned", "unsigned.json: no signature, so the settings of these scores are unknown"),
    ):
        result = mbr_esd(f"compare old.json {name}.json --fail-if-worse")
        assert "verdict" in result.out
        assert any(word in result.out for word in ("no signature", "releases")) == (note is not None)
        assert note is None or note in result.out
    assert "no signature" not in mbr_esd("compare unsigned.json").out


def test_rows_of_decisions_and_scores_have_signatures(files: None, mbr_esd: Command) -> None:
    for name in ("old", "same"):
        mbr_esd(f"decide {name}.jsonl -o {name}.decisions.jsonl --quiet")
    mbr_esd("decide same.jsonl -o expected.jsonl --score expected --quiet")
    signed = [json.loads(line)["signature"] for line in Path("old.decisions.jsonl").read_text().splitlines()]
    assert len(set(signed)) == 1
    assert re.match(r"mbr-esd\|candidates:[0-9a-f]{8}\|d:mbr\|u:softf1\|", signed[0])
    result = mbr_esd("compare old.decisions.jsonl same.decisions.jsonl --fail-if-worse")
    assert "candidates of different files" in result.out
    problem = "scores of different settings (score: unset and expected)"
    assert problem in mbr_esd("compare old.decisions.jsonl expected.jsonl --fail-if-worse", status=3).err
    mbr_esd(SCORE, "--to_json out.json")
    rows = json.loads(Path("out.json").read_text())["mt.txt"]
    assert all(row["signature"].startswith("mbr-esd|candidates:") and "|n:3|" in row["signature"] for row in rows)


def test_a_gate_over_some_segments_says_so(files: None, mbr_esd: Command) -> None:
    """Trailing white space is not another source; another source is, and its segment cannot be left out in silence."""
    new = Path("old.jsonl").read_text(encoding="utf-8").replace('"system": "old"', '"system": "next"')
    Path("spaces.jsonl").write_text(new.replace('", "mt"', ' ", "mt"'), encoding="utf-8")
    mbr_esd("compare old.jsonl spaces.jsonl --fail-if-worse")
    Path("other.jsonl").write_text(new.replace("source 1", "quelle 1"), encoding="utf-8")
    result = mbr_esd("compare old.jsonl other.jsonl --fail-if-worse", status=3)
    assert "9 common scored segments, of 20 of old and 20 of next" in result.err


def test_a_closed_pipe_changes_no_status_and_loses_no_file(files: None) -> None:
    """The reader ends at once, and the verb prints more than a pipe holds."""
    Path("src.txt").write_text("".join(f"source {n}\n" for n in range(20)) * 200)
    Path("mt.txt").write_text("one two\n" * 4000)
    score = f"score -s src.txt -t mt.txt --model '{MODEL}' --fail-under .99 --to_json o.json --junit j.xml --quiet"
    compare = "compare old.jsonl new.jsonl --fail-if-worse --junit k.xml"
    for verb, reader, outputs in ((score, "head -1", ("o.json", "j.xml")), (compare, "true", ("k.xml",))):
        done = run_bash(f"mbr-esd {verb} | {reader}", Path.cwd())
        assert done.returncode == 3, done.stderr
        assert not re.search("Traceback|Exception ignored", done.stderr)
        assert all(Path(output).stat().st_size for output in outputs)


@pytest.mark.parametrize(
    "name", ["bad\udcff.txt", "u\uffff.txt", "esc\x1b[31mred.txt", "line\nend.txt", 'pipe|`<b>&".txt']
)
def test_any_name_of_a_file_fits_every_output(files: None, mbr_esd: Command, name: str) -> None:
    """Bytes that are no UTF-8, what XML forbids, and what a terminal would obey."""
    Path(name).write_text("one two\n" * 20)
    score = ["score -s src.txt --only_system --fail-under .9 --model", MODEL, "-t", Path(name)]
    result = mbr_esd(*score, "--summary s.md --junit j.xml --to_json o.json --to_csv e.csv", status=3)
    ElementTree.parse("j.xml")
    rows = list(csv.DictReader(Path("e.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 18
    assert list(json.loads(Path("o.json").read_text(encoding="utf-8"))) == [name]
    summary = Path("s.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| .*0\.8200", summary, re.M)) == 1
    tables = (mbr_esd("compare o.json new.jsonl --table", form).out for form in ("text", "markdown", "tsv"))
    for text in (result.out, result.err, summary, rows[0]["system"], *tables):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\uffff]", text)


def test_the_example_workflow_fails_with_its_files(tmp_path: Path) -> None:
    """Translations that are missing need no model."""
    workflow = yaml.safe_load((EXAMPLES / "quality-gate.yml").read_text(encoding="utf-8"))
    install, run = (step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step)
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    assert f"[server] @ git+{settings['metadata']['url']}" in install
    (examples := tmp_path / "docs" / "examples").mkdir(parents=True)
    shutil.copy(EXAMPLES / "src.txt", examples)
    (examples / "mt.txt").write_bytes(b"\n" * (examples / "src.txt").read_bytes().count(b"\n"))
    outputs = {"GITHUB_STEP_SUMMARY": "summary.md", "MBR_ESD_STORE": str(tmp_path / "store.sqlite")}
    done = run_bash(f"{run} | true", tmp_path, **outputs, MBR_ESD_SERVER="http://127.0.0.1:9/v1")
    assert done.returncode == 3, done.stderr
    assert "gate failed: docs/examples/mt.txt scores 0.0000, less than 0.8" in done.stderr
    assert "❌" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert (tmp_path / "quality.xml").exists()


def test_a_file_may_have_a_name(files: None, mbr_esd: Command) -> None:
    """As for `report`, `show` and `leaderboard`; of several systems it stands before theirs."""
    said = mbr_esd("compare OLD=old.jsonl NEW=new.jsonl --fail-if-worse", status=3)
    assert "NEW is worse than OLD" in said.err
    assert re.search(r"^OLD +20 ", said.out, re.M)
    mbr_esd(SCORE, "--to_json one.json")
    data = json.loads(Path("one.json").read_text())
    Path("two.json").write_text(json.dumps({"a.txt": data["mt.txt"], "b.txt": data["mt.txt"]}))
    assert re.findall(r"^(X\S*|one|mt) ", mbr_esd("compare X=two.json one.json").out, re.M)[:3] == ["X/a", "X/b", "mt"]
    assert "two systems are called A" in mbr_esd("compare A=old.jsonl A=new.jsonl", status=1).err
    assert "is given twice" in mbr_esd("compare A=old.jsonl B=old.jsonl", status=1).err
    Path("A=x.json").write_text(Path("one.json").read_text())
    assert re.search(r"^mt +20 ", mbr_esd("compare A=x.json").out, re.M)
