"""The interface of engines, which generate candidates for `Request`s as `Generated` parts, in any order, so that each
part can be stored immediately. Engines do not parse, decide or store."""

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
from mbr_esd_metric.messages import encodable
from mbr_esd_metric.plugins import Catalog

#: Arguments of chat templates. Otherwise, some templates (Llama 3) insert the current date into the prompt, and others
#: (Qwen 3) enable reasoning, which the grammar does not allow.
CHAT_TEMPLATE_ARGUMENTS = MappingProxyType({"date_string": "26 Jul 2024", "enable_thinking": False})
#: The context length for vLLM and Ollama, in tokens: enough for the prompt, a long segment and its answer.
DEFAULT_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling settings. The defaults are those of the paper (Section 5).

    Attributes:
        temperature: the sampling temperature; 0 for greedy decoding, with one candidate per request.
        top_k: the number of tokens to sample from, after the grammar's mask and the temperature; 0 for all.
        max_tokens: the maximum length of a candidate; longer ones are cut, marked `truncated` and invalid.
        seed: the random seed; sample i of a request is a function of (seed, request, i).
    """

    temperature: float = 2.0
    top_k: int = 10
    max_tokens: int = 512
    seed: int = 0

    @property
    def greedy(self) -> bool:
        """Whether decoding is greedy."""
        return self.temperature == 0

    def seed_of(self, request: Request) -> int:
        """The seed of the first sample of a request. vLLM uses seed + i for sample i, so that samples do not depend on
        how N is split into requests."""
        digest = hashlib.sha256(f"{self.seed}:{request.key}".encode()).digest()
        return int.from_bytes(digest[:6], "big") + request.first


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The settings of `ModelCard` for running a model. Each engine uses those that it needs.

    Attributes:
        model: a hub id, with `revision`, or the folder of a causal language model in transformers' format.
        device: "auto" for all GPUs of this machine, if there are any; or "cpu".
        weights_gb: the size of the weights in bfloat16, in GB (10^9 bytes); 0 if unknown.
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
    """A request for samples `first`, ..., `first + n - 1` of one segment.

    Attributes:
        key: the identifier of the request; equal keys imply the same prompt and grammar.
        prompt: the user message; the engine applies the model's chat template.
        turns: the previous messages, such as examples: role ("system", "user", "assistant") and text of each.
        grammar: a regular expression that the whole answer must match.
        label: the name of the segment in messages, such as "segment 12 of mt.txt".
        schema: the JSON schema of the answer, as JSON, for servers without grammars; "" if there is none.
        form: a more permissive regular expression that is fast to compile, used to validate answers if the grammar only
            allows parts of the translation as error spans; "" otherwise.
        token_logprobs: whether to return the log-probability of each token, if the engine supports it.
        lp: the language pair of the texts, if known.
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
        """The chat messages: the previous turns, then the prompt."""
        return [{"role": role, "content": encodable(text)} for role, text in (*self.turns, ("user", self.prompt))]

    @property
    def text(self) -> str:
        """The whole input of the model, to estimate its length."""
        return "\n".join([*(text for _, text in self.turns), self.prompt])

    @property
    def indices(self) -> range:
        """The indices of the requested samples."""
        return range(self.first, self.first + self.n)

    def only(self, indices: Iterable[int]) -> Iterator[Request]:
        """The request restricted to these samples, as one part per run of consecutive indices."""
        for _, run in groupby(enumerate(sorted(indices)), lambda pair: pair[1] - pair[0]):
            first, *rest = (index for _, index in run)
            yield replace(self, first=first, n=1 + len(rest))

    def parts(self, size: int) -> Iterator[Request]:
        """The request, split into parts of at most `size` samples."""
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
    """A request that was rejected permanently, for example by a content filter; `reason` is the server's message."""

    key: str
    reason: str


class Engine(ABC):
    """A backend that samples from a model. Construction is cheap, and engines can be pickled; the model is loaded, or
    the connection opened, on the first use.

    Attributes:
        name: the name in `engine=NAME`.
        description: one line for `mbr-esd models --check`.
        packages: the required packages.
        extra: the extra of this package that installs them; "" if there is none.
        loads_weights: whether the engine loads the model's weights from this machine.
        only_format: the only supported answer format; "" for all formats that do not require another engine.
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
        """All properties of engine and model that can change a candidate, as part of the store's key. It must not
        contain anything else, such as batch sizes, URLs or devices, and is available without loading the model."""

    @abstractmethod
    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        """Sample all requests, and yield each part when it is complete, or `Refused` for a rejected request.

        Raises:
            EngineError: the model cannot be loaded, or generation failed. Parts that were yielded before remain valid.
        """

    @property
    def digest(self) -> str:
        """The first eight hexadecimal digits of the hash of the identity."""
        identity = json.dumps(dict(self.identity), sort_keys=True)
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    @property
    def model(self) -> str:
        """The name of the model in signatures."""
        return self.options.model

    @property
    def servers(self) -> tuple[str, ...]:
        """The addresses of the servers, because different servers may use the same name for different models."""
        return ()

    @property
    def default_temperature(self) -> float:
        """The temperature if the card does not specify one: that of the paper, which is meant for top-k sampling."""
        return Sampling().temperature

    @property
    def retries(self) -> int:
        """The number of retried requests, for the progress bar."""
        return 0

    @property
    def starts_late(self) -> bool:
        """Whether loading is so slow that `engine=auto` prefers another available engine."""
        return False

    @property
    def samples_per_request(self) -> int | None:
        """The maximum number of samples per request; None if there is no limit."""
        return None

    def confirm(self) -> None:
        """Verify cached parts of `identity` before the first sample, and correct the identity if they are outdated."""
        return None

    def load(self) -> None:
        """Load the model or connect. `generate` calls it if needed. Raises `EngineError` with a fix."""
        return None

    def missing_capability(self, *, logprobs: bool, grammar: bool) -> str | None:
        """A message about a required capability that the engine lacks, with a fix; None if it has all of them.

        Args:
            logprobs: whether log-probabilities are required, as defined by `Candidate.logprob`.
            grammar: whether a separate regular expression for each segment is required.
        """
        return None

    def unsupported_settings(self, sampling: Sampling) -> tuple[str, ...]:
        """The names of the settings of `sampling` that this engine does not support and ignores."""
        return ()

    def close(self) -> None:
        """Release all resources; can be called repeatedly."""
        return None


#: The engines in `generation/engines/` and in the entry points ``mbr_esd_metric.engines`` of other packages.
ENGINES = Catalog("engine", "engines", "mbr_esd_metric.generation.engines", Engine)  # type: ignore[type-abstract]
#: The engines that `engine=auto` tries, in this order, for formats that do not require an engine.
AUTOMATIC = ("server", "vllm", "transformers")
#: The engine without a model.
NO_MODEL = "checks"
