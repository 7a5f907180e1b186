"""Gates: `score --fail-under`, `rank --fail-if-worse`, their files, and the example workflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from mbr_esd_metric.cli.gate import Check, junit
from mbr_esd_metric.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def _candidates(path: str, system: str, spans: list[str]) -> None:
    with Path(path).open("w", encoding="utf-8") as file:
        for number, words in enumerate(spans):
            errors = [{"error_span": words, "category": "accuracy", "sub_category": "", "severity": "major"}]
            answer = json.dumps({"errors": errors if words else []})
            record: dict[str, Any] = {"id": str(number), "system": system, "src": f"source {number}", "mt": "one two"}
            file.write(json.dumps(record | {"candidates": [{"text": answer, "logprob": -1.0}] * 3}) + "\n")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty segments: the old system has one error in two, the new one in eighteen, the same as the old."""
    monkeypatch.chdir(tmp_path)
    _candidates("old.jsonl", "old", ["one"] * 2 + [""] * 18)
    _candidates("new.jsonl", "new", ["one"] * 18 + [""] * 2)
    _candidates("same.jsonl", "same", [""] + ["one"] * 3 + [""] * 16)
    Path("src.txt").write_text("".join(f"source {n}\n" for n in range(20)))
    Path("mt.txt").write_text("one two\n" * 20)
    return tmp_path


MODEL = "mbr-esd-demo?engine=replay&candidates=new.jsonl&n=3"


def test_a_score_below_the_limit_ends_with_3(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--quiet", "--only_system"]
    assert main([*words, "--fail-under", "0.8", "--summary", "out.md", "--junit", "out.xml"]) == 0
    assert "✅ mt.txt" in Path("out.md").read_text(encoding="utf-8")
    assert main([*words, "--fail-under", "0.83", "--summary", "out.md", "--junit", "out.xml"]) == 3
    assert capsys.readouterr().err == "mbr-esd score: gate: mt.txt scores 0.8200, less than 0.83\n"
    said = Path("out.md").read_text(encoding="utf-8")
    assert "❌ mt.txt scores 0.8200, less than 0.83" in said
    assert "| 0.8200 |" in said
    suite = ElementTree.parse("out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert main([*words, "--junit", "out.xml"]) == 1
    assert "--junit out.xml changes nothing with a run without a gate" in capsys.readouterr().err


def test_a_row_without_a_translation_does_not_pass(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("some.csv").write_text("source,target\nsource 0,one two\nsource 1,\n")
    words = ["score", "some.csv", "--lp", "en-de", "--model", MODEL, "--quiet", "--only_system", "-o", "out.csv"]
    assert main([*words, "--fail-under", "0.5"]) == 3
    assert "gate: some.csv scores 0.4000" in capsys.readouterr().err
    assert Path("out.csv").read_text().splitlines()[2] == "source 1,,0.0,[]"


def test_a_worse_system_ends_with_3(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rank", "old.jsonl", "new.jsonl", "--fail-if-worse", "--summary", "out.md", "--junit", "o.xml"]) == 3
    assert "gate: new is worse than old by 4.000 (p = " in capsys.readouterr().err
    assert "new is worse" in Path("out.md").read_text(encoding="utf-8")
    assert main(["rank", "new.jsonl", "old.jsonl", "--fail-if-worse"]) == 0
    assert main(["rank", "old.jsonl", "same.jsonl", "--fail-if-worse"]) == 0
    assert main(["rank", "old.jsonl", "same.jsonl", "--fail-if-worse", "0.9"]) == 3
    assert main(["rank", "old.jsonl", "--fail-if-worse"]) == 1
    assert "there are 1" in capsys.readouterr().err
    assert main(["rank", "old.jsonl", "new.jsonl", "--fail-if-worse", "5"]) == 1
    assert "a level between 0 and 1" in capsys.readouterr().err
    blank = Path("old.jsonl").read_text(encoding="utf-8").replace('"one two"', '""').replace('"old"', '"blank"')
    Path("blank.jsonl").write_text(blank.replace("one", "two"), encoding="utf-8")
    assert main(["rank", "old.jsonl", "blank.jsonl", "--fail-if-worse"]) == 3
    assert "gate: blank is worse than old by 24.500" in capsys.readouterr().err
    Path("empty.jsonl").touch()
    assert main(["rank", "empty.jsonl", "empty.jsonl"]) == 1
    assert "empty.jsonl has no candidates" in capsys.readouterr().err


def test_junit_holds_any_name() -> None:
    root = ElementTree.fromstring(junit("score", [Check('<&">\x1b[0m', "a\0b")]).encode())
    case = root[0][0]
    assert case.get("name") == '<&">␛[0m'
    assert case[0].get("message") == "a␀b"


def test_the_example_workflow_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed (extra: transformers)")
    workflow = yaml.safe_load((EXAMPLES / "quality-gate.yml").read_text(encoding="utf-8"))
    runs = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    assert runs[0].startswith("pip install")
    command = tmp_path / "mbr-esd"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mbr_esd_metric "$@"\n')
    command.chmod(0o755)
    (tmp_path / "docs").symlink_to(EXAMPLES.parent)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(EXAMPLES.parents[1]),
        "GITHUB_STEP_SUMMARY": "summary.md",
        "MBR_ESD_STORE": str(tmp_path / "store.sqlite"),
    }
    (run,) = runs[1:]
    done = subprocess.run(["bash", "-e", "-c", run], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    passed = float(done.stdout.splitlines()[-1].rpartition(" ")[2]) >= 0.8
    assert ("✅" in summary, done.returncode) == (passed, 0 if passed else 3)
    assert (tmp_path / "quality.xml").exists()
