"""`engine=server` against a fake server: the dialect, retries, and failures told apart."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.elicit.formats.json import output_grammar
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.model_files import model_name
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.metric.cards import load_card
from tests.helpers.chat_requests import MODEL, QUICK, closed_port, collect, engine, requests
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

    def spoil(value: Any, number: int) -> Any:
        if number > 16:  # at most 16 more are sent after the first 16
            left.wait(60)
        return value

    with FakeServer(MODEL, spoil=spoil) as server:
        running = engine(server.url, policy=dataclasses.replace(QUICK, timeout=60)).generate(
            requests(20, 32), Sampling()
        )
        first = next(running)
        running.close()
        left.set()
        rest = [r for r in requests(20, 32) if r.key != first.key]
        assert len(collect(engine(server.url).generate(rest, Sampling()))) == 19 * 32
        assert len(server.bodies) <= 2 * 16 + 2 * 19, "the run that was left went on asking"


def test_a_server_that_takes_or_gives_few_samples_is_asked_for_the_rest() -> None:
    with FakeServer(MODEL) as server:
        whole = collect(engine(server.url).generate(requests(2, 20), Sampling()))
    with FakeServer(MODEL, most=3) as server:
        assert collect(engine(server.url).generate(requests(2, 20), Sampling())) == whole
    with FakeServer(MODEL, short=6) as server:
        assert collect(engine(server.url).generate(requests(2, 20), Sampling())) == whole
        assert sorted(body["n"] for body in server.bodies) == [4, 4, 4, 4, 10, 10, 16, 16]


@pytest.mark.parametrize(
    ("slots", "concurrency", "n", "busiest"),
    [(4, None, 1, range(1, 6)), (1, None, 1, range(1, 3)), (None, None, 16, range(1, 33)), (1, 6, 16, range(3, 7))],
)
def test_a_server_gets_what_it_can_work_on_or_what_the_run_says(
    slots: int | None, concurrency: int | None, n: int, busiest: range
) -> None:
    """One sample a request, so that each is stored when it is done; one request may wait, and no more."""
    with FakeServer(MODEL, dialect="llamacpp", slots=slots, delay=0.05) as server:
        options = EngineOptions(model=MODEL, server=(server.url,), dialect="llamacpp", concurrency=concurrency)
        found = collect(ServerEngine(options, QUICK).generate(requests(12, 20), Sampling()))
        assert len(found) == 240
        assert max(body["n"] for body in server.bodies) == n
        assert server.busiest in busiest
        plain = collect(engine(server.url).generate(requests(12, 20), Sampling()))
    assert {key: sample.text for key, sample in found.items()} == {key: sample.text for key, sample in plain.items()}


def test_each_further_try_waits_twice_as_long() -> None:
    policy = RetryPolicy(timeout=4.0, first_wait=0.1, longest_wait=0.4, tries=12)
    with FakeServer(MODEL, turned_away=5) as server:
        list(engine(server.url, policy=policy).generate(requests(1, 1), Sampling()))
    waits = [later - earlier for earlier, later in zip(server.arrivals, server.arrivals[1:], strict=False)]
    for failures, (wait, most) in enumerate(zip(waits, (0.1, 0.2, 0.4, 0.4, 0.4), strict=True), 1):
        assert most / 2 <= wait < most + 2, "a slow machine may add to it"
        assert most / 2 <= policy.wait(failures) <= most


@pytest.mark.parametrize(("said", "waited"), [("0.4", 0.4), ("soon", 0.0)])
def test_a_server_that_says_when_to_come_back_is_asked_then(said: str, waited: float) -> None:
    """An answer that is no number is as none."""
    with FakeServer(MODEL, turned_away=1, retry_after=said) as server:
        list(engine(server.url).generate(requests(1, 1), Sampling()))
    first, second = server.arrivals
    assert waited <= second - first < waited + 2


@pytest.mark.parametrize("how", ["option", "environment"])
def test_the_address_is_taken_from_option_and_environment(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("src", "mt"):
        (tmp_path / file).write_text("".join(f"{file} {i}\n" for i in range(12)))
    model = model_name(load_card("mbr-esd-demo").engine_options("server"))
    monkeypatch.setenv("MBR_ESD_STORE", str(tmp_path / "store"))
    with FakeServer(model) as one, FakeServer(model) as two:
        both = f"{one.url}, {two.url}"
        monkeypatch.setenv("MBR_ESD_SERVER", both if how == "environment" else closed_port())
        given = f"&server={both.replace(' ', '')}" if how == "option" else ""
        files = ["-s", str(tmp_path / "src"), "-t", str(tmp_path / "mt")]
        assert main(["score", *files, "--model", f"mbr-esd-demo?engine=server{given}", "--quiet"]) == 0
    assert min(len(one.bodies), len(two.bodies)) > 0
    assert len(one.bodies) + len(two.bodies) == 12


def test_a_wrong_model_name_lists_what_is_served() -> None:
    with FakeServer("org/right-model") as server:
        with pytest.raises(EngineError, match=r"does not serve 'org/wrong'; it serves 'org/right-model'.*model=NAME"):
            engine(server.url, model="org/wrong")
        options = EngineOptions(model="org/wrong", server=(server.url,))
        assert "org/right-model" in str(ServerEngine.problem(options))
        assert ServerEngine.problem(dataclasses.replace(options, model="org/right-model")) is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Invalid grammar: structured_outputs.regex", "refuses the grammar .*mbr-esd serve sets a backend"),
        ("logit_bias is wrong", "refuses the request .*logit_bias is wrong"),
    ],
)
def test_what_a_server_refuses_is_said(said: str, expected: str) -> None:
    with FakeServer(MODEL, refuse=said) as server, pytest.raises(EngineError, match=expected):
        list(engine(server.url).generate(requests(200, 1), Sampling()))
    assert len(server.bodies) < 200, "goes on though nothing can succeed"


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="MBR_ESD_SERVER"):
        engine()
    with pytest.raises(EngineError, match="'localhost:8000' is no server address"):
        engine("localhost:8000")
    with FakeServer(MODEL) as server, pytest.raises(EngineError, match="mostly ends in /v1"):
        engine(server.url.removesuffix("/v1"))
    with pytest.raises(EngineError, match="no server answers at .*; start the server, or fix the address"):
        engine(closed_port())
    monkeypatch.delenv("MBR_ESD_API_KEY", raising=False)
    with FakeServer(MODEL, key="secret") as server, pytest.raises(EngineError, match="the key .*MBR_ESD_API_KEY"):
        engine(server.url)


def test_a_dead_server_is_given_up_with_the_fix() -> None:
    with FakeServer(MODEL) as server:
        running = engine(server.url, policy=dataclasses.replace(QUICK, tries=3))
    with pytest.raises(EngineError, match="failed 3 times in a row.*start it again.*sampled is kept"):
        list(running.generate(requests(2, 2), Sampling()))


def test_two_servers_share_the_work_and_one_may_be_down() -> None:
    with FakeServer(MODEL) as one, FakeServer(MODEL) as two:
        both = collect(engine(one.url, two.url).generate(requests(40, 16), Sampling()))
        assert min(len(one.bodies), len(two.bodies)) >= 5
        alone = collect(engine(closed_port(), two.url).generate(requests(40, 16), Sampling()))
    assert both == alone


def test_model_names() -> None:
    assert model_name(EngineOptions(model="org/name")) == "org/name"
    assert model_name(EngineOptions(model="org/name", revision="abc")) == "org/name@abc"
    identity = ServerEngine.identity(EngineOptions(model="org/name", server=("http://a/v1",), concurrency=3))
    assert identity == ServerEngine.identity(EngineOptions(model="org/name", server=("http://b/v1",)))
