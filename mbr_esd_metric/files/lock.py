"""One writer for each file: a lock that the system releases when the process ends, however it ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mbr_esd_metric.errors import InputError

if sys.platform != "win32":
    import fcntl

#: How long to wait for another writer before a second one is refused. Workers of a killed run need a moment to end,
#: and small files take less time.
WAIT_SECONDS = 2.0


@contextmanager
def locked(path: str | Path, what: str | Path) -> Iterator[IO[bytes]]:
    """A file, open for reading and writing at its beginning, that only this process has open in this way.

    A missing file is made; an existing one keeps its content. It can be renamed or deleted while it is locked. On a
    file system without locks nothing is locked.

    Raises:
        InputError: another process, or another place in this one, holds it; says which.
    """
    path = Path(path)
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        with open(path, "r+b", opener=_opener) as file:
            taken = _lock(file)
            if taken and _is_still(path, file):
                yield file
                return
            holder = None if taken else _holder(file)
        if time.monotonic() > deadline:
            raise InputError(
                f"{holder or 'another process'} is writing {what} at this moment; wait until it has ended, or write to "
                "another file"
            )
        time.sleep(0.05)


@contextmanager
def locked_folder(folder: str | Path) -> Iterator[None]:
    """Let no other process write to a folder. A missing folder is made.

    Raises:
        InputError: as `locked`.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder, ".lock")
    with locked(path, folder):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o666)


def _lock(file: IO[bytes]) -> bool:
    if sys.platform == "win32":  # pragma: no cover - no lock there
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _is_still(path: Path, file: IO[bytes]) -> bool:
    """Whether the path still names the file. The process that held it before may have renamed or deleted it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _holder(file: IO[bytes]) -> str | None:
    """The process that holds the lock, if the system tells (Linux)."""
    try:
        wanted = f":{os.fstat(file.fileno()).st_ino}"
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(wanted):
                return f"process {words[4]}"
    except (OSError, ValueError):
        pass
    return None
