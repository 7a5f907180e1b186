"""What a run over a file counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.decoding.file import decide_file
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError


def test_the_summary_counts_candidates_whether_they_can_be_read_or_not(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    good, bad = {"text": '{"errors": []}', "logprob": -1.0}, {"text": "none", "logprob": -1.0}
    records = [
        {"id": "1", "src": "a", "mt": "b", "candidates": [good, good, bad]},
        {"id": "2", "src": "c", "mt": "d", "candidates": [good, bad, bad, good, good]},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    summary = decide_file(path, tmp_path / "out.jsonl", DecisionOptions())
    assert (summary.segments, summary.candidates, summary.invalid) == (2, 8, 3)
    assert not summary.skipped


def test_a_file_of_another_kind_is_told(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text('{\n    "mt.txt": [\n    ]\n}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"scores\.json: one JSON value over several lines"):
        decide_file(path, tmp_path / "out.jsonl", DecisionOptions())
