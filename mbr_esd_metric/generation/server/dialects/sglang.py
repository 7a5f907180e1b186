"""`dialect=sglang`: SGLang's server.

No seed is sent: the server uses one only in its deterministic mode, and there all samples of a request are the same.
Its log-probabilities are taken after the temperature, not at temperature 1, so they are not used.
"""

from __future__ import annotations

from typing import Any, ClassVar

from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS
from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, Dialect, messages


class SglangDialect(Dialect):
    """Regular expression and n."""

    name: ClassVar[str] = "sglang"
    can: ClassVar[Capabilities] = Capabilities("regex", n=True, seed=False, top_k=True, logprobs=False, min_p=True)
    field: ClassVar[str] = "regex"
    owners: ClassVar[frozenset[str]] = frozenset({"sglang"})

    def body(self, ask: Ask) -> dict[str, Any]:
        """Its own fields are `regex` and `top_k` (-1 keeps all)."""
        sampling = ask.sampling
        return {
            "model": ask.model,
            "messages": messages(ask.request),
            "n": ask.n,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k or -1,
            "min_p": sampling.min_p,
            "regex": ask.request.grammar,
            "chat_template_kwargs": dict(CHAT_TEMPLATE_ARGUMENTS),
            **self.reasoning,
        }
