"""When a server may be asked again, by the waits that it asked for and the token budgets in its reply headers; and how
many requests it gets at once."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Mapping
from types import TracebackType

from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.http import Alive
from mbr_esd_metric.generation.server.numbers import LONGEST_HEADER

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "": 1.0}


class Rests:
    """The time until which each server gets no request, on the clock of `time.monotonic`.

    Args:
        longest: the most seconds that a header about a budget may ask for.
    """

    def __init__(self, longest: float) -> None:
        self._until: dict[Address, float] = {}
        self._longest = longest

    def left(self, address: Address) -> float:
        """Seconds until the server may be asked; 0 if it may now."""
        return max(0.0, self._until.get(address, 0.0) - time.monotonic())

    def rest(self, address: Address, seconds: float) -> None:
        """Send nothing for so many seconds, or for longer if the server was to rest longer already."""
        self._until[address] = max(self._until.get(address, 0.0), time.monotonic() + seconds)

    def note(self, address: Address, headers: Mapping[str, str], tokens: int) -> None:
        """Rest until the next reset if the headers say that no request, or too few tokens, are left.

        Args:
            address: the server that sent the headers.
            headers: names in lower case, such as OpenAI's ``x-ratelimit-remaining-tokens``.
            tokens: the number that a request like the last one may take.
        """
        for kind, needed in (("requests", 1), ("tokens", tokens)):
            remaining = headers.get(f"x-ratelimit-remaining-{kind}", "")
            if re.fullmatch(r"\d{1,15}", remaining) and int(remaining) < needed:
                reset = duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
                if reset is not None:
                    self.rest(address, min(reset, self._longest))


class Lanes:
    """The requests that one server gets at once; an asynchronous context manager around each; for one event loop.

    A request that waits in the server's queue has its time run down. So fewer are sent after one that was not answered
    in time, half as many, and one more again after as many replies as there are lanes.

    Args:
        most: requests at once, at first and at most.
        streamed: whether replies are to come choice by choice, so that what came of one that takes too long is kept. It
            costs a fast server much, so others are asked for it after such a reply.
    """

    def __init__(self, most: int, streamed: bool = False) -> None:
        self.most = self._open = most
        self.streamed = streamed
        self.alive = Alive()
        self._busy = self._replies = 0
        self._narrowed = -math.inf
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._busy < self._open)
            self._busy += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._changed:
            self._busy -= 1
            self._changed.notify_all()

    @property
    def full(self) -> bool:
        """Whether the next request has to wait."""
        return self._busy >= self._open

    def slow(self, sent: float) -> None:
        """Note that a request sent at this time, on the clock of `time.monotonic`, was not answered in time. Those sent
        before the last such note had the queue that it is about."""
        self.streamed = True
        if sent > self._narrowed:
            self._open, self._replies, self._narrowed = max(1, self._open // 2), 0, time.monotonic()

    def replied(self) -> None:
        """Note a whole reply."""
        self._replies += 1
        if self._replies >= self._open:
            self._open, self._replies = min(self.most, self._open + 1), 0


def duration(text: str) -> float | None:
    """Seconds of "1s", "6m0s", "20ms" or "12.5"; None if it is no duration."""
    if len(text) > LONGEST_HEADER:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|us|[dhms]|$)", text.strip(), re.ASCII)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text.strip():
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return seconds if math.isfinite(seconds) else None
