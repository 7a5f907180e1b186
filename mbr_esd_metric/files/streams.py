"""Files compressed by suffix: reading line by line, atomic writing, and lock files."""

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
#: Seconds to wait for another writer, whose workers may need a moment to end after being killed.
WAIT_SECONDS = 2.0


def numbered_lines(path: str | Path, *, with_mark: bool = False) -> Iterator[tuple[int, str]]:
    """(number from 1, text without its line end) of each line of a UTF-8 file, plain or compressed; a byte order mark
    is only included on request.

    Raises:
        InputError: see `whole_lines`; or a carriage return inside a line (with the line). Python, and so COMET and
            WMT's toolkit, treat it as a line end, and would read too many lines.
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
    """(number from 1, text with its line end) of each line of a file; see `numbered_lines`. Raises `InputError` for a
    missing file, or bytes that are not UTF-8."""
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
    """One segment per line, without surrounding white space, as in ``comet-score``; segments may be empty. Raises
    `InputError` also for an empty file."""
    segments = [text.strip() for _, text in numbered_lines(path)]
    if not segments:
        raise InputError(f"{path} is empty; give one segment per line")
    return segments


@contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """The file's content, decompressed by suffix; "-" is standard input. Pipes and other streams are read once, and
    their content is kept for later calls.

    Raises:
        InputError: a missing file, a folder, an unsupported compression, or a damaged compressed file.
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
    """The whole content of a file; raises the exceptions of `open_binary`."""
    with open_binary(path) as file:
        return file.read()


def _raw(path: str | Path) -> IO[bytes]:
    """The file without decompression; the content of streams is kept."""
    name = str(path)
    if name == "-" or name.startswith("/dev/fd/") or Path(path).is_fifo():
        return io.BytesIO(_content(sys.stdin, None if name == "-" else name))
    return Path(path).open("rb")


@lru_cache(maxsize=4)
def _content(stream: TextIO, path: str | None = None) -> bytes:
    return stream.buffer.read() if path is None else Path(path).read_bytes()


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write, compressed by suffix. It is written under an unpredictable temporary name in the same folder,
    and renamed when complete; a failure leaves the old file. Pipes and other special files are written directly, and
    for a symbolic link, its target is replaced. Raises `InputError` for an unsupported compression.
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
            error.filename = str(path)  # errors of a full disk have no file name
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
    """Write a text as UTF-8 with `whole_file`; unpaired surrogates are escaped."""
    with whole_file(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def json_text(value: object, indent: int | None = None) -> str:
    """JSON that can be encoded as UTF-8: unpaired surrogates are escaped. Raises `ValueError` for NaN and infinity."""
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
    """SHA-256 of a stored file of any size; "-" is standard input."""
    digest = hashlib.sha256()
    with _raw(path) as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.digest()


@contextmanager
def locked(path: str | Path, what: str) -> Iterator[None]:
    """An exclusive lock file, which the system releases when the process ends. Raises `InputError`, with `what` is
    being written, if another process, or other code in this one, holds it."""
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
        Path(path).unlink(missing_ok=True)  # remove it while locked, so that waiting processes notice
        lock.release()
