"""Classification of server failures: retry, reject the segment, or end the run.

It depends on the status, the header ``Retry-After`` and documented error codes only, not on the text of the server's
message, which is passed on unchanged.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.http import InvalidResponse, NotFound, RequestRejected, Response, TransientError

#: Documented error codes: quota exhausted (also with status 429); prompt too long.
_NO_CREDIT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_TOO_LONG = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
#: Statuses of temporary failures, including those of gateways (498: no free capacity; 499: closed before the answer),
#: and codes of temporary failures with any status.
_PASSING = {408, 409, 425, 429, 498, 499}
_PASSING_CODES = {"rate_limit_exceeded", "rate_limit_error", "rate_limited", "too_many_requests", "resource_exhausted"}
_PASSING_CODES |= {"model_loading", "model_not_ready", "loading", "unavailable_error", "service_unavailable"}
_PASSING_CODES |= {"overloaded", "overloaded_error", "server_overloaded", "engine_overloaded", "capacity_exceeded"}
_PASSING_CODES |= {"throttlingexception", "modelnotreadyexception", "unavailable", "slow_down"}
#: Codes for an unknown model, for which retries are useless.
_UNKNOWN_MODEL = {"model_not_found", "deploymentnotfound", "notfounderror"}


def failure_of(response: Response, address: Address) -> Exception:
    """The error for a response, see `classify`."""
    return classify(response.status, _value(response), address, retry_after(response.headers))


def reason_of(response: Response) -> str:
    """The status and the server's message, as one line."""
    return f"{response.status} {describe(_value(response))[0]}"


def _value(response: Response) -> object:
    try:
        return response.json()
    except TransientError:
        return response.text


def classify(status: int, value: object, address: Address, wait: float | None = None) -> Exception:
    """The error for a status and a body: `EngineError` if no request can succeed, `RequestRejected` if this one cannot,
    otherwise `TransientError`.

    With status 200, a numeric code in the body is used as the status. With any status, a known code of a temporary
    failure, or a requested pause, makes the failure temporary.
    """
    message, codes = describe(value)
    if status == 200:
        status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), 200)
    reason = f"{status} {message}"
    codes = {code.lower() for code in codes}
    if status == 401:
        return key_refused(address, reason)
    if status == 402 or codes & _NO_CREDIT:
        return EngineError(f"{address}: {reason}; sampled candidates are kept")
    refusal = f"{address} rejects the request: {reason}"
    if codes & _TOO_LONG:
        fix = "serve the model with a longer context (vLLM: --max-model-len), or request fewer tokens (max_tokens)"
        return RequestRejected(f"{refusal}; {fix}")
    passing = bool(codes & _PASSING_CODES) or wait is not None
    if passing or status >= 500 or status in _PASSING:
        return TransientError(reason, wait, busy=passing or status in (429, 498, 503), of_request=status == 500)
    if status == 200:
        return InvalidResponse(f"the reply has no answer: {message}")
    if status in (404, 405):
        fix = "check the model name and the address, which usually ends in /v1"
        lasting = status == 405 or codes & _UNKNOWN_MODEL
        return RequestRejected(f"{refusal}; {fix}") if lasting else NotFound(f"{reason}; {fix}")
    if status == 413:
        fix = "the server, or a proxy before it, rejects requests of this size: raise its limit, or split the segment"
        refusal += f"; {fix}"
    return RequestRejected(refusal)


def key_refused(address: Address, reason: str) -> EngineError:
    """The error for an API key that a server rejects."""
    return EngineError(f"{address} rejects the API key ({reason}); set MBR_ESD_API_KEY to a valid one")


def describe(value: object) -> tuple[str, set[str]]:
    """The server's message as one line, wherever it is in a reply, and the codes, types and statuses next to it."""
    codes: set[str] = set()
    field, inner = "", value
    for _ in range(6):
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if not isinstance(inner, Mapping):
            break
        value = inner
        codes |= {str(inner[name]) for name in ("code", "type", "status") if name in inner}
        if isinstance(inner.get("loc"), list) and inner["loc"]:  # servers that validate with pydantic
            field = f"{inner['loc'][-1]}: "
        parts = [inner.get(name) for name in ("message", "error", "detail", "msg")]
        inner = next(
            (part for part in sorted(parts, key=lambda part: not isinstance(part, (Mapping, list))) if part), None
        )
    return field + excerpt(str(inner or value)), codes


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The pause in seconds in the header ``Retry-After``, which is a number or a date; None if it is missing or
    invalid."""
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{0,9})?", text, re.ASCII):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
