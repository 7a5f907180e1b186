"""When a server may be asked again, by the waits that it asked for and the token budgets in its reply headers."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping

from mbr_esd_metric.generation.server.address import Address

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


def duration(text: str) -> float | None:
    """Seconds of "1s", "6m0s", "20ms" or "12.5"; None if it is no duration."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|us|[dhms]|$)", text.strip())
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text.strip():
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return seconds if math.isfinite(seconds) else None
