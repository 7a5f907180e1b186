"""Who asks for which candidates, where several processes work on one store.

A claim is a lock on one byte of a file beside the store, and the byte's number is that of the request in the store. The
system releases it when the process ends, however it ends: what a killed process left, another takes over at once. The
file is empty, and the last process that closes it deletes it.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

if sys.platform != "win32":
    import fcntl

#: The byte that every process holds in common while it has the file open. Requests have numbers from 1.
_PRESENT = 0


@dataclass
class _Open:
    """The file as this process has it open. The system forgets all locks of a process when it closes a file once, so
    there is one for all threads, which keep from one another what each has claimed."""

    file: int
    users: int = 0
    taken: set[int] = field(default_factory=set)


_files: dict[str, _Open] = {}
_guard = threading.Lock()
if hasattr(os, "register_at_fork"):
    # Locks are the process's own; its child has none.
    os.register_at_fork(after_in_child=_files.clear)


class Claims:
    """Claims on requests of a store; a context manager, which gives up what it holds when it ends.

    Where the file cannot be made, or the file system has no locks, every claim succeeds: two processes then may ask for
    the same, and the first to store it wins.

    Args:
        store: the store's file; None for one in memory, which no other process sees.
    """

    def __init__(self, store: Path | None) -> None:
        self._path = "" if store is None else os.path.realpath(f"{store}-claims")
        self._store = store
        self._open: _Open | None = None
        self._mine: set[int] = set()

    def __enter__(self) -> Claims:
        if self._store is not None and sys.platform != "win32":
            with _guard, suppress(OSError):
                self._open = _files.get(self._path) or _opened(self._path, self._store)
                _files[self._path] = self._open
                self._open.users += 1
        return self

    def __exit__(self, *_: object) -> None:
        found, self._open = self._open, None
        if found is None:
            return
        with _guard:
            for number in self._mine:
                _unlock(found, number)
            found.users -= 1
            if found.users == 0 and _files.get(self._path) is found:
                del _files[self._path]
                # Its own mark goes first: of two that close together, each would find the other's.
                _unlock(found, _PRESENT)
                if _lock(found.file, _PRESENT):  # nobody else is there
                    with suppress(OSError):
                        if _is_at(self._path, found.file):  # the other may have deleted it, and a third made a new one
                            os.unlink(self._path)
                os.close(found.file)

    def take(self, number: int) -> bool:
        """Claim the request with this number; False if another process or thread has it."""
        if self._open is None:
            return True
        with _guard:
            if number in self._open.taken or not _lock(self._open.file, number):
                return False
            self._open.taken.add(number)
            self._mine.add(number)
        return True

    def release(self, number: int) -> None:
        """Give up a claim of this object's."""
        if self._open is not None:
            with _guard:
                self._mine.discard(number)
                _unlock(self._open, number)


def _opened(path: str, store: Path) -> _Open:
    """The file with its mark of presence. Who was there before may have deleted it at that moment."""
    mode = os.stat(store).st_mode & 0o666
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), mode)
        try:
            if sys.platform != "win32":
                fcntl.lockf(file, fcntl.LOCK_SH, 1, _PRESENT)
            with suppress(OSError):
                if _is_at(path, file):
                    return _Open(file)
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_at(path: str, file: int) -> bool:
    return os.path.samestat(os.stat(path), os.fstat(file))


def _lock(file: int, number: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks
            return True
    return True


def _unlock(found: _Open, number: int) -> None:
    found.taken.discard(number)
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.lockf(found.file, fcntl.LOCK_UN, 1, number)
