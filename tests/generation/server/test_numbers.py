"""Numbers that a server states in a reply or a header."""

from __future__ import annotations

import email.utils
import time

import pytest

from mbr_esd_metric.generation.server.failures import retry_after
from mbr_esd_metric.generation.server.limits import duration
from mbr_esd_metric.generation.server.numbers import MOST_TOKENS, count, logprob, seconds


@pytest.mark.parametrize("value", [10**30, 10**400, -1, True, 1.0, "1", None, [1]])
def test_what_is_no_count(value: object) -> None:
    assert count(value) is None
    assert count(0) == 0
    assert count(MOST_TOKENS) == MOST_TOKENS


@pytest.mark.parametrize(
    "value", [-(10**400), 10**400, float("nan"), float("-inf"), -1e300, 0.5, True, "-1", None, [-1]]
)
def test_what_is_no_log_probability(value: object) -> None:
    assert logprob(value) is None
    assert logprob(-9999) == -9999.0
    assert logprob(1e-4) == 1e-4


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
    assert seconds(" 12.5 ") == 12.5
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "2"}) == 2.0
    there = seconds(email.utils.formatdate(time.time() + 100, usegmt=True))
    assert there is not None
    assert 95 < there <= 100
