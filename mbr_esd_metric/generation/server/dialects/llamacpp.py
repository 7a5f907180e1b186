"""`dialect=llamacpp`: llama.cpp's server, with the grammar written as GBNF.

The server first draws a token from the whole distribution and applies the grammar only if it forbids that token. Its
log-probabilities are over the whole vocabulary. So its candidates come from another distribution than vLLM's, and it
has no log-probabilities of the kind that decisions need. Its samplers run in the order of the request. Min-p,
which is on by default there, is off unless it is asked for.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from mbr_esd_metric.generation.base import CHAT_TEMPLATE_ARGUMENTS
from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, Dialect, messages
from mbr_esd_metric.generation.server.gbnf import gbnf

#: Seeds have 32 bits there, and the highest one means "any".
_SEEDS = 1 << 31


class LlamacppDialect(Dialect):
    """GBNF grammar, n, seeds that count up within a request, top-k."""

    name: ClassVar[str] = "llamacpp"
    can: ClassVar[Capabilities] = Capabilities("gbnf", n=True, seed=True, top_k=True, logprobs=False, min_p=True)
    field: ClassVar[str] = "grammar"
    owners: ClassVar[frozenset[str]] = frozenset({"llamacpp"})

    def body(self, ask: Ask) -> dict[str, Any]:
        """As llama.cpp's server documents it."""
        sampling = ask.sampling
        return {
            "model": ask.model,
            "messages": messages(ask.request.prompt),
            "n": ask.n,
            "seed": ask.seed % _SEEDS,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "samplers": ["top_k", "temperature", *(["min_p"] if sampling.min_p else []), "top_p"],
            "grammar": _grammar(ask.request.grammar),
            "chat_template_kwargs": dict(CHAT_TEMPLATE_ARGUMENTS),
        }


@functools.lru_cache(maxsize=64)
def _grammar(expression: str) -> str:
    return gbnf(expression)
