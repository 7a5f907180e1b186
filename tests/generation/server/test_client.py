"""Replies that `engine=server` does not take for candidates, the servers that it shows a key, and the cost of a run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server import client
from mbr_esd_metric.generation.server.address import Address, shown
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.sources import Segment
from mbr_esd_metric.prompting.parse import LONGEST_ANSWER
from tests.helpers.chat_requests import MODEL, QUICK, collect, engine, outcome, requests, sampled
from tests.helpers.chat_server import Failure, FakeServer, first_two


def choice(at: int = 0, **change: Any) -> Callable[[dict[str, Any]], object]:
    return lambda reply: reply["choices"][at].update(change)


def message(at: int = 0, **change: Any) -> Callable[[dict[str, Any]], object]:
    return lambda reply: reply["choices"][at]["message"].update(change)


ODD: dict[str, Callable[[dict[str, Any]], object]] = {
    "a text of megabytes": message(content="<think>" * (LONGEST_ANSWER // 6)),
    "a text without tokens": choice(logprobs={"content": []}),
    "no log-probabilities": choice(logprobs=None),
    "an aborted candidate": choice(finish_reason="abort"),
    "an unfinished candidate": choice(finish_reason=None),
    "an index twice": choice(1, index=0),
    "an index too high": choice(1, index=99),
    "another model": lambda reply: reply.update(model="another-model"),
    "no choices": lambda reply: reply.update(choices=[]),
    "one choice too many": lambda reply: reply["choices"].append(reply["choices"][0] | {"index": 8}),
    "only the first choice": lambda reply: reply.update(choices=reply["choices"][:1]),
    "all but the first choice": lambda reply: reply.update(choices=reply["choices"][1:]),
    "choices that are a list of null": lambda reply: reply.update(choices=[None]),
    "a message that is a list": choice(message=["x"]),
    "content in the reasoning": message(content=None, reasoning_content="{}"),
    "prose in place of one candidate": message(1, content="I am sorry"),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD.keys())
def test_an_odd_reply_is_requested_again(change: Callable[[dict[str, Any]], object]) -> None:
    with FakeServer(MODEL) as server:
        whole = sampled(server, 2, 8)
        server.spoil, asked = first_two(change, after=len(server.arrivals)), len(server.bodies)
        assert sampled(server, 2, 8, concurrency=1) == whole
        assert len(server.bodies) > asked + 2, "took the reply as it was"


@pytest.mark.parametrize("name", ["another model", "an aborted candidate", "prose in place of one candidate"])
def test_a_segment_with_odd_replies_alone_is_refused_and_stops_no_other(name: str) -> None:
    def spoil(value: dict[str, Any], number: int) -> None:
        if "number 1 of" in server.bodies[-1]["messages"][0]["content"]:
            ODD[name](value)

    with FakeServer(MODEL, spoil=spoil) as server:
        samples, refusals = outcome(engine(server.url, concurrency=1).generate(requests(3, 4), Sampling()))
    assert {key for key, _ in samples} == {"key0", "key2"}
    assert re.match("http.* failed 3 times in a row, the last time by: ", refusals.pop("key1"))
    assert not refusals


def test_a_candidate_without_a_special_token_is_taken_where_the_server_loses_them() -> None:
    """llama.cpp's grammar takes `<file_sep>` for a span, and the text lacks it: the same seed lacks it again."""

    def spoil(value: Any, number: int) -> None:
        if number % 4 == 1:
            value["choices"][0]["message"]["content"] = "minor  minor <a>"

    with FakeServer(MODEL, dialect="llamacpp", spoil=spoil) as server:
        samples = sampled(server, 3, 4, concurrency=1)
        assert len(server.bodies) == 12
    assert [sample.text for sample in samples.values()].count("minor  minor <a>") == 3


def test_openais_key_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MBR_ESD_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    for url, sent in {
        "https://api.openai.com/v1": True,
        "https://eu.api.openai.com/v1": True,
        "https://openai.com.evil.example/v1": False,
        "https://evil-openai.com/v1": False,
        "https://api.openai.com@evil.example/v1": False,
    }.items():
        assert ("sk-secret" in str(Address.parse(url).headers())) is sent, url


def test_no_password_of_an_address_is_shown() -> None:
    """Passwords with a slash or question mark were taken for a path, and sent to a host with the user's name."""
    malformed = """alice:hunter2@h:1/v1|http:/alice:hunter2@h/v1|http:alice:hunter2@h/v1|ftp://alice:hunter2@h/v1
        |http://alice:hun@ter2@h:x/v1|http://alice:hunter2/@h:x/v1|http://alice:hunter2@h :1/v1
        |http://alice hunter2@h/v1|http://alice:hunter2|http:/alice:hunter2|alice:hunter2|h:1/v1?key=hunter2|http://h:x/v1?key=hunter2#hunter2
        |//alice:hunter2@h/v1|h:1/v1?key=hun@ter2|http://alice:12/ter2@h:1/v1|http://alice:12?ter2@h:1/v1
        |http://h:1/v1?key=hun@ter2"""
    for address in map(str.strip, malformed.split("|")):
        with pytest.raises(EngineError, match="is no server address; write for instance") as raised:
            Address.parse(address)
        assert not re.search("hun|ter2", str(raised.value)), address
    with pytest.raises(EngineError, match="'localhost:8000/v1' is no server address"):
        Address.parse("localhost:8000/v1")
    for text, safe in {
        "http://me:a@b@h:1/v1?key=x": "http://***@h:1/v1?***",
        "http://one:8000/v1, http://two:8000/v1": "http://one:8000/v1, http://two:8000/v1",
        "see http://a:b@host/v1?key=c, and https://host/v1": "***@host/v1?***, and https://host/v1",
    }.items():
        assert shown(text) == safe


def test_netrc_is_not_read_and_proxies_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1\nlogin me\npassword hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "MBR_ESD_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with FakeServer(MODEL) as server:
        sampled(server, 1, 1)
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        asked = len(server.keys)
        assert "404 Not Found" in str(engine("http://outside:8000").problem), "not by the proxy"
        assert len(server.keys) > asked
        monkeypatch.setenv("no_proxy", "outside")
        assert "no server answers" in str(engine("http://outside:8000").problem)
        assert set(server.keys) == {None}


def test_a_slow_reader_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WAITING", 4)
    with FakeServer(MODEL) as server:
        running = engine(server.url, concurrency=2, policy=RetryPolicy()).generate(requests(200, 1), Sampling())
        next(running)
        time.sleep(1.0)
        assert len(server.bodies) <= 4 + 2 + 3, "went on asking though nobody reads"
        assert len(collect(running)) == 199


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
        FakeServer(MODEL, dialect="openai", share=0.5, faults=("drop after", "cut")) as server,
        pytest.raises(EngineError, match="max_cost"),
    ):
        list(hosted(server.url, 0.006, 1).generate(requests(60, 8), Sampling(max_tokens=16)))
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


def test_keys_and_passwords_are_used_and_never_shown_or_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MBR_ESD_API_KEY", "sk-very-secret-key")
    with FakeServer(MODEL, key="sk-very-secret-key") as server:
        name = f"mbr-esd-server?model={MODEL}&n=4&server={server.url}&store={tmp_path / 'store'}"
        assert "secret" not in annotate(load_card(name), [Segment("a", "b", "1")]).signature
        assert set(server.keys) == {"Bearer sk-very-secret-key"}
        assert all(b"very-secret" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    echo = "the key sk-very-secret-key, the password hunter2 and the token to+ken are wrong"
    with FakeServer(MODEL, spoil=lambda value, number: Failure(403, {"error": echo})) as server:
        url = server.url.replace("http://", "http://me:hunter2@") + "?token=to%2Bken"
        _, refusals = outcome(engine(url).generate(requests(1, 1), Sampling()))
        assert server.keys[-1] == "Basic bWU6aHVudGVyMg=="
    assert "403 the key ***, the password *** and the token *** are wrong" in refusals["key0"]
    one = engine(url, model="another")
    for text in (one.problem, one.identity, Address.parse(url), EngineError("a library says sk-very-secret-key")):
        assert not re.search("hunter2|secret", f"{text} {text!r}" if isinstance(text, Address) else str(text))
    Address.parse("http://me:x@h/v1?beta=1")
    assert str(EngineError("tried again in 1 s, x times")) == "tried again in 1 s, x times"
