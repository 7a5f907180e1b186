"""Predictions of every rule, format, unit, source of candidates and score, held to stored ones, with keys of the store.

What is meant to change a prediction writes the file anew: ``python tests/golden/make_predictions.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from tests.golden.make_predictions import PATH, cases, outcome, rounded

STORED = json.loads(PATH.read_text(encoding="utf-8"))
CASES = list(cases())


@pytest.mark.parametrize(("name", "options"), CASES, ids=[name for name, _ in CASES])
def test_a_prediction_is_the_stored_one(
    name: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path))
    assert rounded(outcome(name, options)) == STORED[name]


def test_no_stored_prediction_is_left_over() -> None:
    assert list(STORED) == [name for name, _ in CASES]
