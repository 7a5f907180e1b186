"""`dialect=llamacpp`: llama.cpp's server, with the grammar written as GBNF.

The server first draws a token from the whole distribution and applies the grammar only if it forbids that token. Its
log-probabilities are over the whole vocabulary. So its candidates come from another distribution than vLLM's, and it
has no log-probabilities of the kind that decisions need. Its samplers run in the order of the request. Min-p,
which is on by default there, is off unless it is asked for. The grammar takes a token that is special to the model,
such as ``<file_sep>``, for the characters of its name, and the text then lacks them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS
from mbr_esd_metric.generation.server import numbers
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, Dialect, Reply, messages
from mbr_esd_metric.generation.server.gbnf import gbnf
from mbr_esd_metric.generation.server.http import Http

#: Seeds have 32 bits there, and the highest one means "any".
_SEEDS = 1 << 31


class LlamacppDialect(Dialect):
    """GBNF grammar, n, seeds that count up within a request, top-k."""

    name: ClassVar[str] = "llamacpp"
    can: ClassVar[Capabilities] = Capabilities("gbnf", n=True, seed=True, top_k=True, logprobs=False, min_p=True)
    field: ClassVar[str] = "grammar"
    streams: ClassVar[bool] = True
    loses_tokens: ClassVar[bool] = True
    owners: ClassVar[frozenset[str]] = frozenset({"llamacpp"})

    async def slots(self, http: Http, address: Address) -> int | None:
        """Its ``/props`` say so."""
        value = (await http.get(address, "//props")).json()
        return numbers.count(value.get("total_slots")) if isinstance(value, Mapping) else None

    def body(self, ask: Ask) -> dict[str, Any]:
        """As llama.cpp's server documents it."""
        sampling = ask.sampling
        return {
            "model": ask.model,
            "messages": messages(ask.request),
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

    def read(self, value: object, ask: Ask) -> Reply:
        """As `Dialect.read`; ``usage`` counts the tokens of the first choice alone, and those of the others are
        guessed from the lengths of their texts."""
        if isinstance(value, Mapping) and isinstance(value.get("usage"), Mapping):
            value = {**value, "usage": {**value["usage"], "completion_tokens": _of_all(value)}}
        return super().read(value, ask)


def _of_all(value: Mapping[str, Any]) -> object:
    """The tokens of all choices; what the server says where it seems to have counted them, or says nothing."""
    choices, timings = value.get("choices"), value.get("timings")
    said = numbers.count(value["usage"].get("completion_tokens"))
    first = numbers.count(timings.get("predicted_n")) if isinstance(timings, Mapping) else None
    if said is None or said != first or not isinstance(choices, list):
        return said
    written = (choice.get("message") for choice in choices if isinstance(choice, Mapping))
    sizes = [len(str(one.get("content"))) for one in written if isinstance(one, Mapping)]
    return round(said * sum(sizes) / sizes[0]) if sizes and sizes[0] else said


@functools.lru_cache(maxsize=64)
def _grammar(expression: str) -> str:
    return gbnf(expression)
