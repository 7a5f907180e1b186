"""HTTP with limits, and the meaning of a failure: try again, leave the segment out, or stop.

No redirect is followed, and no body is read beyond a limit or compressed. The status, the header ``Retry-After`` and
documented error codes decide what a failure means, never a word of the server's message, which is shown as it is.

It uses aiohttp and not the openai SDK. Measured with a server that answers at once, 16 candidates a request: the SDK's
raw replies over httpx took 2 to 3.5 times the processor time, and did not reach 5,000 candidates a second on a core.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import EngineError, require
from mbr_esd_metric.generation.server.address import Address, excerpt, shown

if TYPE_CHECKING:
    from aiohttp import ClientSession

#: Documented error codes: nothing is left to spend (which also comes as 429); the prompt is too long.
_NO_CREDIT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_TOO_LONG = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}


class TransientError(Exception):
    """A failure after which another try may succeed: `wait` is the seconds until then, if the server says so. It is
    `busy` where it asks to wait (429, 503, ``Retry-After``); a request that was `sent` may have been worked on and
    billed."""

    sent = False

    def __init__(self, reason: str, wait: float | None = None, *, busy: bool = False, sent: bool = False) -> None:
        super().__init__(reason)
        self.wait, self.busy, self.sent = wait, busy, sent or self.sent


class RequestTimeout(TransientError):
    """No whole reply in time."""

    sent = True


class InvalidResponse(TransientError):
    """A complete reply that does not fit the request. It is asked for again a few times; then the segment fails."""

    sent = True


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
        """The body's JSON; raises `TransientError` if it is none, for instance because it was cut."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise TransientError(f"the reply is not JSON: {self._text!r}", sent=True) from None

    @property
    def reason(self) -> str:
        """The status and the server's message."""
        return f"{self.status} {describe(self._value)[0]}"

    def failure(self, address: Address) -> Exception:
        """The error that this response is; see `classify`."""
        return classify(self.status, self._value, address, retry_after(self.headers))

    @property
    def _value(self) -> Any:
        try:
            return self.json()
        except TransientError:
            return self._text

    @property
    def _text(self) -> str:
        """The body as one line without HTML's tags, cut."""
        return excerpt(re.sub(r"<[^<>]*>", " ", self.body[:20_000].decode("utf-8", "replace")))


@asynccontextmanager
async def connections() -> AsyncIterator[ClientSession]:
    """Connections to servers."""
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


def classify(status: int, value: object, address: Address, wait: float | None = None) -> Exception:
    """The error that a status and the value of a body say: `EngineError` if no request can succeed, `RequestRejected`
    if this one cannot, otherwise `TransientError`. With the status 200 the error's own numeric code counts."""
    message, codes = describe(value)
    if status == 200:
        status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), 200)
    reason = f"{status} {message}"
    if status == 401:
        return key_refused(address, reason)
    if status == 402 or codes & _NO_CREDIT:
        return EngineError(f"{address}: {reason}; what was sampled is kept")
    if status == 200:
        return InvalidResponse(f"the reply has no answer: {message}")
    if status >= 500 or status in (408, 409, 425, 429):
        return TransientError(reason, wait, busy=wait is not None or status in (429, 503))
    fix = ""
    if status in (404, 405):
        fix = "; see the model's name, and the address, which mostly ends in /v1"
    if status == 413 or codes & _TOO_LONG:
        fix = "; serve the model with a longer context (of vLLM --max-model-len), or ask for less (max_tokens)"
    return RequestRejected(f"{address} refuses the request: {reason}{fix}")


def key_refused(address: Address, reason: str) -> EngineError:
    """The error of a server that wants another key."""
    return EngineError(f"{address} refuses the key ({reason}); set MBR_ESD_API_KEY to a valid one")


def describe(value: object) -> tuple[str, set[str]]:
    """The server's message as one line, wherever it stands in a reply, and the codes, types and statuses beside it."""
    codes: set[str] = set()
    field, inner = "", value
    for _ in range(6):
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if not isinstance(inner, Mapping):
            break
        value = inner
        codes |= {str(inner[name]) for name in ("code", "type", "status") if name in inner}
        if isinstance(inner.get("loc"), list) and inner["loc"]:  # of servers that check with pydantic
            field = f"{inner['loc'][-1]}: "
        parts = [inner.get(name) for name in ("message", "error", "detail", "msg")]
        inner = next(
            (part for part in sorted(parts, key=lambda part: not isinstance(part, (Mapping, list))) if part), None
        )
    return field + excerpt(str(inner or value)), codes


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that ``Retry-After`` asks to wait, as a number or a date; None if it says neither."""
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{0,9})?", text, re.ASCII):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def token_count(value: object) -> int | None:
    """A number of tokens, which fits the store and a sum; None if the value is none."""
    return value if type(value) is int and 0 <= value <= 10**12 else None
