"""Two runs that write to one place, and runs that are killed: one of them works, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.decoding.file import decide_file
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.elicit.grammar import render_answer
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.journal import Journal
from mbr_esd_metric.files.lock import locked, locked_folder
from mbr_esd_metric.files.records import CandidateRecord, write_records
from mbr_esd_metric.files.streams import whole_file, write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no locks there")


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


def _wait_for(path: Path, size: int = 1) -> None:
    deadline = time.monotonic() + 300
    while not (path.exists() and path.stat().st_size >= size):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def test_a_second_decide_on_one_output_is_refused_and_names_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_records(tmp_path / "c.jsonl", _slow(50))
    monkeypatch.setattr("mbr_esd_metric.files.lock.WAIT_SECONDS", 0.1)
    with Journal(tmp_path / "out.jsonl.partial", tmp_path / "out.jsonl", b"a run\n", 8) as journal:
        journal.append(b"%08x" % 1, b"{}\n")
        who = f"process {os.getpid()}" if Path("/proc/locks").exists() else "another process"
        with pytest.raises(InputError, match=f"{who} is writing .*out.jsonl at this moment; wait until it has ended"):
            decide_file(tmp_path / "c.jsonl", tmp_path / "out.jsonl", DecisionOptions())
        journal.remove()
    assert decide_file(tmp_path / "c.jsonl", tmp_path / "out.jsonl", DecisionOptions()).segments == 50


def test_of_two_decides_one_writes(tmp_path: Path) -> None:
    write_records(tmp_path / "c.jsonl", _slow())
    first = _decide(tmp_path)
    _wait_for(tmp_path / "out.jsonl.partial")
    first.send_signal(signal.SIGSTOP)  # it may end before the other has started
    second = _decide(tmp_path)
    assert "is writing out.jsonl at this moment" in second.communicate(timeout=300)[1]
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=300)
    assert (first.returncode, second.returncode) == (0, 1)
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 4000
    assert not (tmp_path / "out.jsonl.partial").exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the children of a process are read from /proc")
def test_after_kill_9_no_worker_stays_and_the_same_command_goes_on(tmp_path: Path) -> None:
    write_records(tmp_path / "c.jsonl", _slow())
    killed = _decide(tmp_path, "--workers", "2")
    _wait_for(tmp_path / "out.jsonl.partial")
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
    assert _decide(tmp_path, "--quiet").wait(300) == 0
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 4000


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between opening and reading
        return False


def test_a_lock_ends_with_who_holds_it_however_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbr_esd_metric.files.lock.WAIT_SECONDS", 60)
    path = tmp_path / "a"
    program = (
        "import sys, time\nfrom mbr_esd_metric.files.lock import locked\n"
        "with locked(sys.argv[1], 'x'):\n    print('held', flush=True)\n    time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.send_signal(signal.SIGKILL)
    with locked(path, "x") as file:  # it may take a moment to end
        assert file.read() == b""
    holder.wait()


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbr_esd_metric.files.lock.WAIT_SECONDS", 0.1)
    with whole_file(tmp_path / "out") as file:
        file.write(b"first\n")
        with pytest.raises(InputError, match="is writing"):
            write_whole(tmp_path / "out", "second\n")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "first\n"
    write_whole(tmp_path / "out", "third\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_takes_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbr_esd_metric.files.lock.WAIT_SECONDS", 0.1)
    with (
        locked_folder(tmp_path / "model"),
        pytest.raises(InputError, match="is writing"),
        locked_folder(tmp_path / "model"),
    ):
        pass
    assert not list((tmp_path / "model").iterdir())


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    bad = CandidateRecord("bad", "s", "m", CandidateColumns(("?",), (None,), (False,)))
    write_records(tmp_path / "c.jsonl", [*_slow(3), bad])
    with pytest.raises(Exception, match="not JSON"):
        decide_file(tmp_path / "c.jsonl", tmp_path / "out", DecisionOptions())
    journal = tmp_path / "out.partial"
    journal.write_bytes(journal.read_bytes().replace(b'"valid"', b'"walid"'))
    write_records(tmp_path / "c.jsonl", _slow(3))
    with pytest.raises(InputError, match=r"out.partial is left .* a line of it is damaged; delete it"):
        decide_file(tmp_path / "c.jsonl", tmp_path / "out", DecisionOptions())


def test_a_journal_gives_back_what_was_put_in(tmp_path: Path) -> None:
    """Also behind a line that a killed run left cut."""
    path = tmp_path / "j"
    for torn in (b"", b"00000002{ha"):
        path.unlink(missing_ok=True)
        with Journal(path, "out", b"run\n", 8) as journal:
            journal.append(b"00000001", b'{"a": 1}\n', sync=True)
        path.write_bytes(path.read_bytes() + torn)
        with Journal(path, "out", b"run\n", 8) as journal:
            journal.append(b"00000002", b"{}\n")
            assert list(journal.entries()) == [(b"00000001", b'{"a": 1}\n'), (b"00000002", b"{}\n")]
