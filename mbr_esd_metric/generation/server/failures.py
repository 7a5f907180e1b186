"""The meaning of a server's failures: try again, leave the segment out, or stop.

The status, the header ``Retry-After`` and documented error codes decide, never a word of the server's message. That is
shown as it is.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.server.address import Address, excerpt

#: Documented error codes: nothing is left to spend, which also comes as 429; the prompt is too long.
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

    @property
    def value(self) -> Any:
        """The body's JSON; if it is none, its text as one line without HTML's tags, cut."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return excerpt(re.sub(r"<[^<>]*>", " ", self.body[:20_000].decode("utf-8", "replace")))

    def json(self) -> Any:
        """The object of a good reply; raises `TransientError` if there is none, for instance because it was cut."""
        if isinstance(value := self.value, str):
            raise TransientError(f"the reply is not JSON: {value!r}", sent=True)
        return value

    def failure(self, address: Address) -> Exception:
        """The error that this response is; see `classify`."""
        return classify(self.status, self.value, address, retry_after(self.headers))


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


def key_refused(address: Address, reason: str) -> EngineError:
    """The error of a server that wants another key."""
    return EngineError(f"{address} refuses the key ({reason}); set MBR_ESD_API_KEY to a valid one")


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
