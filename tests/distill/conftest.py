"""A tiny causal language model with a chat template, made on the spot."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SENTENCE = "Der schnelle Fuchs springt über den faulen Hund."


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer Llama of random weights and a small byte-level tokenizer."""
    for package in ("torch", "transformers", "trl", "peft", "datasets"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed here; the environment of scripts/constraints-new.txt has it")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    # Words of the prompt, and those of a translation, are tokens: byte by byte, training would take five times as long.
    words = trainers.BpeTrainer(vocab_size=1000, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    raw.train_from_iterator([load_prompt().render("", "Der Hund laut " * 9, "en-de")], words)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )
    folder = tmp_path_factory.mktemp("tiny")
    model.save_pretrained(folder)
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
