"""The engines by name: those in `generation/engines/`, and those that other packages offer."""

from __future__ import annotations

from mbr_esd_metric.core.discovery import Catalog
from mbr_esd_metric.generation.engine import Engine

#: Entry points of other packages: ``mbr_esd_metric.engines``.
ENGINES = Catalog("engine", "engines", "mbr_esd_metric.generation.engines", Engine)  # type: ignore[type-abstract]


def engine_class(name: str) -> type[Engine]:
    """The class of that engine; raises `OptionError` for an unknown name."""
    return ENGINES.get(name)
