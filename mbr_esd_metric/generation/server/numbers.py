"""The one check for numbers that a server states, in a reply or in a header.

JSON has numbers of any size, and a header has any text. What passes here fits the store, the clock and a sum of
thousands.
"""

from __future__ import annotations

import email.utils
import re
import time
from typing import Any

#: The most that a count of tokens can be, and the size of the least log-probability.
MOST_TOKENS = 10**12
LEAST_LOGPROB = -1e9
#: The most characters of a header's value that are read as a number, a duration or a date.
LONGEST_HEADER = 64
#: The most seconds that a header is taken to ask for: ten years.
_MOST_SECONDS = 3.2e8
_PLAIN = re.compile(r"\s*\d{1,15}(\.\d{1,15})?\s*", re.ASCII)


def count(value: object) -> int | None:
    """A number of tokens; None if the value is none."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def logprob(value: Any) -> float | None:
    """A log-probability, finite and at most 0 but for rounding; None if the value is none."""
    # A bool is an int, and no number of a server's.
    return float(value) if type(value) in (float, int) and LEAST_LOGPROB <= value <= 1e-3 else None


def seconds(text: str) -> float | None:
    """Seconds from now that a header states, as a number or as a date; None if it is neither."""
    if len(text) > LONGEST_HEADER:
        return None
    try:
        found = float(text) if _PLAIN.fullmatch(text) else _until(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(found, _MOST_SECONDS) if found >= 0 else None


def _until(date: str) -> float:
    return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - time.time())
