"""The small model's card: what ships with it, under which licence, and that it scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.generation.embedded import EMBEDDED
from mbr_esd_metric.metric.cards import load_card

FOLDER = Path(__file__).parents[2] / "mbr_esd_metric" / "small"


def test_what_ships_with_it() -> None:
    card = load_card("mbr-esd-small")
    adapter = Path(str(card.adapter))
    assert adapter == FOLDER / "adapter"
    assert (adapter / "adapter_model.safetensors").stat().st_size < 20e6
    assert (card.decision.format, card.n, card.temperature) == ("marked-omissions", 16, 1.0)
    assert EMBEDDED[card.model].licence == "Gemma Terms of Use"
    assert not card.calibration, "that of the first edition was learnt on other spans"
    notice = (FOLDER / "NOTICE").read_text(encoding="utf-8")
    assert "Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms" in notice
    terms = (FOLDER / "GEMMA_TERMS.txt").read_text(encoding="utf-8")
    for section in ("Section 1: DEFINITIONS", "Section 3", "Section 4"):
        assert section in terms


def test_models_says_the_licence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    said = capsys.readouterr().out
    assert "mbr-esd-small" in said
    assert "licence Gemma Terms of Use" in said


@pytest.mark.model
def test_it_scores(tmp_path: Path) -> None:
    pytest.importorskip("outlines_core")
    from mbr_esd_metric import load_metric

    metric = load_metric(f"mbr-esd-small?n=4&store={tmp_path / 'store'}")
    segments = [
        {"src": "The house is big.", "mt": "Das Haus ist groß."},
        {"src": "The house is big.", "mt": "Das Xqz brr Haus bin gegroßt habbel."},
        {"src": "The house is big.", "mt": "The house is big."},
        {"src": "The house is big. Nobody has lived there for twenty years.", "mt": "Das Haus ist groß."},
    ]
    done = metric.predict(segments, progress_bar=False)
    assert done.metadata.valid == [4] * 4
    assert done.metadata.invalid == [0] * 4
    assert "format:marked-omissions" in done.metadata.signature
    assert all(0 <= score <= 1 for score in done.scores)
    assert done.scores[0] == max(done.scores)
