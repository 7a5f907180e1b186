"""Errors, the log, and progress on standard error. Each message says what was wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import importlib.util
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

#: What every command says if its run ends early.
RESUME = "sampled candidates are kept; repeat the command to go on from there"

#: Control characters, line ends, characters that turn the direction of writing, halves of surrogate pairs, and what XML
#: forbids.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
#: Variables that hold a key, and the keys and passwords of addresses in use.
_KEY_VARIABLES = ("MBR_ESD_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_secrets: set[str] = set()


def hide(*secrets: str) -> None:
    """Let `masked` know of keys or passwords."""
    _secrets.update(secrets)


def masked(text: str) -> str:
    """The text with ``***`` in place of each key and password in use: of a short one where it stands alone, and never
    of one of up to three characters, such as that of a server that wants none."""
    keys = {*_secrets, *(os.environ.get(name, "").strip() for name in _KEY_VARIABLES)}
    for key in sorted((key for key in keys if len(key) > 3 and key in text), key=len, reverse=True):
        text = text.replace(key, "***") if len(key) > 11 else re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "***", text)
    return text


def printable(text: str) -> str:
    """A text as one line that no terminal obeys: control characters as pictures, line ends as spaces."""
    return _UNFIT.sub(_picture, text)


def encodable(text: str) -> str:
    """The text, as long as before, without halves of surrogate pairs, which no tokenizer and no UTF-8 takes."""
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    if character in "\n\r\t\u2028\u2029":
        return " "
    return chr(0x2400 + ord(character)) if character < " " else "\N{REPLACEMENT CHARACTER}"


def number_of(count: int, what: str) -> str:
    """A count with its noun: "1 segment", "2 segments"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def first_of(items: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first items, and how many more there are: "a, b and 3 more"."""
    more = f"{between.strip(', ')} and {len(items) - most} more" if len(items) > most else ""
    return between.join(items[:most]) + more


#: Seconds between two lines of progress where standard error is not a terminal; shorter work says nothing there.
LINE_PAUSE = 30.0
#: The package's log: notes at INFO, what a user should act on at WARNING. Without `show_log` nothing of it is printed
#: but what Python prints of any library.
logger = logging.getLogger("mbr_esd_metric")
_with_notes: ContextVar[bool] = ContextVar("with_notes", default=True)


def _wanted(record: logging.LogRecord) -> bool:
    record.msg, record.args = masked(record.getMessage()), ()
    return record.levelno >= logging.WARNING or _with_notes.get()


logger.addFilter(_wanted)


@contextmanager
def notes(shown: bool) -> Iterator[None]:
    """Leave notes out of the log unless they are to be shown; warnings stay."""
    token = _with_notes.set(shown)
    try:
        yield
    finally:
        _with_notes.reset(token)


class _Printer(logging.Handler):
    """Writes records on standard error, clear of a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        tqdm.write(printable(self.format(record)), file=sys.stderr)


def show_log() -> None:
    """Print the log from now on, for a program; other handlers do not get it."""
    logger.handlers, logger.propagate = [_Printer()], False
    logger.setLevel(logging.INFO)


def progress_bar(doing: str, unit: str = "it", *, done: int = 0, shown: bool = True, **options: Any) -> tqdm[Any]:
    """A bar of `tqdm` that begins with those `done` before; `options` are tqdm's. In a log file or a pipe it is a line
    now and then."""
    from tqdm import tqdm

    to: TextIO = sys.stderr
    if not to.isatty():
        options |= {"mininterval": LINE_PAUSE, "maxinterval": LINE_PAUSE, "delay": LINE_PAUSE}
        to = _Lines()
    return tqdm(desc=doing, unit=unit, initial=done, disable=not shown, file=to, **options)


class _Lines(io.StringIO):
    """Progress output where standard error is not a terminal: one line per update."""

    def write(self, text: str) -> int:
        if text.strip():
            print(text.strip(), file=sys.stderr, flush=True)
        return len(text)


class MbrEsdError(Exception):
    """Base of every error that this package raises on purpose; its text is one line, fit for a terminal."""

    def __str__(self) -> str:
        return printable(masked(super().__str__()))


class InputError(MbrEsdError):
    """The input is malformed. The message names the file, line, segment or key, and says what to do."""


class OptionError(MbrEsdError):
    """An unknown name, option or value. The message names the nearest valid ones."""


class EngineError(MbrEsdError):
    """A model cannot be loaded or cannot generate. The message says why, and which command helps."""


class MissingDependencyError(EngineError):
    """An optional package is not installed. The message names it and the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f"install it with: {install_command(extra)}"
        )


def require(package: str, extra: str, purpose: str) -> None:
    """Raise `MissingDependencyError` if a package is not installed."""
    if importlib.util.find_spec(package) is None:
        raise MissingDependencyError(package, extra, purpose)


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra from where this package came, and what it does to COMET."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    name = "mbr-esd-metric"
    url, origin = "", {}
    with suppress(PackageNotFoundError):
        # PEP 610: a file that says where a package came from, if not from an index.
        origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
        url = origin.get("url", "")
    if url.startswith("file:"):
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        command = f'pip install {editable}"{url2pathname(urlsplit(url).path)}[{extra}]"'
    elif url:
        vcs = origin.get("vcs_info", {})
        where = f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url
        command = f'pip install "{name}[{extra}] @ {where}"'
    else:
        command = f'pip install "{name}[{extra}]"'
    return f"{command} (beside COMET: docs/comet.md)" if extra in ("vllm", "train") else command


class PluginError(MbrEsdError):
    """A part that another package offers cannot be used. The message names the package and says why."""


class StoreError(MbrEsdError):
    """The candidate store cannot be read or written; the file is left as it was."""


class NoValidCandidateError(MbrEsdError):
    """Every candidate of a segment is invalid, so there is nothing to choose from."""


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Let errors begin with the name of what they are about, such as a segment."""
    try:
        yield
    except (InputError, NoValidCandidateError) as error:
        raise type(error)(f"{label}: {error}") from None


def unknown(kind: str, value: str, valid: Iterable[str], listed: str | None = None) -> OptionError:
    """An `OptionError` for an unknown value of a kind such as "rule", with the nearest valid names. `listed` is the
    command that lists them, where they are too many for a message."""
    names = sorted(valid)
    close = difflib.get_close_matches(value.lower(), {name.lower(): None for name in names}, n=3, cutoff=0.5)
    near = [name for lowered in close for name in names if name.lower() == lowered]
    hint = f"did you mean {' or '.join(repr(n) for n in near)}? " if near else ""
    every = f"valid: {', '.join(names) or 'none'}" if listed is None else f"{listed} lists them all"
    return OptionError(f"unknown {kind} {value!r}; {hint}{every}")


def no_effect_error(option: str, beside: str) -> OptionError:
    """An `OptionError` for an option that has no effect together with the other options."""
    return OptionError(f"{option} has no effect with {beside}; remove it")
