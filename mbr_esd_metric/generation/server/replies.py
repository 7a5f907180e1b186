"""Reads the replies of chat servers: validated samples, or an `InvalidResponse` with the reason."""

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

#: The text that a reasoning model may write before its answer.
_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?</\1>\s*", re.DOTALL)
#: Fields for texts that are not answers. A parser of the server's may have taken the answer for one.
_NO_ANSWER = ("reasoning_content", "reasoning", "thinking", "tool_calls", "function_call")
#: Finish reasons of candidates that were cut by their length, that a filter cut or withheld, and of those that the
#: server did not bring to an end. With any other a candidate is whole; where it is unknown, if the text is.
_CUT = {"length", "max_tokens", "max_length", "max_output_tokens", "max_new_tokens", "model_length"}
_CUT |= {"model_context_window_exceeded", "token_limit", "time_limit", "error_limit", "incomplete"}
_FILTERED = {"content_filter", "content_filtered", "safety", "sensitive", "recitation", "refusal"}
_FILTERED |= {"guardrail_intervened", "blocklist", "prohibited_content", "spii", "error_toxic"}
_UNFINISHED = {"abort", "aborted", "cancelled", "canceled", "error", "timeout", "load", "unload"}
_UNFINISHED |= {"insufficient_system_resource", "network_error"}
_UNKNOWN = {"", "none", "null"}
_DECODER = json.JSONDecoder()
#: The decoder's errors count the lines from the text's beginning. What is further back than this is cut off.
_BEHIND = 4096


@dataclass(frozen=True, slots=True)
class Reply:
    """Samples in order from the first, perhaps fewer than requested; the tokens that are billed of the prompt and
    of all samples, if the server says; the model that the server names, if it is another."""

    samples: tuple[Candidate, ...]
    billed: tuple[int, int] | None = None
    other_model: str = ""


def read_reply(query: Query, value: object, address: Address) -> Reply:
    """The samples of a reply in the order of their index, up to the first that is missing or cut; `InvalidResponse` if
    it does not match the request, or the exception of `failures.classify` if it is an error despite its status 200."""
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
    """The index of each choice, from 0: its place in the reply, unless several choices carry distinct indices. These
    count from 0, or from 1 where all are there."""
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
    """Whether a name is the requested model's, which stands for its dated snapshots and may lack the maker."""
    name, requested = (one.rsplit("/", 1)[-1].removesuffix(":latest") for one in (name, requested))
    return name == requested or re.fullmatch(r"(-\d{4}|[:@]).*", name.removeprefix(requested)) is not None


def _check_form(sample: Candidate, query: Query) -> None:
    """Raise `SchemaViolation` if a sample is not in the requested form, unless it was cut or may lack tokens."""
    dialect, request, text = query.dialect, query.request, sample.text or ""
    free = dialect.guidance == "none" or (dialect.guidance == "schema" and not request.schema)
    if sample.truncated or free or dialect.loses_tokens:
        return
    if dialect.guidance == "schema":
        fits = _is_whole(text)
    else:  # Python builds the grammar of one translation in 20 to 100 ms; `form` says the same of every answer
        fits = re.fullmatch(request.form or request.grammar, text) is not None
        if fits and request.form:
            fits = all(error["error_span"] in request.translation for error in json.loads(text)["errors"])
    if not fits:
        raise SchemaViolation(f"a candidate in the wrong format: {excerpt(text, 60)!r}")


def final_answer(dialect: Dialect, text: str) -> str:
    """The answer in the text that a model wrote: the text behind its thoughts, and, where no grammar holds the model to
    the format, the last JSON object in it that has errors."""
    if thoughts := _THOUGHTS.match(text):
        text = text[thoughts.end() :]
    prose = dialect.guidance == "none" or (dialect.guidance == "schema" and text.lstrip()[:1] != "{")
    return _last_annotation(text) if prose else text


def _last_annotation(text: str) -> str:
    """The last JSON object in the text that has errors; the whole text if there is none. Each brace may begin it. What
    is read in vain is counted, so that the time grows with the text and not with its square."""
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
    """The candidate of a choice; `tokens` is its share of those billed, for a server that lists none."""
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
    # What was refused or filtered is paid for: it counts as cut, and is not asked for again.
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
    """Whether an answer is a JSON object, to its last brace."""
    try:
        return isinstance(json.loads(answer), dict)
    except (ValueError, RecursionError):
        return False


def _text(content: list[Any], kind: Literal["text", "refusal"] = "text") -> str | None:
    """The texts of a content in parts, without those of reasoning, or what is refused; None if there is none."""
    parts = [part if isinstance(part, Mapping) else {"text": part} for part in content]
    texts = [part.get(kind) for part in parts if str(part.get("type", "text")).removeprefix("output_") == kind]
    return "".join(text for text in texts if isinstance(text, str)) or None


def total_logprob(logprobs: Any, text: str) -> tuple[float, int]:
    """Sum and number of the log-probabilities of a choice's tokens; raises `InvalidResponse` if one is none."""
    try:
        values = [token["logprob"] for token in logprobs["content"]]
    except (TypeError, KeyError):
        raise InvalidResponse("the server returns no log-probabilities") from None
    if text and not values:
        raise InvalidResponse("a candidate has text but no tokens")
    # A bool is an int; rounding may bring a value above 0; of NaN nothing is true; the store and a sum hold 1e9.
    in_range = not set(map(type, values)) - {float, int} and min(values, default=0) >= -1e9
    if not in_range or not max(values, default=0) <= 1e-3 or math.isnan(total := sum(values, 0.0)):
        raise InvalidResponse("a log-probability is not a finite number of at most 0")
    return total, len(values)


def _by_token(content: Sequence[Mapping[str, Any]], answer: str) -> TokenLogprobs | None:
    """Log-probabilities by token, which `total_logprob` has checked; None if the tokens do not spell the answer."""
    pieces = []
    for token in content:
        raw, text = token.get("bytes"), token.get("token")
        try:
            pieces.append(bytes(raw) if isinstance(raw, list) else str(text).encode("utf-8", "replace"))
        except (TypeError, ValueError):
            return None
    return TokenLogprobs.spelling(pieces, [float(token["logprob"]) for token in content], answer)
