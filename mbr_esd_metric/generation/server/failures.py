"""The meaning of a server's failures: try again, leave the segment out, or stop."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.server.address import Address, excerpt

#: The most that a count of tokens can be; it fits the store and a sum.
MOST_TOKENS = 10**12


class TransientError(Exception):
    """A failure after which another try may succeed.

    Attributes:
        wait: seconds until the next try, if the server says so.
        busy: the server works, and refuses requests that are too many (429).
        sent: the request may have reached the server, which may have done (and billed) the work.
    """

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

    def __init__(self, text: str) -> None:
        super().__init__(f"a candidate that is not in the form asked for: {excerpt(text, 60)!r}")
        self.text = text


class RequestRejected(Exception):
    """The server will not take this request; with `split` it may take it in two halves."""

    def __init__(self, reason: str, *, split: bool = False) -> None:
        super().__init__(reason)
        self.split = split


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers (names in lower case) and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> object:
        """The body's value; raises `TransientError` if it is not JSON, for instance because the reply was cut."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise TransientError(f"the reply is not JSON ({excerpt(str(error), 80)})", sent=True) from None

    @property
    def message(self) -> str:
        """The server's message as one line, wherever it stands in the body."""
        try:
            value: object = json.loads(self.body)
        except (ValueError, RecursionError):
            return excerpt(self.body[:2000].decode("utf-8", "replace")) or f"status {self.status}"
        for _ in range(4):
            if isinstance(value, list) and value:
                value = value[0]
            elif isinstance(value, Mapping):
                if isinstance(value.get("msg"), str) and isinstance(value.get("loc"), list) and value["loc"]:
                    return excerpt(f"{value['loc'][-1]}: {value['msg']}")  # of servers that check with pydantic
                value = value.get("error") or value.get("message") or value.get("detail") or value.get("msg")
        return excerpt(str(value)) if value else f"status {self.status}"


def classify(response: Response, address: Address, model: str) -> Exception:
    """The error for a status that is not 200: `TransientError`, `RequestRejected` or `EngineError`."""
    status, message = response.status, response.message
    text, wait = message.lower(), retry_after(response.headers)
    if status == 429 and not re.search(r"quota|billing|credit", text):
        return TransientError(f"429 {message}", wait, busy=True)
    if status >= 500 or status in (408, 409, 425):
        return TransientError(f"{status} {message}", wait)
    if status in (401, 403):
        return key_refused(address, status)
    if status in (402, 429):
        return EngineError(f"{address}: {message}; what was sampled is kept")
    if status == 404:
        if "model" in text:
            return EngineError(f"{address} serves no model {model!r} any more ({message}); what was sampled is kept")
        return EngineError(f"{address} has no chat completions (404); the address mostly ends in /v1")
    too_long = r"context (length|size|window)|maximum context|max_model_len|too long|longer than|exceed\w* .*context"
    if status == 413 or re.search(too_long, text):
        return RequestRejected(
            f"too long for the model's context ({message}); serve it with a longer one (of vLLM --max-model-len), or "
            "ask for shorter answers (max_tokens)"
        )
    if re.search(r"grammar|regex|structured|guided|fsm|xgrammar|guidance|outlines|response_format|schema", text):
        return RequestRejected(
            f"the server refuses the grammar ({message}); it must have guided output (mbr-esd serve sets a backend), "
            "or be asked with dialect=plain"
        )
    fix = "; give one that it takes, such as temperature=1" if "temperature" in text else ""
    return RequestRejected(
        f"the server refuses the request ({status} {message}){fix}", split=bool(re.search(r"\bn(_cmpl)?\b", text))
    )


def unreachable(address: Address, failure: TransientError) -> EngineError:
    """The error of a server that cannot say what it serves."""
    if failure.sent:
        return EngineError(
            f"{address} does not say what it serves ({failure}); see whether it is ready and its address right (it "
            "mostly ends in /v1)"
        )
    return EngineError(f"no server answers at {address} ({failure}); start the server, or fix the address")


def key_refused(address: Address, status: int) -> EngineError:
    """The error for 401 or 403."""
    fix = "set the environment variable MBR_ESD_API_KEY to a valid one"
    return EngineError(f"{address} refuses the key ({status}); {fix}")


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
    """A number of tokens; None if the value is none."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
