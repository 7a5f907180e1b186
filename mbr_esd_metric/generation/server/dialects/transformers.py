"""`dialect=transformers`: ``transformers serve`` of transformers 5.

It has no guidance, and takes the settings as a `generation_config`. It lists the models of its cache, not the one that
it was started with, so the name cannot be checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, messages
from mbr_esd_metric.generation.server.dialects.plain import PlainDialect
from mbr_esd_metric.generation.server.failures import Transient
from mbr_esd_metric.generation.server.http import Http


class TransformersDialect(PlainDialect):
    """Like plain, with top-k and a seed."""

    name: ClassVar[str] = "transformers"
    can: ClassVar[Capabilities] = replace(PlainDialect.can, seed=True, top_k=True)
    reasons_at_a_temperature: ClassVar[bool] = True
    version: ClassVar[int] = 1

    @classmethod
    async def answers(cls, http: Http, address: Address) -> bool:
        """Its OpenAPI description has a path that other servers lack."""
        try:
            value = (await http.get(address, "//openapi.json")).json()
        except Transient:
            return False
        paths = value.get("paths") if isinstance(value, Mapping) else None
        return isinstance(paths, Mapping) and "/load_model" in paths

    async def served(self, http: Http, address: Address) -> list[str] | None:
        """None, because its list lacks the model that it was started with."""
        await http.get(address, "/models")
        return None

    async def slots(self, http: Http, address: Address) -> int | None:
        """One, unless it is started with continuous batching, which it does not say; `concurrency` is for that."""
        return 1

    def body(self, ask: Ask) -> dict[str, Any]:
        """Always with a `generation_config`: without one, the server decodes by the model's own, mostly greedily."""
        sampling = ask.sampling
        config: dict[str, Any] = {"do_sample": not sampling.greedy, "max_new_tokens": sampling.max_tokens}
        if not sampling.greedy:
            config |= {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
        return {
            "model": ask.model,
            "messages": messages(ask.request),
            "seed": ask.seed % (1 << 31),
            "max_tokens": sampling.max_tokens,
            "generation_config": json.dumps(config),
            "chat_template_kwargs": dict(CHAT_TEMPLATE_ARGUMENTS),
        }
