"""Replies in events: the same samples as at once, what is whole is kept, and the time runs from the first token."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server.event_stream import Arrived
from mbr_esd_metric.generation.server.failures import Odd, Transient
from mbr_esd_metric.generation.server.patience import Patience
from tests.helpers.asking import MODEL, QUICK, collect, requests
from tests.helpers.chat_server import FakeServer, FaultyProxy

IMPATIENT = Patience(timeout=3.0, first_wait=0.01, longest_wait=0.05, tries=12)


def llamacpp(url: str, patience: Patience = QUICK) -> ServerEngine:
    return ServerEngine(EngineOptions(model=MODEL, server=(url,), dialect="llamacpp"), patience)


def of(**fields: object) -> bytes:
    return f"data: {json.dumps({'choices': [], **fields})}\n\n".encode()


def piece(index: object, text: object = None, finish: str | None = None) -> bytes:
    return of(choices=[{"index": index, "delta": {"content": text}, "finish_reason": finish}])


def test_samples_are_those_of_a_reply_at_once() -> None:
    with FakeServer(MODEL, dialect="llamacpp") as server:
        whole = collect(llamacpp(server.url).generate(requests(5, 24), Sampling()))
    with FakeServer(MODEL, dialect="llamacpp", slots=16) as server:
        streamed = collect(llamacpp(server.url).generate(requests(5, 24), Sampling()))
        assert all(body["stream"] for body in server.bodies)
    assert {key: (one.text, one.truncated) for key, one in streamed.items()} == {
        key: (one.text, one.truncated) for key, one in whole.items()
    }
    assert sum(one.tokens for one in streamed.values()) > 0


def test_what_is_whole_of_a_reply_that_takes_too_long_is_kept() -> None:
    """The last 5 of 8 come; the first 3 are asked for again, in halves, and no other."""
    with FakeServer(MODEL, dialect="llamacpp", slots=8, stalls=[(5, 8.0)]) as server:
        found = collect(llamacpp(server.url, IMPATIENT).generate(requests(1, 8), Sampling()))
        assert len(found) == 8
        assert sorted(body["n"] for body in server.bodies) == [1, 2, 8]
    with FakeServer(MODEL, dialect="llamacpp") as server:
        whole = collect(llamacpp(server.url).generate(requests(1, 8), Sampling()))
    assert {key: one.text for key, one in found.items()} == {key: one.text for key, one in whole.items()}


def test_a_server_that_was_slow_once_is_asked_for_events() -> None:
    with FakeServer(MODEL, delay=6.0) as server:
        options = EngineOptions(model=MODEL, server=(server.url,), dialect="vllm", concurrency=1)
        engine = ServerEngine(options, IMPATIENT)

        def later() -> None:
            while not server.arrivals:
                time.sleep(0.01)
            server.delay = 0.0

        threading.Thread(target=later, daemon=True).start()
        found = collect(engine.generate(requests(1, 4), Sampling()))
        assert len(found) == 4
        assert [body.get("stream") for body in server.bodies if body["n"] < 4] == [True, True]
        assert all(one.logprob is not None for one in found.values())


def test_time_in_the_queue_does_not_count() -> None:
    """A reply that has to wait for others, longer than a request may take, is waited for."""
    queue, patience = threading.Lock(), Patience(timeout=4.0, first_wait=0.01)

    def in_turn(value: object, number: int) -> object:
        with queue:
            time.sleep(1.1)
        return value

    with FakeServer(MODEL, dialect="llamacpp", slots=64, spoil=in_turn) as server:
        found = collect(llamacpp(server.url, patience).generate(requests(5, 1), Sampling()))
        assert len(found) == len(server.bodies) == 5, "one was given up"


def test_faults_lose_and_double_nothing() -> None:
    with FakeServer(MODEL, dialect="llamacpp", slots=64) as server:
        clean = collect(llamacpp(server.url).generate(requests(12, 64), Sampling()))
        with FaultyProxy(server.url, 0.3, stall=4.5) as proxy:
            spoilt = collect(llamacpp(proxy.url).generate(requests(12, 64), Sampling()))
    assert proxy.faults
    assert {key: one.text for key, one in spoilt.items()} == {key: one.text for key, one in clean.items()}


def test_a_server_that_sends_nothing_is_given_up() -> None:
    patience = Patience(timeout=0.5, first_wait=0.01, longest_wait=0.05, tries=2)
    with FakeServer(MODEL, dialect="llamacpp", slots=4) as server:
        running = llamacpp(server.url, patience)
        server.delay = 3.0
        with pytest.raises(EngineError, match="failed 2 times in a row, .*no whole reply within 0.5 s"):
            list(running.generate(requests(1, 1), Sampling()))


def test_pieces_of_events_are_put_together() -> None:
    said = b": comment\n" + piece(1, "wö") + piece(0, "a") + piece(1, "rt", "stop") + piece(3, "", "length")
    arrived = Arrived()
    noted = [arrived.take(said[i : i + 1]) for i in range(len(said))]
    assert sum(noted) == 4
    assert [(one["index"], one["message"]["content"]) for one in arrived.whole()["choices"]] == [(1, "wört"), (3, "")]
    assert [(first, len(value["choices"])) for first, value in arrived.runs()] == [(1, 1), (3, 1)]
    assert not arrived.ended
    assert not arrived.take(of(usage={"prompt_tokens": 7, "completion_tokens": 2}) * 2 + b"data: [DONE]\n")
    assert arrived.ended
    assert arrived.whole()["usage"] == {"prompt_tokens": 7, "completion_tokens": 4}, "llama.cpp counts choice by choice"


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (b"data: {\n", Transient),
        (b"data: " + b"[" * 100_000 + b"\n", Transient),
        (b"data: 3\n", Odd),
        (of(error={"message": "\x1b[31mno memory"}), Transient),
        (piece(None, "a"), Odd),
        (piece(True, "a"), Odd),
        (piece(10**30, 3), Odd),
        (of(choices=[3]), Odd),
        (of(choices=[{"index": 0, "logprobs": {"content": 3}}]), Odd),
    ],
)
def test_an_odd_event_is_one_error(event: bytes, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        Arrived().take(event)
    assert "\x1b" not in str(raised.value)


def test_an_event_in_many_pieces_is_put_together_in_no_time() -> None:
    arrived = Arrived()
    began = time.process_time()
    for _ in range(40_000):
        arrived.take(b"x" * 100)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    "usage", [{"completion_tokens": 10**400}, {"completion_tokens": -1}, {"prompt_tokens": "3"}, 7]
)
def test_odd_counts_are_none(usage: object) -> None:
    arrived = Arrived()
    arrived.take(of(usage=usage))
    counted = arrived.whole()["usage"]
    assert not isinstance(counted, Mapping) or counted == {"prompt_tokens": 0, "completion_tokens": 0}
