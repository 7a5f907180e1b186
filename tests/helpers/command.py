"""The type of the fixture `mbr_esd`, and the table that it prints."""

from __future__ import annotations

import json
from typing import Any, Protocol

import pytest


class Command(Protocol):
    """Runs a verb with these words."""

    def __call__(self, *words: object, status: int = 0) -> pytest.CaptureResult[str]: ...


def table_rows(run: Command, *words: object) -> list[dict[str, Any]]:
    """The rows of the table that a verb prints."""
    rows: list[dict[str, Any]] = json.loads(run(*words, "--table json").out)["rows"]
    return rows
