"""Prints what a run is waiting for if it seems to hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mbr_esd_metric.errors import say

#: Seconds without progress after which a run says what it waits for; each further line takes twice as long.
PATIENCE = 30.0


class Watch:
    """Prints a line when nothing has moved for a while.

        with Watch("the model is being loaded") as watch:
            ...
            watch.moved("the candidates of segment 1 are being sampled")

    Args:
        what: what the run waits for first.
        quiet: print nothing.
        patience: seconds until the first line.
        say: prints a line, by default on standard error.
    """

    def __init__(
        self, what: str, *, quiet: bool = False, patience: float = PATIENCE, say: Callable[[str], None] = say
    ) -> None:
        self._what, self._quiet, self._patience, self._say = what, quiet, patience, say
        self._since = time.monotonic()
        self._next = patience
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mbr-esd-watch", daemon=True)

    def __enter__(self) -> Watch:
        self._since = time.monotonic()
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if not self._quiet:
            self._thread.join()

    def moved(self, what: str | None = None) -> None:
        """Note progress; from now on the run waits for `what`, by default the same as before."""
        with self._lock:
            self._what = what or self._what
            self._since, self._next = time.monotonic(), self._patience

    def _run(self) -> None:
        while not self._ended.wait(min(1.0, self._patience / 4)):
            with self._lock:
                what, still = self._what, time.monotonic() - self._since
                due = still >= self._next
                if due:
                    self._next *= 2
            if due:
                self._say(f"still waiting after {still:.0f} s: {what}")
