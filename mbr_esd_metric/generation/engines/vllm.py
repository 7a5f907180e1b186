"""`engine=vllm`: vLLM (0.32 and 0.33) in this process; and the flags of `mbr-esd serve`, which give the same
candidates."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from mbr_esd_metric.core.decision import Candidate, TokenLogprobs
from mbr_esd_metric.errors import RESUME, EngineError
from mbr_esd_metric.generation.embedded import with_weights
from mbr_esd_metric.generation.engine import DEFAULT_CONTEXT, EngineOptions, Generated, Request, Sampling
from mbr_esd_metric.generation.pretrained import POLICY, PretrainedEngine, memory, merged_folder, prompt_tokens
from mbr_esd_metric.messages import first_of

#: llguidance supports all regular expressions used here, and compiles them in milliseconds, even for grounded spans.
BACKEND = "guidance"
#: Environment variables for vLLM's CPU build, which reserves half of the memory by default.
CPU_ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "2"}
#: The maximum number of submitted sequences: more than vLLM runs concurrently, so that its queue is never empty.
SEQUENCES = 4096


class VllmEngine(PretrainedEngine):
    """vLLM on the GPUs of this machine, or its CPU build."""

    name: ClassVar[str] = "vllm"
    description: ClassVar[str] = "vLLM in this process"
    packages: ClassVar[tuple[str, ...]] = ("vllm",)
    extra: ClassVar[str] = "vllm"
    _llm: Any = None
    _lora: Any = None

    def load(self) -> None:
        if self._llm is not None:
            return
        self.check()
        os.environ.setdefault(POLICY, "passive")
        for name, value in CPU_ENVIRONMENT.items() if is_cpu_build() else ():
            os.environ.setdefault(name, value)
        options = merged_where_slow(with_weights(self.options))
        from vllm import LLM

        lora: dict[str, Any] = {}
        if options.adapter is not None:
            from vllm.lora.request import LoRARequest

            lora = {"enable_lora": True, "max_lora_rank": lora_rank(options.adapter)}
            self._lora = LoRARequest("adapter", 1, options.adapter)
        try:
            self._llm = LLM(**_engine_arguments(options), **lora)
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            fix = "If memory is short: vllm=tensor_parallel_size:GPUS, or another model"
            raise EngineError(
                f"vLLM cannot load {options.model}: {' '.join(str(error).split())[:300]}. {fix}"
            ) from error
        self._context = int(self._llm.llm_engine.model_config.max_model_len)

    def room(self) -> tuple[float, str, str]:
        if is_cpu_build():
            return 0.9 * (memory() or math.inf), "memory", "use a server with GPUs (engine=server)"
        import torch

        if not torch.cuda.is_available():
            raise EngineError("vLLM found no GPU; install its CPU build (vllm-cpu), or use engine=server")
        gpus = min(tensor_parallel(self.options), torch.cuda.device_count())
        have = 0.9 * gpus * torch.cuda.get_device_properties(0).total_memory
        return have, f"memory on {gpus} GPU(s)", "use more of them (vllm=tensor_parallel_size:GPUS)"

    @property
    def starts_late(self) -> bool:
        """Whether the model is small and loads in minutes, as in the CPU build (evidence/engines.md)."""
        return 0 < self.options.weights_gb < 1 and is_cpu_build()

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        """Sample all requests. The samples of a request are yielded as soon as it is complete, unlike with
        `LLM.generate`, which returns when all requests are complete. Prompts that are too long are reported as an error
        at the end."""
        self.load()
        engine = self._llm.llm_engine
        waiting, numbers = iter(requests), itertools.count()
        running: dict[str, Request] = {}
        too_long: list[str] = []
        sequences = 0
        try:
            while True:
                while sequences < SEQUENCES and (request := next(waiting, None)) is not None:
                    tokens = prompt_tokens(self._llm.get_tokenizer(), request)
                    if (length := len(tokens) + sampling.max_tokens) > self._context:
                        fix = f"more than the context length {self._context}; set vllm=max_model_len:{length}"
                        too_long.append(f"{request.label}: prompt and answer may have {length} tokens, {fix}")
                        continue
                    name, prompt = str(next(numbers)), {"prompt_token_ids": tokens}
                    engine.add_request(name, prompt, sampling_parameters(request, sampling), lora_request=self._lora)
                    running[name] = request
                    sequences += request.n
                if not running:
                    break
                for output in engine.step():
                    if output.finished:
                        request = running.pop(output.request_id)
                        sequences -= request.n
                        samples = tuple(_sample(completion, request) for completion in output.outputs)
                        yield Generated(request.key, request.first, samples)
        except Exception as error:  # vLLM's exceptions, such as for a dead process, have no common base class
            labels = ", ".join(request.label for request in list(running.values())[:3])
            raise EngineError(f"vLLM failed on {labels} ...: {' '.join(str(error).split())[:300]}") from error
        finally:
            if running:
                with suppress(Exception):  # fails if the engine is dead
                    engine.abort_request(list(running))
        if too_long:
            raise EngineError(f"{first_of(too_long, between='; ')}. {RESUME}")

    def close(self) -> None:
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
            self._llm = None


def merged_where_slow(options: EngineOptions) -> EngineOptions:
    """The options; on the CPU build, where adapters are very slow, with the adapter merged into the model."""
    if options.adapter is None or not is_cpu_build():
        return options
    return replace(options, model=str(merged_folder(options)), adapter=None)


def server_flags(options: EngineOptions) -> list[str]:
    """The flags of ``vllm serve`` for a model, without its name and the address."""
    flags: list[str] = []
    for name, value in _engine_arguments(options).items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                flags += [f"--{flag}.{key}", str(inner)]
        elif name != "model" and value is not None:
            flags += [f"--{flag}", str(value)]
    return flags


def _engine_arguments(options: EngineOptions) -> dict[str, Any]:
    """vLLM's engine arguments, with the names of `vllm.LLM` (``vllm serve`` has hyphens instead of underscores)."""
    arguments: dict[str, Any] = {
        "model": options.model,
        "revision": options.revision,
        "dtype": options.dtype,
        "max_model_len": DEFAULT_CONTEXT,
        "enable_prefix_caching": True,
        "structured_outputs_config": {"backend": BACKEND},
        # Otherwise, the model's own generation settings would change top-p and the temperature.
        "generation_config": "vllm",
    }
    for argument in options.vllm:
        key, _, value = argument.partition(":")
        key, _, inner = key.partition(".")
        arguments[key] = {**arguments.get(key, {}), inner: _value(value)} if inner else _value(value)
    if is_cpu_build():
        # With chunked prefill, the CPU build (0.32) crashes on seeded requests ("CPU Generator does not use offset").
        most = max(arguments["max_model_len"], DEFAULT_CONTEXT)
        arguments |= {"enable_chunked_prefill": False, "max_num_batched_tokens": most}
    return arguments


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def sampling_parameters(request: Request, sampling: Sampling) -> Any:
    """vLLM's `SamplingParams` for a request."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    return SamplingParams(
        n=request.n,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        max_tokens=sampling.max_tokens,
        seed=sampling.seed_of(request),
        logprobs=0,
        structured_outputs=StructuredOutputsParams(regex=request.grammar),
        # One output per request, when all of its samples are complete.
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _sample(completion: Any, request: Request) -> Candidate:
    by_token = None
    if request.token_logprobs:
        entries = [at[token] for token, at in zip(completion.token_ids, completion.logprobs, strict=True)]
        pieces = [(entry.decoded_token or "").encode("utf-8", "replace") for entry in entries]
        by_token = TokenLogprobs.spelling(pieces, [float(entry.logprob) for entry in entries], completion.text)
    logprob, truncated = float(completion.cumulative_logprob), completion.finish_reason == "length"
    return Candidate(completion.text, None, logprob, truncated, by_token, tokens=len(completion.token_ids))


def lora_rank(adapter: str) -> int:
    """The smallest rank supported by vLLM that is at least the adapter's. Raises `EngineError` if its rank is
    unknown."""
    path = Path(adapter).expanduser() / "adapter_config.json"
    try:
        rank = int(json.loads(path.read_text(encoding="utf-8"))["r"])
    except (OSError, ValueError, KeyError, TypeError):
        raise EngineError(f"{path} does not contain the adapter's rank; use the folder of a LoRA adapter") from None
    return next((offered for offered in (8, 16, 32, 64, 128, 256, 320, 512) if offered >= rank), rank)


def tensor_parallel(options: EngineOptions) -> int:
    """The number of GPUs per replica of the model."""
    arguments = dict(argument.split(":", 1) for argument in options.vllm)
    return int(arguments.get("tensor_parallel_size", 1))


def is_cpu_build() -> bool:
    """Whether the CPU build of vLLM is installed, without importing it."""
    for name in ("vllm-cpu", "vllm"):
        try:
            return name == "vllm-cpu" or "cpu" in importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return False
