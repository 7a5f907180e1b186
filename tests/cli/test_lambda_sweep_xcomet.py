"""The file that `comet-score --to_json` writes for the real XCOMET class, with random weights, swept and calibrated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.metaeval.evaluation import LAMBDAS
from tests.helpers.comet_checkpoint import make_checkpoint
from tests.helpers.command import Command
from tests.helpers.wmt_folder import write_folder

WHERE = ["--test-set", "data/made", "--lp", "en-de"]


@pytest.mark.comet
def test_a_sweep_and_a_calibration_of_comets_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command
) -> None:
    comet = pytest.importorskip("comet.cli.score", reason="needs unbabel-comet")
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "data")
    test_set = load_test_set(tmp_path / "data", "made", "en-de")
    systems = [f"{system}.txt" for system in test_set.systems]
    texts = [test_set.sources, *([text or "" for text in test_set.outputs[system]] for system in test_set.systems)]
    for name, lines in zip(["src.txt", *systems], texts, strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    checkpoint = make_checkpoint(tmp_path / "toy")
    command = (
        f"comet-score -s src.txt -t {' '.join(systems)} --to_json xcomet.json --model {checkpoint} --gpus 0 --quiet"
    )
    monkeypatch.setattr("sys.argv", command.split())
    comet.score_command()
    written = json.loads(Path("xcomet.json").read_text(encoding="utf-8"))
    confidences = [
        error["confidence"]
        for scores, rows in zip(test_set.gold, written.values(), strict=True)
        for row, gold in zip(rows, scores, strict=True)
        if gold == gold  # unrated segments have NaN
        for error in row.get("errors", ())
    ]
    assert len(set(confidences)) > 20

    rows = json.loads(mbr_esd("lambda-sweep --metric xcomet.json", *WHERE, "--table json").out)["rows"]
    spans_left = [row["en-de"]["major"] + row["en-de"]["minor"] for row in rows]
    assert spans_left == [sum(confidence >= threshold for confidence in confidences) for threshold in LAMBDAS]
    assert len(set(spans_left)) > 2

    table, *_ = json.loads(mbr_esd("calibrate xcomet.json", *WHERE, "--metric spans-src --table json").out)
    (row,) = (row for row in table["rows"] if (row["metric"], row["level"]) == ("xcomet", "span"))
    assert row["predicted"] == len(confidences)
    assert row["confidence"] == pytest.approx(sum(confidences) / len(confidences))
