"""Messages of refusals, and the numbers that a server states in a reply or a header."""

from __future__ import annotations

import email.utils
import json
import time

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.failures import (
    InvalidResponse,
    RequestRejected,
    Response,
    classify,
    duration,
    retry_after,
)
from mbr_esd_metric.generation.server.replies import total_logprob


def refusal(body: object, status: int = 422) -> RequestRejected:
    answer = Response(status, {}, json.dumps(body).encode())
    found = classify(answer, Address.parse("http://127.0.0.1:8000/v1"), "m")
    assert isinstance(found, RequestRejected)
    return found


def test_a_refused_temperature_is_named_with_the_fix() -> None:
    """As Mistral's API says it, and as OpenAI's does."""
    detail = {"type": "less_than_equal", "loc": ["body", "temperature"], "msg": "Input should be at most 1.5"}
    for body in ({"object": "error", "message": {"detail": [detail]}}, {"detail": [detail]}):
        assert "(422 temperature: Input should be at most 1.5); give one that it takes" in str(refusal(body))
    said = {"error": {"message": "Unsupported value: 'temperature' does not support 2 with this model."}}
    assert str(refusal(said, 400)).endswith("such as temperature=1")
    assert "temperature" not in str(refusal({"detail": [{"loc": ["body", "n"], "msg": "Input should be 1"}]}))


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


@pytest.mark.parametrize(
    "said",
    [
        "Fri, 31 Dec 99999 23:59:59 GMT",
        "Fri, 31 Dec 9999 23:59:59 -9999",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "9" * 400,
        "1" * 8000 + "x",
        "1_0",
        "\u0663",
        "-5",
        "nan",
        "inf",
        "soon",
        "",
    ],
)
def test_odd_waits_are_none_or_a_time_that_can_be_waited(said: str) -> None:
    wait = retry_after({"retry-after": said})
    assert wait is None or 0 <= wait < 1e9
    assert duration(said) is None or said == ""


def test_waits() -> None:
    assert retry_after({"retry-after": " 12.5 "}) == 12.5
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "2"}) == 2.0
    wait = retry_after({"retry-after": email.utils.formatdate(time.time() + 100, usegmt=True)})
    assert wait is not None
    assert 95 < wait <= 100


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("6m0s", 360.0), ("20ms", 0.02), ("1h2m3.5s", 3723.5), ("12.5", 12.5), ("soon", None), ("", None)],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration(text) == seconds
