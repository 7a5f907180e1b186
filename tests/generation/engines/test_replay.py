"""Candidates from a file in place of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import EngineError, InputError
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines.replay import ReplayEngine


def request(translation: str, n: int, first: int = 0) -> Request:
    return Request(f"key {translation}", "prompt", "grammar", n, first, f"segment {translation}", "src", translation)


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    path = tmp_path / "candidates.jsonl"
    lines = [
        {"id": "1", "src": "src", "mt": "a", "candidates": [{"text": f"a{i}", "logprob": -i / 2} for i in range(3)]},
        {"id": "2", "src": "src", "mt": "b", "candidates": [{"text": "b0", "truncated": True}]},
        {"id": "3", "src": "src", "mt": "a", "candidates": [{"text": "a second time", "logprob": 0}]},
        {"id": "4", "src": "other", "mt": "c", "candidates": [{"text": "c0", "logprob": -1}]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_segments_are_looked_up_by_source_and_translation(candidates: Path) -> None:
    engine = ReplayEngine(EngineOptions(model=str(candidates)))
    parts = list(engine.generate([request("b", 1), request("a", 2, 1)], Sampling()))
    by_key = {part.key: part for part in parts}
    assert by_key["key a"].first == 1
    assert by_key["key a"].samples == (Candidate("a1", logprob=-0.5, tokens=0), Candidate("a2", logprob=-1.0, tokens=0))
    assert by_key["key b"].samples == (Candidate("b0", logprob=None, tokens=0, truncated=True),)
    assert list(engine.generate([], Sampling())) == []


def test_what_the_file_lacks_is_an_error_that_names_the_segment(candidates: Path) -> None:
    engine, greedy = ReplayEngine(EngineOptions(model=str(candidates))), Sampling(temperature=0)
    with pytest.raises(EngineError, match=r"no candidates for segment c \(nor for 1 more\)"):
        list(engine.generate([request("a", 1), request("c", 1), request("d", 1)], Sampling()))
    with pytest.raises(EngineError, match="has 3 candidates for segment a, and 16 are wanted; give n=3"):
        list(engine.generate([request("a", 16)], Sampling()))
    with pytest.raises(EngineError, match="has 3 candidates for segment a, and greedy.*rule=map"):
        list(engine.generate([request("a", 1)], greedy))
    (part,) = engine.generate([request("b", 1)], greedy)
    assert [sample.text for sample in part.samples] == ["b0"]


def test_no_file_and_a_malformed_file(tmp_path: Path) -> None:
    options = EngineOptions(model=str(tmp_path / "none.jsonl"))
    problem = ReplayEngine.problem(options)
    assert problem is not None
    with pytest.raises(EngineError, match="candidates=PATH"):
        ReplayEngine(options)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": "1"\n', encoding="utf-8")
    with pytest.raises(InputError):
        list(ReplayEngine(EngineOptions(model=str(broken))).generate([request("a", 1)], Sampling()))
