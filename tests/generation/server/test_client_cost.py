"""The cost of hosted models, and the time when they may be asked."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment
from tests.helpers.chat_requests import MODEL, QUICK, collect, requests, sampled
from tests.helpers.chat_server import FakeServer, FaultyProxy


def hosted(url: str, most: float | None, concurrency: int) -> ServerEngine:
    options = EngineOptions(MODEL, server=(url,), dialect="openai", concurrency=concurrency)
    return ServerEngine(replace(options, price=(1.0, 10.0), max_cost=most), QUICK)


def test_a_run_stops_when_its_money_is_spent_and_keeps_what_was_paid_for() -> None:
    """Requests under way come in, so the limit may be passed by their cost."""
    most, parts, message = 0.004, list[Generated](), r"max_cost=0\.004 is reached: 0\.00\d+ were spent.*is kept"
    with FakeServer(MODEL, dialect="openai") as server, pytest.raises(EngineError, match=message):
        parts.extend(hosted(server.url, most, 4).generate(requests(60, 16), Sampling(max_tokens=16)))
    samples = collect(parts).values()
    billed = sum(len(body["messages"][0]["content"]) // 4 for body in server.bodies)
    billed += 10 * sum(sample.tokens for sample in samples)
    assert most <= billed / 1e6 <= most + 5 * billed / 1e6 / len(server.bodies)
    assert len(server.bodies) < 60
    assert sum(body["n"] for body in server.bodies) == len(samples)


def test_replies_that_were_lost_are_counted_as_paid() -> None:
    """Every second reply is lost on the way, after the server has worked for it."""
    with (
        FakeServer(MODEL, dialect="openai") as server,
        FaultyProxy(server.url, 0.5, stall=1.0, faults=("drop after", "cut")) as proxy,
        pytest.raises(EngineError, match="max_cost"),
    ):
        list(hosted(proxy.url, 0.006, 1).generate(requests(60, 8), Sampling(max_tokens=16)))
    assert len(server.bodies) < 60


def test_what_is_under_way_comes_in_before_an_error_ends_the_run() -> None:
    """One request is told to come back in two hours, while the others are being answered."""

    parts: list[Generated] = []
    slowly = lambda reply, number: time.sleep(0.5)  # noqa: E731
    with FakeServer(MODEL, dialect="openai", turned_away=1, retry_after="7200", spoil=slowly) as server:
        begun = time.monotonic()
        with pytest.raises(EngineError, match="asks to be left alone for 7200 s"):
            parts.extend(hosted(server.url, None, 4).generate(requests(40, 4), Sampling()))
        assert time.monotonic() - begun < 60
        assert len(parts) == len(server.bodies) == 3
        assert len(server.arrivals) == 4, "more was asked for after the error"


def test_refusals_and_filtered_answers_are_not_paid_for_again() -> None:
    def refuse(value: Any, number: int) -> None:
        first, second, *_ = value["choices"]
        first["message"] |= {"content": None, "refusal": "I cannot help with that."}
        second["message"] |= {"content": None}
        second["finish_reason"] = "content_filter"

    with FakeServer(MODEL, dialect="openai", spoil=refuse) as server:
        first, second, *_ = sampled(server, 1, 4).values()
        assert len(server.bodies) == 1
    assert (first.text, first.truncated) == ("I cannot help with that.", True)
    assert (second.text, second.truncated) == ("", True)


def test_no_key_reaches_store_or_messages(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("MBR_ESD_API_KEY", "sk-very-secret")
    with FakeServer("gpt-4.1", dialect="openai", key="sk-very-secret") as server:
        run = annotate(
            load_card(f"mbr-esd-gpt-4.1?n=4&server={server.url}&store={tmp_path / 'store'}"), [Segment("a", "b", "1")]
        )
        assert set(server.keys) == {"Bearer sk-very-secret"}
    assert "secret" not in run.signature
    assert all(b"very-secret" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
