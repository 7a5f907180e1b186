"""`mbr-esd score` with COMET's own checkpoints: real classes with random weights, through COMET's own code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions
from tests.helpers.comet_checkpoint import make_checkpoint
from tests.helpers.comet_commands import DATA, SOURCES, TRANSLATIONS, write
from tests.helpers.command import Command

pytestmark = pytest.mark.comet


@pytest.fixture
def files(workdir: Path) -> Path:
    pytest.importorskip("comet.models", reason="unbabel-comet is not installed")
    for name in ("src.txt", "mt.txt", "ref.txt"):
        shutil.copy(DATA / name.replace("ref", "mt"), name)
    return workdir


@pytest.mark.parametrize("kind", ["xcomet", "unified", "regression"])
def test_scores_are_those_of_comet_score(files: Path, kind: str, mbr_esd: Command) -> None:
    import comet

    checkpoint = str(make_checkpoint(files / "toy", kind))
    score = f"score -s src.txt -t mt.txt --quiet --model {checkpoint}?gpus=0"
    references = "-r ref.txt" if kind == "regression" else ""
    if references:
        assert "needs references; specify them with -r FILE" in mbr_esd(score, status=1).err
    printed = mbr_esd(score, references, "--to_json out.json").out.splitlines()
    rows = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]

    samples = [{"src": s, "mt": t, "ref": t} for s, t in zip(SOURCES, TRANSLATIONS, strict=True)]
    if not references:
        samples = [{"src": sample["src"], "mt": sample["mt"]} for sample in samples]
    model = comet.load_from_checkpoint(checkpoint).half()  # as comet-score does, on a CPU as well
    expected = model.predict(samples, batch_size=16, gpus=0, progress_bar=False)
    assert [row["COMET"] for row in rows] == pytest.approx(expected.scores, abs=1e-6)
    assert printed[-2] == f"mt.txt\tscore: {sum(expected.scores) / 3:.4f}"
    mbr_esd(f"{score}&dtype=float32", references, "--to_json full.json")
    full = json.loads(Path("full.json").read_text(encoding="utf-8"))["mt.txt"]
    assert [row["COMET"] for row in full] != [row["COMET"] for row in rows]
    spans = expected.metadata.error_spans if kind == "xcomet" else [None] * 3
    assert [row.get("errors") for row in rows] == spans


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("xcomet-xl", "unknown model 'xcomet-xl'; did you mean 'Unbabel/XCOMET-XL'"),
        ("Unbabel/XCOMET-XL?dtype=int8", "dtype=int8: give float16 or float32"),
        ("Unbabel/XCOMET-XL?gpu=1", "unknown option of a COMET checkpoint 'gpu'"),
        ("Unbabel/XCOMET-XL --dry-run", "--dry-run"),
        ("Unbabel/XCOMET-XL --documents src.txt", "--documents"),
        ("mbr-esd-demo -r ref.txt", "--references"),
    ],
)
def test_what_a_model_does_not_take_is_refused(files: Path, model: str, message: str, mbr_esd: Command) -> None:
    assert message in mbr_esd("score -s src.txt -t mt.txt --model", model, status=1).err


@pytest.mark.parametrize("kind", ["xcomet", "unified", "regression"])
def test_texts_that_comet_cuts_are_counted(files: Path, kind: str, mbr_esd: Command) -> None:
    """At the very position: what the note calls cut is what COMET's own tokenizer shortens."""
    checkpoint = CometCheckpoint(str(make_checkpoint(files / "toy", kind)), CometOptions(8, 0))
    encoder, word = checkpoint.model.encoder, "bank "
    room = encoder.max_positions - (4 if kind == "regression" else 5)
    one = len(encoder.tokenizer(word, add_special_tokens=False)["input_ids"])
    source = "" if kind != "regression" else word
    fits, cut = (word * (room // one + more) for more in (0, 1))
    assert checkpoint.cut([{"src": source, "mt": fits}, {"src": source, "mt": word}]) == 0
    assert checkpoint.cut([{"src": source, "mt": fits}, {"src": source, "mt": cut}]) == 1
    write("src.txt", "The bank.", "The bank.")
    for name in ("mt.txt", "ref.txt"):
        write(name, word * 600, "Ufer.")
    references = "-r ref.txt" if kind == "regression" else ""
    message = mbr_esd(f"score -s src.txt -t mt.txt --model {checkpoint.name}?gpus=0", references).err
    assert "COMET cut 1 of 2 segments there" in message
