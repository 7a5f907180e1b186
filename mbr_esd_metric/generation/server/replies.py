"""Parsing of the replies of chat servers: validated samples, or `InvalidResponse` with the reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mbr_esd_metric.core.decision import Candidate, TokenLogprobs
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.dialects import Dialect, Query
from mbr_esd_metric.generation.server.http import InvalidResponse, SchemaViolation, token_count
from mbr_esd_metric.prompting.parse import LONGEST_ANSWER

#: The reasoning block that a model may write before its answer.
_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?</\1>\s*", re.DOTALL)
#: Fields for text other than the answer. A parser of the server may have put the answer into one of them.
_NO_ANSWER = ("reasoning_content", "reasoning", "thinking", "tool_calls", "function_call")
#: Finish reasons of candidates that exceed a length limit, that were stopped or withheld by a filter, and that the
#: server did not finish. With other reasons, a candidate is complete; with an unknown one, if its text is.
_CUT = {"length", "max_tokens", "max_length", "max_output_tokens", "max_new_tokens", "model_length"}
_CUT |= {"model_context_window_exceeded", "token_limit", "time_limit", "error_limit", "incomplete"}
_FILTERED = {"content_filter", "content_filtered", "safety", "sensitive", "recitation", "refusal"}
_FILTERED |= {"guardrail_intervened", "blocklist", "prohibited_content", "spii", "error_toxic"}
_UNFINISHED = {"abort", "aborted", "cancelled", "canceled", "error", "timeout", "load", "unload"}
_UNFINISHED |= {"insufficient_system_resource", "network_error"}
_UNKNOWN = {"", "none", "null"}
_DECODER = json.JSONDecoder()
#: The decoder counts lines from the start of the text for its errors, so text further back than this is removed.
_BEHIND = 4096


@dataclass(frozen=True, slots=True)
class Reply:
    """A parsed reply.

    Attributes:
        samples: the samples in order, possibly fewer than requested.
        billed: the billed tokens of the prompt and of all samples, if the server reports them.
        other_model: the model name in the reply, if it differs.
    """

    samples: tuple[Candidate, ...]
    billed: tuple[int, int] | None = None
    other_model: str = ""


def read_reply(query: Query, value: object, address: Address) -> Reply:
    """The samples of a reply in the order of their indices, up to the first missing or unfinished one.

    Raises `InvalidResponse` if the reply does not match the request, or the exception of `failures.classify` if it is
    an error despite status 200.
    """
    dialect, n = query.dialect, query.request.n
    if not isinstance(value, Mapping) or value.get("error"):
        raise _failure(value, address)
    model, other = value.get("model"), ""
    if isinstance(model, str) and model != query.model and not _same_model(model, query.model):
        other = excerpt(model, 100)
    if other and not dialect.aliases:
        raise InvalidResponse(f"the reply comes from the model {other!r}, not {query.model!r}")
    normal = dialect.normalize(value, query)
    choices = normal.get("choices")
    if not (isinstance(choices, list) and choices and all(isinstance(choice, Mapping) for choice in choices)):
        raise _failure(value, address)
    if choices[0].get("error"):
        raise _failure({"error": choices[0]["error"]}, address)
    indices = _indices(choices, n)
    stated = usage if isinstance(usage := normal.get("usage"), Mapping) else {}
    prompt, completion = (token_count(stated.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    billed = None if prompt is None or completion is None else (prompt, completion)
    by_index = dict(zip(indices, choices, strict=True))
    each, rest = divmod(billed[1] if billed else 0, len(by_index))
    samples: list[Candidate] = []
    try:
        while (index := len(samples)) in by_index:
            samples.append(_sample(by_index[index], each + (index < rest), query))
    except InvalidResponse:
        if not samples:
            raise
    for sample in samples:
        _check_form(sample, query)
    return Reply(tuple(samples), billed, other)


def _indices(choices: Sequence[Mapping[str, Any]], n: int) -> list[int]:
    """The index of each choice, from 0: its position in the reply, unless the choices have distinct indices. These
    start at 0, or at 1 if all choices are present."""
    stated = [index if type(index := choice.get("index")) is int else None for choice in choices]
    places, known = list(range(len(choices))), {index for index in stated if index is not None}
    indices = [index for index in stated if index is not None]
    if len(known) < 2 or len(indices) < len(stated):
        indices = places
    elif sorted(known) == [place + 1 for place in places] and len(known) == n:
        indices = [index - 1 for index in indices]
    if len(set(indices)) < len(indices) or 0 not in indices or min(indices) < 0 or max(indices) >= n:
        raise InvalidResponse(f"the reply's choices have the indices {stated[:20]}, but {n} were requested")
    return indices


def _failure(value: object, address: Address) -> Exception:
    from mbr_esd_metric.generation.server.failures import classify

    return classify(200, value, address)


def _same_model(name: str, requested: str) -> bool:
    """Whether a name is that of the requested model, possibly a dated snapshot, or without the organisation."""
    name, requested = (one.rsplit("/", 1)[-1].removesuffix(":latest") for one in (name, requested))
    return name == requested or re.fullmatch(r"(-\d{4}|[:@]).*", name.removeprefix(requested)) is not None


def _check_form(sample: Candidate, query: Query) -> None:
    """Raise `SchemaViolation` if a sample has the wrong format, unless it was truncated or may lack tokens."""
    dialect, request, text = query.dialect, query.request, sample.text or ""
    free = dialect.guidance == "none" or (dialect.guidance == "schema" and not request.schema)
    if sample.truncated or free or dialect.loses_tokens:
        return
    if dialect.guidance == "schema":
        fits = _is_whole(text)
    else:  # compiling the grammar of a translation takes Python 20 to 100 ms, so `form` is used if it exists
        fits = re.fullmatch(request.form or request.grammar, text) is not None
        if fits and request.form:
            fits = all(error["error_span"] in request.translation for error in json.loads(text)["errors"])
    if not fits:
        raise SchemaViolation(f"a candidate in the wrong format: {excerpt(text, 60)!r}")


def final_answer(dialect: Dialect, text: str) -> str:
    """The answer in the output of a model: without the reasoning block, and without guided decoding, the last JSON
    object with an "errors" key."""
    if thoughts := _THOUGHTS.match(text):
        text = text[thoughts.end() :]
    prose = dialect.guidance == "none" or (dialect.guidance == "schema" and text.lstrip()[:1] != "{")
    return _last_annotation(text) if prose else text


def _last_annotation(text: str) -> str:
    """The last JSON object in the text with an "errors" key; the whole text if there is none. Every brace may start an
    object; the number of characters that are parsed is limited, so that the time is linear in the length of the
    text."""
    answer, rest, at, left = text, text, text.find("{"), 16 * len(text) + 1000
    while at >= 0 and left > 0:
        if at > _BEHIND:
            rest, at = rest[at:], 0
        after = at + 1
        try:
            value, end = _DECODER.raw_decode(rest, at)
        except json.JSONDecodeError as error:
            end = error.pos
        except (ValueError, RecursionError):  # too many digits, or braces
            end = len(rest)
        else:
            if isinstance(value, dict) and "errors" in value:
                answer, after = rest[at:end], end
        left -= end - at + 1
        at = rest.find("{", after)
    return answer


def _sample(choice: Mapping[str, Any], tokens: int, query: Query) -> Candidate:
    """The candidate of a choice; `tokens` is its share of the billed tokens, for servers that do not list tokens."""
    dialect = query.dialect
    finish, message = str(choice.get("finish_reason", "stop")).lower(), choice.get("message")
    if finish in _UNFINISHED or choice.get("error"):
        said = f": {choice['error']}" if choice.get("error") else ""
        raise InvalidResponse(f"a candidate was cut off (finish_reason {excerpt(finish + said)})")
    if not isinstance(message, Mapping):
        raise InvalidResponse("a choice has no message")
    content, refusal = message.get("content"), message.get("refusal")
    text = content
    if isinstance(content, list):
        text, refusal = _text(content), refusal or _text(content, "refusal")
    # Refused or filtered candidates are billed: they are treated as truncated, and not requested again.
    filtered = finish in _FILTERED or bool(refusal)
    cut = filtered or finish in _CUT
    if text in (None, "") and not filtered:
        field = next((name for name in _NO_ANSWER if message.get(name)), "")
        fix = "a model that always reasons first needs reasoning_effort=low"
        if field:
            fix = f"the server put it into {field}; serve the model without its reasoning or tool parser; {fix}"
        held = dialect.guidance in ("regex", "gbnf")
        if (field or held or dialect.guidance == "schema" or text is None) and (not cut or (field and held)):
            raise InvalidResponse(f"a candidate without content; {fix}")
    text = (filtered and refusal) or text or ""
    if not isinstance(text, str) or len(text) > LONGEST_ANSWER:
        raise InvalidResponse(f"a candidate's text is not a string, or longer than {LONGEST_ANSWER} characters")
    logprob, by_token, answer = None, None, final_answer(dialect, text)
    if dialect.logprobs:
        logprob, tokens = total_logprob(choice.get("logprobs"), text)
        if query.request.token_logprobs:
            by_token = _by_token(choice["logprobs"]["content"], answer)
    cut = cut or (finish in _UNKNOWN and bool(query.request.schema) and not _is_whole(answer))
    withheld = f"it withholds the answer: {excerpt(str(refusal or finish))}" if filtered else None
    return Candidate(answer, None, logprob, cut, by_token, tokens=tokens, withheld=withheld)


def _is_whole(answer: str) -> bool:
    """Whether an answer is a complete JSON object."""
    try:
        return isinstance(json.loads(answer), dict)
    except (ValueError, RecursionError):
        return False


def _text(content: list[Any], kind: Literal["text", "refusal"] = "text") -> str | None:
    """The text, or the refusal, of a content that consists of parts, without reasoning; None if there is none."""
    parts = [part if isinstance(part, Mapping) else {"text": part} for part in content]
    texts = [part.get(kind) for part in parts if str(part.get("type", "text")).removeprefix("output_") == kind]
    return "".join(text for text in texts if isinstance(text, str)) or None


def total_logprob(logprobs: Any, text: str) -> tuple[float, int]:
    """The sum and the number of the log-probabilities of a choice's tokens. Raises `InvalidResponse` if one is
    invalid."""
    try:
        values = [token["logprob"] for token in logprobs["content"]]
    except (TypeError, KeyError):
        raise InvalidResponse("the server returns no log-probabilities") from None
    if text and not values:
        raise InvalidResponse("a candidate has text but no tokens")
    # Types are compared because bool is a subclass of int; rounding may give values above 0; comparisons with NaN are
    # false; the lower bound keeps sums finite.
    in_range = not set(map(type, values)) - {float, int} and min(values, default=0) >= -1e9
    if not in_range or not max(values, default=0) <= 1e-3 or math.isnan(total := sum(values, 0.0)):
        raise InvalidResponse("a log-probability is not a finite number of at most 0")
    return total, len(values)


def _by_token(content: Sequence[Mapping[str, Any]], answer: str) -> TokenLogprobs | None:
    """The log-probabilities by token, validated by `total_logprob`; None if the tokens do not spell the answer."""
    pieces = []
    for token in content:
        raw, text = token.get("bytes"), token.get("token")
        try:
            pieces.append(bytes(raw) if isinstance(raw, list) else str(text).encode("utf-8", "replace"))
        except (TypeError, ValueError):
            return None
    return TokenLogprobs.spelling(pieces, [float(token["logprob"]) for token in content], answer)
