"""`dialect=openai`: OpenAI's own chat completions, and hosted APIs that follow them closely.

It takes a strict JSON schema in `response_format`, and no top-k. It promises no more than "best effort" of the seed.
Models that reason first (`reasoning_effort`) take no temperature and no top-p.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, Dialect, messages


class OpenaiDialect(Dialect):
    """JSON schema, a seed, and n where the service takes it."""

    name: ClassVar[str] = "openai"
    can: ClassVar[Capabilities] = Capabilities("schema", n=True, seed=True, top_k=False, logprobs=False)
    field: ClassVar[str] = "response_format"
    streams: ClassVar[bool] = True
    reasons_at_a_temperature: ClassVar[bool] = False

    def same_model(self, said: str, asked: str) -> bool:
        """A name stands for its dated snapshots, with or without the maker before it."""
        said, asked = said.rsplit("/", 1)[-1], asked.rsplit("/", 1)[-1]
        return said == asked or re.fullmatch(r"(-\d{4}|[:@]).*", said.removeprefix(asked)) is not None

    def _sample(self, choice: Mapping[str, Any], tokens: int, ask: Ask) -> Candidate:
        """A refusal, or an answer that was filtered, is paid for: it counts as cut, and is not asked for again."""
        said = choice.get("message")
        refusal = said.get("refusal") if isinstance(said, Mapping) else None
        if isinstance(refusal, str) and refusal:
            return Candidate(refusal, logprob=None, tokens=tokens, truncated=True)
        if choice.get("finish_reason") == "content_filter":
            choice = {**choice, "finish_reason": "length"}
        return super()._sample(choice, tokens, ask)

    def body(self, ask: Ask) -> dict[str, Any]:
        """As OpenAI documents it; `max_completion_tokens` counts the reasoning too."""
        sampling = ask.sampling
        body: dict[str, Any] = {
            "model": ask.model,
            "messages": messages(ask.request),
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
