"""What a server's refusal is told as."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.failures import Refused, classify
from mbr_esd_metric.generation.server.http import Answer


def refusal(body: object, status: int = 422) -> Refused:
    answer = Answer(status, {}, json.dumps(body).encode())
    found = classify(answer, Address.parse("http://127.0.0.1:8000/v1"), "m")
    assert isinstance(found, Refused)
    return found


def test_a_refused_temperature_is_named_with_the_fix() -> None:
    """As Mistral's API says it, and as OpenAI's does."""
    detail = {"type": "less_than_equal", "loc": ["body", "temperature"], "msg": "Input should be at most 1.5"}
    for body in ({"object": "error", "message": {"detail": [detail]}}, {"detail": [detail]}):
        assert "(422 temperature: Input should be at most 1.5); give one that it takes" in str(refusal(body))
    said = {"error": {"message": "Unsupported value: 'temperature' does not support 2 with this model."}}
    assert str(refusal(said, 400)).endswith("such as temperature=1")
    assert "temperature" not in str(refusal({"detail": [{"loc": ["body", "n"], "msg": "Input should be 1"}]}))
