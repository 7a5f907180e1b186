"""A tiny causal language model with a chat template, made on the spot."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.prompting.prompt import load_prompt
from tests.helpers.candidates import answer, record
from tests.helpers.made_tokenizer import byte_level_tokenizer

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ 'user' if m['role'] == 'user' else 'model' }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|model|>{% endif %}"
)
SENTENCE = "Der schnelle Fuchs springt über den faulen Hund."


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer Llama of random weights and a small byte-level tokenizer."""
    for package in ("torch", "transformers", "trl", "peft", "datasets"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed here; the environment of scripts/constraints-new.txt has it")
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    # Words of the prompt, and those of a translation, are tokens: byte by byte, training would take five times as long.
    tokenizer = byte_level_tokenizer([load_prompt().render("", "Der Hund laut " * 9, "en-de")], 1000)
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.pad_token = "<|user|>"
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 4096}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), **sizes, **heads, pad_token_id=1, bos_token_id=2, eos_token_id=0)
    folder = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    """Candidates of a dozen segments, in three language pairs, each with a pair."""
    texts = (answer("Fuchs"), answer("Hund"), answer("faulen"), answer(), answer())
    lps = ("en-de", "ja-de", "zh-de")
    records = [record(f"source {i}", SENTENCE, *texts, number=i, lp=lps[i % 3]) for i in range(12)]
    path = tmp_path / "candidates.jsonl"
    write_records(path, records)
    return path
