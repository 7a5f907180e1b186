"""An engine turns `Request`s into `Generated` parts, in any order, each of which can be stored as it arrives. Engines
never parse, decide or store."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import ClassVar

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import encodable
from mbr_esd_metric.plugins import Catalog

#: For chat templates. Without them, some (Llama 3) write today's date into the prompt, and others (Qwen 3) let the
#: model think first, which the grammar does not allow.
CHAT_TEMPLATE_ARGUMENTS = MappingProxyType({"date_string": "26 Jul 2024", "enable_thinking": False})
#: The context that vLLM and Ollama reserve: room for the prompt, a long segment and its answer.
DEFAULT_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Sampling:
    """The settings with which candidates are drawn. The defaults are the paper's (Section 5).

    Attributes:
        temperature: 0 decodes greedily; a request is then for one candidate, as all would be equal.
        top_k: tokens kept after the grammar's mask and the temperature; 0 keeps all.
        max_tokens: a candidate longer than this is cut, marked `truncated` and invalid.
        seed: sample i of a request is a function of (seed, request, i).
    """

    temperature: float = 2.0
    top_k: int = 10
    max_tokens: int = 512
    seed: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken each time."""
        return self.temperature == 0

    def seed_of(self, request: Request) -> int:
        """Seed of a request's first sample. vLLM draws sample i with seed + i, however N is split over requests."""
        digest = hashlib.sha256(f"{self.seed}:{request.key}".encode()).digest()
        return int.from_bytes(digest[:6], "big") + request.first


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The settings of `ModelCard` for running a model. Each engine reads those it needs.

    Attributes:
        model: hub id, with `revision`, or a folder of a causal language model in transformers' format.
        device: "auto" takes all GPUs of this machine if there are any; or "cpu".
        weights_gb: size of the weights in bfloat16, in GB (10^9 bytes); 0 if unknown.
    """

    model: str
    adapter: str | None = None
    revision: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    server: tuple[str, ...] = ()
    concurrency: int | None = None
    dialect: str = "auto"
    reasoning_effort: str | None = None
    price: tuple[float, float] | None = None
    max_cost: float | None = None
    vllm: tuple[str, ...] = ()
    weights_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Request:
    """Samples `first`, ..., `first + n - 1` of one segment.

    Attributes:
        key: the same key always comes with the same prompt and grammar.
        prompt: the question, a user's message; the engine applies the model's chat template.
        turns: what is said before it, such as examples: role ("system", "user", "assistant") and text of each message.
        grammar: a regular expression that the whole answer matches.
        label: how messages name the segment, such as "segment 12 of mt.txt".
        schema: the answer's JSON schema, as JSON, for servers that take no grammar; "" if there is none.
        form: for checks: a wider regular expression that is quick to build, where the grammar allows only pieces of
            the translation as error spans; "" elsewhere.
        token_logprobs: whether the log-probability of each token is wanted, from engines that know it.
        lp: the language pair of the texts, where it is known.
    """

    key: str
    prompt: str
    grammar: str
    n: int
    first: int = 0
    label: str = ""
    source: str = ""
    translation: str = ""
    schema: str = ""
    form: str = ""
    token_logprobs: bool = False
    turns: tuple[tuple[str, str], ...] = ()
    lp: str | None = None

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages: the turns of the examples, then the prompt."""
        return [{"role": role, "content": encodable(text)} for role, text in (*self.turns, ("user", self.prompt))]

    @property
    def text(self) -> str:
        """All that the model reads, for what depends on its length."""
        return "\n".join([*(text for _, text in self.turns), self.prompt])

    @property
    def indices(self) -> range:
        """The indices of the requested samples."""
        return range(self.first, self.first + self.n)

    def only(self, indices: Iterable[int]) -> Iterator[Request]:
        """The request for these samples alone, in parts of consecutive ones."""
        for _, run in groupby(enumerate(sorted(indices)), lambda pair: pair[1] - pair[0]):
            first, *rest = (index for _, index in run)
            yield replace(self, first=first, n=1 + len(rest))

    def parts(self, size: int) -> Iterator[Request]:
        """The request in parts of at most so many samples."""
        for done in range(0, self.n, size):
            yield replace(self, first=self.first + done, n=min(size, self.n - done))


@dataclass(frozen=True, slots=True)
class Generated:
    """Samples `first`, `first + 1`, ... of the request with this key."""

    key: str
    first: int
    samples: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that will never be answered, such as one that a service filters; `reason` is what it said."""

    key: str
    reason: str


class Engine(ABC):
    """A way to sample from a model. It is made cheaply from its options, and can be pickled. It loads the model, or
    connects, when it first generates.

    Attributes:
        name: in `engine=NAME`; `description` is one line for `mbr-esd models --check`.
        packages: that it needs, and `extra` is the extra of this package that brings them ("" if there is none).
        loads_weights: whether it loads the model's weights from this machine.
        only_format: the only answer format that it answers in; "" where it takes any that names no engine.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""
    loads_weights: ClassVar[bool] = True
    only_format: ClassVar[str] = ""

    def __init__(self, options: EngineOptions) -> None:
        self.options = options

    @property
    @abstractmethod
    def problem(self) -> str | None:
        """The reason why the engine cannot run here, with a fix, or None. Does not load weights; may contact the
        server."""

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, str]:
        """Everything about engine and model that can change a candidate, and nothing else, as it is part of the store's
        key: never batch sizes, URLs or devices. It is known without loading the model."""

    @abstractmethod
    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        """Sample every request; yield each part when it is finished, or `Refused` for a request that never will be.

        Raises:
            EngineError: the model cannot be loaded, or generation cannot go on. The parts before it stay valid.
        """

    @property
    def digest(self) -> str:
        """Eight digits of the identity."""
        identity = json.dumps(dict(self.identity), sort_keys=True)
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    @property
    def model(self) -> str:
        """The model's name in signatures."""
        return self.options.model

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers' addresses, as the same name may denote another model elsewhere."""
        return ()

    @property
    def default_temperature(self) -> float:
        """The temperature where the card names none: the paper's, which top-k keeps to likely words."""
        return Sampling().temperature

    @property
    def retries(self) -> int:
        """The number of requests that were sent again, which the progress bar shows."""
        return 0

    @property
    def starts_late(self) -> bool:
        """Whether loading takes so long that `engine=auto` takes another engine that works."""
        return False

    @property
    def samples_per_request(self) -> int | None:
        """The most samples that one request asks for; None if one request asks for all."""
        return None

    def confirm(self) -> None:
        """Check, before the first sample, what `identity` took from memory; it changes where that was wrong."""
        return None

    def load(self) -> None:
        """Load the model or connect; `generate` does so if needed. Raises `EngineError` with a fix."""
        return None

    def missing_capability(self, *, logprobs: bool, grammar: bool) -> str | None:
        """What the run needs and the engine lacks, and how to help; None if it lacks nothing: log-probabilities as
        `Candidate.logprob` has them, or a regular expression of its own for each segment."""
        return None

    def unsupported_settings(self, sampling: Sampling) -> tuple[str, ...]:
        """The names of the settings of `sampling` that this engine does not support and leaves out."""
        return ()

    def close(self) -> None:
        """Free what the engine holds; safe to call twice."""
        return None


#: Those in `generation/engines/`, and entry points of other packages, ``mbr_esd_metric.engines``.
ENGINES = Catalog("engine", "engines", "mbr_esd_metric.generation.engines", Engine)  # type: ignore[type-abstract]
#: What `engine=auto` tries, in this order, for a format that names no engine.
AUTOMATIC = ("server", "vllm", "transformers")
#: The engine that runs no model.
NO_MODEL = "checks"
