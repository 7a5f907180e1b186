"""Corrections from stored candidates to every output."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.files.judged import read_judged
from mbr_esd_metric.files.records import read_decisions, write_records
from tests.helpers.candidates import record
from tests.helpers.command import Command

SOURCE, MT = "The bank closed.", "Das Ufer schloss."
FIX = {"correction": "Die Bank", "reason": "=HYPERLINK(1)", "agreement": 2 / 3}
MODEL = "mbr-esd-demo?candidates=candidates.jsonl&n=3"
SCORE = f"score -s src.txt -t mt.txt --quiet --model {MODEL}"


@pytest.fixture
def files(workdir: Path) -> None:
    Path("src.txt").write_text(f"{SOURCE}\nHe left.\n", encoding="utf-8")
    Path("mt.txt").write_text(f"{MT}\nEr ging.\n", encoding="utf-8")
    store("Die Bank", "Die Bank", "@Bank\n\x1b[2J\ud800")


def store(*corrections: str | None) -> None:
    """Candidates that write this in place of the first two words."""
    error = {"error_span": "Das Ufer", "category": "accuracy", "sub_category": "", "severity": "major"}
    more = [{} if text is None else {"correction": text, "reason": FIX["reason"]} for text in corrections]
    said = [json.dumps({"errors": [error | one]}) for one in more]
    form = None if corrections[0] is None else "json-corrections"
    clean = record("He left.", "Er ging.", *['{"errors": []}'] * 3, number=2, format=form)
    write_records("candidates.jsonl", [record(SOURCE, MT, *said, number=1, format=form), clean])


def test_every_output_has_what_to_write_instead(files: None, mbr_esd: Command) -> None:
    mbr_esd(SCORE, "--to_json out.json --to_csv out.csv --corrected fixed.txt")
    first, second = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]
    assert {key: first["errors"][0][key] for key in FIX} == FIX
    assert (first["corrected"], second["corrected"]) == ("Die Bank schloss.", "Er ging.")
    one, _ = read_judged(Path("out.json"))
    assert one.annotation is not None
    assert one.annotation.spans[0].correction == "Die Bank"
    shown = mbr_esd("show out.json").out
    assert "    instead  Die Bank  =HYPERLINK(1)  agreement 0.67\n" in shown
    assert "  corrected  [-Das-]{+Die+} [-Ufer-]{+Bank+} schloss.\n" in shown
    (row,) = csv.DictReader(Path("out.csv").read_text(encoding="utf-8").splitlines())
    assert (row["correction"], row["reason"], row["translation"]) == ("Die Bank", "'=HYPERLINK(1)", MT)
    assert float(row["agreement"]) == pytest.approx(FIX["agreement"], abs=1e-6)
    assert mbr_esd(f"score out.csv --lp en-de --quiet --only_system --model {MODEL}").out == "out.csv\tscore: 0.8000\n"
    assert Path("fixed.txt").read_text(encoding="utf-8") == "Die Bank schloss.\nEr ging.\n"
    (row,) = load_metric(MODEL).predict([{"src": SOURCE, "mt": MT}], progress_bar=False).rows()
    assert row["corrected"] == "Die Bank schloss."
    assert {key: row["error_spans"][0][key] for key in FIX} == FIX
    mbr_esd("decide candidates.jsonl -o decisions.jsonl")
    first, second = map(json.loads, Path("decisions.jsonl").read_text(encoding="utf-8").splitlines())
    assert {key: first["error_spans"][0][key] for key in FIX} == FIX
    assert first["corrected"] == "Die Bank schloss."
    assert "corrected" not in second
    again, _ = read_decisions("decisions.jsonl")
    assert again.to_json() == first


def test_corrected_translations_are_lines_and_units_that_did_not_change_are_as_they_are(
    files: None, mbr_esd: Command
) -> None:
    Path("old.csv").write_text("source,target\nHe left.,Er ging.\n", encoding="utf-8")
    for source, mt, fixed in ((SOURCE, MT, "Die Bank schloss."), ("He left.", "Er ging.", "Er ging.")):
        Path("t.csv").write_text(f"source,target\nHe left.,Er ging.\n{source},{mt}\n", encoding="utf-8")
        mbr_esd(f"score t.csv --lp en-de --changed-from old.csv --corrected fixed.txt --quiet --model {MODEL}")
        assert Path("fixed.txt").read_text(encoding="utf-8") == f"Er ging.\n{fixed}\n"
    store(*["a\r\nb\u2028c\x1bd\ud800"] * 3)
    mbr_esd(SCORE, "--corrected fixed.txt")
    assert Path("fixed.txt").read_text(encoding="utf-8") == "a b c\ufffdd\ufffd schloss.\nEr ging.\n"


def test_a_model_that_corrects_nothing_has_no_such_keys(files: None, mbr_esd: Command) -> None:
    store(None, None, None)
    mbr_esd(SCORE, "--to_json out.json --to_csv out.csv")
    row = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"][0]
    assert not {"corrected", *FIX} & {*row, *row["errors"][0]}
    assert "correction" not in Path("out.csv").read_text(encoding="utf-8")
