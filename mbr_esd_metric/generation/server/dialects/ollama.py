"""`dialect=ollama`: Ollama's native ``/api/chat``: a JSON schema in `format`, one sample a request.

By default Ollama cuts a prompt that is longer than `num_ctx` without saying so. So the context is always sent, and
cutting is forbidden (`truncate`, `shift`). A reply whose prompt fills the whole context is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.generation.engine import DEFAULT_CONTEXT
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.dialect import (
    Ask,
    Capabilities,
    Dialect,
    Reply,
    checked_text,
    messages,
    names_of,
    usage_of,
)
from mbr_esd_metric.generation.server.failures import Odd, Refused, Transient
from mbr_esd_metric.generation.server.http import Http


class OllamaDialect(Dialect):
    """JSON schema, seed, top-k; no n."""

    name: ClassVar[str] = "ollama"
    can: ClassVar[Capabilities] = Capabilities("schema", n=False, seed=True, top_k=True, logprobs=False)
    field: ClassVar[str] = "format"
    path: ClassVar[str] = "//api/chat"

    @classmethod
    async def answers(cls, http: Http, address: Address) -> bool:
        """It says "Ollama is running" at its root."""
        try:
            return (await http.get(address, "//")).body.strip() == b"Ollama is running"
        except Transient:
            return False

    async def served(self, http: Http, address: Address) -> list[str] | None:
        """As ``/api/tags`` lists them. A request may leave out ``:latest``."""
        names = names_of(await http.get(address, "//api/tags"), "models", "name")
        return [*names, *(name.removesuffix(":latest") for name in names if name.endswith(":latest"))]

    def same_model(self, said: str, asked: str) -> bool:
        return said.removesuffix(":latest") == asked.removesuffix(":latest")

    def body(self, ask: Ask) -> dict[str, Any]:
        """As Ollama documents it."""
        sampling, effort = ask.sampling, self.settings.reasoning_effort
        return {
            "model": ask.model,
            "messages": messages(ask.request),
            "stream": False,
            "think": False if effort in (None, "none") else effort,
            "format": json.loads(ask.request.schema),
            "truncate": False,
            "shift": False,
            "options": {
                "seed": ask.seed % (1 << 31),
                "temperature": sampling.temperature,
                "top_k": sampling.top_k,
                "top_p": sampling.top_p,
                "min_p": 0.0,
                "num_predict": sampling.max_tokens,
                "num_ctx": self._context,
            },
        }

    def read(self, value: object, ask: Ask) -> Reply:
        """One sample; see `Dialect.read`."""
        if not isinstance(value, Mapping):
            raise Odd("the reply is no object")
        self._check_model(value, ask)
        said, reason = value.get("message"), value.get("done_reason")
        text = checked_text(said.get("content") if isinstance(said, Mapping) else None)
        if value.get("done") is not True or reason not in ("stop", "length"):
            raise Odd(f"a candidate is cut (done_reason {excerpt(str(reason), 40)})")
        usage = usage_of(value, "prompt_eval_count", "eval_count")
        if usage is not None and usage.prompt >= self._context:
            raise Refused(
                f"too long for the context of {self._context} tokens that was asked for; ask for a longer one "
                "(max_model_len=TOKENS)"
            )
        tokens = usage.completion if usage is not None else 0
        return Reply((Candidate(self.answer(text), logprob=None, tokens=tokens, truncated=reason == "length"),), usage)

    @property
    def _context(self) -> int:
        return self.settings.context or DEFAULT_CONTEXT
