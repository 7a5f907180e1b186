"""What the small model learns from, in tokens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tokenizers")

import training_set
from training_rows import held_out

from tests.helpers.made_tokenizer import byte_level_tokenizer


def test_contrasts_of_several_files_are_pairs_that_weigh_as_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    byte_level_tokenizer().save_pretrained(tmp_path)
    for name, count in (("short", 12), ("names", 3)):
        pairs = [
            {"lp": "en-de", "kind": "contrast", "src": f"{name} {i}", "good": f"gut {i}", "bad": f"schlecht {i}",
             "wrong": [[0, 8]], "removed": [], "severity": "major"}
            for i in range(count)
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in pairs), encoding="utf-8")
    output = tmp_path / "rows.npz"
    files = [f"{tmp_path / name}.jsonl={weight}" for name, weight in (("short", 3), ("names", 1))]
    monkeypatch.setattr(sys, "argv", ["training_set.py", str(tmp_path), "--contrast", *files, "-o", str(output)])
    training_set.main()
    made = np.load(output)
    kept = [held_out(f"short {i}", 12) for i in range(12)].count(False)
    kept += [held_out(f"names {i}", 12) for i in range(3)].count(False)
    assert len(made["kind"]) == kept
    assert (np.diff(made["group_ends"], prepend=0) == 2).all(), "a good translation and a wrong one"
    assert made["order"].reshape(-1, 2).tolist() == [[0.0, -3.0]] * kept
    assert made["weight"].sum() == pytest.approx(4.0, rel=1e-6)
    spans = {tuple(span[1:]) for span in made["spans"]}
    assert all(side == 0 and label == 2 for side, _, _, label in spans)
