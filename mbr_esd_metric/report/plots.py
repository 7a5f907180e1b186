"""Plots as PNG and SVG. Lines are distinguished by dashes and markers as well as colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.errors import OptionError, require
from mbr_esd_metric.files.paths import check_output

#: The colour-blind-safe palette of Okabe and Ito.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
_MARKS = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot; a `guide` is a reference line, drawn in grey."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    guide: bool = False


def plot_curves(panels: Mapping[str, Sequence[Curve]], x_label: str | Mapping[str, str], *, log_x: bool = False) -> Any:
    """Figure with one panel per measure, at most three per row. A label has the same style in all panels.

    Args:
        x_label: the label of all x axes, or panel title -> label.
        log_x: whether the x axes are logarithmic, to base 2.
    """
    require("matplotlib", "report", "plotting")
    import matplotlib
    from matplotlib.figure import Figure

    # Keep text as text in the SVG, and generate the same ids in every run.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "mbr-esd"})
    down = -(-len(panels) // 3)
    across = -(-len(panels) // down)
    figure = Figure(figsize=(4.2 * across, 3.6 * down), layout="constrained")
    axes = [figure.add_subplot(down, across, at + 1) for at in range(len(panels))]
    every = [curve for curves in panels.values() for curve in curves]
    labels = list(dict.fromkeys(curve.label for curve in every if not curve.guide))
    guides = list(dict.fromkeys(curve.label for curve in every if curve.guide))
    for axis, (name, curves) in zip(axes, panels.items(), strict=True):
        for curve in curves:
            at = (guides if curve.guide else labels).index(curve.label) % 6
            marker = _MARKS[at] if len(curve.x) <= 25 else None
            style: dict[str, Any] = {"color": _COLORS[at], "marker": marker, "markersize": 4}
            if curve.guide:
                style = {"color": "0.6", "linewidth": 1, "zorder": 1}
            axis.plot(curve.x, curve.y, label=curve.label, linestyle=_DASHES[at], **style)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(name, fontsize=11)
        axis.set_xlabel(x_label if isinstance(x_label, str) else x_label[name])
        if log_x:
            axis.set_xscale("log", base=2)
            ticks = curves[0].x
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0].legend(frameon=False)
    return figure


def save(figure: Any, output: str | Path) -> None:
    """Write the figure as PNG and as SVG. Raises `OptionError` for another file extension."""
    png, svg = _paths(output)
    figure.savefig(png, dpi=150)
    figure.savefig(svg, metadata={"Date": None})


def check_plot(output: str | Path, inputs: Sequence[str | Path | None] = ()) -> None:
    """Check, before any computation, that `save` can write the files without overwriting `inputs`, and that matplotlib
    is installed."""
    for path in _paths(output):
        check_output(path, inputs)
    require("matplotlib", "report", "plotting")


def _paths(output: str | Path) -> tuple[Path, Path]:
    path = Path(output)
    if path.suffix.lower() not in ("", ".png", ".svg"):
        raise OptionError(f"{path}: plots are written as .png and .svg; use one of these extensions")
    return path.with_suffix(".png"), path.with_suffix(".svg")
