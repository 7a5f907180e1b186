"""A table of the dialects of chat servers: capabilities, request fields, and differences in replies.

Settings that a dialect does not support are omitted from requests and signatures. Background of the table:

- vLLM uses the model's own generation settings for missing fields, so all settings are sent. Sample i of a request uses
  seed + i. Log-probabilities are over the tokens that the grammar allows.
- SGLang uses seeds only in its deterministic mode, in which all samples of a request are equal, so no seed is sent. Its
  log-probabilities are computed after the temperature, and are not used.
- llama.cpp's log-probabilities are over the whole vocabulary. It uses only top-k and temperature if `samplers` is set.
  Its grammar matches special tokens of the model, such as ``<file_sep>``, by their names, which are then missing from
  the text.
- Ollama silently truncates prompts that exceed `num_ctx`, so a sufficient value is always sent, and truncation
disabled.
- ``transformers serve`` does not support guided decoding. Without `generation_config`, it uses the model's own
  settings, mostly greedy decoding. It lists the models in its cache, so the model name cannot be verified.
- "plain" is for any server: only fields that all servers support are sent, because some reject other fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mbr_esd_metric.errors import unknown
from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS, DEFAULT_CONTEXT, Request, Sampling

#: Samples per HTTP request: few enough to make a lost reply cheap, and enough to share the cost of the prompt.
PER_REQUEST = 16
#: The upper limit of seeds: they have 32 bits in some servers, and the highest one means a random seed in llama.cpp.
_SEEDS = 1 << 31
#: Disables nucleus and min-p sampling, whatever the model's own settings.
_NO_OTHER_CUT = {"top_p": 1.0, "min_p": 0.0}
_TEMPLATE = {"chat_template_kwargs": dict(CHAT_TEMPLATE_ARGUMENTS)}
_Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """The content of one HTTP request, for a request or a part of it."""

    request: Request
    model: str
    sampling: Sampling
    dialect: Dialect

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body in the server's dialect."""
        body = {"model": self.model, "messages": self.request.messages, **self.dialect.fields(self)}
        return {name: value for name, value in body.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row of the table.

    Attributes:
        guidance: the kind of guided decoding: by the grammar ("regex"), by the grammar as GBNF ("gbnf"), by a JSON
            schema, which does not determine whitespace ("schema"), or none ("none").
        fields: the fields of a request, besides the model and the messages. None values are omitted.
        guide: the field with the grammar or schema, for messages.
        per_request: the number of samples per HTTP request.
        seed, top_k: whether these settings are supported.
        logprobs: whether the server returns log-probabilities over the tokens that the grammar allows, at temperature
            1, before top-k, as all engines do. Other log-probabilities are ignored.
        temperature_while_reasoning: whether reasoning models support a temperature. Services reject it (OpenAI) or
            silently ignore it (DeepSeek).
        loses_tokens: whether tokens that the grammar allows may be missing from the text. Candidates in the wrong
            format are then kept, and counted as invalid.
        owner: the value of `owned_by` in the model lists of servers with this dialect.
        path: the path of requests; with two leading slashes, it is relative to the host's root instead of the base URL.
        models: the path of the model list, the field of the list, and the field of a name.
        lists_all: whether that list contains all models; it may lack deployments, or models that are loaded on demand.
        probe: a path, and a marker in its reply that identifies the dialect.
        slots: the path and field with the number of samples that a server processes concurrently, or this number.
        version: increased when a change of requests or parsing changes candidates; part of the store's key.
        normalize: function that converts a reply to the format of OpenAI's chat completions.
        aliases: whether the model name in replies may differ, such as for deployments; a note is logged.
        reasoning_effort: the reasoning effort of the run, if specified.
    """

    name: str
    guidance: Literal["regex", "gbnf", "schema", "none"]
    fields: Callable[[Query], _Value] = field(repr=False)
    guide: str = ""
    per_request: int = 1
    seed: bool = False
    top_k: bool = False
    logprobs: bool = False
    temperature_while_reasoning: bool = True
    loses_tokens: bool = False
    owner: str = ""
    path: str = "/chat/completions"
    models: tuple[str, str, str] = ("/models", "data", "id")
    lists_all: bool = True
    probe: tuple[str, bytes] | None = None
    slots: tuple[str, str] | int | None = None
    version: int = 1
    normalize: Callable[[_Value, Query], _Value] = lambda value, query: value
    aliases: bool = False
    reasoning_effort: str | None = None

    @property
    def takes_temperature(self) -> bool:
        """Whether a temperature can be set; some reasoning models do not allow it."""
        return self.temperature_while_reasoning or self.reasoning_effort in (None, "none")


def _usual(query: Query) -> _Value:
    return {
        "max_tokens": query.sampling.max_tokens,
        "temperature": query.sampling.temperature if query.dialect.takes_temperature else None,
        "reasoning_effort": query.dialect.reasoning_effort,
    }


def _generation_config(sampling: Sampling) -> str:
    config: dict[str, Any] = {"do_sample": not sampling.greedy, "max_new_tokens": sampling.max_tokens}
    if not sampling.greedy:
        config |= {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": 1.0}
    return json.dumps(config)


def _ollama_context(query: Query) -> int:
    """A sufficient context length in tokens, for two bytes per token, fewer than in almost all texts."""
    context, room = DEFAULT_CONTEXT, len(query.request.text.encode("utf-8", "replace")) // 2 + query.sampling.max_tokens
    while context < room:
        context *= 2
    return context


def _gbnf(expression: str) -> str:
    from mbr_esd_metric.generation.server.gbnf import gbnf

    return gbnf(expression)


def _from_ollama(value: _Value, query: Query) -> _Value:
    """A reply of Ollama in OpenAI's format. Raises `RequestRejected` if the prompt fills the whole context."""
    from mbr_esd_metric.generation.server.http import RequestRejected, token_count

    usage = {"prompt_tokens": value.get("prompt_eval_count"), "completion_tokens": value.get("eval_count")}
    context, prompt = _ollama_context(query), token_count(usage["prompt_tokens"])
    if prompt is not None and prompt >= context:
        raise RequestRejected(f"too long for the context of {context} tokens; split the segment")
    reason = value.get("done_reason", "stop") if value.get("done") is True else "aborted"
    choice = {"index": 0, "message": value.get("message"), "finish_reason": reason}
    return {"model": value.get("model"), "choices": [choice], "usage": usage}


#: The file in the cache folder with the dialects detected in earlier runs, by address.
DIALECTS_FILE = "dialects.json"
DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "llamacpp", "gbnf",
            lambda q: {
                "seed": q.sampling.seed_of(q.request) % _SEEDS, "max_tokens": q.sampling.max_tokens,
                "temperature": q.sampling.temperature, "top_k": q.sampling.top_k, "samplers": ["top_k", "temperature"],
                "grammar": _gbnf(q.request.grammar), **_TEMPLATE,
            },
            "grammar", seed=True, top_k=True, loses_tokens=True, owner="llamacpp", slots=("//props", "total_slots"),
        ),
        Dialect(
            "ollama", "schema",
            lambda q: {
                "stream": False, "format": json.loads(q.request.schema or "null"), "truncate": False, "shift": False,
                "think": False if q.dialect.reasoning_effort in (None, "none") else q.dialect.reasoning_effort,
                "options": {
                    "seed": q.sampling.seed_of(q.request) % _SEEDS, "temperature": q.sampling.temperature,
                    "top_k": q.sampling.top_k, **_NO_OTHER_CUT, "num_predict": q.sampling.max_tokens,
                    "num_ctx": _ollama_context(q),
                },
            },
            "format", seed=True, top_k=True, path="//api/chat", models=("//api/tags", "models", "name"),
            probe=("//", b"Ollama is running"), normalize=_from_ollama,
        ),
        Dialect(
            "openai", "schema",
            lambda q: {
                **_usual(q), "n": q.request.n, "seed": q.sampling.seed_of(q.request), "max_tokens": None,
                "max_completion_tokens": q.sampling.max_tokens, "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "annotation", "strict": True, "schema": json.loads(q.request.schema)},
                } if q.request.schema else None,
            },
            "response_format", per_request=PER_REQUEST, seed=True, temperature_while_reasoning=False, lists_all=False,
            aliases=True,
        ),
        Dialect("plain", "none", _usual, temperature_while_reasoning=False, version=3, aliases=True),
        Dialect(
            "sglang", "regex",
            lambda q: {
                **_usual(q), **_NO_OTHER_CUT, **_TEMPLATE, "n": q.request.n, "top_k": q.sampling.top_k or -1,
                "regex": q.request.grammar,
            },
            "regex", per_request=PER_REQUEST, top_k=True, owner="sglang",
        ),
        Dialect(
            "transformers", "none",
            lambda q: {
                "seed": q.sampling.seed_of(q.request) % _SEEDS, "max_tokens": q.sampling.max_tokens,
                "generation_config": _generation_config(q.sampling), **_TEMPLATE,
            },
            seed=True, top_k=True, version=2, lists_all=False, probe=("//openapi.json", b'"/load_model"'), slots=1,
            aliases=True,
        ),
        Dialect(
            "vllm", "regex",
            lambda q: {
                **_usual(q), **_NO_OTHER_CUT, **_TEMPLATE, "n": q.request.n, "seed": q.sampling.seed_of(q.request),
                "top_k": q.sampling.top_k, "logprobs": True, "structured_outputs": {"regex": q.request.grammar},
            },
            "structured_outputs", per_request=PER_REQUEST, seed=True, top_k=True, logprobs=True, owner="vllm",
        ),
    )
}  # fmt: skip


def get_dialect(name: str) -> Dialect:
    """The dialect with this name. Raises `OptionError`, with similar names, if it is unknown."""
    if name not in DIALECTS:
        raise unknown("dialect", name, DIALECTS)
    return DIALECTS[name]
