"""Progress of long work on standard error: a bar on a terminal, now and then a line in a log file or a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

#: Seconds between two lines where standard error is no terminal; shorter work says nothing there.
LINE_PAUSE = 30.0


def progress_bar(doing: str, unit: str = "it", *, done: int = 0, shown: bool = True, **options: Any) -> tqdm[Any]:
    """A bar of `tqdm`, which begins with those `done` before; `options` are its own, such as `iterable` or `total`."""
    from tqdm import tqdm

    if not sys.stderr.isatty():
        options |= {"mininterval": LINE_PAUSE, "delay": LINE_PAUSE}
    return tqdm(desc=doing, unit=unit, initial=done, disable=not shown, file=sys.stderr, **options)


class Progress:
    """Shows how much of a computation is done whose steps are known only when it begins, and the time left."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def done(self, more: int, total: int) -> None:
        """So many steps more, of so many. Steps that turn out not to be needed count as done."""
        if self._bar is None:
            form = "{l_bar}{bar}| {elapsed}, {remaining} left"
            self._bar = progress_bar(self._doing, total=total, bar_format=form)
        self._bar.update(more)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
