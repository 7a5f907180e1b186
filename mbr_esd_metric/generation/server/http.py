"""HTTP with limits: no redirect is followed, and no body is read beyond a limit or compressed.

It uses aiohttp and not the openai SDK. Measured with a server that answers at once, 16 candidates a request: the SDK's
raw replies over httpx took 2 to 3.5 times the processor time, and did not reach 5,000 candidates a second on a core.
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
    """A failure after which another try may succeed: `wait` is the seconds until then, if the server gives them. It
    is `busy` if the server asks to wait (429, 503, ``Retry-After``); a request that was `sent` may have been handled
    and billed. A failure that may be `of_request` alone, a 500, can be a text that the server cannot take."""

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
    """No whole reply in time."""

    sent = True


class InvalidResponse(TransientError):
    """A complete reply that does not match the request. It is retried a few times; then the segment fails."""

    sent = True


class NotFound(InvalidResponse):
    """A 404 or the like: of a wrong address or name it is lasting, of a gateway whose server restarts it passes."""

    sent = False


class SchemaViolation(InvalidResponse):
    """A candidate that is not in the grammar or schema."""


class RequestRejected(Exception):
    """The server will never answer this request."""


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers (names in lower case) and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body's JSON, of an event stream the reply that its events make up; raises `TransientError` if it is none,
        for instance because it was cut."""
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
            fix = "switch streaming off at the server, or in the gateway before it"
            raise InvalidResponse(f"{cause}: {self.text!r}; {fix}") from None

    @property
    def text(self) -> str:
        """The body as one line without HTML's tags, cut."""
        return excerpt(re.sub(r"<[^<>]*>", " ", self.body[:20_000].decode("utf-8", "replace")))


@asynccontextmanager
async def connections() -> AsyncIterator[ClientSession]:
    """A session without limits on connections, without cookies, and without decompression."""
    require("aiohttp", "server", "engine=server")
    import aiohttp

    connector, cookies = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=cookies, auto_decompress=False) as session:
        yield session


def request(address: Address, path: str, body: Any = None, limit: int = 1 << 24, seconds: float = 10.0) -> Response:
    """The reply that `fetch` gives, waited for. It works also in a thread that runs an event loop, as a notebook's."""

    async def alone() -> Response:
        async with connections() as session:
            return await fetch(session, address, path, body, limit, seconds)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, alone()).result()


async def fetch(
    session: ClientSession, address: Address, path: str, body: Any = None, limit: int = 1 << 24, seconds: float = 10.0
) -> Response:
    """The reply to a POST of a body, JSON as bytes or a form of aiohttp; without one to a GET, such as a question about
    the server. Raises `RequestTimeout` if it is not complete in time, `TransientError` if the connection is refused or
    lost, and `EngineError` for a redirect and a reply that is compressed or has more than `limit` bytes."""
    import aiohttp

    method, timeout = "GET" if body is None else "POST", aiohttp.ClientTimeout(total=seconds)
    headers = {"Accept-Encoding": "identity", **address.headers()}
    if isinstance(body, bytes):
        headers["Content-Type"] = "application/json"
    # aiohttp's own `trust_env` would read ``~/.netrc`` too, and send what stands there beside the key.
    scheme, _, host, *_ = address.url.split("/")
    proxy = None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(scheme[:-1])
    options = {"allow_redirects": False, "proxy": proxy, "timeout": timeout}
    try:
        async with session.request(method, address.at(path), data=body, headers=headers, **options) as reply:
            names = {name.lower(): value for name, value in reply.headers.items()}
            if 300 <= reply.status < 400:
                target = excerpt(shown(names.get("location", "an unspecified address")), 100)
                raise EngineError(f"{address} redirects to {target}, which was not followed: use that address")
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
    """A number of tokens, which fits the store and a sum; None if the value is none."""
    return value if type(value) is int and 0 <= value <= 10**12 else None
