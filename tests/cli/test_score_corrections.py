"""Corrections from stored candidates to every output."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.adapters.scored_files import read_comet_json
from mbr_esd_metric.files.records import read_decisions, write_records
from tests.helpers.candidates import record
from tests.helpers.command import Command

SOURCE, MT = "The bank closed.", "Das Ufer schloss."
FIX = {"correction": "Die Bank", "reason": "=HYPERLINK(1)", "agreement": 2 / 3}
MODEL = "mbr-esd-demo?candidates=candidates.jsonl&n=3"
SCORE = f"score -s src.txt -t mt.txt --quiet --model {MODEL}"


def answer(**more: object) -> str:
    error = {"error_span": "Das Ufer", "category": "accuracy", "sub_category": "", "severity": "major", **more}
    return json.dumps({"errors": [error]})


@pytest.fixture(autouse=True)
def files(workdir: Path) -> None:
    Path("src.txt").write_text(f"{SOURCE}\nHe left.\n", encoding="utf-8")
    Path("mt.txt").write_text(f"{MT}\nEr ging.\n", encoding="utf-8")
    said = [answer(correction=text, reason=FIX["reason"]) for text in ("Die Bank", "Die Bank", "@Bank\n\x1b[2J\ud800")]
    clean = ['{"errors": []}'] * 3
    records = [
        record(SOURCE, MT, *said, number=1, format="json-corrections"),
        record("He left.", "Er ging.", *clean, number=2, format="json-corrections"),
    ]
    write_records("candidates.jsonl", records)


def test_json_has_what_to_write_instead(mbr_esd: Command) -> None:
    mbr_esd(SCORE, "--to_json out.json")
    first, second = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]
    (error,) = first["errors"]
    assert {key: error[key] for key in FIX} == FIX
    assert (first["corrected"], second["corrected"]) == ("Die Bank schloss.", "Er ging.")
    one, _ = read_comet_json(Path("out.json"))
    assert one.annotation is not None
    assert one.annotation.spans[0].correction == "Die Bank"
    shown = mbr_esd("show out.json").out
    assert "    instead  Die Bank  =HYPERLINK(1)  agreement 0.67\n" in shown
    assert "  corrected  [-Das-]{+Die+} [-Ufer-]{+Bank+} schloss.\n" in shown


def test_predict_has_it_in_its_metadata() -> None:
    prediction = load_metric(MODEL).predict([{"src": SOURCE, "mt": MT}], progress_bar=False)
    assert prediction.metadata.corrected == ["Die Bank schloss."]
    (row,) = prediction.rows()
    assert row["corrected"] == "Die Bank schloss."
    assert {key: row["error_spans"][0][key] for key in FIX} == FIX


def test_decisions_have_it(mbr_esd: Command) -> None:
    mbr_esd("decide candidates.jsonl -o decisions.jsonl")
    first, second = map(json.loads, Path("decisions.jsonl").read_text(encoding="utf-8").splitlines())
    assert {key: first["error_spans"][0][key] for key in FIX} == FIX
    assert first["corrected"] == "Die Bank schloss."
    assert "corrected" not in second
    again, _ = read_decisions("decisions.jsonl")
    assert again.to_json() == first


def test_the_table_has_columns_and_no_formulas(mbr_esd: Command) -> None:
    mbr_esd(SCORE, "--to_csv out.csv")
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["correction"], row["reason"], row["translation"]) == ("Die Bank", "'=HYPERLINK(1)", MT)
    assert float(row["agreement"]) == pytest.approx(FIX["agreement"], abs=1e-6)
    assert mbr_esd(f"score out.csv --lp en-de --quiet --only_system --model {MODEL}").out == "out.csv\tscore: 0.8000\n"


def test_the_corrected_translations_are_lines_for_any_metric(mbr_esd: Command) -> None:
    mbr_esd(SCORE, "--corrected fixed.txt")
    assert Path("fixed.txt").read_text(encoding="utf-8") == "Die Bank schloss.\nEr ging.\n"
    rows = [record(SOURCE, MT, *[answer(correction="a\r\nb\u2028c\x1bd\ud800")] * 3, format="json-corrections")]
    write_records("candidates.jsonl", [*rows, record("He left.", "Er ging.", *['{"errors": []}'] * 3, number=2)])
    write_records("candidates.jsonl", rows)
    Path("src.txt").write_text(f"{SOURCE}\n", encoding="utf-8")
    Path("mt.txt").write_text(f"{MT}\n", encoding="utf-8")
    mbr_esd(SCORE, "--corrected fixed.txt")
    assert Path("fixed.txt").read_text(encoding="utf-8") == "a b c\ufffdd\ufffd schloss.\n"


def test_the_lines_of_units_that_did_not_change_are_as_they_are(mbr_esd: Command) -> None:
    Path("old.csv").write_text("source,target\nHe left.,Er ging.\n", encoding="utf-8")
    for name, first, fixed in (("new", MT, "Die Bank schloss."), ("same", "Er ging.", "Er ging.")):
        source = SOURCE if name == "new" else "He left."
        Path("t.csv").write_text(f"source,target\nHe left.,Er ging.\n{source},{first}\n", encoding="utf-8")
        mbr_esd(f"score t.csv --lp en-de --changed-from old.csv --corrected fixed.txt --quiet --model {MODEL}")
        assert Path("fixed.txt").read_text(encoding="utf-8") == f"Er ging.\n{fixed}\n", name


def test_a_model_that_corrects_nothing_has_no_such_keys(mbr_esd: Command) -> None:
    write_records("candidates.jsonl", [record(SOURCE, MT, *[answer()] * 3), record("He left.", "Er ging.", answer())])
    mbr_esd(SCORE.replace("n=3", "n=1"), "--to_json out.json --to_csv out.csv")
    rows: list[dict[str, Any]] = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]
    assert not {"corrected", *FIX} & {*rows[0], *rows[0]["errors"][0]}
    assert "correction" not in Path("out.csv").read_text(encoding="utf-8")
    refused = mbr_esd(SCORE.replace("n=3", "n=1"), "--corrected fixed.txt", status=1)
    assert "format=json-corrections" in refused.err
    two = "score -s src.txt -t mt.txt src.txt --corrected fixed.txt --model mbr-esd-llama?format=json-corrections"
    assert "for one system" in mbr_esd(two, status=1).err
