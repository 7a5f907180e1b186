"""The numbers behind the plots."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot. A `guide` is no data but what data are compared with."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    guide: bool = False
