"""Small chat servers, one for each dialect, made after what each server's documentation says.

A dialect that has seeds gives candidates that are a function of (prompt, seed + index), as vLLM's are; one that has
none gives new candidates each time.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.generation.server.dialects import DIALECTS

if TYPE_CHECKING:
    from typing_extensions import Self

EMPTY = '{"errors": []}'
#: Fields of a request, as far as a service's published description has those that are sent; another one is refused.
KNOWN = {
    "openai": "model messages n seed max_completion_tokens response_format temperature reasoning_effort",
    "ollama": "model messages format options stream think truncate shift",
    "plain": "model messages max_tokens temperature reasoning_effort",
}

#: What happens to spoilt requests, by turns. A reply is cut with the length of the whole, or as if it were whole, or
#: drips for longer than the client waits. "redirect", "flood" and "packed" come only where they are named.
FAULTS = ("drop", "drop after", "500", "429", "cut", "cut clean", "html", "stall", "drip")
#: Replies of faults, without work: status, body and headers.
_REPLIES: dict[str, tuple[int, Any, dict[str, str]]] = {
    "500": (500, {"error": {"message": "internal"}}, {}),
    "429": (429, {"error": {"message": "slow down"}}, {"Retry-After": "0"}),
    "html": (200, b"<html><body>Please log in</body></html>", {"Content-Type": "text/html"}),
    "redirect": (307, b"", {"Location": "http://elsewhere.example/v1/chat/completions"}),
    "packed": (200, gzip.compress(b"{}"), {"Content-Encoding": "gzip"}),
}


def _path(path: str) -> str:
    """The path at the server of one of the table's."""
    return path[1:] if path.startswith("//") else f"/v1{path}"


def answer(prompt: str, seed: int) -> tuple[str, list[float], bool]:
    """Text, log-probabilities of its tokens and whether it was cut, for one sample."""
    rng = random.Random(f"{prompt}{seed}")
    words = re.findall(r"\w+", prompt.rsplit("\n", 1)[-1])
    roll = rng.random()
    if roll < 0.3 or not words:
        return EMPTY, [-0.5, -rng.random()], False
    severity = rng.choice(("critical", "major", "minor"))
    text = (
        f'{{"errors": [{{"error_span": "{rng.choice(words)}", "category": "accuracy", '
        f'"sub_category": "mistranslation", "severity": "{severity}"}}]}}'
    )
    return (text[:40], [-9.0], True) if roll > 0.97 else (text, [-1.0, -rng.random(), -0.25], False)


def refused(dialect: str, body: dict[str, Any]) -> str | None:
    """What a service of this dialect says to a request that is not as it describes them; None if it is."""
    if dialect in KNOWN and (unknown := sorted(set(body) - set(KNOWN[dialect].split()))):
        return f"Unrecognized request argument supplied: {unknown[0]}"
    if dialect in ("openai", "plain") and body.get("reasoning_effort") not in (None, "none") and "temperature" in body:
        return "Unsupported parameter: 'temperature' is not supported with this model."
    asked = body.get("response_format") if dialect == "openai" else None
    return _not_strict(asked["json_schema"]["schema"]) if asked else None


def _not_strict(schema: dict[str, Any]) -> str | None:
    """Strict schemas close every object and require each of its keys."""
    inner = [schema["items"]] if schema["type"] == "array" else [*schema.get("properties", {}).values()]
    closed = schema.get("additionalProperties") is False and schema["required"] == [*schema["properties"]]
    if schema["type"] == "object" and not closed:
        return "Invalid schema for response_format: every key is required, and no other allowed"
    return next(filter(None, map(_not_strict, inner)), None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        """A client that gave up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def trickle(self, length: int, pieces: Iterable[bytes], pause: float = 0.0) -> None:
        """Announce a reply of that length, send the pieces, and close the connection."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        with contextlib.suppress(OSError):
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(pause)


@dataclass(frozen=True)
class Failure:
    """A reply in place of the server's own."""

    status: int
    body: Any
    headers: dict[str, str] | None = None


@dataclass(eq=False)
class FakeServer:
    """Serves `model` in a dialect on a port of its own; a context manager. It notes body and time of each request for
    candidates, of each request of any kind its Authorization, and how many were under way at most (`busiest`)."""

    model: str = "test-model"
    _: KW_ONLY
    dialect: str = "vllm"
    #: The API key that it wants.
    key: str | None = None
    #: The longest prompt in characters that it takes.
    context: int = 100_000
    #: Ignore the grammar.
    plain: bool = False
    #: Seconds that a reply takes.
    delay: float = 0.0
    #: Changes a reply before it is sent, given the number of the request, or returns another one or a `Failure`.
    spoil: Any = None
    #: What a llama.cpp server says of the samples that it works on at once; None: it says nothing.
    slots: int | None = None
    #: The share of requests that these faults spoil, and the seconds of a stall.
    share: float = 0.0
    faults: Sequence[str] = FAULTS
    stall: float = 3.0

    def __post_init__(self) -> None:
        self.spoilt: Counter[str] = Counter()
        chance, turns = random.Random(0), itertools.cycle(self.faults)
        self.bodies: list[dict[str, Any]] = []
        self.arrivals: list[float] = []
        self.keys: list[str | None] = []
        self.busiest = self._busy = 0
        self._drawn = itertools.count()
        lock = threading.Lock()
        outer = self

        class Handler(_Handler):
            def do_GET(self) -> None:
                outer.keys.append(self.headers.get("Authorization"))
                if outer.key and self.headers.get("Authorization") != f"Bearer {outer.key}":
                    return self.reply(401, {"error": {"message": "Unauthorized"}})
                self.reply(*outer.describe(self.path.partition("?")[0]))

            def do_POST(self) -> None:
                outer.keys.append(self.headers.get("Authorization"))
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.partition("?")[0] != _path(DIALECTS[outer.dialect].path):
                    return self.reply(*outer.post(self.path, raw, self.headers["Content-Type"]))
                body = json.loads(raw)
                with lock:
                    fault = next(turns) if chance.random() < outer.share else ""
                    outer.spoilt.update([fault] * bool(fault))
                if fault == "flood":
                    return self.trickle(300 << 20, (b" " * (1 << 20) for _ in range(300)))
                if fault in _REPLIES:
                    return self.reply(*_REPLIES[fault])
                self.close_connection = fault.startswith("drop") or fault == "stall"
                if fault == "drop":
                    return None
                with lock:
                    delay = outer.delay  # a test may change it as soon as it sees the request
                    outer.arrivals.append(time.monotonic())
                    number = len(outer.arrivals)
                    outer._busy += 1
                    outer.busiest = max(outer.busiest, outer._busy)
                time.sleep(delay)
                with lock:
                    outer._busy -= 1
                status, value = outer.complete(body)
                if outer.spoil is not None:
                    value = outer.spoil(value, number) or value
                if isinstance(value, Failure):
                    return self.reply(value.status, value.body, value.headers)
                whole = json.dumps(value).encode()
                if fault == "cut":
                    self.trickle(len(whole), [whole[: len(whole) // 2]])
                elif fault == "drip":
                    self.trickle(len(whole), (bytes([byte]) for byte in whole[:-1]), outer.stall / len(whole))
                elif self.close_connection:
                    time.sleep(outer.stall if fault == "stall" else 0)
                else:
                    self.reply(status, whole[: len(whole) // 2] if fault == "cut clean" else whole)

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def post(self, path: str, body: bytes, kind: str) -> tuple[int, Any]:
        """The reply to a POST to another path than that of candidates, of a body of a content type."""
        return 404, {"detail": "Not Found"}

    def describe(self, path: str) -> tuple[int, Any]:
        """The reply to a GET of this path."""
        dialect = DIALECTS[self.dialect]
        models, listed, key = dialect.models
        if path == _path(models):
            return 200, {listed: [{key: self.model, "owned_by": dialect.owner or "somebody"}]}
        if path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": self.model, "owned_by": dialect.owner or "somebody"}]}
        if dialect.probe is not None and path == _path(dialect.probe[0]):
            return 200, b"{%b}" % dialect.probe[1]
        if isinstance(dialect.slots, tuple) and path == _path(dialect.slots[0]) and self.slots is not None:
            return 200, {dialect.slots[1]: self.slots}
        return 404, {"detail": "Not Found"}

    def complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        prompt, n = body["messages"][0]["content"], body.get("n", 1)
        self.bodies.append(body)
        if body["model"] != self.model:
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist.", "code": 404}}
        message = refused(self.dialect, body)
        if len(prompt) > self.context:
            message = f"This model's maximum context length is {self.context} tokens."
        if message:
            return 400, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
        seed = body.get("options", body).get("seed")
        drawn = [answer(prompt, next(self._drawn) if seed is None else seed + i) for i in range(n)]
        token = {"token": "x", "bytes": None, "top_logprobs": []}
        spelt = (
            (self._written(text), [{**token, "logprob": p} for p in logprobs], cut) for text, logprobs, cut in drawn
        )
        return self.completion(body, [*spelt])

    def completion(
        self, body: dict[str, Any], drawn: list[tuple[str, list[dict[str, Any]], bool]]
    ) -> tuple[int, dict[str, Any]]:
        """The reply to a request with these texts, their tokens, and whether they are cut."""
        prompt, answers = len(body["messages"][0]["content"]) // 4, sum(len(tokens) for _, tokens, _ in drawn)
        messages = [{"role": "assistant", "content": text} for text, *_ in drawn]
        reasons = ["length" if cut else "stop" for *_, cut in drawn]
        if self.dialect == "ollama":
            usage = {"prompt_eval_count": prompt, "eval_count": answers}
            reply = {"message": messages[0], "done": True, "done_reason": reasons[0]}
            return 200, {"model": self.model, **reply, **usage}
        logprobs = [{"content": tokens} if body.get("logprobs") else None for _, tokens, _ in drawn]
        choices = [
            {"index": index, "message": one | {"refusal": None}, "logprobs": tokens, "finish_reason": reason}
            for index, (one, tokens, reason) in enumerate(zip(messages, logprobs, reasons, strict=True))
        ]
        usage = {"prompt_tokens": prompt, "completion_tokens": answers}
        return 200, {"model": self.model, "choices": choices, "usage": usage}

    def _written(self, text: str) -> str:
        """A text as a server of the dialect spells it."""
        if self.plain:
            return "no JSON"
        if DIALECTS[self.dialect].guidance == "none":
            return f"Here you are:\n```json\n{text}\n```"
        return text
