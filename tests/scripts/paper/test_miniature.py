"""The paper in miniature (`--size ci`): every stage, with the real model, annotations and TRL."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "paper" / "miniature.py"

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(
        importlib.util.find_spec("trl") is None,
        reason="trl is not installed here; the environment of scripts/constraints-new.txt has it",
    ),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, bio_mqm: Path) -> Path:
    """A finished run, made in two parts: what the first left must not be made again by the second."""
    folder, tables = tmp_path_factory.mktemp("miniature"), bio_mqm.parent
    miniature(folder, tables, "--stages", "data", "sft")
    adapter = folder / "sft" / "lora" / "adapter_model.safetensors"
    before = adapter.stat().st_mtime_ns
    assert not (folder / "wmt23.candidates.jsonl").exists()
    miniature(folder, tables, "--stages", "sample", "decide", "pairs", "dpo", "distilled", "table")
    assert adapter.stat().st_mtime_ns == before
    return folder


def miniature(work: Path, data: Path, *arguments: str) -> None:
    command = [sys.executable, str(SCRIPT), "--size", "ci", "--data", str(data), "--work", str(work), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_supervised_start_and_the_preferences_are_learnt(work: Path) -> None:
    supervised, preferences = (json.loads((work / f"{name}.json").read_text("utf-8")) for name in ("sft", "dpo"))
    assert supervised["last_loss"] < 0.7 * supervised["first_loss"]
    assert preferences["first_loss"] == pytest.approx(0.6931, abs=0.02)
    assert preferences["last_loss"] < preferences["first_loss"]
    assert preferences["last_margin"] > 0


def test_every_row_of_the_tables_is_measured(work: Path) -> None:
    wmt, _ = json.loads((work / "table.json").read_text(encoding="utf-8"))
    rows = {row["metric"]: row["en-de"] for row in wmt["rows"]}
    rules = ("map", "majority", "mbr scoresim", "mbr f1", "mbr softf1", "mbr softdice", "mbr-corpus", "oracle softf1")
    assert {"empty", "greedy", "distilled greedy", *(f"{rule} {n}" for rule in rules for n in (4, 8))} <= {*rows}
    assert (rows["empty"]["major"], rows["empty"]["softdice-corpus"]) == (0, 0)
    # The oracle looks at the raters: no rule over the same candidates is better by its own measure.
    for size in (4, 8):
        best = rows[f"oracle softf1 {size}"]["softf1"]
        assert all(best >= rows[f"{rule} {size}"]["softf1"] - 1e-9 for rule in ("map", "mbr softf1"))
    # Not silence: some candidates mark something.
    assert rows["oracle softdice 8"]["softdice-corpus"] > 0
    table = (work / "table.md").read_text(encoding="utf-8")
    assert all(f"| {row} " in table for row in rows)
