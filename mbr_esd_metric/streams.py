"""Reading and writing files: compressed by suffix, line by line or JSON value by value, whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from mbr_esd_metric.errors import InputError, MissingDependencyError, OptionError

_CHUNK = 1 << 20


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """(number from 1, text without its line end) of each line of a UTF-8 file, plain or compressed.

    Raises:
        InputError: no such file, or bytes that are not UTF-8 (with the line).
    """
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}, line {number}: byte 0x{line[error.start]:02x} is not UTF-8; convert the file, for "
                    f"instance: iconv -f WINDOWS-1252 -t UTF-8 {path}"
                ) from None
            yield number, text.removesuffix("\n").removesuffix("\r")


def read_segments(path: str | Path) -> list[str]:
    """One segment a line, without surrounding white space, as ``comet-score`` reads them; some may be empty.

    Raises:
        InputError: as `numbered_lines`, or no line at all.
    """
    segments = [text.strip() for _, text in numbered_lines(path)]
    if not segments:
        raise InputError(f"{path} is empty; give one segment a line")
    return segments


def plain_name(path: str | Path) -> str:
    """The file's name without the ending of a compression that `open_binary` reads."""
    return Path(path).name.removesuffix(".gz").removesuffix(".zst")


@contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """The file's content, decompressed by suffix.

    Raises:
        InputError: no such file, a folder, or damaged compression.
        MissingDependencyError: a `.zst` file without the package zstandard.
    """
    try:
        with Path(path).open("rb") as file, _decompressed(file, Path(path).suffix) as content:
            yield content
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path}: damaged gzip file ({error})") from None
    except Exception as error:
        if type(error).__module__.startswith(("zstandard", "zstd", "zlib")):
            raise InputError(f"{path}: damaged compressed file ({error})") from None
        raise


def check_output(path: str | Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """Make sure, before any work, that a file can be written there without destroying what the work reads.

    Args:
        path: the file to write.
        inputs: files, and folders whose files are not to be replaced; None is passed over.

    Raises:
        InputError: the folder does not exist, the path is a folder, or it is an input.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file to write")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: the folder does not exist; make it first")
    if not target.exists():
        return
    for given in inputs:
        if given is None or not Path(given).exists():
            continue
        if target.samefile(given) or Path(given).resolve() in target.resolve().parents:
            raise InputError(f"{path} is an input, which the output would replace; write to another file")


def check_folder(path: str | Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """Make sure, before any work, that a folder is there or can be made, and is none that the work reads.

    Args:
        path: the folder to write to.
        inputs: files and folders; None is passed over.

    Raises:
        InputError: the path, or one above it, is a file; or it is an input.
    """
    target = Path(path)
    there = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{path} cannot be a folder: {there} is a file; give another name")
    given = [Path(each) for each in inputs if each is not None]
    if target.exists() and any(each.exists() and target.samefile(each) for each in given):
        raise InputError(f"{path} is an input, which the output would replace; write to another folder")


def check_given_once(paths: Sequence[str], what: str, option: str = "") -> None:
    """Make sure that no file is named twice; it would count twice.

    Args:
        paths: of the files.
        what: they hold, for the message.
        option: that names them, such as "-t ".

    Raises:
        OptionError: names the second one.
    """
    files = [Path(path).resolve() for path in paths]
    for at, path in enumerate(paths):
        if files[at] in files[:at]:
            raise OptionError(f"{option}{path} is given twice; name each file of {what} once")


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write, compressed by suffix; it takes its name when it is complete, and a failure leaves none."""
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        with part.open("wb") as file:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as content:
                    yield cast("IO[bytes]", content)
            elif target.suffix == ".zst":
                with _zstandard().ZstdCompressor().stream_writer(file, closefd=False) as content:
                    yield content
            else:
                yield file
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: str | Path, text: str) -> None:
    """Write a text as UTF-8 by `whole_file`."""
    with whole_file(path) as file:
        file.write(text.encode())


def _decompressed(file: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        return cast("IO[bytes]", io.BufferedReader(gzip.GzipFile(fileobj=file), _CHUNK))
    if suffix == ".zst":
        reader = _zstandard().ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return io.BufferedReader(reader, _CHUNK)
    return file


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingDependencyError("zstandard", "zstd", "reading and writing .zst files") from None
    return zstandard


def short_names(paths: Iterable[str | Path], shorten: Callable[[str], str]) -> list[str]:
    """A name for each file, different for different paths: the shortened file name where no other has it.

    Else the whole file name, or as many folders before either as tell it apart.
    """
    forms = [_endings(Path(path), shorten) for path in paths]
    return [
        next((form for form in own if not any(form in other for other in forms if other is not own)), own[-1])
        for own in forms
    ]


def _endings(path: Path, shorten: Callable[[str], str]) -> list[str]:
    """What a path can be called, from its shortened file name to the whole path."""
    *folders, file = path.parts or (str(path),)
    return [
        "/".join((*folders[at:], last))
        for at in range(len(folders), -1, -1)
        for last in (shorten(file) or file, file)
    ]


class JsonStream:
    """Takes one long JSON text apart value by value; holds no more of it than the value under way needs."""

    def __init__(self, path: str | Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = io.TextIOWrapper(cast("io.BufferedReader", file), encoding="utf-8-sig")
        self._buffer, self._at, self._passed = "", 0, 0
        self._decoder = json.JSONDecoder()

    def _fill(self) -> bool:
        """Read at least as much as is waiting already, so that a long value is not tried over and over."""
        self._passed += self._at
        rest = self._buffer[self._at :]
        try:
            more = self._file.read(max(_CHUNK, len(rest)))
        except UnicodeDecodeError as error:
            raise InputError(f"{self._path}: not UTF-8 ({error.reason})") from None
        self._buffer, self._at = rest + more, 0
        return bool(more)

    def _skip_space(self) -> str:
        """The next character that is not white space, or "" at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._fill():
                return ""

    def accept(self, character: str) -> bool:
        """Pass over `character` if it comes next."""
        found = self._skip_space() == character
        self._at += found
        return found

    def expect(self, character: str) -> None:
        """Pass over `character`, which has to come next."""
        if not self.accept(character):
            place = self._passed + self._at
            raise InputError(
                f"{self._path}: expected {character!r} at character {place}; give the released code's "
                "{system: [[[text, logprob, mt, src], ...], ...]}"
            )

    def value(self) -> Any:
        """The next string, list or object."""
        self._skip_space()
        while True:
            try:
                value, self._at = self._decoder.raw_decode(self._buffer, self._at)
                return value
            except RecursionError:
                raise InputError(f"{self._path}: nested too deeply") from None
            except ValueError as error:
                if not self._fill():
                    place = self._passed + self._at
                    raise InputError(f"{self._path}: not JSON from character {place} on ({error})") from None
