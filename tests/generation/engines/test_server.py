"""`engine=server` against a fake server: the dialect, retries, and failures told apart."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.prompting.formats.json import output_grammar
from tests.helpers.chat_requests import MODEL, QUICK, closed_port, collect, engine, requests, sampled
from tests.helpers.chat_server import FakeServer


def test_every_setting_is_sent() -> None:
    (request,), sampling = requests(1, 2), Sampling(top_k=0, seed=5, max_tokens=77)
    with FakeServer(MODEL) as server:
        list(engine(server.url).generate([request], sampling))
        (body,) = server.bodies
    assert body["structured_outputs"] == {"regex": output_grammar()}
    assert (body["temperature"], body["top_p"], body["top_k"], body["max_tokens"]) == (2.0, 1.0, 0, 77)
    assert body["seed"] == sampling.seed_of(request) == 189196402770194
    assert body["logprobs"] is True
    assert body["chat_template_kwargs"]["enable_thinking"] is False


def test_a_run_that_is_left_goes_on_with_new_samples() -> None:
    left = threading.Event()

    def spoil(value: Any, number: int) -> None:
        if number > 16:  # at most 16 more are sent after the first 16
            left.wait(60)

    with FakeServer(MODEL, spoil=spoil) as server:
        patient = engine(server.url, policy=dataclasses.replace(QUICK, timeout=60))
        running = patient.generate(requests(20, 32), Sampling())
        first = next(running)
        running.close()
        left.set()
        rest = [r for r in requests(20, 32) if r.key != first.key]
        assert len(collect(engine(server.url).generate(rest, Sampling()))) == 19 * 32
        assert len(server.bodies) <= 2 * 16 + 2 * 19, "the run that was left went on asking"


def test_a_server_that_takes_or_returns_few_samples_gets_further_requests() -> None:
    with FakeServer(MODEL) as server:
        whole = sampled(server, 2, 20)
    with FakeServer(MODEL, most=3) as server:
        assert sampled(server, 2, 20) == whole
    with FakeServer(MODEL, spoil=lambda reply, number: reply.update(choices=reply["choices"][:6])) as server:
        assert sampled(server, 2, 20) == whole
        assert sorted(body["n"] for body in server.bodies) == [4, 4, 4, 4, 10, 10, 16, 16]


@pytest.mark.parametrize(
    ("slots", "concurrency", "busiest"),
    [(4, None, range(1, 6)), (1, None, range(1, 3)), (None, None, range(1, 33)), (1, 6, range(3, 7))],
)
def test_a_server_gets_what_it_can_work_on_or_what_the_run_says(
    slots: int | None, concurrency: int | None, busiest: range
) -> None:
    """One sample a request, so that each is stored when it is done; one request may wait, and no more."""
    with FakeServer(MODEL, dialect="llamacpp", slots=slots, delay=0.05) as server:
        samples = sampled(server, 12, 20, concurrency=concurrency)
        assert not any("n" in body for body in server.bodies)
        assert server.busiest in busiest
        plain = sampled(server, 12, 20, concurrency=16)
    assert len(samples) == 240
    assert {key: one.text for key, one in samples.items()} == {key: one.text for key, one in plain.items()}


@pytest.mark.parametrize(
    ("retry_after", "least"), [(None, (0.05, 0.1, 0.2, 0.2, 0.2)), ("soon", (0.05,)), ("0.4", (0.4,))]
)
def test_each_further_try_waits_twice_as_long_or_as_the_server_says(
    retry_after: str | None, least: tuple[float, ...]
) -> None:
    policy = RetryPolicy(timeout=4.0, first_wait=0.1, longest_wait=0.4, tries=12)
    with FakeServer(MODEL, turned_away=len(least), retry_after=retry_after) as server:
        sampled(server, 1, 1, policy=policy)
    waits = np.diff(server.arrivals)
    assert np.all(waits >= least)
    assert np.all(waits < np.multiply(least, 2) + 2), "a slow machine may add to it"


def test_addresses_are_an_options_or_a_variables_and_no_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBR_ESD_SERVER", "http://a/v1, http://b/v1")
    names = ("mbr-esd-demo?dialect=vllm", "mbr-esd-demo?dialect=vllm&server=http://c,http://d&concurrency=3")
    one, two = (ServerEngine(load_card(name).engine_options) for name in names)
    assert (one.servers, two.servers) == (("http://a/v1", "http://b/v1"), ("http://c", "http://d"))
    assert one.identity == two.identity
    revised = dataclasses.replace(one.options, adapter=None, revision="abc")
    assert ServerEngine(revised).model == f"{revised.model}@abc"


@pytest.mark.parametrize(
    ("url", "model", "message"),
    [
        ("", MODEL, "no server is named: .*MBR_ESD_SERVER"),
        ("localhost:8000", MODEL, "'localhost:8000' is no server address"),
        ("{1}", MODEL, "mostly ends in /v1"),
        ("{2}", MODEL, "no server answers at .*; start the server, or fix the address"),
        ("{0}/v1", MODEL, "the key .*MBR_ESD_API_KEY"),
        ("{1}/v1", "org/wrong", "does not serve 'org/wrong'; it serves 'test-model'.*model=NAME"),
    ],
)
def test_a_server_that_cannot_be_used(url: str, model: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MBR_ESD_API_KEY", raising=False)
    with FakeServer(MODEL, key="secret") as locked, FakeServer(MODEL) as free:
        addresses = [one.url.removesuffix("/v1") for one in (locked, free)]
        options = EngineOptions(model, server=(url.format(*addresses, closed_port()),) if url else ())
        with pytest.raises(EngineError, match=message) as raised:
            ServerEngine(options).load()
        assert ServerEngine(options).problem == str(raised.value)
        assert ServerEngine(EngineOptions(MODEL, server=(free.url,))).problem is None


def test_two_servers_share_the_work_with_32_requests_each_and_one_may_be_down() -> None:
    with FakeServer(MODEL, delay=0.2) as one, FakeServer(MODEL, delay=0.2) as two:
        servers = (one.url, two.url)
        both = collect(ServerEngine(EngineOptions(MODEL, server=servers), QUICK).generate(requests(160, 4), Sampling()))
        assert min(len(one.bodies), len(two.bodies)) >= 20
        assert max(one.busiest, two.busiest) <= 32
        alone = collect(engine(closed_port(), two.url).generate(requests(160, 4), Sampling()))
    assert both == alone


def test_aiohttp_is_needed_only_where_a_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    engine = ServerEngine(EngineOptions("m", server=("http://localhost:9/v1",), dialect="vllm"))
    assert engine.identity == {"engine": "server", "model": "m", "dtype": "auto"}
    assert 'pip install "mbr-esd-metric[server]"' in str(engine.problem)
