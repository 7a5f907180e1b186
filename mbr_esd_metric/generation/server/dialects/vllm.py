"""`dialect=vllm`: vLLM 0.11 and later, the dialect that can do everything.

Two fields of a request are vLLM's own: `top_k` and `structured_outputs`. Temperature, top_p and top_k are always sent,
because the server takes what is missing from the model's own generation settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS
from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, Dialect, messages


class VllmDialect(Dialect):
    """Regular expression, n, seeds that count up within a request, log-probabilities over what the grammar admits."""

    name: ClassVar[str] = "vllm"
    can: ClassVar[Capabilities] = Capabilities("regex", n=True, seed=True, top_k=True, logprobs=True, min_p=True)
    field: ClassVar[str] = "structured_outputs"
    streams: ClassVar[bool] = True
    owners: ClassVar[frozenset[str]] = frozenset({"vllm"})

    @property
    def identity(self) -> Mapping[str, str]:
        """No dialect: candidates of vLLM's server have always been stored under the engine's name alone."""
        return self.reasoning

    def body(self, ask: Ask) -> dict[str, Any]:
        """As vLLM documents it. Sample i of a request is drawn with seed + i."""
        sampling = ask.sampling
        return {
            "model": ask.model,
            "messages": messages(ask.request),
            "n": ask.n,
            "seed": ask.seed,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            **({"min_p": sampling.min_p} if sampling.min_p else {}),
            "logprobs": True,
            "structured_outputs": {"regex": ask.request.grammar},
            "chat_template_kwargs": dict(CHAT_TEMPLATE_ARGUMENTS),
            **self.reasoning,
        }
