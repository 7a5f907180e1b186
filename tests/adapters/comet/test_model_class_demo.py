"""The stock `comet-score --model mbr-esd-demo` on real translations: sampled, killed, resumed, taken from the store."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from tests.helpers.real_server import comet_score_goes_on_after_kills


@pytest.mark.comet
@pytest.mark.model
def test_real_translations(ted_pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translations = {source: text for source, text in ted_pairs if len(source) > 25}
    pairs = sorted(translations.items(), key=lambda pair: (len(pair[0]), pair[0]))[:4]
    # The command is another process; what this one compares with it is all in the store.
    monkeypatch.setattr(TransformersEngine, "load", Mock(side_effect=AssertionError("a model is loaded")))
    # The same settings as the card's, but for a limit that most answers keep and that makes the test half as long.
    comet_score_goes_on_after_kills("mbr-esd-demo?max_tokens=64&lp=en-de", pairs, 16, tmp_path)
    (rows,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8")).values()
    assert [(row["src"], row["mt"]) for row in rows] == pairs
    for row in rows:
        assert (row["COMET"] == 1) == ("errors" not in row)
        for error in row.get("errors", ()):
            assert error["text"] == row["mt"][error["start"] : error["end"]] != ""
            assert error["severity"] in ("major", "minor")
            assert 0 < error["confidence"] <= 1
