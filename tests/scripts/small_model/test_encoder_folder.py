"""The folders before and after the training of the small model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

import encoder_folder

from tests.generation.engines.test_tagger import made


def test_what_ships_is_eight_bits_without_embeddings(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    folder, section = tmp_path / "small", {"embeddings": encoder_folder.BASE, "score": {"total": 0.5}}
    folder.mkdir()
    (folder / "hparams.yaml").write_text("class_identifier: mbr_esd_metric\n")
    encoder_folder.pack([made(tmp_path / "run")], folder, section)
    assert sorted(one.name for one in folder.iterdir()) == ["config.json", "hparams.yaml", "model.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert config["mbr_esd_metric"] == section
    assert not set(encoder_folder._OF_THE_RUN) & set(config)
    state = load_file(folder / "model.safetensors")
    assert encoder_folder.WORDS_OF_BERT not in state
    scaled = [name.removesuffix(".scale") for name in state if name.endswith(".scale")]
    assert scaled
    for name, values in state.items():
        assert values.dtype == (torch.int8 if name in scaled else torch.float32 if ".scale" in name else torch.float16)


def test_several_models_become_their_mean(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    first, second = made(tmp_path / "first"), made(tmp_path / "second")
    state = load_file(second / "model.safetensors")
    before = state["classifier.bias"].clone()
    state["classifier.bias"] = before + 1
    save_file(state, second / "model.safetensors", metadata={"format": "pt"})
    encoder_folder.pack([first, second], tmp_path / "small", {})
    mean = load_file(tmp_path / "small" / "model.safetensors")["classifier.bias"].float()
    assert mean.tolist() == pytest.approx((before + 0.5).tolist(), abs=1e-3)


@pytest.mark.model
def test_the_base_reads_related_sentences_alike(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from mbr_esd_metric.generation.embedded import EMBEDDED, _download

    encoder_folder.write_base(_download(EMBEDDED[encoder_folder.BASE], tmp_path), tmp_path / "base")
    model, tokenizer = (one.from_pretrained(tmp_path / "base") for one in (AutoModel, AutoTokenizer))

    def vector(text: str) -> torch.Tensor:
        with torch.inference_mode():
            return model(**tokenizer(f"query: {text}", return_tensors="pt")).last_hidden_state[0].mean(0)

    def cosine(one: str, other: str) -> float:
        return float(torch.cosine_similarity(vector(one), vector(other), dim=0))

    assert cosine("Good morning to you", "Guten Morgen") > cosine("Good morning to you", "Der Zug ist spät") + 0.05
