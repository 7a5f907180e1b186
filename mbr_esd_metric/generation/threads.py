"""How torch's threads wait for each other on a processor."""

from __future__ import annotations

import os
import sys
import threading

#: Environment variable of OpenMP, read when torch loads its OpenMP library.
POLICY = "OMP_WAIT_POLICY"

_CHOSEN_BY_USER = POLICY in os.environ
_TORCH_CAME_FIRST = "torch" in sys.modules
os.environ.setdefault(POLICY, "passive")
_parked: threading.Thread | None = None


def wait_passively() -> None:
    """Let torch's threads sleep while they wait, even if torch was loaded before this package.

    By default the threads spin. When another process uses one of their cores, this made sampling ten times slower
    (measured on two cores). An environment variable changes it, but ``comet-score`` loads torch before this package, so
    the variable comes too late. GNU's OpenMP library spins 300,000 rounds, but only 100 while a program has more OpenMP
    threads than cores (its manual, under ``GOMP_SPINCOUNT``). So this function starts one more team of threads, which
    sleeps until the program ends. It leaves other OpenMP libraries (macOS, Windows) as they are, and also a policy that
    the user set.
    """
    global _parked
    torch = sys.modules.get("torch")
    if torch is None or _parked is not None or _CHOSEN_BY_USER or not _TORCH_CAME_FIRST:
        return
    ready = threading.Event()

    def hold() -> None:
        torch.ones(1 << 18).add_(1)  # large enough for all threads of a team
        ready.set()
        threading.Event().wait()

    _parked = threading.Thread(target=hold, name="mbr-esd-parked", daemon=True)
    _parked.start()
    ready.wait(10)
