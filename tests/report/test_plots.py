"""The numbers behind the plots, and the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.report.plots import Curve, plot_curves, save


def test_guides_of_two_language_pairs_look_apart() -> None:
    pytest.importorskip("matplotlib")
    ends = (0.0, 1.0)
    guides = [Curve(f"empty {lp}", ends, (level, level), guide=True) for lp, level in (("en-de", 0.3), ("zh-en", 0.5))]
    figure = plot_curves({"F1": guides, "SPA": guides[::-1]}, "lambda")
    looks = [{line.get_label(): line.get_linestyle() for line in axis.lines} for axis in figure.axes[:2]]
    assert looks[0] == looks[1]
    assert len(set(looks[0].values())) == 2


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    panels = {"loss": [Curve("training", (1.0, 2.0), (0.7, 0.6))]}
    save(plot_curves(panels, "step"), tmp_path / "n.svg")
    assert (tmp_path / "n.png").read_bytes()[:4] == b"\x89PNG"
    first = (tmp_path / "n.svg").read_text(encoding="utf-8")
    assert first.rstrip().endswith("</svg>")
    assert "training" in first
    save(plot_curves(panels, "step"), tmp_path / "n.svg")
    assert (tmp_path / "n.svg").read_text(encoding="utf-8") == first
