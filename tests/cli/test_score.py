"""`mbr-esd score` over stored candidates: the whole path but for the model."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.cli.score_inputs import document_names
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command

MODEL = "mbr-esd-demo?candidates=candidates.jsonl&n=3"
SCORE = "score -s src.txt -t mt.txt --model"


@pytest.fixture(autouse=True)
def files(workdir: Path) -> None:
    Path("src.txt").write_text("The bank closed.\nHe left.\n\n", encoding="utf-8")
    Path("mt.txt").write_text("Das Ufer schloss.\nEr ging.\n\n", encoding="utf-8")
    one = record("The bank closed.", "Das Ufer schloss.", answer("Ufer"), answer("Das Ufer"), answer("Ufer"))
    two = record("He left.", "Er ging.", answer(), answer(), answer("ging", severity="minor"))
    write_records("candidates.jsonl", [one, two])


def written() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]
    return rows


def test_scores_spans_and_json_have_the_form_of_comet_score(mbr_esd: Command) -> None:
    out, err = mbr_esd(SCORE, MODEL, "--to_json out.json")
    assert out.splitlines() == [
        "mt.txt\tSegment 1\tscore: 0.8000",
        "mt.txt\tSegment 2\tscore: 1.0000",
        "mt.txt\tSegment 3\tscore: 1.0000",
        "mt.txt\tscore: 0.9333",
        "Predictions saved in: out.json.",
    ]
    first, second, _ = written()
    assert first["COMET"] == pytest.approx(0.8)
    (span,) = first["errors"]
    assert span.pop("confidence") == pytest.approx(1.0)
    place = {"text": "Ufer", "start": 4, "end": 8}
    assert span == {**place, "severity": "major", "category": "accuracy/mistranslation"}
    assert second["errors"] == []  # not left out: a metric that finds no error anywhere has error spans
    # The signature goes to standard error, and nothing that was lost, as nothing was.
    assert re.search(r"^mbr-esd\|candidates:\w{8}\|d:mbr\|n:\d+\|u:softf1\|v:[^|]+$", err, re.MULTILINE)
    assert not re.search("could not be read|not found", err)
    assert re.search(r"^mbr-esd\|candidates:.*\|mqm:paper\|", mbr_esd(SCORE, MODEL, "--verbose").err, re.MULTILINE)


def test_a_blank_translation_gets_the_lowest_score_and_is_counted(mbr_esd: Command) -> None:
    """It scored 1.0000 in silence."""
    Path("mt.txt").write_text("Das Ufer schloss.\n\n\n", encoding="utf-8")
    result = mbr_esd(SCORE, MODEL, "--to_json out.json")
    assert "mt.txt\tSegment 2\tscore: 0.0000" in result.out
    counts = "blank translation: 1 (line 2 of mt.txt); blank source: 1 (line 3 of mt.txt)"
    assert f"data warnings: {counts}; blank translations get the lowest score" in result.err
    assert [row.get("data_warning") for row in written()] == [None, "blank translation", "blank source"]
    assert "mt.txt\tscore: 0.9000" in mbr_esd(SCORE, f"{MODEL}&blank=skip --to_json out.json").out
    assert written()[1]["COMET"] is None


@pytest.mark.parametrize(
    "lines",
    [
        ["a", "a", "b"],
        ["news\ta", "news\ta", "news\tb"],
        ["news article", "news article", "sport article"],
        ["news desk\tan article", "news desk\tan article", "sport desk\tother article"],
        ['{"doc_id": "a", "src": "x"}', '{"doc_id": "a"}', '{"doc_id": "b"}'],
        ['{"document_id": "a"}', '{"document_id": "a"}', '{"document_id": "b"}'],
        [f'{{"item_id": "official_###_en_###_de_###_news_###_{at}"}}' for at in ("a_###_0", "a_###_1", "b_###_0")],
    ],
)  # fmt: skip
def test_documents_are_read_from_every_file_of_wmt_and_counted_in_the_prompts(
    lines: list[str], mbr_esd: Command
) -> None:
    Path("documents").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    first, second, third = document_names("documents", "src.txt", 3)
    assert first == second != third
    dry = "--dry-run --documents documents"
    alone, within = (mbr_esd(SCORE, f"mbr-esd-llama?context={what}", dry).out for what in ("segment", "document"))
    assert within.split("characters")[0] > alone.split("characters")[0]


def test_standard_input_is_a_file(mbr_esd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is read several times, and one that a shell gives on a descriptor."""
    expected = mbr_esd(SCORE, MODEL).out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("mt.txt").read_bytes())))
    assert mbr_esd("score -s src.txt -t - --model", MODEL).out == expected.replace("mt.txt", "-")
    assert "standard input is used twice" in mbr_esd("score -s - -t - --model", MODEL, status=1).err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("candidates.jsonl").read_bytes())))
    mbr_esd("decide - -o decided.jsonl")
    assert len(Path("decided.jsonl").read_text().splitlines()) == 2
    Path("t.csv").write_text("source,target\nHe left.,Er ging.\n")
    score = f"{sys.executable} -m mbr_esd_metric score t.csv --lp en-de --model '{MODEL}' --quiet"
    command = ["bash", "-c", f"{score} --changed-from <(echo source,target)"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].startswith("t.csv\tscore: "), done.stderr
    piped = score.replace("t.csv", "-s /dev/stdin -t mt.txt")
    done = subprocess.run(["bash", "-c", f"cat src.txt | {piped}"], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].startswith("mt.txt\tscore: "), done.stderr


def test_a_gate_reports_translations_in_another_language(mbr_esd: Command) -> None:
    source = "The agreement was signed by the two presidents on Tuesday afternoon."
    mt = "El acuerdo fue firmado por los dos presidentes el martes por la tarde."
    for name, text in (("src.txt", source), ("mt.txt", mt), ("prompt.txt", "{source} {translation}")):
        Path(name).write_text(f"{text}\n", encoding="utf-8")
    write_records("candidates.jsonl", [record(source, mt, answer())])
    model = "mbr-esd-demo?candidates=candidates.jsonl&n=1&prompt=prompt.txt --lp en-de"
    run = mbr_esd(SCORE, model, "--to_json out.json --fail-under 0.5 --summary out.md --junit out.xml")
    warning = "data warnings: in another language: 1 (line 1 of mt.txt)"
    assert warning in run.err
    assert "mbr-esd-demo does not use the language pair; --lp en-de only affects checks" in run.err
    run = mbr_esd("score -s src.txt -t mt.txt --model mbr-esd-checks --lp en-de")
    assert "does not use the language pair" not in run.err
    assert written()[0]["data_warning"] == "in another language"
    for report in ("out.md", "out.xml"):
        assert warning in Path(report).read_text(encoding="utf-8")
