"""Warnings of the libraries that are none of the user's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_peft() -> Iterator[None]:
    """Put adapters on models in here: it hides peft's warning about its own use of transformers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is_gradient_checkpointing.* is deprecated", FutureWarning)
        yield
