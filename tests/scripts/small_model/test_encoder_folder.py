"""The folder that ships after the training of the small model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

import encoder_folder

from tests.generation.engines.test_tagger import made


def test_what_ships_is_the_mean_in_eight_bits_without_embeddings(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    first, second, section = made(tmp_path / "first"), made(tmp_path / "second"), {"score": {"total": 0.5}}
    state = load_file(second / "model.safetensors")
    before = state["classifier.bias"].clone()
    state["classifier.bias"] = before + 1
    save_file(state, second / "model.safetensors", metadata={"format": "pt"})
    encoder_folder.pack([first, second], tmp_path / "small", section)
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    assert config["mbr_esd_metric"] == section
    packed = load_file(tmp_path / "small" / "model.safetensors")
    assert packed["classifier.bias"].tolist() == pytest.approx((before + 0.5).tolist(), abs=1e-3)
    assert encoder_folder.WORDS_OF_BERT not in packed
    scaled = {name.removesuffix(".scale") for name in packed if name.endswith(".scale")}
    assert scaled == {name for name, values in packed.items() if values.dtype == torch.int8} != set()
