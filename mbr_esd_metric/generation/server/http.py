"""HTTP with limits: it follows no redirect, and reads no body beyond a limit, even if it is compressed.

It uses aiohttp and not an SDK. Building the SDK's objects took 41% of the client's time, and an SDK sends the key
along when it follows a redirect.
"""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
import zlib
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from mbr_esd_metric.errors import EngineError, MissingDependencyError
from mbr_esd_metric.generation.server.address import Address, excerpt, shown
from mbr_esd_metric.generation.server.failures import Answer, Slow, Transient

if TYPE_CHECKING:
    import aiohttp

#: The most bytes of a reply without candidates, such as a list of models or an error.
SMALL = 1 << 24
#: Seconds that a server has to answer a question about itself.
ASKING = 10.0
_Result = TypeVar("_Result")


class Alive:
    """When a server last sent something of an answer, on the clock of `time.monotonic`."""

    last = 0.0

    def mark(self) -> None:
        """It does so now."""
        self.last = time.monotonic()


class Http:
    """Connections to servers; an asynchronous context manager.

    Args:
        seconds: the most that a request may take, from the connection to the last byte.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Http:
        aiohttp = require_aiohttp()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=self._seconds),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, address: Address, path: str, limit: int = SMALL) -> Answer:
        """GET a path of `Address.at`; errors as for `post`."""
        return _all(await self._send("GET", address, path, None, {}, limit))

    async def post(
        self, address: Address, path: str, body: bytes, limit: int, kind: str = "application/json"
    ) -> Answer:
        """POST a body.

        Args:
            address, path: see `Address.at`.
            body: the bytes to send.
            limit: the most bytes of the decompressed reply that are read.
            kind: the body's content type.

        Raises:
            Slow: the reply is not complete in time.
            Transient: the connection is refused or lost.
            EngineError: a redirect, or a body beyond the limit.
        """
        return _all(await self._send("POST", address, path, body, {"Content-Type": kind}, limit))

    async def stream(
        self, address: Address, path: str, body: bytes, limit: int, take: Callable[[bytes], bool], alive: Alive
    ) -> Answer | None:
        """POST a body whose reply comes in events.

        The time runs from the first event with something of an answer. Until then the request waits in the server's
        queue, for as long as the server answers others.

        Args:
            address, path, body, limit: as for `post`.
            take: gets the bytes as they come; whether they had such an event.
            alive: of this server, for all of its requests together.

        Returns:
            None; the answer, if it is no stream: an error, or of a server that does not know how.

        Raises:
            Slow, Transient, EngineError: as `post`, and what `take` raises.
        """
        began: list[float] = []
        sent = time.monotonic()

        def noting(piece: bytes) -> None:
            if take(piece):
                alive.mark()
                began[:] = began or [time.monotonic()]

        headers = {"Content-Type": "application/json"}
        reading = asyncio.ensure_future(self._send("POST", address, path, body, headers, limit, noting))
        try:
            while True:
                left = (began[0] if began else max(sent, alive.last)) + self._seconds - time.monotonic()
                if left <= 0:
                    raise Slow(f"no whole reply within {self._seconds:g} s")
                done, _ = await asyncio.wait({reading}, timeout=left)
                if done:
                    return reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _send(
        self,
        method: str,
        address: Address,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limit: int,
        noting: Callable[[bytes], None] | None = None,
    ) -> Answer | None:
        import aiohttp

        assert self._session is not None
        url = address.at(path)
        everything = {"Accept-Encoding": "identity", **address.headers(), **headers}
        sent = False
        try:
            timeout = aiohttp.ClientTimeout(total=None if noting else self._seconds)
            async with self._session.request(
                method, url, data=body, headers=everything, allow_redirects=False, proxy=_proxy(url), timeout=timeout
            ) as reply:
                sent = True
                names = {name.lower(): value for name, value in reply.headers.items()}
                if 300 <= reply.status < 400:
                    raise EngineError(
                        f"{address} sends its callers on to {excerpt(_target(names), 100)}; nothing was sent there: "
                        "give that address, if it is the right one"
                    )
                if noting and reply.status == 200 and reply.content_type == "text/event-stream":
                    await _read(reply, names.get("content-encoding"), limit, address, noting)
                    return None
                return Answer(reply.status, names, await _read(reply, names.get("content-encoding"), limit, address))
        except asyncio.TimeoutError:
            raise Slow(f"no reply within {self._seconds:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise Transient(f"connection lost ({_reason(error)})", sent=False) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Transient(f"connection lost ({_reason(error)})", sent=sent or body is not None) from None


def _all(answer: Answer | None) -> Answer:
    assert answer is not None  # only what is noted piece by piece is none
    return answer


async def _read(
    reply: aiohttp.ClientResponse,
    packing: str | None,
    limit: int,
    address: Address,
    noting: Callable[[bytes], None] | None = None,
) -> bytes:
    """The decompressed body; empty if each piece is noted when it comes. Decompression stops at the limit, so a small
    reply cannot fill the memory."""
    unpack = None
    if packing in ("gzip", "x-gzip", "deflate"):
        unpack = zlib.decompressobj(47)
    elif packing not in (None, "", "identity"):
        raise Transient(f"the reply is packed with {excerpt(packing or '', 20)}, though none was asked for")
    pieces: list[bytes] = []
    size = 0
    async for piece in reply.content.iter_any() if noting else reply.content.iter_chunked(1 << 16):
        if unpack is not None:
            try:
                piece = unpack.decompress(piece, limit + 1 - size)
            except zlib.error as error:
                raise Transient(f"the reply is no {packing} ({error})") from None
        size += len(piece)
        if size > limit:
            raise EngineError(
                f"{address} answers with more than {limit / 1e6:.0f} MB, which no reply to what was asked can have; "
                "see whether that address is a chat server"
            )
        if noting is not None:
            noting(piece)
        else:
            pieces.append(piece)
    return b"".join(pieces)


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for this address (http_proxy, https_proxy, no_proxy).

    aiohttp's own `trust_env` would read ``~/.netrc`` too, and send what stands there to the server, beside the key.
    """
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _target(headers: Mapping[str, str]) -> str:
    """The host of a redirect, without what may be secret."""
    return shown(headers.get("location", "an address that it does not name"))


def _reason(error: BaseException) -> str:
    return excerpt(str(error), 120) or type(error).__name__


def require_aiohttp() -> Any:
    """The package aiohttp; raises `MissingDependencyError` if it is not installed."""
    try:
        import aiohttp
    except ImportError:
        raise MissingDependencyError("aiohttp", "server", "engine=server") from None
    return aiohttp


def run_coroutine(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """The coroutine's result. It works also in a thread that already runs an event loop, such as a notebook's."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(coroutine))
        except BaseException as error:  # handed to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=work, name="mbr-esd-http", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
