"""The small model's card: what ships with it, and that it scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.generation.embedded import EMBEDDED

FOLDER = Path(__file__).parents[2] / "mbr_esd_metric" / "small"
WEIGHTS = FOLDER / "model.safetensors"
needs_weights = pytest.mark.skipif(not WEIGHTS.is_file(), reason=f"{WEIGHTS} is not there")


@needs_weights
def test_its_weights_are_small_and_its_embeddings_are_known() -> None:
    assert WEIGHTS.stat().st_size < 24e6
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    assert config["mbr_esd_metric"]["embeddings"] in EMBEDDED
    assert {"ok", "minor", "major"} <= set(config["label2id"])


@needs_weights
@pytest.mark.model
def test_it_scores(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    metric = load_metric(f"mbr-esd-small?n=4&store={tmp_path / 'store'}")
    segments = [
        {"src": "The house is big.", "mt": "Das Haus ist groß."},
        {"src": "The house is big.", "mt": "Das Xqz brr Haus bin gegroßt habbel."},
        {"src": "The house is big.", "mt": "The house is big."},
        {"src": "The house is big. Nobody has lived there for twenty years.", "mt": "Das Haus ist groß."},
    ]
    done = metric.predict(segments, progress_bar=False)
    assert (done.metadata.valid, done.metadata.invalid) == ([4] * 4, [0] * 4)
    assert "format:tags" in done.metadata.signature
    assert all(0 <= score <= 1 for score in done.scores)
    assert done.scores[0] == max(done.scores)
    blank = [{"src": "", "mt": ""}, {"src": "The house is big.", "mt": " "}]
    assert metric.predict(blank, progress_bar=False).scores == [1, 0]
