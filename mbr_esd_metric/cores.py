"""The cores of the machine that this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Their number, at least 1; all of the machine where the system does not tell which."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
