"""Writes the GGUF file of the demo model, a Llama, as a folder that every version of transformers reads.

Weights are dequantised to bfloat16. The tokenizer file is built here, from the vocabulary: the one that transformers
itself derives from a GGUF file depends on the version of transformers, and loses spaces when another version reads it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import MissingDependencyError

if TYPE_CHECKING:
    from gguf import GGUFReader

#: GGUF tensor -> transformers parameter.
_PARAMETERS = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
#: GGUF's type of tokens that no text contains.
_CONTROL = 3


def write_folder(model: Path, folder: Path) -> None:
    """Write weights, configuration and tokenizer of a GGUF file into a folder."""
    try:
        import gguf
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        raise MissingDependencyError(error.name or "torch", "transformers", "an embedded model") from None

    reader = gguf.GGUFReader(model)
    config = _config(reader)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for tensor in reader.tensors:
        layer, name = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", tensor.name).groups()  # type: ignore[union-attr]
        values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        if name in heads:
            # Rotary embedding rotates two halves together; llama.cpp stores their rows by turns.
            values = values.unflatten(0, (heads[name], -1, 2)).transpose(1, 2).reshape(values.shape)
        prefix = "model." if layer is None else f"model.layers.{layer}."
        tensors[f"{prefix}{_PARAMETERS[name]}.weight"] = values.to(torch.bfloat16).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _write(folder / "config.json", config)
    _write(folder / "generation_config.json", {key: config[key] for key in config if key.endswith("_token_id")})
    types = _value(reader, "tokenizer.ggml.token_type")
    tokens = {i: token for i, token in enumerate(_value(reader, "tokenizer.ggml.tokens")) if types[i] == _CONTROL}
    _write(folder / "tokenizer.json", _tokenizer(reader, tokens))
    roles = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
        "chat_template": _value(reader, "tokenizer.chat_template"),
        **{f"{role}_token": tokens[_value(reader, f"tokenizer.ggml.{name}_token_id")] for role, name in roles.items()},
    }
    _write(folder / "tokenizer_config.json", settings)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _value(reader: GGUFReader, key: str) -> Any:
    """A value of the file's metadata."""
    return reader.fields[key].contents()


def _config(reader: GGUFReader) -> dict[str, Any]:
    """The content of config.json. Its order must never change, because a folder is identified by its content."""
    width, heads = _value(reader, "llama.embedding_length"), _value(reader, "llama.attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "bos_token_id": _value(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": _value(reader, "tokenizer.ggml.eos_token_id"),
        "pad_token_id": _value(reader, "tokenizer.ggml.padding_token_id"),
        "head_dim": width // heads,
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": _value(reader, "llama.feed_forward_length"),
        "max_position_embeddings": _value(reader, "llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": _value(reader, "llama.block_count"),
        "num_key_value_heads": _value(reader, "llama.attention.head_count_kv"),
        "rms_norm_eps": round(_value(reader, "llama.attention.layer_norm_rms_epsilon"), 10),
        "rope_theta": _value(reader, "llama.rope.freq_base"),
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "vocab_size": len(_value(reader, "tokenizer.ggml.tokens")),
    }


def _tokenizer(reader: GGUFReader, special: dict[int, str]) -> dict[str, Any]:
    """Byte-level BPE that splits numbers into single digits, in the format of the `tokenizers` library."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": token, **flags} for i, token in special.items()],
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate(_value(reader, "tokenizer.ggml.tokens"))},
            "merges": [merge.split(" ") for merge in _value(reader, "tokenizer.ggml.merges")],
        },
    }
