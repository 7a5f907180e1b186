"""The candidate store: nothing sampled twice, nothing lost to `kill -9`, no foreign file touched."""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

from mbr_esd_metric.core.decision import Candidate, TokenLogprobs
from mbr_esd_metric.errors import StoreError
from mbr_esd_metric.generation.store import CandidateStore, store_path


def samples(first: int, n: int) -> list[Candidate]:
    return [
        Candidate(f"text {i} ü😀", logprob=-i / 7, tokens=i + 1, truncated=i % 5 == 0) for i in range(first, first + n)
    ]


def test_samples_come_back_as_they_were_whatever_is_in_them(tmp_path: Path) -> None:
    odd = [
        Candidate("nul \0, half a pair \ud800, 👩‍👩‍👧", logprob=-1.25, tokens=3),
        Candidate("", logprob=None, truncated=True, withheld="it filters"),
        Candidate("x", logprob=-0.0, tokens=1, truncated=True),
        Candidate("ü.", logprob=-1.5, tokens=2, token_logprobs=TokenLogprobs((2, 1, 0), (-1.0, -0.5, 0.0))),
    ]
    with CandidateStore(tmp_path / "new" / "folder" / "s.sqlite") as store:
        store.put("key", 2, odd)
        store.put("key", 5, samples(0, 2))
    with CandidateStore(tmp_path / "new" / "folder" / "s.sqlite") as store:
        assert store.get("key", 8) == [None, None, *odd, *samples(1, 1), None], "what is stored stays"
        assert store.get("key", 3) == [None, None, odd[0]]
        assert store.get("another", 2) == [None, None]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_new_store_is_its_owners_alone_and_an_older_one_is_left(tmp_path: Path) -> None:
    umask = os.umask(0o002)
    try:
        with CandidateStore(tmp_path / "folder" / "s.sqlite") as store:
            store.put("key", 0, samples(0, 1))
            modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "folder").iterdir()}
        shared = tmp_path / "shared.sqlite"
        shared.touch(0o664)
        with CandidateStore(shared) as store:
            store.put("key", 0, samples(0, 1))
    finally:
        os.umask(umask)
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700
    assert modes == {"s.sqlite": 0o600, "s.sqlite-wal": 0o600, "s.sqlite-shm": 0o600}
    assert shared.stat().st_mode & 0o777 == 0o664, "a store that a team shares stays theirs"


def test_where_the_store_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ "none" made a file called none."""
    monkeypatch.setenv("MBR_ESD_STORE", "/somewhere/s.sqlite")
    assert store_path() == Path("/somewhere/s.sqlite")
    for name in ("none", "None", "off"):
        monkeypatch.setenv("MBR_ESD_STORE", name)
        with pytest.raises(StoreError, match="use :memory: to run without a store"):
            store_path()
    monkeypatch.delenv("MBR_ESD_STORE")
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path))
    assert store_path() == tmp_path / "candidates.sqlite"
    monkeypatch.delenv("MBR_ESD_CACHE")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
        assert store_path() == Path("/caches/mbr-esd/candidates.sqlite")
    with CandidateStore(":memory:") as store:
        store.put("key", 0, samples(0, 2))
        assert store.get("key", 2) == samples(0, 2)
    assert list(tmp_path.iterdir()) == []


#: Samples that never end.
HOSTILE = (
    "DROP TABLE sample; "
    "CREATE VIEW sample AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS request, i AS number, x'' AS content, 0 AS checksum FROM n"
)


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (HOSTILE, "is not a candidate store"),
        ("PRAGMA application_id = 0", "is not a candidate store"),
        ("PRAGMA user_version = 5", "is a candidate store of format 5.*update the package"),
        ("PRAGMA user_version = 3", "is a candidate store of format 3.*use the version that created it"),
        ("", "is not a candidate store"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path, statements: str, message: str) -> None:
    path = tmp_path / "s.sqlite"
    CandidateStore(path).close()
    if statements:
        connection = sqlite3.connect(path)
        connection.executescript(f"{statements}; PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    else:
        path.write_text("my diary\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"^[^\n]*{path} {message}[^\n]*MBR_ESD_STORE[^\n]*$"):
        CandidateStore(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def run(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


#: Reads and writes the stores that it is given, and prints texts and errors.
ATTEMPT = """
import os, sys
from mbr_esd_metric.errors import StoreError
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.generation.store import CandidateStore
import urllib.parse  # pathlib of Python 3.13 imports it late
if os.geteuid() == 0:  # root may write everywhere; only now, as others may not be let near the interpreter's files
    os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    try:
        with CandidateStore(path) as store:
            print([one.text for one in store.get("key", 2)])
            store.put("key", 2, [Candidate("text", logprob=-1.0, tokens=1)])
    except StoreError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work differently there")
def test_without_permission_a_store_is_read_and_writing_names_the_fix() -> None:
    with tempfile.TemporaryDirectory() as name:  # other users than root reach it
        folder = Path(name, "folder")
        with CandidateStore(folder / "s.sqlite") as store:
            store.put("key", 0, samples(0, 2))
        modes = ((folder / "s.sqlite", 0o444), (folder, 0o555), (Path(name), 0o755))
        for path, mode in modes:
            os.chmod(path, mode)
        before = (folder / "s.sqlite").read_bytes()
        out, err = run(ATTEMPT, str(folder / "s.sqlite"), str(folder / "deeper" / "s.sqlite")).communicate(timeout=300)
        os.chmod(folder, 0o755)
        assert [path.name for path in folder.iterdir()] == ["s.sqlite"]
        assert (folder / "s.sqlite").read_bytes() == before
    texts, *errors = out.splitlines()
    assert (texts, err) == (str([one.text for one in samples(0, 2)]), "")
    for error, doing in zip(errors, ("write", "open"), strict=True):
        assert re.search(f"cannot {doing} .*no permission to write there.*MBR_ESD_STORE", error)


WRITER = """
import sys
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.generation.store import CandidateStore
path, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
with CandidateStore(path) as store:
    for number in range(rounds):
        some = [Candidate(f"{name} {number} {i} " + "x" * 200, logprob=-i / 7, tokens=i) for i in range(16)]
        store.put(f"key {number}", 0, some)
        print(number, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.parametrize("seconds", [0.05, 0.15, 0.25])
def test_kill_minus_nine_loses_at_most_the_part_that_was_being_written(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "s.sqlite"
    process = run(WRITER, str(path), "a", "1000000")
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    last = max([0, *map(int, process.stdout.read().split())])
    process.wait()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with CandidateStore(path) as store:
        for number in range(last + 3):
            got = store.get(f"key {number}", 16)
            whole = [Candidate(f"a {number} {i} " + "x" * 200, logprob=-i / 7, tokens=i) for i in range(16)]
            assert got == whole or (number > last and got == [None] * 16)
        assert store.get("key 0", 16)[0] is not None
        store.put("later", 0, samples(0, 3))
        assert store.get("later", 3) == samples(0, 3)


def test_processes_that_start_together_share_one_new_store(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    processes = [run(WRITER, str(path), name, "60") for name in "abc"]
    assert [process.communicate(timeout=120)[1] for process in processes] == ["", "", ""]
    with CandidateStore(path) as store:
        for number in range(60):
            writers = [one and one.text[0] for one in store.get(f"key {number}", 16)]
            assert writers[0]
            assert writers == writers[:1] * 16, "a part is written as a whole, by the first"


def test_a_lost_bit_is_an_error_and_never_another_candidate(tmp_path: Path) -> None:
    """14 of 40 flipped bits changed the output in silence. The last of these files ends too early."""
    path = tmp_path / "s.sqlite"
    with CandidateStore(path) as store:
        for number in range(40):
            store.put(f"key {number}", 0, samples(number, 8))
    content = path.read_bytes()
    noticed = 0
    chance = random.Random(2)
    for trial in range(300):
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        damaged = changed if trial < 299 else changed[: len(content) // 3]
        path.write_bytes(damaged)
        try:
            with CandidateStore(path) as store:
                for number in range(40):
                    for got, put in zip(store.get(f"key {number}", 8), samples(number, 8), strict=True):
                        assert got is None or got == put
            error = None
        except StoreError as raised:
            error = str(raised)
            noticed += "damaged" in error and "not changed" in error
        assert path.read_bytes() == damaged or not error
        assert [*tmp_path.iterdir()] == [path], "closed for good, after an error too"
    assert noticed > 50
    assert error
