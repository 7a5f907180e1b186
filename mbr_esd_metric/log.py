"""The log, and progress on standard error."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from mbr_esd_metric.messages import masked, printable

if TYPE_CHECKING:
    from tqdm import tqdm

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
