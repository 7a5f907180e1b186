"""The dialects of chat servers, as a table: what each can do, the fields of its requests, and how its replies differ.

A setting that a dialect does not support is left out of the request, and of signatures. Facts behind the table:

- vLLM takes what a request lacks from the model's own generation settings, so all are sent. Sample i of a request is
  drawn with seed + i. Its log-probabilities are over the tokens that the grammar admits.
- SGLang uses a seed only in its deterministic mode, where all samples of a request are the same; none is sent. Its
  log-probabilities are taken after the temperature, and are not used.
- llama.cpp's log-probabilities are over the whole vocabulary. It samples by top-k and temperature alone only if
  `samplers` says so. Its grammar takes a token that is special to the model, such as ``<file_sep>``, for the characters
  of its name, and the text then lacks them.
- Ollama cuts a prompt that is longer than `num_ctx` in silence: one with room is always sent, and cutting forbidden.
- ``transformers serve`` has no guidance. Without a `generation_config` it decodes by the model's own, mostly greedily.
  It lists the models of its cache, so the name cannot be checked.
- "plain" stands for any server: only the fields that every server knows are sent, as some refuse others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mbr_esd_metric.errors import unknown
from mbr_esd_metric.generation.engine import CHAT_TEMPLATE_ARGUMENTS, DEFAULT_CONTEXT, Request, Sampling

#: Samples in one HTTP request: so few that a lost reply costs little, and so many that they share the prompt's cost.
PER_REQUEST = 16
#: Seeds have 32 bits in some servers, and the highest one means "any" in llama.cpp.
_SEEDS = 1 << 31
#: No nucleus and no min-p, whatever the model's own settings say.
_NO_OTHER_CUT = {"top_p": 1.0, "min_p": 0.0}
_TEMPLATE = {"chat_template_kwargs": dict(CHAT_TEMPLATE_ARGUMENTS)}
_Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """One HTTP request, for the samples of a request or of a part of it."""

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
    """One row of the table; `reasoning_effort` is the run's, if it has one.

    Attributes:
        guidance: what holds answers to the format: the grammar itself ("regex"), the grammar written as GBNF ("gbnf"),
            a JSON schema, which leaves spacing to the server ("schema"), or nothing ("none").
        fields: of a request, besides the model and the messages. A value of None is left out.
        guide: the field of the grammar or schema, for messages.
        per_request: samples of one prompt in an HTTP request.
        seed, top_k: these settings are honoured.
        logprobs: log-probabilities over the tokens that the grammar admits, at temperature 1, before top-k: the
            quantity that every engine reports. A server that gives others counts as giving none.
        temperature_while_reasoning: whether models that reason take a temperature. Services refuse it (OpenAI) or drop
            it in silence (DeepSeek).
        loses_tokens: whether a text may lack tokens that the grammar admitted. A candidate in another form is then
            kept, and counts as one that cannot be read.
        owner: the value of `owned_by` in the model lists of servers that speak this dialect.
        path: of requests; a path with two slashes is below the host's root instead of the base URL.
        models: the path of the list of models, the list's field, and that of a name.
        lists_all: whether that list names each model that is served; it may lack deployments, or models to be loaded.
        probe: a path, and what its reply contains if the server speaks this dialect.
        slots: the path and the field that say how many samples a server works on at once, or the number.
        version: raised when requests or reading change in a way that changes candidates; part of the store's key.
        normalize: a reply in the form of OpenAI's chat completions.
        aliases: a name may stand for a model of another name, such as a deployment's; a note says so.
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
        """Whether the model samples at the temperature that it is given; some that reason refuse one."""
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
    """Tokens of context with room for prompt and answer: a token has two bytes or more, but for rare texts."""
    context, room = DEFAULT_CONTEXT, len(query.request.text.encode("utf-8", "replace")) // 2 + query.sampling.max_tokens
    while context < room:
        context *= 2
    return context


def _gbnf(expression: str) -> str:
    from mbr_esd_metric.generation.server.gbnf import gbnf

    return gbnf(expression)


def _from_ollama(value: _Value, query: Query) -> _Value:
    """One sample. A reply whose prompt fills the whole context is refused."""
    from mbr_esd_metric.generation.server.http import RequestRejected, token_count

    usage = {"prompt_tokens": value.get("prompt_eval_count"), "completion_tokens": value.get("eval_count")}
    context, prompt = _ollama_context(query), token_count(usage["prompt_tokens"])
    if prompt is not None and prompt >= context:
        raise RequestRejected(f"too long for the context of {context} tokens; split the segment")
    reason = value.get("done_reason", "stop") if value.get("done") is True else "aborted"
    choice = {"index": 0, "message": value.get("message"), "finish_reason": reason}
    return {"model": value.get("model"), "choices": [choice], "usage": usage}


#: File of the cache folder: address -> the dialect that it spoke in an earlier run.
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
    """The dialect of that name; raises `OptionError` if there is none, with the nearest names."""
    if name not in DIALECTS:
        raise unknown("dialect", name, DIALECTS)
    return DIALECTS[name]
