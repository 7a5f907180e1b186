"""The numbers behind the plots, and the files."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from mbr_esd_metric import soft_f1
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.report.curves import human_points, likelihood_points, loss_curves

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
MT = "0123456789"
A = Annotation([ErrorSpan(0, 4, "major")])
B = Annotation([ErrorSpan(2, 6, "minor")])


def of(annotation: Annotation, logprob: float | None = None) -> Candidate:
    return Candidate(annotation=annotation, logprob=logprob)


def test_likelihood_points() -> None:
    candidates = [of(A, -5.0), of(EMPTY, -1.0), of(A, -4.0), of(B, -9.0), Candidate("not JSON", logprob=-0.1)]
    points = likelihood_points(MT, candidates, [A])
    assert [(p.annotation, p.count, p.logprob) for p in points] == [(EMPTY, 1, -1.0), (A, 2, -4.0), (B, 1, -9.0)]
    assert [p.human for p in points] == [soft_f1(p.annotation, A, 10) for p in points]
    for point in points:
        mean = sum(soft_f1(point.annotation, other, 10) for other in (A, A, EMPTY, B)) / 4
        assert point.utility == pytest.approx(mean)
    assert points[0].chosen == ("MAP",)
    best = max(points, key=lambda p: p.utility)
    assert "MBR" in best.chosen
    assert "majority" in points[1].chosen


def test_human_points() -> None:
    candidates = [of(A, -5.0), of(EMPTY, -1.0), of(A, -4.0), of(B, -9.0)]
    first, second = human_points(MT, candidates, [A, Annotation([ErrorSpan(5, 6, "minor")])], [-4.0, None])
    assert (first.count, first.logprob, second.count, second.logprob) == (2, -4.0, 0, None)
    assert first.utility == max(p.utility for p in likelihood_points(MT, candidates) if p.annotation == A)
    assert second.utility == pytest.approx(sum(soft_f1(second.annotation, other, 10) for other in (A, A, EMPTY, B)) / 4)
    assert (first.chosen, second.chosen) == (("human 1",), ("human 2",))


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
    inputs = [str(EXAMPLES / "candidates.jsonl"), str(EXAMPLES / "human.tsv")]
    assert main(["show", *inputs, "--id", "2", "--plot", str(tmp_path / "l.png")]) == 0
    table = capsys.readouterr().out
    assert "<- MBR, majority" in table
    assert "-4.10      2    0.846  1.000  Er [gab den Boden an](major) seinen Kollegen aus Lissabon.  <- human" in table
    (tmp_path / "trainer_state.json").write_text(
        json.dumps({"log_history": [{"step": 1, "loss": 0.7}, {"step": 2, "loss": 0.6}]}), encoding="utf-8"
    )
    assert main(["distill", "plot", str(tmp_path), "-o", str(tmp_path / "n.svg")]) == 0
    for name in "ln":
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert (tmp_path / f"{name}.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert "training" in (tmp_path / "n.svg").read_text(encoding="utf-8")
    first = (tmp_path / "l.svg").read_bytes()
    assert main(["show", *inputs, "--id", "2", "--plot", str(tmp_path / "l.png")]) == 0
    assert (tmp_path / "l.svg").read_bytes() == first


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The folder of a random Llama."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from tests.helpers.made_tokenizer import WIDTH, byte_level_tokenizer

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        eos_token_id=0,
        pad_token_id=0,
        bos_token_id=0,
    )
    folder = tmp_path / "tiny"
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    byte_level_tokenizer().save_pretrained(folder)
    return folder


def test_log_likelihood_of_human_annotations(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of any segment: what the model cannot say has no number, and a note says why."""
    pytest.importorskip("matplotlib")
    human = tmp_path / "human.tsv"
    source, end = "He gave the floor to his colleague from Lisbon.", "Kollegen aus Lissabon."
    marked = ["<v>gab den Boden an</v> seinen", "gab den Boden an <v>sein</v>en", "gab den Bod<v>e</v>n an seinen"]
    lines = ["system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity"]
    for rater, target in enumerate(marked, 1):
        lines.append(f"mt\texample\t2\t2\trater{rater}\t{source}\tEr {target} {end}\tAccuracy/Mistranslation\tMajor")
    human.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def logprobs(options: str) -> tuple[list[float | None], str]:
        inputs = [str(EXAMPLES / "candidates.jsonl"), str(human), "--id", "2", "--plot", str(tmp_path / "l.png")]
        assert main(["show", *inputs, "--model", f"mbr-esd-llama?model={tiny}&device=cpu{options}"]) == 0
        said = capsys.readouterr()
        cells = [line.split()[0] for line in said.out.splitlines() if "<- human" in line]
        return [None if cell == "-" else float(cell) for cell in cells], said.err

    (grounded, inside, repeated), notes = logprobs("&grounded=true")
    assert (inside, repeated) == (None, None)
    assert "note: human 2 has no log-probability: the model's grammar admits no such answer after" in notes
    assert "; a model name with grounded=false admits any text\n" in notes
    assert "note: human 3 has no log-probability: no answer can say 1 of its errors" in notes
    (free, word_part, _), notes = logprobs("")
    assert "human 2" not in notes
    assert word_part is not None
    assert word_part < 0
    # The fewer tokens are admissible, the more of the probability each of them has.
    assert grounded is not None
    assert free is not None
    assert free < grounded < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["CANDIDATES", "--model", "mbr-esd-demo"], "--model changes nothing with a segment that has no"),
        (["CANDIDATES", "--id", "99"], "no candidates for segment '99'"),
        (["HUMAN"], "give one candidates file; there are 0"),
        (["CANDIDATES", "--system", "A"], "--system is the system of the segment that --id names"),
        (["CANDIDATES", "--id", "1", "--id", "2"], "--id 1 --id 2: a plot is of one segment"),
        (["CANDIDATES", "--worst", "x"], "--worst changes nothing with --plot, which is of one segment"),
    ],
)
def test_wrong_use_of_plot(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"CANDIDATES": str(EXAMPLES / "candidates.jsonl"), "HUMAN": str(EXAMPLES / "human.tsv")}
    words = [files.get(word, word) for word in arguments]
    assert main(["show", *words, "--plot", str(tmp_path / "x.png")]) == 1
    assert message in capsys.readouterr().err


def test_what_belongs_to_a_plot_is_refused_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(EXAMPLES / "candidates.jsonl"), "--utility", "f1"]) == 1
    assert "--utility changes nothing with segments without --plot" in capsys.readouterr().err


def test_plot_without_human_annotations_warns_of_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert main(["show", str(EXAMPLES / "candidates.jsonl"), "--plot", str(tmp_path / "l")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"l.png", "l.svg"}


def test_plots_are_png_and_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(EXAMPLES / "candidates.jsonl"), "--plot", str(tmp_path / "l.pdf")]) == 1
    assert "l.pdf: plots are written as .png and .svg" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
