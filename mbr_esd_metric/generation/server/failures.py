"""What a server's failures mean: try again, leave the segment out, or stop. Each error says what to do about it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import EngineError, first_of
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.numbers import seconds


class Transient(Exception):
    """A failure after which another try may succeed.

    Attributes:
        wait: seconds until the next try, if the server says so.
        busy: the server works, and refuses requests that are too many (429).
        sent: the request may have reached the server, which may have done (and billed) the work.
        came: samples that were whole before it failed, in pieces, each with the number of its first.
    """

    def __init__(self, reason: str, wait: float | None = None, *, busy: bool = False, sent: bool = False) -> None:
        super().__init__(reason)
        self.wait, self.busy, self.sent = wait, busy, sent
        self.came: list[tuple[int, tuple[Candidate, ...]]] = []


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers (names in lower case) and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> object:
        """The body's value.

        Raises:
            Transient: the body is not JSON, for instance because the reply was cut.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Transient(f"the reply is not JSON ({excerpt(str(error), 80)})") from None


class Slow(Transient):
    """No whole reply in time."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, sent=True)


class Odd(Transient):
    """A complete reply that is not what was asked for. It is asked for again a few times; then the segment fails."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Disobeyed(Odd):
    """A candidate that is not in the grammar or schema."""

    def __init__(self, text: str) -> None:
        super().__init__(f"a candidate that is not in the form asked for: {excerpt(text, 60)!r}")
        self.text = text


class Refused(Exception):
    """The server will not take this request; with `split` it may take it in two halves."""

    def __init__(self, reason: str, *, split: bool = False) -> None:
        super().__init__(reason)
        self.split = split


class GuidanceIgnored(EngineError):
    """The server answers, but not in the form asked for."""

    def __init__(self, address: Address, dialect: str, field: str, text: str) -> None:
        super().__init__(
            f"{address} does not obey the field {field}: it answered {excerpt(text, 60)!r}. For dialect={dialect} "
            "use a server that has guided output, without a reasoning parser (mbr-esd serve starts one); "
            "dialect=plain asks for none, and counts what is malformed"
        )


def classify(answer: Answer, address: Address, model: str) -> Exception:
    """The error for a status that is not 200: `Transient`, `Refused` or `EngineError`."""
    status, said = answer.status, message(answer)
    text = said.lower()
    wait = retry_after(answer.headers)
    if status == 429 and not re.search(r"quota|billing|credit", text):
        return Transient(f"429 {said}", wait, busy=True)
    if status >= 500 or status in (408, 409, 425):
        return Transient(f"{status} {said}", wait)
    if status in (401, 403):
        return key_refused(address, status)
    if status in (402, 429):
        return EngineError(f"{address}: {said}; what was sampled is kept")
    if status == 404:
        if "model" in text:
            return NoSuchModel(address, model)
        return EngineError(f"{address} has no chat completions (404); the address mostly ends in /v1")
    too_long = r"context (length|size|window)|maximum context|max_model_len|too long|longer than|exceed\w* .*context"
    if status == 413 or re.search(too_long, text):
        return Refused(
            f"too long for the model's context ({said}); serve it with a longer one (max_model_len), or ask for "
            "shorter answers (max_tokens)"
        )
    if re.search(r"grammar|regex|structured|guided|fsm|xgrammar|guidance|outlines|response_format|schema", text):
        return Refused(
            f"the server refuses the grammar ({said}); it must have guided output (mbr-esd serve sets a backend), or "
            "be asked with dialect=plain"
        )
    fix = "; give one that it takes, such as temperature=1" if "temperature" in text else ""
    return Refused(
        f"the server refuses the request ({status} {said}){fix}", split=bool(re.search(r"\bn(_cmpl)?\b", text))
    )


class NoSuchModel(EngineError):
    """A server says that it has no such model; the caller can list those that it has."""

    def __init__(self, address: Address, model: str) -> None:
        super().__init__(f"{address} serves no model {model!r}")
        self.address, self.model = address, model


def wrong_model(address: Address, model: str, names: Sequence[str]) -> EngineError:
    """The server does not know the model: says what it serves, the nearest name first."""
    if not names:
        return EngineError(f"{address} serves no model {model!r}, and no other")
    near = difflib.get_close_matches(model, names, n=1, cutoff=0.0)
    others = [*near, *(name for name in names if name not in near)]
    listed = first_of([repr(excerpt(name, 100)) for name in others], 20)
    # An adapter is part of the name that a card asks for, whatever its option `model` says.
    take = "Add model=NAME to the model's options" if "+" not in model else "Take mbr-esd-server?model=NAME&server=URL"
    return EngineError(f"{address} does not serve {model!r}; it serves {listed}. {take}, or serve the right one")


def unreachable(address: Address, answer: Answer | Transient) -> EngineError:
    """A server that cannot say what it serves."""
    if isinstance(answer, Slow):
        return EngineError(f"{address} does not answer ({answer}); see whether it is ready and its address right")
    if isinstance(answer, Transient):
        return EngineError(f"no server answers at {address} ({answer}); start the server, or fix the "
                           "address")  # fmt: skip
    if answer.status in (401, 403):
        return key_refused(address, answer.status)
    if answer.status == 404:
        return EngineError(f"{address} is no OpenAI-compatible server (404); its address mostly ends in /v1")
    return EngineError(f"{address} answers {answer.status}: {message(answer)}; try again once it is ready")


def key_refused(address: Address, status: int) -> EngineError:
    """401 or 403."""
    return EngineError(
        f"{address} refuses the key ({status}); set the environment variable MBR_ESD_API_KEY to a valid one"
    )


def message(answer: Answer) -> str:
    """The server's message as one line, wherever it stands in the body."""
    try:
        value: object = answer.json()
    except Transient:
        return excerpt(answer.body[:2000].decode("utf-8", "replace")) or f"status {answer.status}"
    for _ in range(4):
        if isinstance(value, list) and value:
            value = value[0]
        elif isinstance(value, Mapping):
            if isinstance(value.get("msg"), str) and isinstance(value.get("loc"), list) and value["loc"]:
                return excerpt(f"{value['loc'][-1]}: {value['msg']}")  # of servers that check with pydantic
            value = value.get("error") or value.get("message") or value.get("detail") or value.get("msg")
    return excerpt(str(value)) if value else f"status {answer.status}"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait: ``Retry-After`` as number or date, or OpenAI's ``retry-after-ms``."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = seconds(headers.get(name, ""))
        if said is not None:
            return said / unit
    return None
