"""The benchmark of generation: it runs, and the client stays cheap.

The bar of 3,000 candidates a second is for a quiet machine; docs/evidence/engines.md has the figures. Processor time
depends less on what else runs, but does depend on it, so the bar here is in work that is measured beside it. Packing
and reading a reply as JSON takes 0.36 ms where a request of 16 takes 4 ms, or 11 times as long; 30 times fails here.
"""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("aiohttp")


def one_reply() -> float:
    """Milliseconds of the processor for JSON of 16 candidates, written and read."""
    reply = [{"text": "x" * 40, "logprobs": [-0.25 * i for i in range(64)]} for _ in range(16)]
    before = time.process_time()
    for _ in range(100):
        json.loads(json.dumps(reply))
    return (time.process_time() - before) * 10


def test_the_client_takes_little_time() -> None:
    import bench_generation

    for _ in range(3):  # what else runs on the machine may come and go
        before = one_reply()
        rate, milliseconds = bench_generation.client(300)
        replies = milliseconds / ((before + one_reply()) / 2)
        if rate > 300 and replies < 30:
            break
    assert rate > 300
    assert replies < 30
