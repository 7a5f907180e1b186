"""Requests for a chat server made for tests, and what comes of them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from typing import Any

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.prompting.formats.json import output_grammar, output_schema
from tests.helpers.chat_server import FakeServer

MODEL = "test-model"
QUICK = RetryPolicy(timeout=4.0, first_wait=0.01, longest_wait=0.05, tries=12)


def requests(count: int, n: int, first: int = 0) -> list[Request]:
    text, schema = "Judge number {0} of these\nein Satz mit {0} Fehlern darin", json.dumps(output_schema())
    return [
        Request(f"key{i}", text.format(i), output_grammar(), n, first, f"segment {i}", schema=schema)
        for i in range(count)
    ]


def engine(*urls: str, model: str = MODEL, concurrency: int = 16, policy: RetryPolicy = QUICK) -> ServerEngine:
    return ServerEngine(EngineOptions(model=model, server=urls, concurrency=concurrency), policy)


def collect(parts: Iterable[Generated | Refused]) -> dict[tuple[str, int], Candidate]:
    """Every sample by key and index; fails on one that comes twice, and on a request that is refused."""
    samples, refusals = outcome(parts)
    if refusals:
        raise EngineError("; ".join(f"{key}: {reason}" for key, reason in refusals.items()))
    return samples


def outcome(parts: Iterable[Generated | Refused]) -> tuple[dict[tuple[str, int], Candidate], dict[str, str]]:
    """Every sample by key and index, and the reason of each request that is refused; fails on what comes twice."""
    samples: dict[tuple[str, int], Candidate] = {}
    refusals: dict[str, str] = {}
    for part in parts:
        if isinstance(part, Refused):
            assert part.key not in refusals, "a request is refused twice"
            refusals[part.key] = part.reason
            continue
        for index, sample in enumerate(part.samples, part.first):
            assert (part.key, index) not in samples, "a candidate came twice"
            samples[part.key, index] = sample
    return samples, refusals


def sampled(
    server: FakeServer, *of: int, policy: RetryPolicy = QUICK, **options: Any
) -> dict[tuple[str, int], Candidate]:
    """The samples of `requests(*of)` from a server in its dialect."""
    place: dict[str, Any] = {"server": (server.url,), "dialect": server.dialect, "concurrency": 8}
    asking = ServerEngine(EngineOptions(server.model, **place | options), policy)
    return collect(asking.generate(requests(*of), Sampling()))


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
