"""A run that is killed leaves no worker and no output."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.elicit.formats.json import render_answer
from mbr_esd_metric.files.records import CandidateRecord, write_records


def _slow(count: int = 4000) -> list[CandidateRecord]:
    """Candidates that take a few seconds to decide."""
    words = [f"Wort{i}" for i in range(40)]
    error = {"category": "style", "sub_category": "x", "severity": "minor"}
    texts = tuple(render_answer([{"error_span": word, **error}]) for word in words)
    columns = CandidateColumns(texts, (None,) * len(texts), (False,) * len(texts))
    return [CandidateRecord(str(i), "s", " ".join(words), columns) for i in range(count)]


def _decide(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mbr_esd_metric", "decide", "c.jsonl", "-o", "out.jsonl", *words]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the children of a process are read from /proc")
def test_after_kill_9_no_worker_stays(tmp_path: Path) -> None:
    write_records(tmp_path / "c.jsonl", _slow())
    killed = _decide(tmp_path, "--workers", "2")
    deadline = time.monotonic() + 300
    while len(workers := _children(killed.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    deadline = time.monotonic() + 300
    while any(_alive(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker stayed behind"
        time.sleep(0.05)
    assert not (tmp_path / "out.jsonl").exists()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between opening and reading
        return False
