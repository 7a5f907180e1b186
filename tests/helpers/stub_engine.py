"""An engine without a model, and how a test has it run in place of the real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from mbr_esd_metric.generation.engine import Engine, EngineOptions


class StubEngine(Engine):
    """Runs everywhere; a subclass says what it generates."""

    name: ClassVar[str] = "stub"

    def __init__(self, options: EngineOptions) -> None: ...

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        return None

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        return {"engine": cls.name, "model": options.model}


def run_instead(engine: type[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever engine a card names, candidates come from this one."""
    for module in ("plan", "summary"):
        monkeypatch.setattr(f"mbr_esd_metric.metric.{module}.engine_class", lambda name: engine)
