"""`mbr-esd score` with COMET's own checkpoints: real classes with random weights, through COMET's own code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main

pytestmark = pytest.mark.comet

SOURCES = ("The bank closed.", "He left early.", "Good morning!")
TRANSLATIONS = ("Das Ufer schloss.", "Er ging.", "Guten Morgen!")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("comet.models", reason="unbabel-comet is not installed")
    monkeypatch.chdir(tmp_path)
    for name, lines in (("src.txt", SOURCES), ("mt.txt", TRANSLATIONS), ("ref.txt", TRANSLATIONS)):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("kind", ["xcomet", "unified", "regression"])
def test_scores_are_those_of_comet_score(files: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    import comet

    from tests.helpers.comet_checkpoint import make_checkpoint

    checkpoint = str(make_checkpoint(files / "toy", kind))
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--quiet", "--model", f"{checkpoint}?gpus=0"]
    if kind == "regression":
        assert main(words) == 1
        assert "needs references; give them with -r FILE" in capsys.readouterr().err
        words += ["-r", "ref.txt"]
    assert main([*words, "--to_json", "out.json"]) == 0
    printed = capsys.readouterr().out.splitlines()
    rows = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]

    samples = [{"src": s, "mt": t} for s, t in zip(SOURCES, TRANSLATIONS, strict=True)]
    if kind == "regression":
        samples = [{**sample, "ref": sample["mt"]} for sample in samples]
    model = comet.load_from_checkpoint(checkpoint).half()  # as comet-score does, on a CPU as well
    expected = model.predict(samples, batch_size=16, gpus=0, progress_bar=False)
    assert [row["COMET"] for row in rows] == pytest.approx(expected.scores, abs=1e-6)
    assert printed[-2] == f"mt.txt\tscore: {sum(expected.scores) / 3:.4f}"
    assert main([*words[:7], f"{checkpoint}?gpus=0&dtype=float32", *words[8:], "--to_json", "full.json"]) == 0
    full = json.loads(Path("full.json").read_text(encoding="utf-8"))["mt.txt"]
    assert [row["COMET"] for row in full] != [row["COMET"] for row in rows]
    if kind == "xcomet":
        assert [[s["text"] for s in row["errors"]] for row in rows] == [
            [s["text"] for s in spans] for spans in expected.metadata.error_spans
        ]
    else:
        assert all("errors" not in row for row in rows)


def test_a_checkpoint_without_its_owner_is_suggested(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", "xcomet-xl"]) == 1
    assert "unknown model 'xcomet-xl'; did you mean 'Unbabel/XCOMET-XL'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [("dtype=int8", "dtype=int8: give float16 or float32"), ("gpu=1", "unknown option of a COMET checkpoint 'gpu'")],
)
def test_an_option_that_a_checkpoint_does_not_take(
    files: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", f"Unbabel/XCOMET-XL?{options}"]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--dry-run"], ["--documents", "src.txt"]])
def test_options_of_our_models_are_refused(files: Path, option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", "Unbabel/XCOMET-XL", *option]) == 1
    assert f"{option[0]}" in capsys.readouterr().err


def test_a_misspelt_model_with_options_is_none_of_comets(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = "my-model?server=http://alice:hunter2@127.0.0.1:9/v1"
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", model]) == 1
    said = capsys.readouterr().err
    assert "mbr-esd-server?model=my-model&server=http://***@127.0.0.1:9/v1" in said
    assert "hunter2" not in said


def test_options_of_comet_are_refused_with_our_models(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", "mbr-esd-demo", "-r", "ref.txt"]) == 1
    assert "--references" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["xcomet", "unified", "regression"])
def test_texts_that_comet_cuts_are_counted(files: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """At the very position: what the note calls cut is what COMET's own tokenizer shortens."""
    from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions
    from tests.helpers.comet_checkpoint import make_checkpoint

    checkpoint = CometCheckpoint(str(make_checkpoint(files / "toy", kind)), CometOptions(8, 0))
    encoder, word = checkpoint._model.encoder, "bank "
    room = encoder.max_positions - (4 if kind == "regression" else 5)
    one = len(encoder.tokenizer(word, add_special_tokens=False)["input_ids"])
    source = "" if kind != "regression" else word
    fits, cut = (word * (room // one + more) for more in (0, 1))
    assert checkpoint.cut_note([{"src": source, "mt": fits}, {"src": source, "mt": word}]) == ""
    note = checkpoint.cut_note([{"src": source, "mt": fits}, {"src": source, "mt": cut}])
    assert "COMET cut 1 of 2 segments there" in note
    Path("src.txt").write_text("The bank.\n" * 2, encoding="utf-8")
    for name in ("mt.txt", "ref.txt"):
        Path(name).write_text(f"{word * 600}\nUfer.\n", encoding="utf-8")
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--model", f"{checkpoint.name}?gpus=0"]
    assert main([*words, *(["-r", "ref.txt"] if kind == "regression" else [])]) == 0
    assert "COMET cut 1 of 2 segments there" in capsys.readouterr().err
