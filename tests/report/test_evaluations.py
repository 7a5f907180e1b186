"""Calibration of what stands in files, and plots."""

from __future__ import annotations

import json
from pathlib import Path

from mbr_esd_metric.files.paths import NamedPath
from mbr_esd_metric.files.records import read_recalibration
from mbr_esd_metric.report.evaluations import calibration_plot
from mbr_esd_metric.report.inputs import read_table
from mbr_esd_metric.report.plots import Curve, plot_curves, save
from tests.helpers.command import Command

#: xCOMET's output, too sure of itself, and the ratings of 60 translations.
FILES = [Path(__file__).parents[1] / "data" / "metaeval" / name for name in ("xcomet.json", "human.tsv")]


def test_the_table_names_the_error_and_what_is_learnt_fixes_it(tmp_path: Path, mbr_esd: Command) -> None:
    learnt = tmp_path / "calibration.json"
    shown = mbr_esd("calibrate", *FILES, "--table json --save", learnt)
    before = json.loads(shown.out)[0]["rows"]
    assert [row["level"] for row in before] == ["span", "character"]
    assert before[0]["predicted"] == 60
    assert before[0]["ece"] > 0.15
    assert before[0]["ece_other_half"] < before[0]["ece"]
    assert read_recalibration(learnt).learnt_on == "60 spans of xcomet"
    assert "fitted to only 60 spans of xcomet; at least 1000 are recommended" in shown.err


def test_a_metric_looks_the_same_in_each_panel_of_the_plot(tmp_path: Path, mbr_esd: Command) -> None:
    figure = calibration_plot(read_table([NamedPath.parse(str(path)) for path in FILES]))
    axes = {axis.get_title(): axis.get_xlabel() for axis in figure.axes}
    of = {"confirmed": "confidence", "precision": "recall", "risk": "coverage"}
    assert axes == {f"{name}, per span": label for name, label in of.items()}
    guide, first = figure.axes[0].lines
    assert (guide.get_label(), guide.get_marker()) == ("calibrated", "None")
    looks = {(line.get_label(), line.get_color(), line.get_linestyle()) for axis in figure.axes for line in axis.lines}
    assert looks == {(line.get_label(), line.get_color(), line.get_linestyle()) for line in (guide, first)}
    assert figure.axes[0].get_legend() is not None
    mbr_esd("calibrate", *FILES, "--plot", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_without_ratings_there_is_nothing_to_confirm(mbr_esd: Command) -> None:
    assert "no human annotations" in mbr_esd("calibrate", FILES[0], status=1).err


def test_guides_of_two_language_pairs_look_apart() -> None:
    guides = [Curve(lp, (0.0, 1.0), (level, level), guide=True) for lp, level in (("en-de", 0.3), ("zh-en", 0.5))]
    figure = plot_curves({"F1": guides, "SPA": guides[::-1]}, "lambda")
    first, second = ({line.get_label(): line.get_linestyle() for line in axis.lines} for axis in figure.axes)
    assert first == second
    assert len(set(first.values())) == 2


def test_a_plot_is_the_same_in_every_run(tmp_path: Path) -> None:
    texts = []
    for _ in range(2):
        save(plot_curves({"loss": [Curve("training", (1.0, 2.0), (0.7, 0.6))]}, "step"), tmp_path / "n.svg")
        texts.append((tmp_path / "n.svg").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert "training" in texts[0]
