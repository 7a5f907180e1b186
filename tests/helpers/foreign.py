"""Other people's modules, which are files and not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def module_of(path: str | Path) -> Any:
    """The module in this file, by the name of the file."""
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
