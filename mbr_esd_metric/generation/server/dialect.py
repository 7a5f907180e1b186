"""The base of all dialects of chat servers: what a server can do, how it is asked, how its replies are read.

A dialect is one file: a subclass of `Dialect` with its name, its capabilities, and what differs from OpenAI's chat
completions. Settings that it does not support are left out of the request; a message says so, and the store's key and
the signature show it.
"""

from __future__ import annotations

import functools
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from mbr_esd_metric.core.candidate import Candidate, TokenLogprobs
from mbr_esd_metric.elicit.parse import LONGEST_ANSWER
from mbr_esd_metric.generation.engine import Request, Sampling
from mbr_esd_metric.generation.server import numbers
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.failures import Disobeyed, Odd, Transient
from mbr_esd_metric.generation.server.http import Http

#: Samples in one HTTP request: so few that a lost reply costs little, and so many that they share the prompt's cost.
PER_REQUEST = 16
#: What stands around the text that a reasoning model may write before its answer.
_THINKING = {"<think>": "</think>", "<thinking>": "</thinking>"}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server of a dialect can do.

    Attributes:
        guidance: what holds answers to the format: the grammar itself ("regex"), the grammar written as GBNF ("gbnf"),
            a JSON schema, which leaves spacing to the server ("schema"), or nothing ("none").
        n: several samples of one prompt in a request.
        seed, top_k: these settings are honoured.
        logprobs: log-probabilities over the tokens that the grammar admits, at temperature 1, before top-k: the
            quantity that every engine reports. A server that gives others counts as giving none.
        min_p: the server can drop tokens that are far less likely than the likeliest one.
        sampling: temperature and top-p are supported; most models that reason first do not support them.
    """

    guidance: Literal["regex", "gbnf", "schema", "none"]
    n: bool
    seed: bool
    top_k: bool
    logprobs: bool
    sampling: bool = True
    min_p: bool = False


@dataclass(frozen=True, slots=True)
class DialectSettings:
    """The settings that every dialect gets: `reasoning_effort` and the context in tokens, if given."""

    reasoning_effort: str | None = None
    context: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request: samples `first`, ..., `first + n - 1`, the first with this seed."""

    request: Request
    first: int
    n: int
    model: str
    seed: int
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one HTTP request that are billed: of the prompt, and of all samples with their reasoning."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The content of a reply: samples in order from the first, and the tokens it used if the server says."""

    samples: tuple[Candidate, ...]
    usage: Usage | None = None


class Dialect(ABC):
    """OpenAI's chat completions; a subclass states its capabilities and changes what differs."""

    name: ClassVar[str]
    can: ClassVar[Capabilities]
    #: The field of the grammar or schema, for messages.
    field: ClassVar[str] = ""
    #: The values of `owned_by` in the model lists of servers that speak this dialect.
    owners: ClassVar[frozenset[str]] = frozenset()
    #: The path of requests, below the base URL.
    path: ClassVar[str] = "/chat/completions"
    #: Raised when requests change in a way that changes candidates; part of the store's key.
    version: ClassVar[int] = 1
    #: Whether models that reason take a temperature and top-p. Services refuse them (OpenAI) or drop them in silence
    #: (DeepSeek); servers that people run themselves honour them.
    reasons_at_a_temperature: ClassVar[bool] = True

    #: Whether it answers in OpenAI's events, choice by choice, where it is asked to.
    streams: ClassVar[bool] = False
    #: Whether a text may lack tokens that the grammar admitted. A candidate of a server that obeys is then kept
    #: where it is not in the form asked for, too, and counts as one that cannot be read.
    loses_tokens: ClassVar[bool] = False

    def __init__(self, settings: DialectSettings) -> None:
        self.settings = settings

    @classmethod
    async def answers(cls, http: Http, address: Address) -> bool:
        """Ask a server whose model list fits no dialect whether it speaks this one."""
        return False

    @property
    def abilities(self) -> Capabilities:
        """`can`, less what the run's settings rule out."""
        reasons = self.settings.reasoning_effort not in (None, "none")
        return replace(self.can, sampling=self.reasons_at_a_temperature or not reasons)

    @property
    def per_request(self) -> int:
        """Samples asked for in one HTTP request."""
        return PER_REQUEST if self.can.n else 1

    @property
    def identity(self) -> Mapping[str, str]:
        """The part of the store's key that says which dialect was spoken."""
        return {"dialect": self.name, "dialect_version": str(self.version), **self.reasoning}

    @property
    def reasoning(self) -> dict[str, str]:
        """The field of a request that says how long the model reasons; empty if the run does not say."""
        effort = self.settings.reasoning_effort
        return {} if effort is None else {"reasoning_effort": effort}

    def left_out(self, sampling: Sampling) -> tuple[str, ...]:
        """The names of the settings of `sampling` that the dialect does not support."""
        able, names = self.abilities, []
        if not able.sampling and not sampling.greedy:
            names.append("temperature")
        if not able.sampling and sampling.top_p < 1:
            names.append("top_p")
        if not (able.top_k and able.sampling) and sampling.top_k > 0:
            names.append("top_k")
        if sampling.min_p and not (able.min_p and able.sampling):
            names.append("min_p")
        if not able.seed and not sampling.greedy:
            names.append("seed")
        return tuple(names)

    async def served(self, http: Http, address: Address) -> list[str] | None:
        """The names of the models that a server offers; None if it does not list them.

        Raises:
            Transient, EngineError: as `Http.get`, or it answers with an error.
        """
        return names_of(await http.get(address, "/models"), "data", "id")

    async def slots(self, http: Http, address: Address) -> int | None:
        """How many samples a server works on at once; None if it does not say, and queues what is too many.

        Raises:
            Transient, EngineError: as `Http.get`.
        """
        return None

    def same_model(self, said: str, asked: str) -> bool:
        """Whether a reply that names the model `said` comes from the model that was asked for."""
        return said == asked

    @abstractmethod
    def body(self, ask: Ask) -> dict[str, Any]:
        """The request's body."""

    def read(self, value: object, ask: Ask) -> Reply:
        """The samples of a reply in the order of their index, up to the first that is missing or cut.

        Raises:
            Odd: the reply is not what was asked for.
        """
        if not isinstance(value, Mapping):
            raise Odd("the reply is no object")
        self._check_model(value, ask)
        choices = value.get("choices")
        if not isinstance(choices, list) or not choices:
            raise Odd("the reply has no choices")
        by_index: dict[int, Mapping[str, Any]] = {}
        for choice in choices:
            index = choice.get("index") if isinstance(choice, Mapping) else None
            if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < ask.n:
                raise Odd(
                    f"the reply has a choice with the index {excerpt(repr(index), 40)}, and {ask.n} were asked for"
                )
            if index in by_index:
                raise Odd(f"the reply has the choice {index} twice")
            by_index[index] = choice
        usage = usage_of(value.get("usage"), "prompt_tokens", "completion_tokens")
        shares = _shares(usage, len(by_index))
        samples: list[Candidate] = []
        for index in range(ask.n):
            if index not in by_index:
                break
            try:
                samples.append(self._sample(by_index[index], shares[min(index, len(shares) - 1)], ask))
            except Odd:
                if not samples:
                    raise
                break
        if not samples:
            raise Odd("the reply lacks the first sample")
        return Reply(tuple(samples), usage)

    def check(self, sample: Candidate, request: Request) -> None:
        """Check that a sample has the requested format; a sample that was cut need not have it.

        Raises:
            Disobeyed: the sample has another format.
        """
        text = sample.text or ""
        if not sample.truncated and not _CHECKS[self.can.guidance](text, request):
            raise Disobeyed(text)

    def answer(self, text: str) -> str:
        """The answer in the text that a model wrote."""
        begun = text.lstrip()
        for begin, end in _THINKING.items():
            if begun.startswith(begin):
                _, found, answer = begun.partition(end)
                return answer.lstrip() if found else text
        return text

    def _check_model(self, value: Mapping[str, Any], ask: Ask) -> None:
        said = value.get("model")
        if isinstance(said, str) and not self.same_model(said, ask.model):
            raise Odd(f"the reply comes from the model {excerpt(said, 100)!r}, not {ask.model!r}")

    def _sample(self, choice: Mapping[str, Any], tokens: int, ask: Ask) -> Candidate:
        finish = choice.get("finish_reason")
        if finish not in ("stop", "length"):
            raise Odd(f"a candidate is cut (finish_reason {excerpt(str(finish), 40)})")
        said = choice.get("message")
        text = said.get("content") if isinstance(said, Mapping) else said
        text = checked_text("" if text is None else text)
        logprob, by_token, answer = None, None, self.answer(text)
        if self.abilities.logprobs:
            logprob, tokens = logprob_of(choice.get("logprobs"), text)
            if ask.request.token_logprobs:
                by_token = _by_token(choice["logprobs"]["content"], answer)
        return Candidate(answer, logprob=logprob, tokens=tokens, truncated=finish == "length", token_logprobs=by_token)


def checked_text(text: object) -> str:
    """The text of a candidate.

    Raises:
        Odd: it is no text, or so long that nothing should parse it.
    """
    if not isinstance(text, str):
        raise Odd("a candidate's text is no text")
    if len(text) > LONGEST_ANSWER:
        raise Odd(f"a candidate of {len(text)} characters")
    return text


def logprob_of(logprobs: object, text: str) -> tuple[float, int]:
    """Sum and number of the log-probabilities of a choice's tokens.

    Raises:
        Odd: there are none, one is no log-probability, or there is a text and no token.
    """
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if content is None:
        raise Odd("the server returns no log-probabilities")
    if not isinstance(content, Sequence) or isinstance(content, str):
        raise Odd("the log-probabilities of a candidate are no list")
    try:
        values = [numbers.logprob(token["logprob"]) for token in content]
    except (TypeError, KeyError):
        raise Odd("a log-probability is missing") from None
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        raise Odd("a log-probability is not a finite number of at most 0")
    if text and not values:
        raise Odd("a candidate has a text and no token")
    return sum(known, 0.0), len(values)


def _by_token(content: Sequence[Mapping[str, Any]], answer: str) -> TokenLogprobs | None:
    """The log-probability of each token that `logprob_of` has checked; None if the tokens do not spell the answer."""
    pieces = []
    for token in content:
        written, spelled = token.get("bytes"), token.get("token")
        try:
            pieces.append(bytes(written) if isinstance(written, list) else str(spelled).encode("utf-8", "replace"))
        except (TypeError, ValueError):
            return None
    return TokenLogprobs.spelling(pieces, [float(token["logprob"]) for token in content], answer)


def usage_of(value: object, prompt: str, completion: str) -> Usage | None:
    """The numbers of tokens that a reply states; None if they are missing or not whole numbers."""
    if not isinstance(value, Mapping):
        return None
    asked, said = numbers.count(value.get(prompt)), numbers.count(value.get(completion))
    return None if asked is None or said is None else Usage(asked, said)


def names_of(answer: Any, listed: str, name: str) -> list[str]:
    """The names in a list of models.

    Raises:
        Transient: the reply is not such a list.
    """
    value = answer.json() if answer.status == 200 else None
    models = value.get(listed) if isinstance(value, Mapping) else None
    if not isinstance(models, list):
        raise Transient(f"no list of models (status {answer.status})")
    return [model[name] for model in models if isinstance(model, Mapping) and isinstance(model.get(name), str)]


def messages(request: Request) -> list[dict[str, str]]:
    """The question, after what is said before it."""
    return [dict(message) for message in request.messages]


def _shares(usage: Usage | None, count: int) -> list[int]:
    """A reply's tokens, divided among its samples so that the parts add up to the total."""
    if usage is None or count < 1:
        return [0]
    each, over = divmod(usage.completion, count)
    return [each + (index < over) for index in range(count)]


@functools.lru_cache(maxsize=256)
def _compiled(grammar: str) -> re.Pattern[str]:
    return re.compile(grammar)


def _in_grammar(text: str, request: Request) -> bool:
    if not request.form:
        return _compiled(request.grammar).fullmatch(text) is not None
    # Python builds the grammar of one translation in 20 to 100 ms; this says the same of every answer.
    if _compiled(request.form).fullmatch(text) is None:
        return False
    errors = json.loads(text)["errors"]
    return all(error["error_span"] in request.translation for error in errors)


def _is_object(text: str, request: Request) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _anything(text: str, request: Request) -> bool:
    return True


_CHECKS: Mapping[str, Callable[[str, Request], bool]] = {
    "regex": _in_grammar,
    "gbnf": _in_grammar,
    "schema": _is_object,
    "none": _anything,
}
