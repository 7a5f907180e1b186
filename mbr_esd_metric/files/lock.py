"""One writer at a time: a lock that the system releases when the process ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mbr_esd_metric.errors import InputError

#: How long to wait for another writer before a second one is refused. Workers of a killed run need a moment to end,
#: and small files take less time.
WAIT_SECONDS = 2.0


@contextmanager
def locked(path: str | Path, what: str | Path) -> Iterator[None]:
    """A lock file that only this place of this process holds; it is removed at the end.

    Args:
        path: of the lock file.
        what: is written meanwhile, for the message.

    Raises:
        InputError: another process, or another place in this one, holds it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=WAIT_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"another process is writing {what} at this moment; wait until it has ended, or write to another file"
        ) from None
    try:
        yield
    finally:
        Path(path).unlink(missing_ok=True)  # while it is held: who waits for it sees that it is gone
        lock.release()


@contextmanager
def locked_folder(folder: str | Path) -> Iterator[None]:
    """Let no other process write to a folder. A missing folder is made.

    Raises:
        InputError: as `locked`.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    with locked(Path(folder, ".lock"), folder):
        yield
