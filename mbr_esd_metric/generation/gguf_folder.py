"""Writes a GGUF file as a folder that every version of transformers reads.

Weights are dequantised to bfloat16. The tokenizer file is built here, from the vocabulary. The tokenizer that
transformers itself derives from a GGUF file depends on the version of transformers, and loses spaces when another
version reads it. It also turns Gemma's into a Unigram model, which splits "Der Hund ging nach Hause und" into 12 pieces
instead of 6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import MissingDependencyError

if TYPE_CHECKING:
    from gguf import GGUFReader

#: GGUF tensor -> transformers parameter, in every architecture; a `{}` stands for the layer.
_PARAMETERS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "blk.{}.attn_norm.weight": "model.layers.{}.input_layernorm.weight",
    "blk.{}.attn_q.weight": "model.layers.{}.self_attn.q_proj.weight",
    "blk.{}.attn_k.weight": "model.layers.{}.self_attn.k_proj.weight",
    "blk.{}.attn_v.weight": "model.layers.{}.self_attn.v_proj.weight",
    "blk.{}.attn_output.weight": "model.layers.{}.self_attn.o_proj.weight",
    "blk.{}.ffn_gate.weight": "model.layers.{}.mlp.gate_proj.weight",
    "blk.{}.ffn_up.weight": "model.layers.{}.mlp.up_proj.weight",
    "blk.{}.ffn_down.weight": "model.layers.{}.mlp.down_proj.weight",
}
_LLAMA = {"blk.{}.ffn_norm.weight": "model.layers.{}.post_attention_layernorm.weight"}
_GEMMA3 = {
    "blk.{}.attn_q_norm.weight": "model.layers.{}.self_attn.q_norm.weight",
    "blk.{}.attn_k_norm.weight": "model.layers.{}.self_attn.k_norm.weight",
    "blk.{}.post_attention_norm.weight": "model.layers.{}.post_attention_layernorm.weight",
    "blk.{}.ffn_norm.weight": "model.layers.{}.pre_feedforward_layernorm.weight",
    "blk.{}.post_ffw_norm.weight": "model.layers.{}.post_feedforward_layernorm.weight",
}
#: GGUF's types of tokens.
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
_MODEL_FILE = "model.safetensors"
_FIRST = ("architectures", "model_type", "attention_bias", "bos_token_id", "eos_token_id", "pad_token_id")


def write_folder(model: Path, folder: Path) -> None:
    """Write weights, configuration and tokenizer of a GGUF file into a folder.

    Raises:
        MissingDependencyError: torch, safetensors or gguf is not installed.
    """
    try:
        import gguf
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        raise MissingDependencyError(error.name or "torch", "transformers", "an embedded model") from None

    reader = gguf.GGUFReader(model)
    architecture = _ARCHITECTURES[field_value(reader, "general.architecture")]
    config = architecture.config(reader)
    tensors = {}
    for tensor in reader.tensors:
        name = parameter_name(reader, tensor.name)
        values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        tensors[name] = architecture.weight(name, values, config).to(torch.bfloat16).contiguous()
    save_file(tensors, folder / _MODEL_FILE, metadata={"format": "pt"})
    # The order must never change, because a folder is identified by its content.
    ordered = {key: config[key] for key in [*_FIRST, *sorted(config.keys() - set(_FIRST))]}
    _write(folder / "config.json", ordered)
    _write(folder / "generation_config.json", {key: config[key] for key in config if key.endswith("_token_id")})
    _write(folder / "tokenizer.json", architecture.tokenizer(reader))
    _write(folder / "tokenizer_config.json", _tokenizer_config(reader))


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def parameter_name(reader: GGUFReader, tensor: str) -> str:
    """What transformers calls a tensor of the file."""
    names = {**_PARAMETERS, **_ARCHITECTURES[field_value(reader, "general.architecture")].parameters}
    layer = "".join(re.findall(r"^blk\.(\d+)\.", tensor))
    return names[re.sub(r"^blk\.\d+\.", "blk.{}.", tensor)].format(layer)


def field_value(reader: GGUFReader, key: str) -> Any:
    """A value of the file's metadata."""
    return reader.fields[key].contents()


def _shape(reader: GGUFReader, architecture: str) -> dict[str, Any]:
    """The settings that every architecture has."""
    return {
        "attention_bias": False,
        "bos_token_id": field_value(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": field_value(reader, "tokenizer.ggml.eos_token_id"),
        "pad_token_id": field_value(reader, "tokenizer.ggml.padding_token_id"),
        "hidden_size": field_value(reader, f"{architecture}.embedding_length"),
        "intermediate_size": field_value(reader, f"{architecture}.feed_forward_length"),
        "max_position_embeddings": field_value(reader, f"{architecture}.context_length"),
        "num_attention_heads": field_value(reader, f"{architecture}.attention.head_count"),
        "num_hidden_layers": field_value(reader, f"{architecture}.block_count"),
        "num_key_value_heads": field_value(reader, f"{architecture}.attention.head_count_kv"),
        "rms_norm_eps": round(field_value(reader, f"{architecture}.attention.layer_norm_rms_epsilon"), 10),
        "rope_theta": field_value(reader, f"{architecture}.rope.freq_base"),
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "vocab_size": len(field_value(reader, "tokenizer.ggml.tokens")),
    }


def _llama_config(reader: GGUFReader) -> dict[str, Any]:
    shape = _shape(reader, "llama")
    return {
        **shape,
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "head_dim": shape["hidden_size"] // shape["num_attention_heads"],
        "hidden_act": "silu",
        "mlp_bias": False,
    }


def _llama_weight(name: str, values: Any, config: Mapping[str, Any]) -> Any:
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for projection, count in heads.items():
        if projection in name:
            # Rotary embedding rotates two halves together; llama.cpp stores their rows by turns.
            pairs = values.unflatten(0, (count, -1, 2))
            values = pairs.transpose(1, 2).reshape(values.shape)
    return values


def _gemma3_config(reader: GGUFReader) -> dict[str, Any]:
    shape = _shape(reader, "gemma3")
    # GGUF does not say this. In all of Gemma 3's text models, every sixth layer attends to all tokens.
    kinds = ["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(shape["num_hidden_layers"])]
    return {
        **shape,
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "attention_dropout": 0.0,
        "head_dim": field_value(reader, "gemma3.attention.key_length"),
        "hidden_activation": "gelu_pytorch_tanh",
        "layer_types": kinds,
        "query_pre_attn_scalar": field_value(reader, "gemma3.attention.key_length"),
        "rope_local_base_freq": 10000.0,
        "rope_scaling": None,
        "sliding_window": field_value(reader, "gemma3.attention.sliding_window"),
    }


def _gemma3_weight(name: str, values: Any, config: Mapping[str, Any]) -> Any:
    # llama.cpp multiplies by the norm's weight; transformers multiplies by the weight plus one.
    return values - 1 if name.endswith("norm.weight") else values


def _special_tokens(reader: GGUFReader) -> dict[int, str]:
    """The control tokens, which no text contains."""
    types = field_value(reader, "tokenizer.ggml.token_type")
    return {i: token for i, token in enumerate(field_value(reader, "tokenizer.ggml.tokens")) if types[i] == _CONTROL}


def _added_tokens(reader: GGUFReader) -> list[dict[str, Any]]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return [{"id": i, "content": token, **flags} for i, token in _special_tokens(reader).items()]


def _byte_level(reader: GGUFReader) -> dict[str, Any]:
    """Byte-level BPE that splits numbers into single digits, in the format of the `tokenizers` library."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": _added_tokens(reader),
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate(field_value(reader, "tokenizer.ggml.tokens"))},
            "merges": [merge.split(" ") for merge in field_value(reader, "tokenizer.ggml.merges")],
        },
    }


def _sentencepiece(reader: GGUFReader) -> dict[str, Any]:
    """SentencePiece's BPE: a space is U+2581, and characters outside the vocabulary are spelled in bytes."""
    begin = _special_tokens(reader)[field_value(reader, "tokenizer.ggml.bos_token_id")]
    first: list[dict[str, Any]] = [
        {"SpecialToken": {"id": begin, "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ]
    number = field_value(reader, "tokenizer.ggml.bos_token_id")
    tokens = field_value(reader, "tokenizer.ggml.tokens")
    return {
        "version": "1.0",
        "added_tokens": _added_tokens(reader),
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": first,
            "pair": [*first, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {begin: {"id": begin, "ids": [number], "tokens": [begin]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": tokens[field_value(reader, "tokenizer.ggml.unknown_token_id")],
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": _merges(
                tokens, field_value(reader, "tokenizer.ggml.scores"), field_value(reader, "tokenizer.ggml.token_type")
            ),
        },
    }


def _merges(tokens: list[str], scores: list[float], types: list[int]) -> list[list[str]]:
    """The merges of a SentencePiece vocabulary: every way to build a token from two others, best token first."""
    known = {token: i for i, token in enumerate(tokens) if types[i] in (_NORMAL, _USER_DEFINED)}
    found = []
    for token, number in known.items():
        ways = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in known and token[i:] in known]
        ways.sort(key=lambda way: (known[way[0]], known[way[1]]))
        found += [(-scores[number], way) for way in ways]
    found.sort(key=lambda item: item[0])
    return [list(way) for _, way in found]


def _tokenizer_config(reader: GGUFReader) -> dict[str, Any]:
    tokens = _special_tokens(reader)
    roles = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    known = reader.fields.get("tokenizer.chat_template")
    # A base model has no template: it reads the text as it is.
    plain = "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": field_value(reader, f"{field_value(reader, 'general.architecture')}.context_length"),
        "clean_up_tokenization_spaces": False,
        "chat_template": known.contents() if known is not None else plain,
        **{
            f"{role}_token": tokens[field_value(reader, f"tokenizer.ggml.{name}_token_id")]
            for role, name in roles.items()
        },
    }


@dataclass(frozen=True)
class _Architecture:
    """How one architecture is written for transformers.

    Attributes:
        parameters: GGUF tensor -> transformers parameter, in addition to those that every architecture has.
        config: returns the content of config.json.
        weight: takes a parameter's name, its values and the configuration; returns the values as transformers wants
            them.
        tokenizer: returns the content of tokenizer.json.
    """

    parameters: Mapping[str, str]
    config: Callable[[Any], dict[str, Any]]
    weight: Callable[[str, Any, Mapping[str, Any]], Any]
    tokenizer: Callable[[Any], dict[str, Any]]


_ARCHITECTURES = {
    "llama": _Architecture(_LLAMA, _llama_config, _llama_weight, _byte_level),
    "gemma3": _Architecture(_GEMMA3, _gemma3_config, _gemma3_weight, _sentencepiece),
}
