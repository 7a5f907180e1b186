"""What a function refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mbr_esd_metric.errors import InputError


def refused(message: str, call: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Check that the call raises an `InputError` with this pattern."""
    with pytest.raises(InputError, match=message):
        call(*arguments, **options)
