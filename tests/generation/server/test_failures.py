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
    retry_after,
    token_count,
)
from mbr_esd_metric.generation.server.replies import total_logprob


def refusal(body: object, status: int = 422) -> RequestRejected:
    error = classify(Response(status, {}, json.dumps(body).encode()), Address.parse("http://127.0.0.1:8000/v1"), "m")
    assert isinstance(error, RequestRejected)
    return error


def test_a_refused_temperature_is_named_with_the_fix() -> None:
    """In the words of Mistral's API and of OpenAI's."""
    detail = {"type": "less_than_equal", "loc": ["body", "temperature"], "msg": "Input should be at most 1.5"}
    for body in ({"object": "error", "message": {"detail": [detail]}}, {"detail": [detail]}):
        assert "(422 temperature: Input should be at most 1.5); give one that it takes" in str(refusal(body))
    body = {"error": {"message": "Unsupported value: 'temperature' does not support 2 with this model."}}
    assert str(refusal(body, 400)).endswith("such as temperature=1")
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
