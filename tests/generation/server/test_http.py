"""What a server's failures mean, and the numbers that it states in a reply or a header."""

from __future__ import annotations

import email.utils
import json
import time
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import Sampling
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.generation.server.http import (
    InvalidResponse,
    RequestRejected,
    Response,
    TransientError,
    retry_after,
    token_count,
)
from mbr_esd_metric.generation.server.replies import total_logprob
from tests.helpers.chat_requests import MODEL, collect, engine, outcome, requests, sampled
from tests.helpers.chat_server import Failure, FakeServer

QUOTA = {"error": {"code": "429", "message": "the call rate limit; for a higher quota see billing and credit"}}
SPENT = {"error": {"message": "no", "type": "insufficient_quota", "code": "insufficient_quota"}}
TEMPERATURE = {"type": "less_than_equal", "loc": ["body", "temperature"], "msg": "Input should be at most 1.5"}
FILTER = {"error": {"code": "content_filter", "status": 400, "message": "the grammar of your prompt, model, n, quota"}}


@pytest.mark.parametrize(
    ("status", "body", "expected", "message"),
    [
        (429, QUOTA, TransientError, "429 the call rate limit; for a higher quota see billing and credit"),
        (429, SPENT, EngineError, "h/v1: 429 no; what was sampled is kept"),
        (402, {"detail": "Payment is due"}, EngineError, "402 Payment is due"),
        (503, {"error": {"message": "Loading model", "type": "unavailable_error"}}, TransientError, "503 Loading"),
        (500, "<html><body><h1>Oops</h1>\n", TransientError, "500 Oops$"),
        (401, {"error": "who are you?"}, EngineError, r"refuses the key \(401 who are you\?\); set MBR_ESD_API_KEY"),
        (404, {"detail": "Not Found"}, RequestRejected, r"404 Not Found; see the model's name, and the address.*/v1"),
        (403, {"error": {"message": "You have run out of credits"}}, RequestRejected, "403 You have .* credits$"),
        (400, FILTER, RequestRejected, "400 the grammar of your prompt, model, n, quota$"),
        (422, {"detail": [TEMPERATURE]}, RequestRejected, "422 temperature: Input should be at most 1.5"),
        (422, {"object": "error", "message": {"detail": [TEMPERATURE]}}, RequestRejected, "422 temperature: Input"),
        (400, {"error": {"message": "9 tokens", "code": "context_length_exceeded"}}, RequestRejected, "tokens; serve"),
        (413, "", RequestRejected, "longer context"),
        (200, {"error": {"code": 502, "message": "upstream"}}, TransientError, "502 upstream"),
        (200, {"error": {"code": "403", "message": "flagged"}}, RequestRejected, "403 flagged"),
        (200, {"error": "no words of ours"}, InvalidResponse, "no answer: no words of ours"),
        (200, {"code": 40001, "msg": "bad luck", "data": None}, InvalidResponse, "no answer: bad luck"),
    ],
)  # fmt: skip
def test_status_and_documented_codes_decide_and_the_servers_words_are_shown(
    status: int, body: object, expected: type[Exception], message: str
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = Response(status, {}, raw).failure(Address.parse("http://h/v1"))
    assert type(error) is expected
    with pytest.raises(expected, match=message):
        raise error


@pytest.mark.parametrize("place", ["status", "error", "choice"])
def test_a_lasting_refusal_is_of_one_segment_wherever_it_stands(place: str) -> None:
    error = {"code": 451, "message": "words of the server"}
    choice = {"index": 0, "error": error, "message": {"content": ""}}
    bodies = {"status": {"error": error}, "error": {"error": error}, "choice": {"choices": [choice]}}

    def spoil(value: Any, number: int) -> Failure | None:
        second = "number 2 of" in server.bodies[-1]["messages"][0]["content"]
        return Failure(451 if place == "status" else 200, bodies[place]) if second else None

    with FakeServer(MODEL, spoil=spoil) as server:
        samples, refusals = outcome(engine(server.url, concurrency=1).generate(requests(6, 40), Sampling()))
    assert len(samples) == 5 * 40
    assert list(refusals) == ["key2"]
    assert "451 words of the server" in refusals["key2"]


def test_a_run_in_which_all_is_refused_ends_after_twenty_segments() -> None:
    message = "all of the first 20 segments are refused.*400 the grammar of your prompt"
    with FakeServer(MODEL, spoil=lambda value, number: Failure(400, FILTER)) as server:
        with pytest.raises(EngineError, match=message):
            sampled(server, 200, 1)
        assert len(server.bodies) < 60
        samples, refusals = outcome(engine(server.url).generate(requests(12, 1), Sampling()))
    assert (len(samples), len(refusals)) == (0, 12)


@pytest.mark.parametrize(
    ("failure", "patient"),
    [
        (Failure(500, {"error": {"message": "out of luck"}}), False),
        (Failure(200, b"<html>out of luck</html>"), False),
        (Failure(503, {"error": {"message": "out of luck"}}), True),
        (Failure(500, {"error": {"message": "out of luck"}}, {"Retry-After": "0"}), True),
        (Failure(429, {"error": {"message": "out of luck"}}), True),
    ],
)
def test_a_run_without_an_answer_ends_soon_unless_it_is_told_to_wait(
    failure: Failure, patient: bool, caplog: pytest.LogCaptureFixture
) -> None:
    policy = RetryPolicy(first_wait=0.05, longest_wait=0.4, tries=8, no_answer=0.5)
    with (
        FakeServer(MODEL, spoil=lambda value, number: failure) as server,
        pytest.raises(
            EngineError, match="failed . times in a row, .*out of luck.*start it again.*sampled is kept"
        ) as raised,
    ):
        collect(engine(server.url, policy=policy).generate(requests(3, 1), Sampling()))
    assert ("failed 8 times" in str(raised.value)) is patient
    assert caplog.text.count("tried again in") == 1
    assert "out of luck" in caplog.text


def test_a_run_that_has_had_answers_waits_on() -> None:
    policy = RetryPolicy(first_wait=0.05, longest_wait=0.2, tries=12, no_answer=0.2)
    down = lambda value, number: Failure(500, b"") if 3 < number < 12 else None  # noqa: E731
    with FakeServer(MODEL, spoil=down) as server:
        assert len(collect(engine(server.url, concurrency=1, policy=policy).generate(requests(6, 1), Sampling()))) == 6


@pytest.mark.parametrize(
    "value", [-(10**400), 10**400, float("nan"), float("-inf"), -1e300, 0.5, True, "-1", None, [-1]]
)
def test_what_is_no_log_probability(value: object) -> None:
    def content(*values: object) -> dict[str, object]:
        return {"content": [{"logprob": one} for one in values]}

    for values in ([value], [value, -1.0], [-1.0, value]):
        with pytest.raises(InvalidResponse, match="not a finite number"):
            total_logprob(content(*values), "text")
    assert total_logprob(content(-9999, 1e-4), "text") == (-9999 + 1e-4, 2)


@pytest.mark.parametrize("value", [10**30, 10**400, -1, 1.5, True, "7"])
def test_what_is_no_count_of_tokens(value: object) -> None:
    assert token_count(value) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (" 12.5 ", 12.5),
        ("2", 2.0),
        ("Mon, 01 Jan 0001 00:00:00 +0000", 0.0),
        *((text, None) for text in ("9" * 400, "1" * 8000 + "x", "\u0663", "-5", "nan", "inf", "soon", "")),
        *((f"Fri, 31 Dec {end}", None) for end in ("99999 23:59:59 GMT", "9999 23:59:59 -9999")),
    ],
)
def test_waits(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}) == seconds
    soon = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert retry_after({"retry-after": soon}) == pytest.approx(97.5, abs=2.5)
