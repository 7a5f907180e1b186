"""Entries (texts by key) of files in one language, with their positions, and comments in such files."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import read_bytes, whole_file

#: Prefix of our comments.
MARK = "mbr-esd:"
#: Start and end of a one-line comment.
HASH, SLASHES, XML = ("# ", ""), ("/* ", " */"), ("<!-- ", " -->")


@dataclass(frozen=True, slots=True)
class Entry:
    """A text and its key.

    Attributes:
        key: the parts of nested keys joined by dots; an item of a list is ``days[0]``, a plural form ``songs[one]``,
            unless the format has its own notation (``songs_one``).
        line, column: the start of the entry in the file, both from 1.
        number: the number of a subtitle, whose key is its time.
        unready: the reason why the file marks it as not ready.
    """

    key: str
    text: str
    line: int
    column: int = 1
    number: str = ""
    unready: str | None = None


@dataclass(frozen=True, slots=True)
class StringFile:
    """The entries of a file in one language.

    Attributes:
        language: the language specified in the file, or "".
        comment: start and end of a comment, or None for a format without comments.
        encoding: the encoding of the file.
    """

    path: Path
    entries: tuple[Entry, ...]
    language: str = ""
    comment: tuple[str, str] | None = None
    encoding: str = "utf-8"

    def write(self, comments: Mapping[Entry, Sequence[str]], judged: Iterable[Entry], output: Path) -> None:
        """Write the file with a comment before each of these entries, replacing comments of an earlier run before the
        `judged` ones; all other characters are unchanged. The format must support comments."""
        assert self.comment is not None
        begin, end = self.comment
        ours = re.compile(rf"\s*{re.escape(begin + MARK)}.*{re.escape(end)}\s*")
        lines = read_bytes(self.path).decode(self.encoding).splitlines(keepends=True)
        newline = "\r\n" if lines[:1] and lines[0].endswith("\r\n") else "\n"
        for entry in judged:
            at = entry.line - 2
            while at >= 0 and (not lines[at] or ours.fullmatch(lines[at])):
                lines[at] = ""
                at -= 1
        # From the end, so that earlier positions stay valid.
        for entry in sorted(comments, key=lambda one: (one.line, one.column), reverse=True):
            line = lines[entry.line - 1]
            before, rest = line[: entry.column - 1], line[entry.column - 1 :]
            texts = (f"{begin}{MARK} {self._plain(one)}{end}" for one in comments[entry])
            if not before.strip() or not end:
                indent = line[: len(line) - len(line.lstrip())]
                lines[entry.line - 1] = "".join(f"{indent}{text}{newline}" for text in texts) + line
            else:
                lines[entry.line - 1] = before + "".join(texts) + rest
        with whole_file(output) as out:
            out.write("".join(lines).encode(self.encoding, "replace"))

    def _plain(self, text: str) -> str:
        """The text of a comment on one line, without the end marker of comments."""
        return " ".join(text.split()).replace("--", "- -").replace("*/", "* /")


class Lines:
    """The line starts of a text or bytes."""

    def __init__(self, content: str | bytes) -> None:
        ends = re.finditer("\n", content) if isinstance(content, str) else re.finditer(b"\n", content)
        self._starts = [0, *(match.end() for match in ends)]

    def place(self, at: int) -> tuple[int, int]:
        """Line and column, from 1, of the character (or byte) at this offset."""
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1


def decoded(path: Path, fallback: str | None = None) -> tuple[str, str]:
    """The text of a file and its encoding: UTF-16 or UTF-8 by byte order mark, otherwise UTF-8, or else the `fallback`.
    Raises `InputError` with the line of a byte that is not UTF-8."""
    content = read_bytes(path)
    encoding = "utf-8"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif content.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError as error:
        if fallback is not None:
            return content.decode(fallback), fallback
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not {encoding.upper()}; save the file as UTF-8") from None


#: Reads the entries of a file.
Reader = Callable[[Path], StringFile]
