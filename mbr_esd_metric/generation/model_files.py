"""What tells models apart: hub id, revision, arguments, and the content of folders, read without loading the model."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.store import read_cache, write_cache

#: vLLM's arguments that change candidates: part of the store's key and of the name of a server's model.
ANSWER_ARGUMENTS = frozenset(
    {
        *("calculate_kv_scales", "kv_cache_dtype", "kv_cache_dtype_skip_layers", "quantization", "quantization_config"),
        *("dtype", "hf_overrides", "load_format", "model_impl", "revision", "code_revision", "speculative_config"),
        *("chat_template", "tokenizer", "tokenizer_mode", "tokenizer_revision", "reasoning_parser"),
        *("generation_config", "override_generation_config", "logits_processors", "logprobs_mode"),
    }
)
#: Files of a model or adapter folder that can change what the model writes.
_SUFFIXES = {".safetensors", ".bin", ".json", ".model", ".txt", ".jinja"}


def model_identity(options: EngineOptions) -> dict[str, str]:
    """Model, revision, adapter and dtype. A folder is identified by its content, so it may be moved."""
    folder = Path(options.model)
    identity = {"model": _digest(folder) if folder.is_dir() else options.model, "dtype": options.dtype}
    if options.revision is not None:
        identity["revision"] = options.revision
    if options.adapter is not None:
        check_adapter(options.adapter)
        identity["adapter"] = _digest(Path(options.adapter))
    if arguments := [one for one in options.vllm if one.partition(":")[0].partition(".")[0] in ANSWER_ARGUMENTS]:
        identity["vllm"] = ",".join(arguments)
    return identity


def model_name(options: EngineOptions) -> str:
    """A name that tells models apart. `mbr-esd serve` offers the model under it, and signatures contain it.

    It is the hub id, with ``@REVISION`` if one is given, or a folder's name and eight digits of its content's SHA-256.
    An adapter is added in the same way, as ``+ADAPTER``, and vLLM's arguments that change candidates as ``@KEY:VALUE``.
    """
    identity = model_identity(options)
    name = options.model
    if name != identity["model"]:
        name = f"{Path(name).resolve().name}-{identity['model'][:8]}"
    if options.revision:
        name += f"@{options.revision}"
    if options.adapter:
        name += f"+{Path(options.adapter).resolve().name}-{identity['adapter'][:8]}"
    if "vllm" in identity:
        name += f"@{identity['vllm']}"
    return name


def check_adapter(path: str) -> None:
    """Raise `EngineError` if the path of an adapter is no folder."""
    if not Path(path).is_dir():
        raise EngineError(f"adapter={path} is no folder; give the folder that holds adapter_config.json")


def _digest(folder: Path) -> str:
    """SHA-256 of a folder's model files and their names; remembered until the size or date of a file changes."""
    files = sorted(p for p in folder.iterdir() if p.suffix in _SUFFIXES and p.is_file())
    seen = [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    memory = f"digests/{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}.json"
    if (entry := read_cache(memory)).get("files") == seen:
        return str(entry["digest"])
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file_digest(file))
    write_cache(memory, {"files": seen, "digest": digest.hexdigest()})
    return digest.hexdigest()


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file's content, however large."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.digest()
