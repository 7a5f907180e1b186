"""Candidates a second of our pipeline, against the bare engine with the same prompts and grammar.

    python bench_generation.py client                   # our client alone, from a server that answers at once
    python bench_generation.py server URL [NAME]        # our client against a minimal asynchronous one
    python bench_generation.py vllm [NAME]              # engine=vllm against LLM.generate, where vLLM is

`client` starts the instant server as a process of its own: it sends one reply of vLLM's, made before, of 16 candidates
with 64 log-probabilities each. What is measured is the whole of `mbr_esd_metric.metric.pipeline`: prompts, requests,
reading, every check, the store on disk, parsing and the decision. Memory is the process's peak. The bar is 3,000
candidates a second.

For `server` and `vllm` both sides ask for the same candidates: prompts, grammar, seeds and settings are the same. They
take turns (ours, bare, bare, ours, ...), so that a machine that grows slower slows both. Each time the store is new.
Before the first round every prompt is asked for one candidate, so that both sides find it in the model's cache. The
bars are 0.9 of a client that sends the requests and reads the JSON, and 0.95 of `LLM.generate` on prompts that are
tokens already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Plan, Segment, plan

#: An asyncio server that reads a request and sends the same bytes, whatever was asked.
INSTANT = """
import asyncio, json, sys
n, model = int(sys.argv[1]), sys.argv[2]
error = {"error_span": "Haus", "category": "accuracy", "sub_category": "mistranslation", "severity": "major"}
token = {"token": "abcd", "logprob": -0.25, "bytes": [97, 98, 99, 100], "top_logprobs": []}
choices = [
    {"index": i, "message": {"role": "assistant", "content": json.dumps({"errors": [error] * (i % 3)})},
     "logprobs": {"content": [token] * 64}, "finish_reason": "stop"}
    for i in range(n)
]
usage = {"prompt_tokens": 400, "completion_tokens": 64 * n}
def packed(value):
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body) + body
reply = packed({"id": "1", "model": model, "choices": choices, "usage": usage})
models = packed({"data": [{"id": model, "owned_by": "vllm"}]})

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = 0
            for line in head.lower().split(b"\\r\\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if length:
                await reader.readexactly(length)
            writer.write(reply if head.startswith(b"POST") else models)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("client", "server", "vllm"))
    parser.add_argument("rest", nargs="*", help="URL and model name, see above")
    parser.add_argument("--segments", type=int, default=0, help="default 2,000 for client, 20 otherwise")
    parser.add_argument("--rounds", type=int, default=2, help="of both sides, for server and vllm (default: 2)")
    args = parser.parse_args()
    if args.what == "client":
        client(args.segments or 2000)
    elif args.what == "server":
        url, name = [*args.rest, "mbr-esd-demo"][:2]
        server(url, name, args.segments or 20, args.rounds)
    else:
        in_process([*args.rest, "mbr-esd-demo"][0], args.segments or 20, args.rounds)


def made(count: int) -> list[Segment]:
    """Distinct segments of about the length of news text."""
    source = "The house on the hill was sold in the spring, said the owner of the company in an interview, number {}."
    target = "Das Haus auf dem Hügel wurde im Frühling verkauft, sagte der Besitzer der Firma im Gespräch, Nummer {}."
    return [Segment(source.format(i), target.format(i), f"segment {i}") for i in range(count)]


def whole(card: ModelCard, segments: list[Segment]) -> int:
    """The whole pipeline with a new store; the number of candidates."""
    with tempfile.TemporaryDirectory() as folder:
        annotate(replace(card, store=str(Path(folder, "store"))), segments)
    return len(segments) * card.samples


def client(count: int) -> tuple[float, float]:
    """Our client alone; candidates a second, and milliseconds of the processor a request."""
    name = "instant"
    process = subprocess.Popen([sys.executable, "-c", INSTANT, "16", name], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        card = load_card(f"mbr-esd-llama?model={name}&n=16&dialect=vllm&engine=server&server={url}")
        whole(card, made(50))
        before, started = os.times(), time.perf_counter()
        candidates = whole(card, made(count))
        took, after = time.perf_counter() - started, os.times()
    finally:
        process.terminate()
        process.wait()
    used = after.user + after.system - before.user - before.system
    rate = candidates / took
    print(f"candidates a second  {rate:,.0f}   ({count} segments, 16 each, in {took:.1f} s)")
    print(f"processor time       {1000 * used / count:.2f} ms a request of 16 candidates")
    print(f"peak memory          {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return rate, 1000 * used / count


def compare(what: str, ours: Callable[[], int], bare: Callable[[], int], rounds: int) -> float:
    """Both sides by turns; prints candidates a second of each round, and returns ours divided by the bare side's."""
    took, counts = {"ours": 0.0, what: 0.0}, {"ours": 0, what: 0}
    for number in range(rounds):
        sides = (("ours", ours), (what, bare))
        for name, side in sides[:: 1 if number % 2 == 0 else -1]:
            started = time.perf_counter()
            count = side()
            seconds = time.perf_counter() - started
            took[name] += seconds
            counts[name] += count
            print(
                f"round {number + 1}  {name:<15} {count / seconds:.2f} candidates a second ({count} in {seconds:.1f} s)"
            )
    if counts["ours"] != counts[what]:
        raise SystemExit(f"the sides had different work: {counts}")
    print(f"ours takes {took['ours']:.1f} s, {what} {took[what]:.1f} s: {took[what] / took['ours']:.3f} of its speed")
    return took[what] / took["ours"]


def server(url: str, name: str, count: int, rounds: int) -> None:
    """Our client against a minimal one, both on a server that is running."""
    card = load_card(f"{name}{'&' if '?' in name else '?'}engine=server&server={url}")
    segments = made(count)
    whole(replace(card, n=1), segments)
    least = plan(card, segments)
    compare("minimal client", lambda: whole(card, segments), lambda: bare(card, least), rounds)


def bare(card: ModelCard, todo: Plan) -> int:
    """A client that sends the same requests, reads the JSON and does nothing with it; the number of candidates."""
    import aiohttp

    from mbr_esd_metric.generation.model_files import model_name
    from mbr_esd_metric.generation.server.detection import dialect_of
    from mbr_esd_metric.generation.server.dialects import Query

    options = card.engine_options("server")
    dialect = dialect_of(options)
    model = model_name(options)
    bodies = [
        dialect.body(Query(part, model, card.sampling))
        for request in todo.requests.values()
        for part in request.parts(dialect.per_request)
    ]
    path = card.servers[0].removesuffix("/") + dialect.path

    async def run() -> int:
        count, waiting = 0, list(reversed(bodies))

        async def work(session: Any) -> None:
            nonlocal count
            while waiting:
                async with session.post(path, json=waiting.pop()) as reply:
                    count += len((await reply.json())["choices"])

        async with aiohttp.ClientSession() as session:
            await asyncio.gather(*(work(session) for _ in range(card.concurrency or 32)))
        return count

    return asyncio.run(run())


def in_process(name: str, count: int, rounds: int) -> None:
    """engine=vllm against `LLM.generate`, on one model that is loaded once."""
    import vllm

    from mbr_esd_metric.generation.engines import vllm as engine

    load = vllm.LLM
    loaded: list[Any] = []

    def once(**arguments: Any) -> Any:
        if not loaded:
            loaded.append(load(**arguments))
        return loaded[0]

    vllm.LLM = once
    engine.VllmEngine.close = lambda self: None  # type: ignore[method-assign]
    card = load_card(f"{name}{'&' if '?' in name else '?'}engine=vllm")
    segments = made(count)
    whole(replace(card, n=1), segments)
    running = engine.VllmEngine(card.engine_options("vllm"))
    requests = list(plan(card, segments).requests.values())
    prompts = [{"prompt_token_ids": running._tokens(request)} for request in requests]
    settings = [engine._parameters(request, card.sampling) for request in requests]

    def generate() -> int:
        outputs = loaded[0].generate(prompts, settings, use_tqdm=False, lora_request=running._lora())
        return sum(len(output.outputs) for output in outputs)

    # How long our side is inside vLLM, which says the same of a machine that has other work.
    core, inside = loaded[0].llm_engine, [0.0]
    for name in ("add_request", "step"):
        setattr(core, name, _timed(getattr(core, name), inside))

    def ours() -> int:
        inside[0], started = 0.0, time.perf_counter()
        count = whole(card, segments)
        took = time.perf_counter() - started
        outside = 1000 * (took - inside[0]) / count
        print(f"         outside vLLM {outside:.2f} ms a candidate, {1 - inside[0] / took:.1%} of our time")
        return count

    compare("LLM.generate", ours, generate, rounds)


def _timed(function: Callable[..., Any], total: list[float]) -> Callable[..., Any]:
    """The function, whose seconds are added to a total."""

    def timed(*args: Any, **more: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*args, **more)
        finally:
            total[0] += time.perf_counter() - started

    return timed


if __name__ == "__main__":
    print(json.dumps({"python": sys.version.split()[0], "cores": os.cpu_count()}))
    main()
