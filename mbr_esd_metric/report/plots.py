"""Plots as PNG and SVG. Lines differ by dash and marker, not only by colour."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import InputError, MissingDependencyError, OptionError
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.report.curves import Curve

#: Okabe and Ito's colours, which colour-blind people can tell apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
#: Most panels beside one another.
_ACROSS = 3
_MARKS = ("o", "s", "^", "D", "v", "P")


def plot_curves(panels: Mapping[str, Sequence[Curve]], x_label: str | Mapping[str, str], *, log_x: bool = False) -> Any:
    """A figure with one panel a measure, side by side; a label looks the same in each.

    Args:
        panels: title -> curves.
        x_label: of all panels, or of each by its title.
        log_x: to base 2.
    """
    figure, axes = _figure(len(panels))
    every = [curve for curves in panels.values() for curve in curves]
    labels = list(dict.fromkeys(curve.label for curve in every if not curve.guide))
    guides = list(dict.fromkeys(curve.label for curve in every if curve.guide))
    for axis, (name, curves) in zip(axes, panels.items(), strict=True):
        for curve in curves:
            if curve.guide:
                dash = _DASHES[guides.index(curve.label) % 6]
                axis.plot(curve.x, curve.y, label=curve.label, color="0.6", linestyle=dash, linewidth=1, zorder=1)
                continue
            at = labels.index(curve.label)
            axis.plot(
                curve.x,
                curve.y,
                label=curve.label,
                color=_COLORS[at % 6],
                linestyle=_DASHES[at % 6],
                marker=_MARKS[at % 6] if len(curve.x) <= 25 else None,
                markersize=4,
            )
        axis.set_title(name, fontsize=11)
        axis.set_xlabel(x_label if isinstance(x_label, str) else x_label[name])
        if log_x:
            axis.set_xscale("log", base=2)
            ticks = curves[0].x
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0].legend(frameon=False)
    return figure


@dataclass(frozen=True, slots=True)
class Wins:
    """Metrics in order, best first, with their clusters, and for i < j the p-value that metric i beats metric j."""

    names: Sequence[str]
    ranks: Sequence[int]
    p_values: npt.NDArray[np.float64]


def plot_wins(panels: Mapping[str, Wins], alpha: float = 0.05) -> Any:
    """A heat map a panel: the darker a square, the surer it is that the metric of the row beats that of the column.

    Wins up to `alpha` have a mark. Lines stand between clusters.

    Raises:
        InputError: nothing was tested, or there are not two metrics.
    """
    shown = {title: wins for title, wins in panels.items() if len(wins.names) > 1}
    if not shown:
        raise InputError("there are no two metrics whose difference was tested; there is nothing to plot")
    most = max(len(wins.names) for wins in shown.values())
    figure, axes = _figure(len(shown), width=2.2 + 0.24 * most, height=1.8 + 0.24 * most)
    for axis, (title, wins) in zip(axes, shown.items(), strict=True):
        count = len(wins.names)
        below = np.tril(np.ones((count, count), dtype=np.bool_))
        image = np.where(below, np.nan, wins.p_values)
        axis.grid(False)
        drawn = axis.imshow(image, cmap="Blues_r", vmin=0.0, vmax=0.5)
        for i, j in np.argwhere(~below & (wins.p_values <= alpha)):
            axis.text(j, i, "\u2022", ha="center", va="center", color="white", fontsize=8)
        for at in range(1, count):
            if wins.ranks[at] != wins.ranks[at - 1]:
                axis.axvline(at - 0.5, color="0.4", linewidth=0.8)
                axis.axhline(at - 0.5, color="0.4", linewidth=0.8)
        axis.set_xticks(range(count), wins.names, rotation=90, fontsize=7)
        axis.set_yticks(range(count), wins.names, fontsize=7)
        axis.set_title(title, fontsize=11)
        figure.colorbar(drawn, ax=axis, shrink=0.6, label="p: row beats column")
    return figure


def save(figure: Any, output: Path) -> tuple[Path, Path]:
    """Write the figure as PNG and as SVG; `output` may have either ending, or none. Returns both paths.

    Raises:
        OptionError: another ending.
    """
    paths = _paths(output)
    for path in paths:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def check_plot(output: str | Path, inputs: Sequence[str | Path | None] = ()) -> None:
    """Make sure, before any work, that `save` can write there; inputs and errors as of `streams.check_output`.

    Raises:
        OptionError: another ending than .png and .svg.
        MissingDependencyError: matplotlib is not installed.
    """
    check_output(output, inputs)
    for path in _paths(Path(output)):
        check_output(path, inputs)
    _need_matplotlib()


def _paths(output: Path) -> tuple[Path, Path]:
    if output.suffix.lower() not in ("", ".png", ".svg"):
        raise OptionError(f"{output}: plots are written as .png and .svg; give a name with one of these endings")
    return output.with_suffix(".png"), output.with_suffix(".svg")


def _need_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingDependencyError("matplotlib", "report", "plotting")


def _figure(panels: int, width: float = 4.2, height: float = 3.6) -> tuple[Any, list[Any]]:
    """A figure with so many panels, in rows of at most three."""
    _need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    # Text stays text in an SVG, and ids are the same in every run.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "mbr-esd"})
    across = panels if panels <= _ACROSS else -(-panels // -(-panels // _ACROSS))
    down = -(-panels // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = [figure.add_subplot(down, across, at + 1) for at in range(panels)]
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes
