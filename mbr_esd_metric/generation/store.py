"""The cache folder, and the candidate store: one SQLite file that keeps every sampled text.

A sample is found by its index and the key of its request, which holds everything that can change a candidate, and
nothing else, so that asking for 64 after 16 leaves 48 to sample. Each `put` is one transaction. Several processes may
use one file at once; the first to store an index wins. Each row has a checksum, so a bit that the disk lost is an error
and never another score. The file may be read-only if everything is stored already.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from mbr_esd_metric.core.decision import Candidate, TokenLogprobs
from mbr_esd_metric.errors import StoreError

#: Marks a SQLite file as ours ("MESD"), and the version of the tables below.
_APPLICATION_ID = 0x4D455344
_FORMAT = 4
_BUSY_SECONDS = 60.0
#: Addresses of servers that are kept for one name.
_MOST_SERVERS = 100

_TABLES = (
    "CREATE TABLE request (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE)",
    "CREATE TABLE sample (request INTEGER NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, "
    "checksum INTEGER NOT NULL, PRIMARY KEY (request, number)) WITHOUT ROWID",
)
_IN_MEMORY = ":memory:"
_FIX = "name another file with the environment variable MBR_ESD_STORE"


def cache_folder() -> Path:
    """The folder of the variable ``MBR_ESD_CACHE``, else ``mbr-esd`` in the platform's cache folder, such as
    ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux. It need not exist yet."""
    folder = os.environ.get("MBR_ESD_CACHE")
    return Path(folder).expanduser() if folder else user_cache_path("mbr-esd", appauthor=False, opinion=False)


def read_cache(name: str) -> dict[str, Any]:
    """The content that `write_cache` wrote to a file of the cache folder; empty if there is no such file."""
    try:
        value = json.loads((cache_folder() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_cache(name: str, value: Mapping[str, object]) -> None:
    """Write what can be found out again as JSON to a file of the cache folder, if that can be written."""
    path = cache_folder() / name
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(json.dumps(value), encoding="utf-8")
        part.replace(path)


def store_path() -> Path:
    """The store's file: ``MBR_ESD_STORE``, else ``candidates.sqlite`` in the cache folder.

    Raises:
        StoreError: the name means "no store", such as "none".
    """
    name = os.environ.get("MBR_ESD_STORE")
    if name and name.lower() in ("none", "null", "no", "off", "false"):
        raise StoreError(
            f"MBR_ESD_STORE={name} would create a file of that name; use {_IN_MEMORY} to run without a store"
        )
    return Path(name).expanduser() if name else cache_folder() / "candidates.sqlite"


class CandidateStore(AbstractContextManager["CandidateStore"]):
    """Samples by request key and index. Use as a context manager, in the thread that opened it. On a network file
    system, give each machine a store of its own, because SQLite's locks do not work across machines.

    Attributes:
        path: the file; None if the store is in memory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the store at `path`; create it and its folders if there is none. ":memory:" is lost when closed.

        Raises:
            StoreError: the file is not a store, damaged, of another format, or not writable; it is left as it is.
        """
        self.path = None if str(path) == _IN_MEMORY else Path(path)
        with self._reported("open"):
            try:
                self._open()
            except (sqlite3.OperationalError, OSError) as error:
                if self.path is None or not self.path.is_file() or not _is_read_only(error):
                    raise
                self.close()
                # One that cannot be written, such as on a read-only disk; `put` raises. Without a log, SQLite has
                # nothing to write beside the file.
                log = self.path.with_name(self.path.name + "-wal")
                untouched = not log.exists() or log.stat().st_size == 0
                address = f"{self.path.absolute().as_uri()}?{'immutable=1' if untouched else 'mode=ro'}"
                self._connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
                self._has_tables()

    def stored(self, key: str, n: int) -> set[int]:
        """Which of the samples 0 to n - 1 of the request are stored; raises `StoreError` if the file is damaged."""
        return {number for number, *_ in self._rows("number", key, n)}

    def get(self, key: str, n: int) -> list[Candidate | None]:
        """Samples 0 to n - 1 of the request, None if one is missing; `StoreError` names the first damaged one."""
        samples: list[Candidate | None] = [None] * n
        for number, content, checksum in self._rows("number, content, checksum", key, n):
            with self._reported("read"):
                if not isinstance(content, bytes) or number < 0 or _checksum(key, number, content) != checksum:
                    raise sqlite3.DatabaseError(f"sample {number!r} of request {key} is damaged (its checksum differs)")
            text, logprob, tokens, truncated, by_token = json.loads(content)
            by_token = by_token and TokenLogprobs(*map(tuple, by_token))
            withheld = truncated if isinstance(truncated, str) else None
            samples[number] = Candidate(
                text, None, logprob, bool(truncated), by_token, tokens=tokens, withheld=withheld
            )
        return samples

    def put(self, key: str, first: int, samples: Sequence[Candidate]) -> None:
        """Store samples `first`, `first + 1`, ... in one transaction. Samples that are stored already do not change.

        Raises:
            StoreError: the disk is full, the file damaged or read-only; what was stored before is kept.
        """
        with self._reported("write"), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT OR IGNORE INTO request (key) VALUES (?)", (key,))
            (request,) = connection.execute("SELECT id FROM request WHERE key = ?", (key,)).fetchone()
            rows: list[tuple[int, int, bytes, int]] = []
            for number, sample in enumerate(samples, first):
                by_token = sample.token_logprobs
                fields = [sample.text or "", sample.logprob, sample.tokens, sample.withheld or sample.truncated]
                # JSON: a model may write NUL or half a surrogate pair, which SQLite's text does not hold.
                content = json.dumps([*fields, by_token and astuple(by_token)]).encode("ascii")
                rows.append((request, number, content, _checksum(key, number, content)))
            connection.executemany("INSERT OR IGNORE INTO sample VALUES (?, ?, ?, ?)", rows)

    def servers(self, name: str) -> list[str]:
        """The addresses of servers that gave candidates of that name."""
        return [one.text for one in self.get(f"servers of {name}", _MOST_SERVERS) if one is not None and one.text]

    def add_servers(self, name: str, addresses: Sequence[str]) -> None:
        """Note the addresses of servers that give candidates of that name, for `servers`."""
        known = self.servers(name)
        if new := [Candidate(address) for address in addresses if address not in known]:
            self.put(f"servers of {name}", len(known), new[: _MOST_SERVERS - len(known)])

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if hasattr(self, "_connection"):
            self._connection.close()

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _rows(self, columns: str, key: str, n: int) -> list[tuple[int, bytes, int]]:
        query = f"SELECT {columns} FROM sample WHERE request = (SELECT id FROM request WHERE key = ?) AND number < ?"
        with self._reported("read"):
            # All at once: a query that an error leaves unfinished keeps the file open after `close`.
            return self._connection.execute(query, (key, n)).fetchall()

    def _open(self) -> None:
        """Connect, and make the file and its tables if there are none. A file of somebody else is not touched."""
        if self.path is not None:
            # What is sampled says what was translated: a new store is for its owner alone, and SQLite's log follows it.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        address = str(self.path or _IN_MEMORY)
        self._connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        with self._connection as connection:
            connection.execute("BEGIN")  # another process may be making them between two queries
            made = self._has_tables()
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if made:
            return
        if self.path is not None:
            self._use_wal()
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not self._has_tables():
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
                for table in _TABLES:
                    connection.execute(table)

    def _has_tables(self) -> bool:
        """Whether the file has our tables, and is not empty. Anything else, such as a view, could run without end."""
        try:
            tables = {sql for (sql,) in self._connection.execute("SELECT sql FROM sqlite_master").fetchall()} - {None}
            (application,), (version,) = (
                self._connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
            )
        except sqlite3.DatabaseError as error:
            if "not a database" not in str(error):
                raise
            raise StoreError(f"{self.path} is not a candidate store; it was not changed: {_FIX}") from None
        if not tables and not application and not version:
            return False
        if application != _APPLICATION_ID or (version == _FORMAT and tables != set(_TABLES)):
            raise StoreError(f"{self.path} is not a candidate store; it was not changed: {_FIX}")
        if version != _FORMAT:
            fix = "update the package" if version > _FORMAT else "use the version that created it"
            here = f"{self.path} is a candidate store of format {version}, but this version supports format {_FORMAT}"
            raise StoreError(f"{here}; it was not changed: {fix}, or {_FIX}")
        return True

    def _use_wal(self) -> None:
        """Let readers work beside a writer from now on, if the file system can; the file says so."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # SQLite does not wait for another process that is using the file at this moment.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @contextmanager
    def _reported(self, doing: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if doing == "open":
                self.close()
            if not isinstance(error, (sqlite3.Error, OSError)):
                raise
            raise StoreError(f"cannot {doing} the candidate store {self.path}: {_advice(error)}") from error


def _checksum(key: str, number: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(f"{key}|{number}|".encode("utf-8", "surrogatepass")))


def _is_read_only(error: Exception) -> bool:
    return isinstance(error, OSError) or "readonly" in str(error) or "unable to open" in str(error)


def _advice(error: Exception) -> str:
    text = str(error)
    if "full" in text or getattr(error, "errno", None) == 28:
        return f"the disk is full; stored samples are kept: free some space and run again, or {_FIX}"
    if _is_read_only(error):
        return f"no permission to write there, or it is a folder ({text}); make it writable, or {_FIX}"
    if "locked" in text:
        return f"another process has locked it for over {_BUSY_SECONDS:.0f} s; wait for it to finish, or {_FIX}"
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return f"the file is damaged ({text}); it was not changed: move it away to start a new one, or {_FIX}"
    return f"{text}; {_FIX}"
