"""A real chat server as a process of its own, and the stock `comet-score` killed and started again beside it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate


class RealServer:
    """A server on a port of its own, a context manager. A command of the port starts it, also after a kill."""

    dialect = "vllm"
    health = "health"

    def __init__(
        self, command: Callable[[int], Sequence[str]], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._command, self._environment = command(self.port), environment
        self.log, self.url = log, f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )

    def __enter__(self) -> RealServer:
        self.start()
        deadline = time.monotonic() + 900
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the server is not ready: {self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{self.health}", timeout=5) as reply:
                return bool(reply.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False


def comet_score_goes_on_after_kills(
    model: str, pairs: Sequence[tuple[str, str]], n: int, folder: Path, server: RealServer | None = None
) -> None:
    """The stock command is killed and started again; then the server is, while the command waits. `model` is a name
    with options, without `server`, `n` and `concurrency`; without a server it runs in the command's process.
    """
    pytest.importorskip("comet")
    for name, texts in zip(("src", "mt"), zip(*pairs, strict=True), strict=True):
        (folder / name).write_text("".join(f"{text}\n" for text in texts))
    store = Path(os.environ["MBR_ESD_STORE"])
    model += f"&n={n}&utility=softdice"
    # One request at a time, so that there is something left to do at each kill.
    model += f"&server={server.url}&concurrency=1" if server else ""
    command = str(Path(sys.executable).parent / "comet-score")
    words = [command, "--quiet", "-s", "src", "-t", "mt", "--model", model, "--to_json", "out.json"]

    def scoring() -> subprocess.Popen[bytes]:
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, start_new_session=True)

    def wait_for_more(running: subprocess.Popen[bytes], than: int) -> None:
        deadline = time.monotonic() + 1800
        while len(stored(store)) <= than:
            assert running.poll() is None, (folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.05)

    first = scoring()
    wait_for_more(first, 0)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    earlier = stored(store)
    assert len(earlier) < n * len(pairs), "the kill should come in the middle"
    second = scoring()
    try:
        if server:
            wait_for_more(second, len(earlier))
            server.kill()
            assert len(stored(store)) < n * len(pairs), "the kill should come in the middle"
            server.start()
        assert second.wait(timeout=1800) == 0, (folder / "log").read_text()[-3000:]
    finally:
        second.kill()
        second.wait()

    rows = stored(store)
    assert len(rows) == n * len(pairs)
    assert set(earlier) <= set(rows), "what was stored before is sampled again"
    assert len({row[:2] for row in rows}) == len(rows)
    # All are stored, so that no model or server is asked: the file holds the decisions over these candidates.
    run = annotate(load_card(model), [Segment(*pair, str(number)) for number, pair in enumerate(pairs)])
    written = json.loads((folder / "out.json").read_text())["mt"]
    assert [row["COMET"] for row in written] == pytest.approx([(25 + d.mqm) / 25 for d in run.decisions])


def stored(path: Path) -> list[tuple[Any, ...]]:
    """(request, number, content) of the candidates in a store that another process may be writing to."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reading:
        try:
            rows = "SELECT request, number, content FROM sample JOIN request ON id = request"
            return reading.execute(f"{rows} WHERE key NOT LIKE 'servers of %'").fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error) and "locked" not in str(error):
                raise
            return []
