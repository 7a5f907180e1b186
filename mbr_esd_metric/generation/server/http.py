"""HTTP with limits: it follows no redirect, and reads no body beyond a limit or one that is compressed.

It uses aiohttp and not the openai SDK. Measured with a server that answers at once, 16 candidates a request: the SDK's
raw replies over httpx took 2 to 3.5 times the processor time, and did not reach 5,000 candidates a second on a core.
"""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from mbr_esd_metric.errors import EngineError, require
from mbr_esd_metric.generation.server.address import Address, excerpt, shown
from mbr_esd_metric.generation.server.failures import RequestTimeout, Response, TransientError

if TYPE_CHECKING:
    import aiohttp

#: Seconds that a server has to answer a question about itself.
PROBE_SECONDS = 10.0
_Result = TypeVar("_Result")


class Http:
    """Connections to servers, an asynchronous context manager."""

    _session: aiohttp.ClientSession

    async def __aenter__(self) -> Http:
        require("aiohttp", "server", "engine=server")
        import aiohttp

        connector, cookies = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=cookies, auto_decompress=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, address: Address, path: str) -> Response:
        """The reply to a question about the server, of 16 MB at most; raises as `request` does."""
        return await self.request("GET", address, path, None, 1 << 24, PROBE_SECONDS)

    async def request(
        self, method: str, address: Address, path: str, body: Any, limit: int, seconds: float
    ) -> Response:
        """The reply to a request, whose body is JSON as bytes, a form of aiohttp, or None. Raises `RequestTimeout` if
        it is not complete in time, `TransientError` if the connection is refused or lost, and `EngineError` for a
        redirect and a reply that is compressed or has more than `limit` bytes."""
        import aiohttp

        url = address.at(path)
        headers = {"Accept-Encoding": "identity", **address.headers()}
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/json"
        timeout = aiohttp.ClientTimeout(total=seconds)
        sending = self._session.request(
            method, url, data=body, headers=headers, allow_redirects=False, proxy=_proxy(url), timeout=timeout
        )
        try:
            async with sending as reply:
                names = {name.lower(): value for name, value in reply.headers.items()}
                if 300 <= reply.status < 400:
                    target = excerpt(shown(names.get("location", "an address that it does not name")), 100)
                    raise EngineError(f"{address} redirects to {target}, and nothing was sent there: give that address")
                if names.get("content-encoding", "identity") != "identity":  # a small reply could fill the memory
                    raise EngineError(f"{address} compresses its replies, though they were asked for as they are")
                content = bytearray()
                async for piece in reply.content.iter_chunked(1 << 16):
                    content += piece
                    if len(content) > limit:
                        raise EngineError(f"{address} sends over {limit / 1e6:.0f} MB; see whether it is a chat server")
                return Response(reply.status, names, bytes(content))
        except asyncio.TimeoutError:
            raise RequestTimeout(f"no whole reply within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            sent, reason = not isinstance(error, aiohttp.ClientConnectorError), excerpt(str(error), 120)
            raise TransientError(f"connection lost ({reason or type(error).__name__})", sent=sent) from None


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for this address (http_proxy, https_proxy, no_proxy).

    aiohttp's own `trust_env` would read ``~/.netrc`` too, and send what stands there to the server, beside the key.
    """
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def run_coroutine(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """The coroutine's result. It works also in a thread that already runs an event loop, such as a notebook's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
