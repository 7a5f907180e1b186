"""Files, compressed by suffix, read line by line and written whole or not at all, by one at a time."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TextIO, cast

from mbr_esd_metric.errors import InputError, require
from mbr_esd_metric.files.paths import compression

_CHUNK = 1 << 20
#: Seconds to wait for another writer, whose workers may need a moment to end after a kill.
WAIT_SECONDS = 2.0


def numbered_lines(path: str | Path, *, with_mark: bool = False) -> Iterator[tuple[int, str]]:
    """(number from 1, text without its line end) of each line of a UTF-8 file, plain or compressed; with its byte order
    mark, if it has one, only where that is asked for.

    Raises:
        InputError: as `whole_lines`, or a carriage return inside a line (with the line). Python, and so COMET and WMT's
            toolkit, take one for a line end, and would read more lines than there are.
    """
    for number, line in whole_lines(path, with_mark=with_mark):
        text = line.removesuffix("\n").removesuffix("\r")
        if "\r" in text:
            raise InputError(
                f"{path}, line {number}: a carriage return inside the line, at character "
                f"{text.index(chr(13)) + 1}, which COMET would read as the end of a segment; replace it with a space, "
                f"for example: tr '\\r' ' ' < {path} > NEW"
            )
        yield number, text


def whole_lines(path: str | Path, *, with_mark: bool = False) -> Iterator[tuple[int, str]]:
    """(number from 1, text with its line end) of each line of a file, as `numbered_lines`; `InputError` for no such
    file, or bytes that are not UTF-8."""
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1 and (
                line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or 10 * line.count(0) > len(line)
            ):
                raise InputError(
                    f"{path} looks like UTF-16, not UTF-8; convert the file, for example: "
                    f"iconv -f UTF-16 -t UTF-8 {path}"
                )
            try:
                yield number, line.decode("utf-8-sig" if number == 1 and not with_mark else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}, line {number}: byte 0x{line[error.start]:02x} is not UTF-8; convert the file, for "
                    f"example: iconv -f WINDOWS-1252 -t UTF-8 {path}"
                ) from None


def read_segments(path: str | Path) -> list[str]:
    """One segment a line, without surrounding white space, as ``comet-score`` reads them; some may be empty.
    `InputError` also for a file without a line."""
    segments = [text.strip() for _, text in numbered_lines(path)]
    if not segments:
        raise InputError(f"{path} is empty; give one segment per line")
    return segments


@contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """The file's content, decompressed by suffix; of "-" standard input. What the shell gives on a descriptor, such as
    a pipe, is read once and kept for who reads it again.

    Raises:
        InputError: no such file, a folder, a compression that is not read, or a damaged one.
        MissingDependencyError: a `.zst` file without the package zstandard.
    """
    ending = compression(path)
    try:
        with _raw(path) as file, _decompressed(file, ending) as content:
            yield content
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path}: damaged gzip file ({error})") from None
    except Exception as error:
        if type(error).__module__.startswith(("zstandard", "zstd", "zlib")):
            raise InputError(f"{path}: damaged compressed file ({error})") from None
        raise


def read_bytes(path: str | Path) -> bytes:
    """The whole content of a file; raises as `open_binary`."""
    with open_binary(path) as file:
        return file.read()


def _raw(path: str | Path) -> IO[bytes]:
    """The file as it is stored. What can be read once is kept."""
    name = str(path)
    if name == "-" or name.startswith("/dev/fd/"):
        return io.BytesIO(_content(sys.stdin, None if name == "-" else name))
    return Path(path).open("rb")


@lru_cache(maxsize=4)
def _content(stream: TextIO, path: str | None = None) -> bytes:
    return stream.buffer.read() if path is None else Path(path).read_bytes()


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write, compressed by suffix. It gets its name when it is complete; a failure leaves the old file.

    Until then it has a name that nobody can foresee, in the same folder. What is not a regular file, such as a pipe, is
    written to directly, and the file behind a symbolic link is replaced, not the link. `InputError` for a name of
    another compression.
    """
    target, ending = Path(path), compression(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as file, _compressed(file, ending) as content:
            yield content
        return
    real = Path(os.path.realpath(target))
    part = real.with_name(f".mbr-esd-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file, _compressed(file, ending) as content:
            yield content
        if real.exists():
            part.chmod(real.stat().st_mode & 0o7777)
        part.replace(real)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk names none
        raise


def _compressed(file: IO[bytes], ending: str) -> AbstractContextManager[IO[bytes]]:
    if ending == ".gz":
        zipped = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0)
        return cast("AbstractContextManager[IO[bytes]]", zipped)
    if ending == ".zst":
        writer: AbstractContextManager[IO[bytes]] = _zstandard().ZstdCompressor().stream_writer(file, closefd=False)
        return writer
    return nullcontext(file)


def write_whole(path: str | Path, text: str) -> None:
    """Write a text as UTF-8 by `whole_file`; an unpaired surrogate is written as its number."""
    with whole_file(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def json_text(value: object, indent: int | None = None) -> str:
    """JSON that UTF-8 can hold: lone surrogates, which it has not, are escaped. `ValueError` for NaN and infinity."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return text.encode(errors="backslashreplace").decode()


def _decompressed(file: IO[bytes], ending: str) -> IO[bytes]:
    if ending == ".gz":
        return cast("IO[bytes]", io.BufferedReader(gzip.GzipFile(fileobj=file), _CHUNK))
    if ending == ".zst":
        reader = _zstandard().ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return io.BufferedReader(reader, _CHUNK)
    return file


def _zstandard() -> Any:
    require("zstandard", "zstd", "reading and writing .zst files")
    import zstandard

    return zstandard


def file_digest(path: str | Path) -> bytes:
    """SHA-256 of a file as it is stored, however large; of "-" that of standard input."""
    digest = hashlib.sha256()
    with _raw(path) as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.digest()


@contextmanager
def locked(path: str | Path, what: str) -> Iterator[None]:
    """A lock file of one holder at a time, which the system releases however a process ends. `InputError`, with `what`
    is written, where another process, or another place in this one, holds it."""
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=WAIT_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"another process is writing {what}; wait for it to finish, or write to another file"
        ) from None
    try:
        yield
    finally:
        Path(path).unlink(missing_ok=True)  # while it is held: who waits for it sees that it is gone
        lock.release()
