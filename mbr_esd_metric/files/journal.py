"""The journal of a run. Finished work is on the disk, so a run that was stopped can go on from there.

A journal is a file of lines. The first says what run it belongs to. Every other line begins with a key of fixed
length that identifies what the line was made from. One process at a time writes it; see `files.lock`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.lock import locked

_FIX = "delete it to start again, or write to another file"


class Journal:
    """The journal of one run; use it as a context manager. A journal without entries is deleted at the end.

    Args:
        path: of the journal.
        output: what the run writes, for messages.
        header: a line that identifies the run, with its line end; entries of another run are refused.
        key_size: bytes of each entry's key.

    Raises:
        InputError: on entering: another process uses the journal, or it belongs to another run.
    """

    def __init__(self, path: Path, output: str | Path, header: bytes, key_size: int) -> None:
        self.path = path
        self.done = 0
        self._output, self._header, self._key_size = output, header, key_size
        self._stack = ExitStack()

    def __enter__(self) -> Journal:
        with self._stack as stack:
            self._file = stack.enter_context(locked(self.path, self._output))
            header = self._file.readline()
            end = len(header)
            for line in self._file:
                if line.endswith(b"\n"):  # else the run was stopped while it wrote this line
                    self.done, end = self.done + 1, end + len(line)
            if self.done and header != self._header:
                raise InputError(f"{self.path} is left of a run with other options or candidates; {_FIX}")
            self._file.truncate(end if self.done else 0)
            self._file.seek(0, os.SEEK_END)
            if not self.done:
                self._file.write(self._header)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            self._file.flush()
            if not self.done:
                self.path.unlink(missing_ok=True)

    def append(self, key: bytes, line: bytes, *, sync: bool = False) -> None:
        """Add an entry.

        Args:
            key: of the journal's key size, without a line end.
            line: with its line end.
            sync: wait until the disk has it.
        """
        self._file.write(key + line)
        self.done += 1
        if sync:
            self._file.flush()
            os.fsync(self._file.fileno())

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Key and line of each entry so far, in order."""
        self._file.flush()
        with self.path.open("rb") as file:
            file.readline()
            for line in file:
                yield line[: self._key_size], line[self._key_size :]

    def remove(self) -> None:
        """The run is complete: delete the journal on closing."""
        self.done = 0

    def other(self, why: str) -> InputError:
        """The error of entries that belong to another run, or are damaged."""
        return InputError(f"{self.path} is left of a run with other candidates: {why}; {_FIX}")
