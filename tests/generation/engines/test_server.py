"""`engine=server` against a fake server: settings, retries, what replies and failures mean, keys, and costs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server import client
from mbr_esd_metric.generation.server.address import Address, shown
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.generation.server.dialects import DIALECTS, Query
from mbr_esd_metric.generation.server.failures import failure_of, retry_after
from mbr_esd_metric.generation.server.http import InvalidResponse, NotFound, RequestRejected, Response, TransientError
from mbr_esd_metric.generation.server.replies import read_reply, total_logprob
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.prompting.formats.json import output_grammar
from mbr_esd_metric.prompting.parse import LONGEST_ANSWER
from tests.helpers.chat_requests import MODEL, QUICK, closed_port, collect, engine, outcome, requests, sampled
from tests.helpers.chat_server import Failure, FakeServer


def test_every_setting_is_sent() -> None:
    with FakeServer(MODEL) as server:
        list(engine(server.url).generate(requests(1, 2), Sampling(top_k=0, seed=5, max_tokens=77)))
    settings = {"temperature": 2.0, "top_p": 1.0, "min_p": 0.0, "top_k": 0, "max_tokens": 77, "seed": 189196402770194}
    template = {"date_string": "26 Jul 2024", "enable_thinking": False}
    more = {"model": MODEL, "n": 2, "logprobs": True, "chat_template_kwargs": template, **settings}
    messages = [{"role": "user", "content": requests(1, 2)[0].prompt}]
    assert server.bodies == [{**more, "messages": messages, "structured_outputs": {"regex": output_grammar()}}]


def test_a_run_that_is_left_stops_asking() -> None:
    with FakeServer(MODEL, delay=0.1) as server:
        running = engine(server.url).generate(requests(200, 1), Sampling())
        next(running)
        running.close()
        asked = len(server.bodies)
        time.sleep(0.5)
    assert len(server.bodies) <= asked + 16 < 200


def test_a_server_that_returns_few_samples_gets_further_requests() -> None:
    with FakeServer(MODEL) as server:
        whole = sampled(server, 2, 20)
    with FakeServer(MODEL, spoil=lambda reply, number: reply.update(choices=reply["choices"][:6])) as server:
        assert sampled(server, 2, 20) == whole
        assert sorted(body["n"] for body in server.bodies) == [4, 4, 4, 4, 10, 10, 16, 16]


@pytest.mark.parametrize(
    ("slots", "concurrency", "busiest"), [(4, None, range(1, 6)), (None, None, range(1, 33)), (1, 6, range(3, 7))]
)
def test_a_server_gets_what_it_can_work_on_or_what_the_run_says(
    slots: int | None, concurrency: int | None, busiest: range
) -> None:
    """One request may wait, and no more."""
    with FakeServer(MODEL, dialect="llamacpp", slots=slots, delay=0.05) as server:
        assert len(sampled(server, 12, 10, concurrency=concurrency)) == 120
    assert server.busiest in busiest


@pytest.mark.parametrize(("retry_after", "least"), [("", (0.05, 0.1, 0.2, 0.2, 0.2)), ("0.4", (0.4,))])
def test_each_further_try_waits_twice_as_long_or_as_the_server_says(retry_after: str, least: tuple[float, ...]) -> None:
    policy = RetryPolicy(timeout=4.0, first_wait=0.1, longest_wait=0.4, tries=12)
    away = Failure(429, {"error": "slow down"}, {"Retry-After": retry_after})
    with FakeServer(MODEL, spoil=lambda value, number: away if number <= len(least) else None) as server:
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
    revised = replace(one.options, adapter=None, revision="abc")
    assert ServerEngine(revised).model == f"{revised.model}@abc"


@pytest.mark.parametrize(
    ("url", "model", "message"),
    [
        ("", MODEL, "no server given: .*MBR_ESD_SERVER"),
        ("localhost:8000", MODEL, "'localhost:8000' is not a server address"),
        ("{1}", MODEL, "usually ends in /v1"),
        ("{2}", MODEL, "no server answers at .*; start the server, or fix the address"),
        ("{0}/v1", MODEL, "the API key .*MBR_ESD_API_KEY"),
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


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_still_loading_has_no_wrong_address(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(MODEL) as server:
        monkeypatch.setattr(server, "describe", lambda path: (status, {"error": {"message": "Loading model"}}))
        problem = ServerEngine(EngineOptions(MODEL, server=(server.url,))).problem
    assert "Loading model); it may be busy, or still loading" in str(problem)


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
    assert re.search(r'pip install (-e )?".+\[server]"', str(engine.problem))


def choice(at: int = 0, **change: Any) -> Callable[[dict[str, Any]], object]:
    return lambda reply: reply["choices"][at].update(change)


def message(at: int = 0, **change: Any) -> Callable[[dict[str, Any]], object]:
    return lambda reply: reply["choices"][at]["message"].update(change)


ODD: dict[str, Callable[[dict[str, Any]], object]] = {
    "a text of megabytes": message(content="<think>" * (LONGEST_ANSWER // 6)),
    "a text without tokens": choice(logprobs={"content": []}),
    "no log-probabilities": choice(logprobs=None),
    "an aborted candidate": choice(finish_reason="abort"),
    "an index twice": choice(1, index=0),
    "another model": lambda reply: reply.update(model="another-model"),
    "no choices": lambda reply: reply.update(choices=[]),
    "one choice too many": lambda reply: reply["choices"].append(reply["choices"][0] | {"index": 8}),
    "all but the first choice": lambda reply: reply.update(choices=reply["choices"][1:]),
    "a message that is a list": choice(message=["x"]),
    "content in the reasoning": message(content=None, reasoning_content="{}"),
    "prose in place of one candidate": message(1, content="I am sorry"),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD.keys())
def test_an_odd_reply_is_no_answer(change: Callable[[dict[str, Any]], object]) -> None:
    query = Query(*requests(1, 8), MODEL, Sampling(), DIALECTS["vllm"])
    with FakeServer(MODEL) as server:
        _, reply = server.complete(query.body)
    assert len(read_reply(query, reply, Address.parse(server.url)).samples) == 8
    change(reply)
    with pytest.raises(InvalidResponse):
        read_reply(query, reply, Address.parse(server.url))


def test_a_segment_with_odd_replies_alone_is_refused_and_stops_no_other() -> None:
    def spoil(value: dict[str, Any], number: int) -> None:
        if "number 1 of" in server.bodies[-1]["messages"][0]["content"]:
            ODD["prose in place of one candidate"](value)

    with FakeServer(MODEL, spoil=spoil) as server:
        samples, refusals = outcome(engine(server.url, concurrency=1).generate(requests(3, 4), Sampling()))
    assert {key for key, _ in samples} == {"key0", "key2"}
    assert re.match("http.* failed 3 times in a row, the last time by: ", refusals.pop("key1"))
    assert not refusals


def test_a_candidate_without_a_special_token_is_taken_where_the_server_loses_them() -> None:
    """llama.cpp's grammar takes `<file_sep>` for a span, and the text lacks it: the same seed lacks it again."""
    lost = {"message": {"content": "minor  <a>"}, "index": 0}
    with FakeServer(MODEL, dialect="llamacpp", spoil=lambda *_: {"choices": [lost]}) as server:
        assert {one.text for one in sampled(server, 3, 4).values()} == {"minor  <a>"}
    assert len(server.bodies) == 12


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
    """A slash or question mark in a password begins no path; else the host would be the user's name."""
    malformed = """alice:hunter2@h:1/v1|http:alice:hunter2@h/v1|ftp://alice:hunter2@h/v1|http://alice:hun@ter2@h:x/v1
        |http://alice:hunter2@h :1/v1|http://alice:hunter2|h:1/v1?key=hunter2|http://h:x/v1?key=hunter2#hunter2
        |http://alice:12/ter2@h:1/v1|http://alice:12?ter2@h:1/v1|http://h:1/v1?key=hun@ter2"""
    for address in map(str.strip, malformed.split("|")):
        with pytest.raises(EngineError, match="is not a server address; use a form such as") as raised:
            Address.parse(address)
        assert not re.search("hun|ter2", str(raised.value)), address
    for text, safe in {
        "http://me:a@b@h:1/v1?key=x": "http://***@h:1/v1?***",
        "see http://a:b@host/v1?key=c, and https://host/v1": "***@host/v1?***, and https://host/v1",
    }.items():
        assert shown(text) == safe


def test_a_reply_that_names_its_plain_encoding_is_read() -> None:
    for name in ("Identity", "", " identity "):
        plain = lambda value, number, name=name: Failure(200, value, {"Content-Encoding": name})  # noqa: E731
        with FakeServer(MODEL, spoil=plain) as server:
            assert len(sampled(server, 1, 2)) == 2


def test_netrc_is_not_read_and_proxies_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1\nlogin me\npassword hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "MBR_ESD_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with FakeServer(MODEL) as server:
        sampled(server, 1, 1)
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        assert "404 Not Found" in str(engine("http://outside:8000").problem), "not by the proxy"
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
    most, parts, message = 0.004, list[Generated](), r"max_cost=0\.004 is reached: 0\.00\d+ was spent.*are kept"
    with FakeServer(MODEL, dialect="openai") as server, pytest.raises(EngineError, match=message):
        parts.extend(hosted(server.url, most, 4).generate(requests(60, 16), Sampling(max_tokens=16)))
    samples = collect(parts).values()
    billed = sum(len(body["messages"][0]["content"]) // 4 for body in server.bodies)
    billed += 10 * sum(sample.tokens for sample in samples)
    assert most <= billed / 1e6 <= most + 5 * billed / 1e6 / len(server.bodies)
    assert len(server.bodies) < 60
    assert sum(body["n"] for body in server.bodies) == len(samples)


def test_replies_that_were_lost_are_counted_as_paid() -> None:
    lossy = FakeServer(MODEL, dialect="openai", share=0.5, faults=("drop after", "cut"))
    with lossy as server, pytest.raises(EngineError, match="max_cost"):
        list(hosted(server.url, 0.006, 1).generate(requests(60, 8), Sampling(max_tokens=16)))
    assert len(server.bodies) < 60


def test_what_is_under_way_comes_in_before_an_error_ends_the_run() -> None:
    """One request is told to come back in two hours, while the others are being answered."""
    parts: list[Generated] = []

    def spoil(value: Any, number: int) -> Failure | None:
        time.sleep(0.5 * (number > 1))
        return Failure(429, {}, {"Retry-After": "7200"}) if number == 1 else None

    with FakeServer(MODEL, dialect="openai", spoil=spoil) as server:
        begun = time.monotonic()
        with pytest.raises(EngineError, match="requests a pause of 7200 s"):
            parts.extend(hosted(server.url, None, 4).generate(requests(40, 4), Sampling()))
        assert time.monotonic() - begun < 60
        assert len(parts) == 3
        assert len(server.bodies) == 4, "more was asked for after the error"


def test_keys_and_passwords_are_used_and_never_shown_or_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MBR_ESD_API_KEY", "sk-very-secret-key")
    with FakeServer(MODEL, key="sk-very-secret-key") as server:
        name = f"mbr-esd-server?model={MODEL}&n=4&server={server.url}"
        assert "secret" not in str(annotate(load_card(name), [Segment("a", "b", "1")]).signature)
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


QUOTA = {"error": {"code": "429", "message": "the call rate limit; for a higher quota see billing and credit"}}
SPENT = {"error": {"message": "no", "type": "insufficient_quota", "code": "insufficient_quota"}}
TEMPERATURE = {"type": "less_than_equal", "loc": ["body", "temperature"], "msg": "Input should be at most 1.5"}
FILTER = {"error": {"code": "content_filter", "status": 400, "message": "the grammar of your prompt, model, n, quota"}}


@pytest.mark.parametrize(
    ("status", "body", "expected", "message"),
    [
        (429, QUOTA, TransientError, "429 the call rate limit; for a higher quota see billing and credit"),
        (429, SPENT, EngineError, "h/v1: 429 no; sampled candidates are kept"),
        (402, {"detail": "Payment is due"}, EngineError, "402 Payment is due"),
        (503, {"error": {"message": "Loading model", "type": "unavailable_error"}}, TransientError, "503 Loading"),
        (500, "<html><body><h1>Oops</h1>\n", TransientError, "500 Oops$"),
        (401, {"error": "who are you?"}, EngineError, r"rejects the API key \(401 who are you\?\); set MBR"),
        (404, {"detail": "Not Found"}, NotFound, r"404 Not Found; check the model name and the address.*/v1"),
        (404, {"error": {"message": "m", "code": "model_not_found"}}, RequestRejected, r"404 m; check the model name"),
        (400, {"error": {"message": "wait", "code": "model_loading"}}, TransientError, "400 wait$"),
        (498, {"error": {"message": "no capacity"}}, TransientError, "498 no capacity$"),
        (499, {"error": {"message": "closed"}}, TransientError, "499 closed$"),
        (413, {"error": {"message": "TPM", "code": "rate_limit_exceeded"}}, TransientError, "413 TPM$"),
        (413, "<h1>Request Entity Too Large</h1>", RequestRejected, "Too Large; the server, or a proxy"),
        (500, {"error": {"message": "9 tokens", "type": "exceed_context_size_error"}}, RequestRejected, "context"),
        (403, {"error": {"message": "You have run out of credits"}}, RequestRejected, "403 You have .* credits$"),
        (400, FILTER, RequestRejected, "400 the grammar of your prompt, model, n, quota$"),
        (422, {"detail": [TEMPERATURE]}, RequestRejected, "422 temperature: Input should be at most 1.5"),
        (422, {"object": "error", "message": {"detail": [TEMPERATURE]}}, RequestRejected, "422 temperature: Input"),
        (400, {"error": {"message": "9 tokens", "code": "context_length_exceeded"}}, RequestRejected, "tokens; serve"),
        (200, {"error": {"code": 502, "message": "upstream"}}, TransientError, "502 upstream"),
        (200, {"error": {"code": "403", "message": "flagged"}}, RequestRejected, "403 flagged"),
        (200, {"error": "no words of ours"}, InvalidResponse, "no answer: no words of ours"),
    ],
)  # fmt: skip
def test_status_and_documented_codes_decide_and_the_servers_words_are_shown(
    status: int, body: object, expected: type[Exception], message: str
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = failure_of(Response(status, {}, raw), Address.parse("http://h/v1"))
    assert type(error) is expected
    with pytest.raises(expected, match=message):
        raise error


def test_a_refusal_with_a_time_to_come_back_passes() -> None:
    for status in (400, 403, 413, 422, 500):
        raised = failure_of(Response(status, {"retry-after": "3"}, b"{}"), Address.parse("http://h/v1"))
        assert isinstance(raised, TransientError)
        assert (raised.wait, raised.busy) == (3.0, True)


@pytest.mark.parametrize("status", [404, 413, 498, 499])
def test_what_passes_costs_no_segment(status: int) -> None:
    away = Failure(status, {"error": {"message": "in a moment"}}, {"Retry-After": "0"} if status == 413 else {})
    with FakeServer(MODEL, spoil=lambda value, number: away if number in (2, 3) else None) as server:
        assert len(sampled(server, 4, 2)) == 8


def test_a_text_that_the_server_fails_on_is_refused_with_its_words_once_others_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Servers report a context that is too short as 500, too."""

    def spoil(value: Any, number: int) -> Failure | None:
        long = "number 3 of" in server.bodies[-1]["messages"][0]["content"]
        return Failure(500, {"error": {"message": "the context is full"}}) if long else None

    for concurrency in (16, 1):
        with FakeServer(MODEL, spoil=spoil) as server:
            asked = engine(server.url, concurrency=concurrency).generate(requests(6, 2), Sampling())
            samples, refusals = outcome(asked)
        assert len(samples) == 10
        assert list(refusals) == ["key3"]
        assert "500 the context is full" in refusals["key3"]
    assert "segment 3 still has no answer (500 the context is full); trying up to" in caplog.text


def test_a_run_that_gets_no_answer_any_more_ends() -> None:
    down = lambda value, number: Failure(500, {"error": "engine died"}) if number > 1 else None  # noqa: E731
    with (
        FakeServer(MODEL, spoil=down) as server,
        pytest.raises(EngineError, match="20 segments in a row got no answer"),
    ):
        outcome(engine(server.url, policy=replace(QUICK, tries=2)).generate(requests(60, 1), Sampling()))


@pytest.mark.parametrize("place", ["status", "error", "choice"])
def test_a_lasting_refusal_is_of_one_segment_wherever_it_stands(place: str) -> None:
    error = {"code": 451, "message": "words of the server"}
    body: Any = {"choices": [{"index": 0, "error": error}]} if place == "choice" else {"error": error}

    def spoil(value: Any, number: int) -> Failure | None:
        second = "number 2 of" in server.bodies[-1]["messages"][0]["content"]
        return Failure(451 if place == "status" else 200, body) if second else None

    with FakeServer(MODEL, spoil=spoil) as server:
        samples, refusals = outcome(engine(server.url, concurrency=1).generate(requests(6, 40), Sampling()))
    assert len(samples) == 5 * 40
    assert list(refusals) == ["key2"]
    assert "451 words of the server" in refusals["key2"]


def test_a_run_in_which_all_is_refused_ends_after_twenty_segments() -> None:
    message = "the first 20 segments were all rejected.*400 the grammar of your prompt.*dialect=plain requests one"
    with FakeServer(MODEL, spoil=lambda value, number: Failure(400, FILTER)) as server:
        with pytest.raises(EngineError, match=message):
            sampled(server, 200, 2)
        assert len(server.bodies) < 60
        samples, refusals = outcome(engine(server.url).generate(requests(12, 1), Sampling()))
    assert (len(samples), len(refusals)) == (0, 12)


@pytest.mark.parametrize(
    ("failure", "patient"),
    [
        (Failure(500, {"error": "out of luck"}), False),
        (Failure(200, b"<html>out of luck</html>"), False),
        (Failure(503, {"error": "out of luck"}), True),
        (Failure(500, {"error": "out of luck"}, {"Retry-After": "0"}), True),
    ],
)
def test_a_run_without_an_answer_ends_soon_unless_it_is_told_to_wait(
    failure: Failure, patient: bool, caplog: pytest.LogCaptureFixture
) -> None:
    policy = RetryPolicy(first_wait=0.05, longest_wait=0.4, tries=8, no_answer=0.5)
    message = (
        f"failed {'8' if patient else '[2-7]'} times in a row, .*out of luck.*restart it.*ampled candidates are kept"
    )
    with FakeServer(MODEL, spoil=lambda *_: failure) as server, pytest.raises(EngineError, match=message):
        collect(engine(server.url, policy=policy).generate(requests(3, 1), Sampling()))
    assert caplog.text.count("retrying in") == 1
    assert "out of luck" in caplog.text


def test_a_run_that_has_had_answers_waits_on() -> None:
    policy = RetryPolicy(first_wait=0.05, longest_wait=0.2, tries=12, no_answer=0.2)
    down = lambda value, number: Failure(500, b"") if 3 < number < 12 else None  # noqa: E731
    with FakeServer(MODEL, spoil=down) as server:
        assert len(collect(engine(server.url, concurrency=1, policy=policy).generate(requests(6, 1), Sampling()))) == 6


@pytest.mark.parametrize("value", [-(10**400), float("nan"), float("-inf"), -1e300, 0.5, True, "-1", None])
def test_what_is_no_log_probability(value: object) -> None:
    for values in ([value], [value, -1.0], [-1.0, value]):
        with pytest.raises(InvalidResponse, match="not a finite number"):
            total_logprob({"content": [{"logprob": one} for one in values]}, "text")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (" 12.5 ", 12.5),
        ("Mon, 01 Jan 0001 00:00:00 +0000", 0.0),
        *((text, None) for text in ("9" * 400, "1" * 8000 + "x", "\u0663", "-5", "nan", "soon", "")),
        *((f"Fri, 31 Dec {end}", None) for end in ("99999 23:59:59 GMT", "9999 23:59:59 -9999")),
    ],
)
def test_waits(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}) == seconds
