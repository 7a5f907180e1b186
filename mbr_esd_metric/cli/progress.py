"""A line of progress on standard error."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """Shows how much of a long computation is done, and the time left, on standard error if that is a terminal."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def done(self, more: int, total: int) -> None:
        """So many steps more, of so many. Steps that turn out not to be needed count as done."""
        from tqdm import tqdm

        if self._bar is None:
            form = "{l_bar}{bar}| {elapsed}, {remaining} left"
            self._bar = tqdm(total=total, desc=self._doing, bar_format=form, disable=None, file=sys.stderr)
        self._bar.update(more)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
