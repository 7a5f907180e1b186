"""The candidate store: one SQLite file that keeps every sampled text, so that nothing is ever sampled twice.

A sample is found by its index and the key of its request. The key holds everything that can change a candidate, and
nothing else. N is not in it, so asking for 64 after 16 leaves 48 to sample. Each `put` is one transaction: a process
that is killed loses at most the part that it was writing. Several processes may use one file at once; the
first to store an index wins. Each row has a checksum, so a bit that the disk
lost is an error and never another score. The file may be read-only if everything is stored already.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import Any

from mbr_esd_metric.core.candidate import Candidate, ExpectedSpans, TokenLogprobs
from mbr_esd_metric.errors import StoreError
from mbr_esd_metric.generation.cache import cache_folder

#: Marks a SQLite file as ours ("MESD"), and the version of the tables below.
_APPLICATION_ID = 0x4D455344
_FORMAT = 3
_BUSY_SECONDS = 60.0

_TABLES = (
    "CREATE TABLE request (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE)",
    # Texts are blobs: a model may write NUL or half a surrogate pair, which SQLite's text does not hold. What only some
    # samples have, the tokens' log-probabilities of single answers and the spans expected along walks, is packed.
    "CREATE TABLE sample (request INTEGER NOT NULL, number INTEGER NOT NULL, text BLOB NOT NULL, "
    "logprob REAL, tokens INTEGER NOT NULL, truncated INTEGER NOT NULL, token_logprobs BLOB, expected BLOB, "
    "checksum INTEGER NOT NULL, PRIMARY KEY (request, number)) WITHOUT ROWID",
)
_IN_MEMORY = ":memory:"
#: What people write who want no store.
_NO_STORE = ("none", "null", "no", "off", "false")
_HEADER = struct.Struct(">16s44xI4xI28x")  # magic, user_version at byte 60, application_id at byte 68
_MAGIC = b"SQLite format 3\x00"
#: Minor, major, missing, words and surprisal of `ExpectedSpans`.
_EXPECTED = struct.Struct("<3dId")
_FIX = "name another file with the option store=PATH or the environment variable MBR_ESD_STORE"


def store_path(path: str | os.PathLike[str] | None = None) -> Path:
    """The store's file: `path`, else ``MBR_ESD_STORE``, else ``candidates.sqlite`` in the cache folder.

    Raises:
        StoreError: the name says that no store is wanted.
    """
    named = path or os.environ.get("MBR_ESD_STORE")
    if named and str(named).lower() in _NO_STORE:
        raise StoreError(f"store={named} would be a file of that name; write store={_IN_MEMORY} to keep nothing")
    return Path(named).expanduser() if named else cache_folder() / "candidates.sqlite"


#: How many connections this process has to a store, by its path.
_open: Counter[str] = Counter()
_opening = threading.Lock()


class CandidateStore:
    """Samples by request key and index. Use as a context manager, in the thread that opened it.

    On a network file system, give each machine a store of its own, because SQLite's locks do not work across machines.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the store at `path`; create it and its folders if there is none.

        Raises:
            StoreError: the file is no store, damaged, of another format, or not writable; it is left as it is.
        """
        self._path: Path | None = Path(path)
        self._closed = False
        place = os.path.realpath(self._path)
        with _opening:
            # When a process closes a file, the system forgets all locks that it has there, those of SQLite among them.
            # The next process that closes the store would take itself for the last one, and delete the log. So the
            # file is looked at only where this process has no connection to it.
            stored = _open[place] > 0 or _check_header(self._path)
            with self._reported("open"):
                try:
                    self._open_to_write(self._path)
                except (sqlite3.OperationalError, OSError) as error:
                    if not stored or not _is_read_only(error):
                        raise
                    self._open_to_read(self._path)
            _open[place] += 1
        self._place: str | None = place

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, keep: bool = True) -> CandidateStore:
        """The store at `store_path(path)`; with ":memory:" or `keep=False`, one in memory, lost when closed.

        Raises:
            StoreError: as the constructor.
        """
        if keep and str(store_path(path)) != _IN_MEMORY:
            return cls(store_path(path))
        store = cls.__new__(cls)
        store._path = store._place = None
        store._closed = False
        store._connection = sqlite3.connect(":memory:", isolation_level=None)
        store._create()
        return store

    @property
    def path(self) -> Path | None:
        """The file; None if the store is in memory."""
        return self._path

    def stored(self, key: str, n: int) -> set[int]:
        """Which of the samples 0 to n - 1 of the request are stored.

        Raises:
            StoreError: the file is damaged.
        """
        with self._reported("read"):
            found = "SELECT number FROM sample WHERE request = (SELECT id FROM request WHERE key = ?) AND number < ?"
            return {number for (number,) in self._connection.execute(found, (key, n)).fetchall()}

    def get(self, key: str, n: int) -> list[Candidate | None]:
        """Samples 0 to n - 1 of the request, None if one is missing.

        Raises:
            StoreError: the file is damaged; names the first damaged sample.
        """
        samples: list[Candidate | None] = [None] * n
        with self._reported("read"):
            # All at once: a query that an error leaves unfinished keeps the file open after `close`.
            rows = self._connection.execute(
                "SELECT number, text, logprob, tokens, truncated, token_logprobs, expected, checksum FROM sample "
                "WHERE request = (SELECT id FROM request WHERE key = ?) AND number < ?",
                (key, n),
            ).fetchall()
            for *row, checksum in rows:
                number = row[0]
                found = _checksum(key, *row)
                if found is None or not 0 <= number < n or found != checksum:
                    raise sqlite3.DatabaseError(f"sample {number!r} of request {key} is not as it was stored")
                samples[number] = _sample(*row[1:])
        return samples

    def put(self, key: str, first: int, samples: Sequence[Candidate]) -> None:
        """Store samples `first`, `first + 1`, ... in one transaction. Samples that are stored already do not change.

        Raises:
            StoreError: the disk is full, the file damaged or read-only; what was stored before is kept.
        """
        with self._reported("write"), self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO request (key) VALUES (?)", (key,))
            (request,) = self._connection.execute("SELECT id FROM request WHERE key = ?", (key,)).fetchone()
            rows = (_row(i, sample) for i, sample in enumerate(samples, first))
            self._connection.executemany(
                "INSERT OR IGNORE INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ((request, *row, _checksum(key, *row)) for row in rows),
            )

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if not self._closed:
            self._closed = True
            with _opening:
                self._connection.close()
                if self._place is not None:
                    _open[self._place] -= 1

    def __enter__(self) -> CandidateStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_to_write(self, path: Path) -> None:
        # What is sampled says what was translated: a new store is for its owner alone, and SQLite's log follows it.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self._create()
            self._use_wal()
        except BaseException:
            self._connection.close()
            raise

    def _open_to_read(self, path: Path) -> None:
        """Open a store that cannot be written, such as one on a read-only disk; `put` raises."""
        log = path.with_name(path.name + "-wal")
        # Without a log, SQLite has nothing to write beside the file.
        untouched = not log.exists() or log.stat().st_size == 0
        address = f"{path.absolute().as_uri()}?{'immutable=1' if untouched else 'mode=ro'}"
        self._connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        self._has_tables()

    def _create(self) -> None:
        """Make the tables if there are none. This comes before WAL, so that the header says whose file it is."""
        if self._has_tables():
            return
        with self._transaction():
            if not self._has_tables():
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {_FORMAT}")
                for table in _TABLES:
                    self._connection.execute(table)

    def _has_tables(self) -> bool:
        """Whether the tables are there; a view or a trigger in their place could run for ever.

        Raises:
            StoreError: the file holds something else.
        """
        found = {sql for (sql,) in self._connection.execute("SELECT sql FROM sqlite_master").fetchall()} - {None}
        if found and found != set(_TABLES):
            raise StoreError(f"{self._path} is no candidate store: it has other tables; {_FIX}")
        return bool(found)

    def _use_wal(self) -> None:
        """Let readers work beside a writer, if the file system can."""
        self._connection.execute("PRAGMA synchronous = NORMAL")
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # SQLite does not wait here for another process that is using the file.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _reported(self, doing: str) -> Iterator[None]:
        """Turn errors of SQLite and the file system into a `StoreError` that says what to do."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise StoreError(f"cannot {doing} the candidate store {self._path}: {_advice(error)}") from error


def _row(number: int, sample: Candidate) -> tuple[int, bytes, float | None, int, int, bytes | None, bytes | None]:
    """The columns of a sample, without its request and its checksum."""
    tokens, expected = sample.token_logprobs, sample.expected
    return (
        number,
        (sample.text or "").encode("utf-8", "surrogatepass"),
        sample.logprob,
        sample.tokens,
        int(sample.truncated),
        None if tokens is None else _packed(tokens),
        None if expected is None else _EXPECTED.pack(*astuple(expected)),
    )


def _sample(
    text: bytes, logprob: float | None, tokens: int, truncated: int, packed: bytes | None, expected: bytes | None
) -> Candidate:
    return Candidate(
        text.decode("utf-8", "surrogatepass"),
        logprob=logprob,
        tokens=tokens,
        truncated=bool(truncated),
        token_logprobs=None if packed is None else _unpacked(packed),
        expected=None if expected is None else ExpectedSpans(*_EXPECTED.unpack(expected)),
    )


def _packed(tokens: TokenLogprobs) -> bytes:
    """The sizes, then the log-probabilities, in four bytes each."""
    count = len(tokens.sizes)
    return struct.pack(f"<{count}I{count}f", *tokens.sizes, *tokens.logprobs)


def _unpacked(packed: bytes) -> TokenLogprobs:
    count = len(packed) // 8
    values = struct.unpack(f"<{count}I{count}f", packed)
    return TokenLogprobs(values[:count], values[count:])


def _checksum(key: str, *row: Any) -> int | None:
    """CRC-32 of a row and its request, to find damaged rows; None if a value has the wrong type."""
    number, text, logprob, tokens, truncated, token_logprobs, expected = row
    # SQLite keeps NaN as NULL, and has no -0.0.
    try:
        chance = "-" if logprob is None or logprob != logprob else (float(logprob) + 0.0).hex()
        found = zlib.crc32(f"{key}|{number}|{chance}|{tokens}|{int(truncated)}|".encode("utf-8", "surrogatepass"))
        for blob in (token_logprobs, expected, text):
            found = zlib.crc32(b"-" if blob is None else b"%d|%b" % (len(blob), blob), found)
    except (TypeError, ValueError):
        return None
    return found


def _is_read_only(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
    return "readonly" in str(error) or "unable to open" in str(error)


def _advice(error: Exception) -> str:
    text = str(error)
    if "full" in text or getattr(error, "errno", None) == 28:
        return f"the disk is full; what was stored before is kept: free some space and run again, or {_FIX}"
    if "readonly" in text or "unable to open" in text or isinstance(error, PermissionError):
        return f"no permission to write there ({text}); make it writable, or {_FIX}"
    if "locked" in text:
        return f"another process keeps it locked for {_BUSY_SECONDS:.0f} s now; wait for it to end, or {_FIX}"
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return f"the file is damaged ({text}); it is left as it is: move it away to start anew, or {_FIX}"
    return f"{text}; {_FIX}"


def _check_header(path: Path) -> bool:
    """Look at the first bytes before SQLite does, so that a file of somebody else is not touched.

    Returns:
        Whether there is a store.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot open the candidate store {path}: {error.strerror}; {_FIX}") from error
    if not header:
        return False
    if len(header) < _HEADER.size:
        raise StoreError(f"{path} is no candidate store; it is left as it is: {_FIX}")
    magic, version, application = _HEADER.unpack(header)
    if magic != _MAGIC or application != _APPLICATION_ID:
        raise StoreError(f"{path} is no candidate store; it is left as it is: {_FIX}")
    if version != _FORMAT:
        fix = "update the package" if version > _FORMAT else "use the version that made it"
        raise StoreError(
            f"{path} is a candidate store of format {version}, this version of mbr-esd-metric knows format "
            f"{_FORMAT}; it is left as it is: {fix}, or {_FIX}"
        )
    return True
