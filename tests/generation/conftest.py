"""Small models made on the spot: real classes and a real tokenizer with random weights, so that most tests are fast."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.made_tokenizer import WIDTH, byte_level_tokenizer


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that makes, once, the folder of a random model of a given type with given settings."""
    made: dict[str, Path] = {}

    def make(kind: str = "llama", **settings: Any) -> Path:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        name = json.dumps([kind, settings], sort_keys=True)
        if name not in made:
            torch.manual_seed(1)
            sizes = {"vocab_size": WIDTH, "hidden_size": 48, "intermediate_size": 64, "max_position_embeddings": 512}
            sizes |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12}
            tokens = dict.fromkeys(("eos_token_id", "pad_token_id", "bos_token_id"), 0)
            config = AutoConfig.for_model(kind, initializer_range=0.3, **sizes | tokens | settings)
            folder = tmp_path_factory.mktemp(kind)
            AutoModelForCausalLM.from_config(config).float().save_pretrained(folder)
            byte_level_tokenizer().save_pretrained(folder)
            made[name] = folder
        return made[name]

    return make


@pytest.fixture(scope="session")
def tiny(make_model: Callable[..., Path]) -> Path:
    """The folder of a random Llama."""
    return make_model()
