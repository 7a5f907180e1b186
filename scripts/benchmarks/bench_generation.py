"""Candidates per CPU second of the server client, compared with a plain client that sends the same requests.

    python scripts/benchmarks/bench_generation.py [SEGMENTS]          (default: 1,000 segments of 16 candidates)

A server in a separate process answers every request immediately, with 16 candidates of 64 log-probabilities each. Our
client is measured in a whole run: prompts, requests, validation of replies, a new store on disk, and decisions. The
plain client only parses the JSON. The target for our client is 2,000.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from functools import partial
from itertools import pairwise
from typing import Any

import aiohttp
from aiohttp import web

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.generation.server.dialects import DIALECTS, Query
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.sources import build_requests

N, MODEL = 16, "instant"
SOURCE = "The house on the hill was sold in the spring, said the owner of the company in an interview, number {}."
TRANSLATION = "Das Haus auf dem Hügel wurde im Frühling verkauft, sagte der Besitzer der Firma im Gespräch, Nummer {}."


def serve(ports: Any) -> None:
    """Answer every request with the same bytes; the port is put into the queue."""
    error = {"error_span": "Haus", "category": "accuracy", "sub_category": "mistranslation", "severity": "major"}
    token = {"token": "abcd", "logprob": -0.25, "bytes": [97, 98, 99, 100], "top_logprobs": []}
    texts = [json.dumps({"errors": [error] * (number % 3)}) for number in range(N)]
    choice = {"logprobs": {"content": [token] * 64}, "finish_reason": "stop"}
    choices = [{"index": i, "message": {"content": text}, **choice} for i, text in enumerate(texts)]
    reply = json.dumps({"model": MODEL, "choices": choices}).encode()

    async def answer(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(body=reply if request.method == "POST" else b'{"data": [{"id": "instant"}]}')

    async def listen() -> None:
        server = await asyncio.get_running_loop().create_server(web.Server(answer), "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


def plain(url: str, bodies: list[dict[str, Any]]) -> None:
    """Send the requests, 32 concurrently, and parse the JSON."""

    async def work(session: aiohttp.ClientSession) -> None:
        while bodies:
            async with session.post(url, json=bodies.pop()) as reply:
                await reply.json(content_type=None)

    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            await asyncio.gather(*(work(session) for _ in range(32)))

    asyncio.run(run())


def main(count: int) -> None:
    segments = [Segment(SOURCE.format(i), TRANSLATION.format(i), f"segment {i}") for i in range(count)]
    ports: Any = multiprocessing.Queue()
    multiprocessing.Process(target=serve, args=(ports,), daemon=True).start()
    url = f"http://127.0.0.1:{ports.get()}/v1"
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            os.environ["MBR_ESD_STORE"] = f"{folder}/{number}"
            card = load_card(f"mbr-esd-llama?model={MODEL}&n={N}&dialect=vllm&server={url}")
            requests = build_requests(card, {}, segments).values()
            bodies = [Query(one, MODEL, card.sampling, DIALECTS["vllm"]).body for one in requests]
            times = [time.process_time()]
            for run in (partial(annotate, card, segments), partial(plain, f"{url}/chat/completions", bodies)):
                run()
                times.append(time.process_time())
            ours, bare = (count * N / (end - begin) for begin, end in pairwise(times))
            print(f"candidates per CPU second: {ours:,.0f}; plain client: {bare:,.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
