"""HTTP with limits: redirects are not followed, and bodies that are too long or compressed are rejected.

It uses aiohttp instead of the openai SDK. With a server that answers immediately and 16 candidates per request, the raw
replies of the SDK over httpx took 2 to 3.5 times the CPU time, and stayed below 5,000 candidates per second and core.
"""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import EngineError, require
from mbr_esd_metric.generation.server.address import Address, excerpt, shown
from mbr_esd_metric.generation.server.event_stream import is_event_stream, whole_reply

if TYPE_CHECKING:
    from aiohttp import ClientSession


class TransientError(Exception):
    """A failure after which a retry may succeed.

    Attributes:
        wait: the pause in seconds that the server requests, if any.
        busy: whether the server asks to wait (429, 503, ``Retry-After``).
        sent: whether the request was sent, so that it may have been processed and billed.
        of_request: whether the cause may be this request (500), such as a text that the server cannot process.
    """

    sent = False

    def __init__(
        self,
        reason: str,
        wait: float | None = None,
        *,
        busy: bool = False,
        sent: bool = False,
        of_request: bool = False,
    ) -> None:
        super().__init__(reason)
        self.wait, self.busy, self.sent, self.of_request = wait, busy, sent or self.sent, of_request


class RequestTimeout(TransientError):
    """No complete reply within the timeout."""

    sent = True


class InvalidResponse(TransientError):
    """A complete reply that does not match the request. It is retried a few times; then the segment is rejected."""

    sent = True


class NotFound(InvalidResponse):
    """A 404 or similar: permanent for a wrong address or name, temporary for a gateway whose server restarts."""

    sent = False


class SchemaViolation(InvalidResponse):
    """A candidate that does not match the grammar or schema."""


class RequestRejected(Exception):
    """The server rejects this request permanently."""


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers (with lower-case names) and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The parsed body: JSON, or the reply assembled from an event stream. Raises `TransientError` if it is invalid,
        for example truncated."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            text = self.body.decode("utf-8-sig", "replace")
        if not is_event_stream(self.headers.get("content-type", ""), text):
            raise TransientError(f"the reply is not JSON: {self.text!r}", sent=True)
        try:
            return whole_reply(text)
        except (ValueError, RecursionError):
            cause = "the server sent an event stream that was not requested, without a complete answer"
            fix = "disable streaming in the server or its gateway"
            raise InvalidResponse(f"{cause}: {self.text!r}; {fix}") from None

    @property
    def text(self) -> str:
        """The body as one line, without HTML tags, truncated."""
        return excerpt(re.sub(r"<[^<>]*>", " ", self.body[:20_000].decode("utf-8", "replace")))


@asynccontextmanager
async def connections() -> AsyncIterator[ClientSession]:
    """A session with unlimited connections, and without cookies and decompression."""
    require("aiohttp", "server", "engine=server")
    import aiohttp

    connector, cookies = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=cookies, auto_decompress=False) as session:
        yield session


def request(address: Address, path: str, body: Any = None, limit: int = 1 << 24, seconds: float = 10.0) -> Response:
    """`fetch` as a synchronous function, which also works in a thread with an event loop, such as in a notebook."""

    async def alone() -> Response:
        async with connections() as session:
            return await fetch(session, address, path, body, limit, seconds)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, alone()).result()


async def fetch(
    session: ClientSession, address: Address, path: str, body: Any = None, limit: int = 1 << 24, seconds: float = 10.0
) -> Response:
    """The reply to a POST request with `body` (JSON as bytes, or a form of aiohttp), or to a GET request without a
    body.

    Raises:
        RequestTimeout: the reply is not complete within `seconds`.
        TransientError: the connection is refused or lost.
        EngineError: a redirect, or a reply that is compressed or has more than `limit` bytes.
    """
    import aiohttp

    method, timeout = "GET" if body is None else "POST", aiohttp.ClientTimeout(total=seconds)
    headers = {"Accept-Encoding": "identity", **address.headers()}
    if isinstance(body, bytes):
        headers["Content-Type"] = "application/json"
    # aiohttp's `trust_env` would also read ``~/.netrc``, and send its credentials in addition to the key.
    scheme, _, host, *_ = address.url.split("/")
    proxy = None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(scheme[:-1])
    options = {"allow_redirects": False, "proxy": proxy, "timeout": timeout}
    try:
        async with session.request(method, address.at(path), data=body, headers=headers, **options) as reply:
            names = {name.lower(): value for name, value in reply.headers.items()}
            if 300 <= reply.status < 400:
                target = excerpt(shown(names.get("location", "an unspecified address")), 100)
                raise EngineError(f"{address} redirects to {target}, which was not followed; use that address")
            if names.get("content-encoding", "").strip().lower() not in (
                "",
                "identity",
            ):  # a small reply could fill the memory
                raise EngineError(f"{address} compresses its replies, although uncompressed ones were requested")
            content = bytearray()
            async for piece in reply.content.iter_chunked(1 << 16):
                content += piece
                if len(content) > limit:
                    raise EngineError(f"{address} sends over {limit / 1e6:.0f} MB; check that it is a chat server")
            return Response(reply.status, names, bytes(content))
    except asyncio.TimeoutError:
        raise RequestTimeout(f"no complete reply within {seconds:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        sent, reason = not isinstance(error, aiohttp.ClientConnectorError), excerpt(str(error), 120)
        raise TransientError(f"connection lost ({reason or type(error).__name__})", sent=sent) from None


def token_count(value: object) -> int | None:
    """A plausible number of tokens; None for any other value."""
    return value if type(value) is int and 0 <= value <= 10**12 else None
