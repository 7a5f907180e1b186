"""`dialect=openai`: OpenAI's own chat completions, and hosted APIs that follow them closely.

A strict JSON schema in `response_format`; no top-k; the seed is "best effort" there. Models that reason first
(`reasoning_effort`) take no temperature and no top-p.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from mbr_esd_metric.generation.base import Sample
from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, Dialect, messages


class OpenaiDialect(Dialect):
    """JSON schema, n where it is taken, a seed."""

    name: ClassVar[str] = "openai"
    can: ClassVar[Capabilities] = Capabilities("schema", n=True, seed=True, top_k=False, logprobs=False)
    field: ClassVar[str] = "response_format"
    reasons_at_a_temperature: ClassVar[bool] = False

    def same_model(self, said: str, asked: str) -> bool:
        """A name stands for its dated snapshots, with or without the maker before it."""
        said, asked = said.rsplit("/", 1)[-1], asked.rsplit("/", 1)[-1]
        return said == asked or re.fullmatch(r"(-\d{4}|[:@]).*", said.removeprefix(asked)) is not None

    def _sample(self, choice: Mapping[str, Any], tokens: int, ask: Ask) -> Sample:
        """A refusal, and what the service's filter cut, were paid for: they count as cut, and are not asked again."""
        said = choice.get("message")
        refusal = said.get("refusal") if isinstance(said, Mapping) else None
        if isinstance(refusal, str) and refusal:
            return Sample(refusal, None, tokens, truncated=True)
        if choice.get("finish_reason") == "content_filter":
            choice = {**choice, "finish_reason": "length"}
        return super()._sample(choice, tokens, ask)

    def body(self, ask: Ask) -> dict[str, Any]:
        """As OpenAI's description of the API has it; `max_completion_tokens` counts the reasoning too."""
        sampling = ask.sampling
        body: dict[str, Any] = {
            "model": ask.model,
            "messages": messages(ask.request.prompt),
            "n": ask.n,
            "seed": ask.seed,
            "max_completion_tokens": sampling.max_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "annotation", "strict": True, "schema": json.loads(ask.request.schema)},
            },
        }
        if self.abilities.sampling:
            body |= {"temperature": sampling.temperature, "top_p": sampling.top_p}
        return body | self.reasoning
