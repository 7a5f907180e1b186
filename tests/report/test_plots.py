"""The numbers behind the plots, and the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.report.curves import Curve, loss_curves
from mbr_esd_metric.report.plots import plot_curves

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
MT = "0123456789"
A = Annotation([ErrorSpan(0, 4, "major")])
B = Annotation([ErrorSpan(2, 6, "minor")])


def of(annotation: Annotation, logprob: float | None = None) -> Candidate:
    return Candidate(annotation=annotation, logprob=logprob)


def test_guides_of_two_language_pairs_look_apart() -> None:
    pytest.importorskip("matplotlib")
    ends = (0.0, 1.0)
    guides = [Curve(f"empty {lp}", ends, (level, level), guide=True) for lp, level in (("en-de", 0.3), ("zh-en", 0.5))]
    figure = plot_curves({"F1": guides, "SPA": guides[::-1]}, "lambda")
    looks = [{line.get_label(): line.get_linestyle() for line in axis.lines} for axis in figure.axes[:2]]
    assert looks[0] == looks[1]
    assert len(set(looks[0].values())) == 2


def test_loss_curves(tmp_path: Path) -> None:
    history = [
        {"step": 1, "loss": 0.7, "rewards/margins": 0.0},
        {"step": 2, "loss": 0.6, "rewards/margins": 0.1},
        {"step": 2, "eval_loss": 0.65},
        {"step": 2, "train_runtime": 3.0},
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}), encoding="utf-8")
    panels = loss_curves(tmp_path)
    assert [(c.label, c.x, c.y) for c in panels["loss"]] == [
        ("training", (1.0, 2.0), (0.7, 0.6)),
        ("validation", (2.0,), (0.65,)),
    ]
    assert [c.label for c in panels["reward margin"]] == ["training"]
    with pytest.raises(InputError, match="no such file"):
        loss_curves(tmp_path / "none")
    (tmp_path / "trainer_state.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="no log of a training run"):
        loss_curves(tmp_path)


def test_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    run = tmp_path / "run"
    run.mkdir()
    (run / "trainer_state.json").write_text(
        json.dumps({"log_history": [{"step": 1, "loss": 0.7}, {"step": 2, "loss": 0.6}]}), encoding="utf-8"
    )
    assert main(["distill", "plot", str(run), "-o", str(tmp_path / "n.svg")]) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "n.png").read_bytes()[:4] == b"\x89PNG"
    first = (tmp_path / "n.svg").read_text(encoding="utf-8")
    assert first.rstrip().endswith("</svg>")
    assert "training" in first
    assert main(["distill", "plot", str(run), "-o", str(tmp_path / "n.svg")]) == 0
    assert (tmp_path / "n.svg").read_text(encoding="utf-8") == first


def test_plots_are_png_and_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["distill", "plot", str(tmp_path), "-o", str(tmp_path / "l.pdf")]) == 1
    assert "l.pdf: plots are written as .png and .svg" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
