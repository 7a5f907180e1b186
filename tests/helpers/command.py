"""The type of the fixture `mbr_esd`."""

from __future__ import annotations

from typing import Protocol

import pytest


class Command(Protocol):
    """Runs a verb with these words."""

    def __call__(self, *words: object, status: int = 0) -> pytest.CaptureResult[str]: ...
