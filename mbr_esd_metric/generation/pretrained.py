"""Engines with a model in this process: identity, requirements, and loading with transformers, with merged adapters."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from mbr_esd_metric.errors import EngineError, require
from mbr_esd_metric.files.streams import file_digest
from mbr_esd_metric.generation.embedded import made_folder, with_weights
from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS, Engine, EngineOptions, Request
from mbr_esd_metric.generation.store import read_cache, write_cache

#: The environment variable of OpenMP for waiting threads, read when torch loads its OpenMP library.
POLICY = "OMP_WAIT_POLICY"
#: Arguments of vLLM that change candidates. They are part of the store's key and of the name of a served model.
ANSWER_ARGUMENTS = frozenset(
    {
        *("calculate_kv_scales", "kv_cache_dtype", "kv_cache_dtype_skip_layers", "quantization", "quantization_config"),
        *("dtype", "hf_overrides", "load_format", "model_impl", "revision", "code_revision", "speculative_config"),
        *("chat_template", "tokenizer", "tokenizer_mode", "tokenizer_revision", "reasoning_parser"),
        *("generation_config", "override_generation_config", "logits_processors", "logprobs_mode"),
    }
)
#: Suffixes of files in a model or adapter folder that can change the model's output.
_SUFFIXES = {".safetensors", ".onnx", ".bin", ".json", ".model", ".txt", ".jinja"}
#: Held while a model is loaded or runs: transformers patches torch in the whole process while it loads a model, and the
#: number of torch's threads is a setting of the process.
TORCH = threading.RLock()


class PretrainedEngine(Engine):
    """An engine with a model in this process, loaded with transformers unless overridden."""

    extra: ClassVar[str] = "transformers"

    def required(self) -> tuple[tuple[str, ...], str]:
        """The packages that this model needs, and the extra of this package that installs them."""
        return self.packages, self.extra

    def check(self) -> None:
        """Raise `EngineError` if a package is missing or too old, or the model is neither a hub id nor a model
        folder."""
        packages, extra = self.required()
        for package in packages:
            require(package, extra, f"engine={self.name}")
        if "transformers" in packages:
            version = importlib.metadata.version("transformers")
            if tuple(int(part) for part in version.split(".")[:2]) < (4, 57):
                fix = "pip install 'transformers>=4.57'"
                raise EngineError(f"engine={self.name} needs transformers 4.57 or later, not {version}: {fix}")
        model, folder = self.options.model, Path(self.options.model)
        if self.options.adapter is not None:
            check_adapter(self.options.adapter)
        if folder.is_dir():
            if not (folder / "config.json").is_file():
                raise EngineError(f"{folder} is not a model folder: it has no config.json")
        elif folder.exists() or folder.is_absolute() or model.count("/") != 1 or model.startswith("."):
            raise EngineError(f"model={model} is neither a folder nor a hub id such as google/gemma-3-4b-it")

    @cached_property
    def problem(self) -> str | None:
        options = self.options
        try:
            self.check()
            room, place, fix = self.room()
        except EngineError as error:
            return str(error)
        size = options.weights_gb * (2 if options.dtype == "float32" else 1)
        if size * 1e9 < room:
            return None
        have = f"{room / 1e9:.0f} GB of {place}"
        return f"{options.model} needs {size:.0f} GB for its weights, but there are only {have}; {fix}"

    def room(self) -> tuple[float, str, str]:
        """The memory available for weights in bytes, the kind of memory, and a fix if it is insufficient."""
        if not self.options.weights_gb:
            return math.inf, "", ""
        fix = "use a machine with more memory, a smaller model, or engine=server"
        if "torch" not in self.required()[0]:
            return memory() or math.inf, "memory", fix
        import torch

        if self.options.device == "cpu" or not torch.cuda.is_available():
            return memory() or math.inf, "memory", fix
        free = sum(torch.cuda.mem_get_info(number)[0] for number in range(torch.cuda.device_count()))
        return free, "free GPU memory", fix

    @cached_property
    def model(self) -> str:
        return model_name(self.options)

    @cached_property
    def identity(self) -> Mapping[str, str]:
        return {"engine": self.name, **model_identity(with_weights(self.options))}


def model_identity(options: EngineOptions) -> dict[str, str]:
    """Model, revision, adapter, dtype and the relevant arguments of vLLM. Folders are identified by their content, so
    they can be moved."""
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
    """A name that identifies the model, used by `mbr-esd serve` and in signatures.

    It consists of the hub id, with ``@REVISION`` if specified, or the name of the folder and eight digits of the
    SHA-256 of its content. An adapter is appended in the same way, as ``+ADAPTER``, and arguments of vLLM that change
    candidates as ``@KEY:VALUE``.
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
    """Raise `EngineError` if the adapter is not a folder."""
    if not Path(path).is_dir():
        raise EngineError(f"adapter={path} is not a folder; specify the folder that contains adapter_config.json")


def _digest(folder: Path) -> str:
    """SHA-256 of the model files in a folder and their names; cached until the size or date of a file changes."""
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


def prompt_tokens(tokenizer: Any, request: Request) -> list[int]:
    """The tokens of a request, with the model's chat template."""
    tokens: list[int] = tokenizer.apply_chat_template(
        request.messages, add_generation_prompt=True, return_dict=False, **CHAT_TEMPLATE_ARGUMENTS
    )
    return tokens


def load_merged(options: EngineOptions) -> tuple[Any, Any]:
    """The language model with its merged adapter, and its tokenizer."""
    wait_passively()
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    with loading(options):
        config = AutoConfig.from_pretrained(options.model, revision=options.revision)
        # torch's fused attention does not support soft-capped scores, as in Gemma 2.
        capped = getattr(config.get_text_config(), "attn_logit_softcapping", None) is not None
        tokenizer = AutoTokenizer.from_pretrained(options.model, revision=options.revision)
        model = AutoModelForCausalLM.from_pretrained(
            options.model,
            revision=options.revision,
            dtype=options.dtype if options.dtype == "auto" else getattr(torch, options.dtype),
            attn_implementation="eager" if capped else None,
            **placement(options.device),
        )
        if options.adapter is not None:
            require("peft", "transformers", "adapter=PATH")
            from peft import PeftModel

            with warnings.catch_warnings():  # raised by peft's own use of transformers
                warnings.filterwarnings("ignore", ".*is_gradient_checkpointing.* is deprecated", FutureWarning)
                model = PeftModel.from_pretrained(model, options.adapter, low_cpu_mem_usage=True).merge_and_unload()
        return model.eval(), tokenizer


def in_fast_type(model: Any, options: EngineOptions) -> Any:
    """The model, converted to float32 if `dtype` is "auto", the processor has no bfloat16 instructions (which makes
    bfloat16 six times slower), and float32 needs at most half of the memory."""
    import torch

    if options.dtype != "auto" or model.device.type != "cpu" or model.dtype != torch.bfloat16 or bf16_works("cpu"):
        return model
    fits = 4 * sum(p.numel() for p in model.parameters()) <= (memory() or 0) / 2
    return model.float() if fits else model


def bf16_works(device: str) -> bool:
    """Whether the GPU ("cuda") or the processor (any other value) supports bfloat16."""
    import torch

    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@contextmanager
def loading(options: EngineOptions) -> Iterator[None]:
    """Disable the progress bars of transformers, and convert its errors to `EngineError` with a fix."""
    import transformers

    quiet = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        with torch_in_use(options.model):
            yield
    except EngineError:
        raise
    except Exception as error:  # transformers' errors for a damaged or unknown model have no common base
        fix = (
            "the folder must contain a complete model: config.json, the tokenizer and the weights (*.safetensors)"
            if os.path.isdir(options.model)
            else f"a gated model needs its licence accepted at https://huggingface.co/{options.model}, then `hf auth "
            f"login`; without network use model=FOLDER, which `hf download {options.model} --local-dir FOLDER` creates "
            "elsewhere"
        )
        raise EngineError(
            f"cannot load {options.model}: {' '.join(str(error).split())[:300]}; check model= and adapter= in the "
            f"model's options, and the versions (mbr-esd models --check); {fix}"
        ) from error
    finally:
        if quiet:
            transformers.utils.logging.enable_progress_bar()


def placement(device: str) -> dict[str, Any]:
    """The arguments that load a model onto the GPUs, if there are any and `device` is not "cpu"."""
    import torch

    if device == "cpu" or not torch.cuda.is_available():
        return {}
    if importlib.util.find_spec("accelerate") is None:
        raise EngineError("a model on GPUs needs the package accelerate; install it with: pip install accelerate")
    return {"device_map": "balanced" if torch.cuda.device_count() > 1 else "cuda"}


@contextmanager
def torch_in_use(what: str) -> Iterator[None]:
    """Hold `TORCH`, and convert out-of-memory errors of torch and Python to `EngineError` with the processed item."""
    import torch

    try:
        with TORCH:
            yield
    except Exception as error:
        words = ("allocate memory", "not enough memory")
        if not isinstance(error, (torch.OutOfMemoryError, MemoryError)) and not any(one in str(error) for one in words):
            raise
        raise EngineError(
            f"out of memory while processing {what}; close other programs, set dtype=bfloat16, or use a server "
            "(engine=server)"
        ) from error


def memory() -> int | None:
    """The memory of this machine in bytes; None if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def merged_folder(options: EngineOptions) -> Path:
    """The folder of the model with its merged adapter, as used by engine=transformers; created once."""

    def make(folder: Path) -> None:
        model, tokenizer = load_merged(options)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    key = hashlib.sha256(json.dumps(model_identity(options), sort_keys=True).encode()).hexdigest()[:16]
    return made_folder(f"merged-{key}", make, f"{2 * options.weights_gb:.1f} GB")


def wait_passively() -> None:
    """Make torch's threads sleep while they wait, unless the user set a policy.

    By default they spin, which made sampling ten times slower when another process used one of two cores (measured).
    ``comet-score`` loads torch before this package, when it is too late for the environment variable. Then one more
    team of threads is started that sleeps until the program ends, because GNU's OpenMP library spins less if a program
    has more threads than cores (``GOMP_SPINCOUNT`` in its manual).
    """
    if POLICY in os.environ:
        return
    os.environ[POLICY] = "passive"
    torch = sys.modules.get("torch")
    if torch is None:
        return
    ready = threading.Event()

    def hold() -> None:
        torch.ones(1 << 18).add_(1)  # large enough for all threads of a team
        ready.set()
        threading.Event().wait()

    threading.Thread(target=hold, name="mbr-esd-parked", daemon=True).start()
    ready.wait(10)
