"""Requests of `engine=vllm` on their way to vLLM and back, with an engine made for the tests in place of vLLM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import Request, Sampling
from mbr_esd_metric.generation.engines import vllm as module
from mbr_esd_metric.generation.engines.vllm import VllmEngine


class Model:
    """Finishes one request a step, the one that came first; a token is a character."""

    def __init__(self, fails_at: int = 1000) -> None:
        self.llm_engine, self.steps, self.fails_at = self, 0, fails_at
        self.waiting: list[tuple[str, int]] = []
        self.added: list[str] = []

    def get_tokenizer(self) -> Any:
        return SimpleNamespace(apply_chat_template=lambda conversation, **_: list(conversation[0]["content"]))

    def add_request(self, name: str, prompt: dict[str, list[str]], n: int, lora_request: object) -> None:
        self.waiting.append((name, n))
        self.added.append("".join(prompt["prompt_token_ids"]))
        assert sum(n for _, n in self.waiting) <= 8

    def abort_request(self, names: list[str]) -> None:
        self.waiting = [one for one in self.waiting if one[0] not in names]

    def step(self) -> list[Any]:
        self.steps += 1
        if self.steps > self.fails_at:
            raise Exception("the engine died")  # as vLLM's `EngineDeadError` is, and nothing narrower
        name, n = self.waiting.pop(0)
        done = SimpleNamespace(text=name, cumulative_logprob=-1.0, token_ids=[1], finish_reason="stop")
        return [SimpleNamespace(finished=True, request_id=name, outputs=[done] * n)]


def engine(model: Model, monkeypatch: pytest.MonkeyPatch) -> VllmEngine:
    monkeypatch.setattr(module, "SEQUENCES", 8)
    monkeypatch.setattr(module, "sampling_parameters", lambda request, sampling: request.n)
    made = VllmEngine.__new__(VllmEngine)
    made.__dict__.update(_llm=model, _context=100)
    return made


def requests(count: int) -> list[Request]:
    return [Request(f"key{i}", f"prompt {i}", ".*", 4, 2, f"segment {i}") for i in range(count)]


def test_a_request_takes_the_place_of_one_that_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    parts = engine(model, monkeypatch).generate(requests(10), Sampling(max_tokens=10))
    first = next(parts)
    assert (first.key, first.first, len(first.samples)) == ("key0", 2, 4)
    assert len(model.added) == 2, "everything is handed over before the first is back"
    assert [part.key for part in parts] == [f"key{i}" for i in range(1, 10)]
    assert model.added == [f"prompt {i}" for i in range(10)]


def test_a_prompt_that_is_too_long_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    every = requests(4)
    every[1] = Request("long", "x" * 95, ".*", 4, 0, "segment of many words")
    parts = engine(Model(), monkeypatch).generate(every, Sampling(max_tokens=10))
    assert [next(parts).key for _ in range(3)] == ["key0", "key2", "key3"]
    with pytest.raises(EngineError, match=r"segment of many words: .* have 105 tokens.*len:105\. sampled"):
        next(parts)


def test_a_failure_names_the_segments_and_stops_them(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(fails_at=1)
    parts = engine(model, monkeypatch).generate(requests(3), Sampling(max_tokens=10))
    assert next(parts).key == "key0"
    with pytest.raises(EngineError, match=r"vLLM failed on segment 1, segment 2 \.\.\.: the engine died"):
        next(parts)
    assert model.waiting == [], "also where a reader stops"
