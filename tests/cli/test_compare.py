"""Gates: `score --fail-under`, `compare --fail-if-worse`, their files, closed pipes, and the examples for CI."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from mbr_esd_metric.cli.score import check
from mbr_esd_metric.cli.shared_options import Check, junit
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command

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


def with_program(folder: Path, **variables: str) -> dict[str, str]:
    """The environment with a program `mbr-esd` in the folder, and these variables."""
    program = folder / "mbr-esd"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mbr_esd_metric "$@"\n')
    program.chmod(0o755)
    places = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(EXAMPLES.parents[1])}
    return {**os.environ, **places, **variables}


MODEL = "mbr-esd-demo?candidates=new.jsonl&n=3"
SCORE = f"score -s src.txt -t mt.txt --model {MODEL} --quiet --only_system"


def test_a_score_below_the_limit_ends_with_3(files: None, mbr_esd: Command) -> None:
    mbr_esd(SCORE, "--fail-under 0.8 --summary out.md --junit out.xml")
    assert "✅ mt.txt" in Path("out.md").read_text(encoding="utf-8")
    message = mbr_esd(SCORE, "--fail-under 0.83 --summary out.md --junit out.xml", status=3).err
    assert message == "mbr-esd score: gate: mt.txt scores 0.8200, less than 0.83\n"
    summary = Path("out.md").read_text(encoding="utf-8")
    assert "❌ mt.txt scores 0.8200, less than 0.83" in summary
    assert re.search(r"\| +0\.8200 \|", summary)
    suite = ElementTree.parse("out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")

    assert (
        "--junit y changes nothing with a run without a gate (such as --fail-under)"
        in mbr_esd(SCORE, "--junit y", status=1).err
    )
    assert "--fail-under -1: give a score in [0, 1]" in mbr_esd(SCORE, "--fail-under -1", status=1).err
    assert "y is given twice" in mbr_esd(SCORE, "--fail-under 0.5 --to_json y --junit y", status=1).err
    assert not Path("y").exists()
    Path("some.csv").write_text("source,target\nsource 0,one two\nsource 1,\n")
    message = mbr_esd(f"score some.csv --lp en-de --model {MODEL} --quiet -o out.csv --fail-under 0.5", status=3).err
    assert "gate: some.csv scores 0.4000" in message
    assert Path("out.csv").read_text().splitlines()[2] == "source 1,,0.0,[]"


def test_a_worse_system_ends_with_3(files: None, mbr_esd: Command) -> None:
    message = mbr_esd("compare old.jsonl new.jsonl --fail-if-worse --summary out.md --junit o.xml", status=3).err
    assert "gate: new is worse than old by 0.1600 (p = " in message
    assert "new is worse" in Path("out.md").read_text(encoding="utf-8")
    mbr_esd("compare new.jsonl old.jsonl --fail-if-worse")
    mbr_esd("compare old.jsonl same.jsonl --fail-if-worse")
    mbr_esd("compare old.jsonl same.jsonl --fail-if-worse 0.9", status=3)
    assert "two systems, the old and the new one, not 1" in mbr_esd("compare old.jsonl --fail-if-worse", status=1).err
    assert "a level between 0 and 1" in mbr_esd("compare old.jsonl new.jsonl --fail-if-worse 5", status=1).err
    blank = Path("old.jsonl").read_text(encoding="utf-8").replace('"one two"', '""').replace('"old"', '"blank"')
    Path("blank.jsonl").write_text(blank.replace("one", "two"), encoding="utf-8")
    message = mbr_esd("compare old.jsonl blank.jsonl --fail-if-worse", status=3).err
    assert "gate: blank is worse than old by 0.9800" in message
    Path("empty.jsonl").touch()
    assert "empty.jsonl: the file is empty" in mbr_esd("compare empty.jsonl", status=1).err


def test_a_score_at_the_limit_passes() -> None:
    assert all(check("mt.txt", sum([0.8] * n) / n, 0.8, "").problem is None for n in range(1, 12))
    assert all(check("mt.txt", score, 0.8, "").problem for score in (0.79999, math.nan))


def test_what_score_wrote_is_compared(files: None, mbr_esd: Command) -> None:
    """Systems of one name are told apart by their files."""
    for name in ("old", "new"):
        mbr_esd(SCORE.replace("new.jsonl", f"{name}.jsonl"), f"--to_json {name}.json")
        mbr_esd(f"decide {name}.jsonl -o {name}.decided.jsonl --quiet")
    for ending in ("json", "jsonl", "decided.jsonl"):
        output = mbr_esd(f"compare old.{ending} new.{ending} --fail-if-worse --table json", status=3).out
        systems, pairs = json.loads(output)
        scores = {row["system"]: (row["score"], row["mqm"]) for row in systems["rows"]}
        assert scores == {"old": (pytest.approx(0.98), -0.5), "new": (pytest.approx(0.82), -4.5)}, ending
        assert [row["system"] for row in systems["rows"]] == ["old", "new"]
        (row,) = pairs["rows"]
        assert (row["a"], row["b"], row["segments"], row["difference"]) == ("old", "new", 20, pytest.approx(-0.16))


def _comet(path: str, **systems: list[float]) -> None:
    rows = {f"{name}.txt": [{"src": f"s{n}", "mt": f"{name} {n}", "COMET": x} for n, x in enumerate(scores)]
            for name, scores in systems.items()}  # fmt: skip
    Path(path).write_text(json.dumps(rows))


@pytest.mark.parametrize(
    ("files", "names"),
    [
        # A system called as another file is; a name in one file alone; names that cross; files of one name.
        ({"old": ["base", "new"], "new": ["base"]}, {"old/base": 0.0, "old/new": 0.1, "new/base": 0.2}),
        ({"a": ["mt"], "b": ["mt"], "c": ["other"]}, {"a": 0.0, "b": 0.1, "other": 0.2}),
        ({"a": ["b"], "b": ["a"]}, {"a/b": 0.0, "b/a": 0.1}),
        ({"x/out": ["mt.de"], "y/out": ["mt.de", "mt.fr"]}, {"x/out": 0.0, "y/out/mt.de": 0.1, "mt.fr": 0.2}),
    ],
)
def test_no_system_takes_anothers_name(
    workdir: Path, files: dict[str, list[str]], names: dict[str, float], mbr_esd: Command
) -> None:
    number = 0
    for path, systems in files.items():
        Path(path).parent.mkdir(exist_ok=True)
        _comet(f"{path}.json", **{system: [(number + at) / 10] * 2 for at, system in enumerate(systems)})
        number += len(systems)
    words = [f"{path}.json" for path in files]
    systems = json.loads(mbr_esd("compare", *words, "--table json").out)[0]["rows"]
    assert {row["system"]: pytest.approx(row["score"]) for row in systems} == names
    if len(names) == 2:
        (first, second) = names
        assert f"{second} against {first}" not in mbr_esd("compare", *words, "--fail-if-worse").err


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


def test_what_the_small_model_can_decide_is_said(workdir: Path, mbr_esd: Command) -> None:
    for model, said in (("mbr-esd-small?rule=greedy", True), ("mbr-esd-llama", False), (None, False)):
        rows = [{"src": str(n), "mt": str(n), "COMET": 0.5, **({"model": model} if model else {})} for n in range(3)]
        Path("o.json").write_text(json.dumps({"o": rows}))
        assert ("not between good systems" in mbr_esd("compare o.json").out) == said
    (line,) = [line for line in mbr_esd("models").out.splitlines() if "not between good systems" in line]
    assert len(line) < 190
    assert re.search(r"AUC \.\d\d to .*\(\.\d\d to \.\d\d of pairs right; .* COMET .*docs/small-model\.md", line)


def test_scores_of_several_models_pass_no_gate(workdir: Path, mbr_esd: Command) -> None:
    for name, model in (("old", "mbr-esd-llama"), ("new", "mbr-esd-llama?n=8"), ("other", "Unbabel/XCOMET-XL")):
        rows = [{"src": str(n), "mt": str(n), "COMET": 0.5, "model": model} for n in range(3)]
        Path(f"{name}.json").write_text(json.dumps({name: rows}))
    assert "several models" not in mbr_esd("compare old.json new.json --fail-if-worse").out
    result = mbr_esd("compare old.json other.json --fail-if-worse", status=3)
    assert "scores of several models (Unbabel/XCOMET-XL, mbr-esd-llama); score both systems with one" in result.err
    assert "scores of several models (Unbabel/XCOMET-XL, mbr-esd-llama) cannot be compared" in result.out


def test_a_gate_over_some_segments_says_so(files: None, mbr_esd: Command) -> None:
    """Trailing white space is no other source; another source is, and its segment cannot be left out in silence."""
    new = Path("old.jsonl").read_text(encoding="utf-8").replace('"system": "old"', '"system": "next"')
    Path("spaces.jsonl").write_text(new.replace('", "mt"', ' ", "mt"'), encoding="utf-8")
    mbr_esd("compare old.jsonl spaces.jsonl --fail-if-worse")
    Path("other.jsonl").write_text(new.replace("source 1", "quelle 1"), encoding="utf-8")
    result = mbr_esd("compare old.jsonl other.jsonl --fail-if-worse", status=3)
    assert "9 common scored segments, of 20 of old and 20 of next" in result.err


def test_a_closed_pipe_changes_no_status_and_loses_no_file(files: None) -> None:
    """The reader ends at once, and the verb prints more than a pipe holds."""
    source = "".join(f"source {n}\n" for n in range(20)) * 200
    Path("src.txt").write_text(source)
    Path("mt.txt").write_text("one two\n" * 4000)
    score = f"score -s src.txt -t mt.txt --model '{MODEL}' --fail-under .99 --to_json o.json --junit j.xml --quiet"
    compare = "compare old.jsonl new.jsonl --fail-if-worse --junit k.xml"
    environment = with_program(Path.cwd())
    for verb, reader, outputs in ((score, "head -1", ("o.json", "j.xml")), (compare, "true", ("k.xml",))):
        line = f"set -o pipefail; mbr-esd {verb} | {reader}"
        done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert all(Path(output).stat().st_size for output in outputs)


def test_junit_holds_any_name() -> None:
    root = ElementTree.fromstring(junit("score", [Check('<&">\x1b[0m', "a\0b")]).encode())
    case = root[0][0]
    assert case.get("name") == '<&">␛[0m'
    assert case[0].get("message") == "a␀b"


@pytest.mark.parametrize(
    "name", ["bad\udcff.txt", "u\uffff.txt", "esc\x1b[31mred.txt", "line\nend.txt", "pipe|`<b>.txt"]
)
def test_any_name_of_a_file_fits_every_output(files: None, mbr_esd: Command, name: str) -> None:
    """Bytes that are no UTF-8, what XML forbids, and what a terminal would obey."""
    Path(name).write_text("one two\n" * 20)
    score = ["score -s src.txt --only_system --fail-under .9 --model", MODEL, "-t", Path(name)]
    outputs = "--summary s.md --junit j.xml --to_json o.json --to_csv e.csv"
    result = mbr_esd(*score, outputs, status=3)
    ElementTree.parse("j.xml")
    rows = list(csv.DictReader(Path("e.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 18
    assert list(json.loads(Path("o.json").read_text(encoding="utf-8"))) == [name]
    summary = Path("s.md").read_text(encoding="utf-8")
    for text in (result.out, result.err, summary, rows[0]["system"]):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\uffff]", text)
    assert len([line for line in summary.splitlines() if line.startswith("| ") and "0.8200" in line]) == 1
    for form in ("text", "markdown", "tsv", "json"):
        table = mbr_esd("compare o.json new.jsonl --table", form).out
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", table)


@pytest.mark.parametrize("pipe", ["", " | true"])
def test_the_example_workflow_fails_with_its_files(tmp_path: Path, pipe: str) -> None:
    """Translations that are missing need no model."""
    workflow = yaml.safe_load((EXAMPLES / "quality-gate.yml").read_text(encoding="utf-8"))
    install, run = (step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step)
    assert install.startswith("pip install")
    examples = tmp_path / "docs" / "examples"
    examples.mkdir(parents=True)
    source = (EXAMPLES / "src.txt").read_bytes()
    (examples / "src.txt").write_bytes(source)
    (examples / "mt.txt").write_bytes(b"\n" * source.count(b"\n"))
    outputs = {"GITHUB_STEP_SUMMARY": "summary.md", "MBR_ESD_STORE": str(tmp_path / "store.sqlite")}
    environment = with_program(tmp_path, **outputs, MBR_ESD_SERVER="http://127.0.0.1:9/v1")
    command = ["bash", "-o", "pipefail", "-e", "-c", run + pipe]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "gate: docs/examples/mt.txt scores 0.0000, less than 0.8" in done.stderr
    assert "❌" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert (tmp_path / "quality.xml").exists()


@pytest.mark.parametrize("change", ["adds", "mends", "none", "new"])
def test_the_recipe_for_a_pull_request(tmp_path: Path, change: str) -> None:
    """A change that adds an error, one that mends one, one that touches no text, and a file that is new."""
    wrong, right = 'msgid "Open"\nmsgstr "Öffne Feuer"\n', 'msgid "Open"\nmsgstr "Öffne"\n'
    other = '\nmsgid "Close"\nmsgstr "Schließe falsch"\n'
    record_of = {"Öffne Feuer": answer("Feuer"), "Öffne": answer(), "Schließe falsch": answer("falsch")}
    sources = {"Schließe falsch": "Close"}
    records = [record(sources.get(mt, "Open"), mt, text) for mt, text in record_of.items()]
    write_records(tmp_path / "candidates.jsonl", records)
    before, after = {
        "adds": (right, wrong), "mends": (wrong, right), "none": (wrong, f"# A comment.\n{wrong}"), "new": ("", right)
    }[change]  # fmt: skip
    model = f"mbr-esd-demo?candidates={tmp_path}/candidates.jsonl&n=1&lp=en-de"
    recipe = {"FILE": "de.po", "MODEL": model, "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": "summary.md"}
    author = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "de.po").write_text(after + other, encoding="utf-8")
    git = "git init -q; git add de.po; git commit -qm x; git update-ref refs/remotes/origin/main HEAD"
    if change == "new":
        git = git.replace("git add de.po", "touch other; git add other")
    else:
        (folder / "de.po").write_text(before + other, encoding="utf-8")
    environment = with_program(tmp_path, **recipe, **author)
    subprocess.run(["bash", "-ec", git], cwd=folder, env=environment, check=True)
    (folder / "de.po").write_text(after + other, encoding="utf-8")
    command = ["bash", str(EXAMPLES / "changed-strings.sh")]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == (3 if change == "adds" else 0), done.stderr
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    errors = (folder / "errors.csv").read_text(encoding="utf-8")
    assert ("`Feuer`" in summary, "Feuer" in errors) == (change == "adds",) * 2
    assert ("`falsch`" in summary, "falsch" in errors) == (change == "new",) * 2
    if change == "none":
        assert "✅ de.po: no unit differs from old, so nothing is judged" in summary
        assert done.stdout == "de.po: no unit differs from old, so nothing is judged\n"
    else:
        assert f"{'2 of 2 units differ' if change == 'new' else '1 of 2 units differs'} from old" in summary
    assert ("2 units left out (2 as in old)" in done.stderr) == (change == "none")
