"""HTTP with limits: it follows no redirect, and reads no body beyond a limit, even if it is compressed.

It uses aiohttp and not an SDK. Building the SDK's objects took 41% of the client's time, and an SDK sends the key
along when it follows a redirect.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from mbr_esd_metric.errors import EngineError, MissingDependencyError
from mbr_esd_metric.generation.server.address import Address, printable, shown
from mbr_esd_metric.generation.server.failures import Answer, Slow, Transient

if TYPE_CHECKING:
    import aiohttp

#: The most bytes of a reply without candidates, such as a list of models or an error.
SMALL = 1 << 24
_Result = TypeVar("_Result")


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
            trust_env=True,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, address: Address, path: str, limit: int = SMALL) -> Answer:
        """GET a path of `Address.at`; errors as for `post`."""
        return await self._send("GET", address, path, None, {}, limit)

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
        return await self._send("POST", address, path, body, {"Content-Type": kind}, limit)

    async def _send(
        self, method: str, address: Address, path: str, body: bytes | None, headers: Mapping[str, str], limit: int
    ) -> Answer:
        import aiohttp

        assert self._session is not None
        everything = {"Accept-Encoding": "identity", **address.headers(), **headers}
        sent = False
        try:
            async with self._session.request(
                method, address.at(path), data=body, headers=everything, allow_redirects=False
            ) as reply:
                sent = True
                names = {name.lower(): value for name, value in reply.headers.items()}
                if 300 <= reply.status < 400:
                    raise EngineError(
                        f"{address} sends its callers on to {printable(_target(names), 100)}; nothing was sent there: "
                        "give that address, if it is the right one"
                    )
                return Answer(reply.status, names, await _read(reply, names.get("content-encoding"), limit, address))
        except asyncio.TimeoutError:
            raise Slow(f"no reply within {self._seconds:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise Transient(f"connection lost ({_reason(error)})", sent=False) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Transient(f"connection lost ({_reason(error)})", sent=sent or body is not None) from None


async def _read(reply: aiohttp.ClientResponse, packing: str | None, limit: int, address: Address) -> bytes:
    """The decompressed body. Decompression stops at the limit, so a small reply cannot fill the memory."""
    unpack = None
    if packing in ("gzip", "x-gzip", "deflate"):
        unpack = zlib.decompressobj(47)
    elif packing not in (None, "", "identity"):
        raise Transient(f"the reply is packed with {printable(packing or '', 20)}, though none was asked for")
    pieces: list[bytes] = []
    size = 0
    async for piece in reply.content.iter_chunked(1 << 16):
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
        pieces.append(piece)
    return b"".join(pieces)


def _target(headers: Mapping[str, str]) -> str:
    """The host of a redirect, without what may be secret."""
    return shown(headers.get("location", "an address that it does not name"))


def _reason(error: BaseException) -> str:
    return printable(str(error), 120) or type(error).__name__


def require_aiohttp() -> Any:
    """The package aiohttp; raises `MissingDependencyError` if it is not installed."""
    try:
        import aiohttp
    except ImportError:
        raise MissingDependencyError("aiohttp", "server", "engine=server") from None
    return aiohttp


def run(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
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
