"""The cache folder, and the candidate store: one SQLite file with all sampled candidates.

A sample is identified by its index and the key of its request, which contains everything that can change a candidate,
and nothing else: for 64 candidates after 16, only 48 are sampled. Each `put` is one transaction. Several processes may
use a file concurrently; the first sample stored for an index is kept. Each row has a checksum, so that corrupted data
cause an error rather than a different score. A read-only file can be used if it has all samples.
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

#: The SQLite application id of the store ("MESD"), and the version of the tables below.
_APPLICATION_ID = 0x4D455344
_FORMAT = 4
_BUSY_SECONDS = 60.0
#: The maximum number of server addresses stored per model name.
_MOST_SERVERS = 100

_TABLES = (
    "CREATE TABLE request (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE)",
    "CREATE TABLE sample (request INTEGER NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, "
    "checksum INTEGER NOT NULL, PRIMARY KEY (request, number)) WITHOUT ROWID",
)
_IN_MEMORY = ":memory:"
_FIX = "name another file with the environment variable MBR_ESD_STORE"


def cache_folder() -> Path:
    """The folder in the environment variable ``MBR_ESD_CACHE``, or ``mbr-esd`` in the platform's cache folder
    (``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux). It may not exist yet."""
    folder = os.environ.get("MBR_ESD_CACHE")
    return Path(folder).expanduser() if folder else user_cache_path("mbr-esd", appauthor=False, opinion=False)


def read_cache(name: str) -> dict[str, Any]:
    """The content of a file written by `write_cache`; empty if it does not exist or is invalid."""
    try:
        value = json.loads((cache_folder() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_cache(name: str, value: Mapping[str, object]) -> None:
    """Write reproducible data as JSON to a file in the cache folder; ignored if the folder is not writable."""
    path = cache_folder() / name
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(json.dumps(value), encoding="utf-8")
        part.replace(path)


def store_path() -> Path:
    """The file of the store: ``MBR_ESD_STORE``, or ``candidates.sqlite`` in the cache folder.

    Raises:
        StoreError: the value looks like a request to disable the store, such as "none".
    """
    name = os.environ.get("MBR_ESD_STORE")
    if name and name.lower() in ("none", "null", "no", "off", "false"):
        raise StoreError(
            f"MBR_ESD_STORE={name} would create a file of that name; use {_IN_MEMORY} to run without a store"
        )
    return Path(name).expanduser() if name else cache_folder() / "candidates.sqlite"


class CandidateStore(AbstractContextManager["CandidateStore"]):
    """Samples by request key and index. Use as a context manager, in the thread that opened it. On a network file
    system, use a separate store for each machine, because SQLite's locks do not work across machines.

    Attributes:
        path: the file; None if the store is in memory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the store at `path`, and create it and its folders if necessary. ":memory:" is a temporary store in
        memory.

        Raises:
            StoreError: the file is not a store, is damaged, has another format, or cannot be created. It is not
                changed.
        """
        self.path = None if str(path) == _IN_MEMORY else Path(path)
        with self._reported("open"):
            try:
                self._open()
            except (sqlite3.OperationalError, OSError) as error:
                if self.path is None or not self.path.is_file() or not _is_read_only(error):
                    raise
                self.close()
                # A read-only store, in which only `put` fails. Without a write-ahead log, SQLite can open it as
                # immutable, which does not write any files next to it.
                log = self.path.with_name(self.path.name + "-wal")
                untouched = not log.exists() or log.stat().st_size == 0
                address = f"{self.path.absolute().as_uri()}?{'immutable=1' if untouched else 'mode=ro'}"
                self._connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
                self._has_tables()

    def stored(self, key: str, n: int) -> set[int]:
        """The indices among 0 to n - 1 of the stored samples of a request. Raises `StoreError` if the file is
        damaged."""
        return {number for number, *_ in self._rows("number", key, n)}

    def get(self, key: str, n: int) -> list[Candidate | None]:
        """Samples 0 to n - 1 of a request, None for missing ones. Raises `StoreError` with the first damaged sample."""
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
        """Store samples `first`, `first + 1`, ... in one transaction. Existing samples are not overwritten.

        Raises:
            StoreError: the disk is full, or the file is damaged or read-only. Samples stored before are kept.
        """
        with self._reported("write"), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT OR IGNORE INTO request (key) VALUES (?)", (key,))
            (request,) = connection.execute("SELECT id FROM request WHERE key = ?", (key,)).fetchone()
            rows: list[tuple[int, int, bytes, int]] = []
            for number, sample in enumerate(samples, first):
                by_token = sample.token_logprobs
                fields = [sample.text or "", sample.logprob, sample.tokens, sample.withheld or sample.truncated]
                # JSON, because texts may contain NUL or unpaired surrogates, which SQLite's text type cannot store.
                content = json.dumps([*fields, by_token and astuple(by_token)]).encode("ascii")
                rows.append((request, number, content, _checksum(key, number, content)))
            connection.executemany("INSERT OR IGNORE INTO sample VALUES (?, ?, ?, ?)", rows)

    def servers(self, name: str) -> list[str]:
        """The addresses of servers that generated candidates under this model name."""
        return [one.text for one in self.get(f"servers of {name}", _MOST_SERVERS) if one is not None and one.text]

    def add_servers(self, name: str, addresses: Sequence[str]) -> None:
        """Record the addresses of servers that generate candidates under this model name."""
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
            # Fetch all rows: a query that an error interrupts would keep the file open after `close`.
            return self._connection.execute(query, (key, n)).fetchall()

    def _open(self) -> None:
        """Connect, and create the file and its tables if necessary. Files of other programs are not changed."""
        if self.path is not None:
            # Candidates may reveal the translated texts, so only the owner can read a new store. SQLite's log inherits
            # its permissions.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        address = str(self.path or _IN_MEMORY)
        self._connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        with self._connection as connection:
            connection.execute("BEGIN")  # another process may create the tables between two queries
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
        """Whether the file has exactly the tables of the store; False if it is empty. Other content, such as views, is
        rejected, because queries on it may not terminate."""
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
        """Switch the file to write-ahead logging, so that processes can read during a write, if the file system
        supports it. The setting is stored in the file."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # For this statement, SQLite does not wait until another process releases the file.
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
