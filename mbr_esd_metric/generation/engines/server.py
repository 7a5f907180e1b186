"""`engine=server`: any chat server with a supported dialect. Its dependencies are light, so that it runs in any
environment, such as COMET's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.dialects import DIALECTS, DIALECTS_FILE, Dialect, get_dialect
from mbr_esd_metric.generation.store import read_cache
from mbr_esd_metric.log import logger

if TYPE_CHECKING:
    from mbr_esd_metric.generation.server.client import Client, Progress, RetryPolicy
    from mbr_esd_metric.generation.server.detection import Servers


class ServerEngine(Engine):
    """Samples from one or several servers with the same model and the same dialect."""

    name: ClassVar[str] = "server"
    description: ClassVar[str] = "a local or remote server that runs the model (vLLM or similar)"
    packages: ClassVar[tuple[str, ...]] = ("aiohttp",)
    extra: ClassVar[str] = "server"
    loads_weights: ClassVar[bool] = False
    _assumed = False
    _progress: Progress | None = None

    def __init__(self, options: EngineOptions, policy: RetryPolicy | None = None) -> None:
        super().__init__(options)
        self._policy = policy

    @cached_property
    def _servers(self) -> Servers:
        from mbr_esd_metric.generation.server.detection import Servers

        return Servers(self.addresses)

    @cached_property
    def addresses(self) -> list[Address]:
        """The server addresses. Raises `EngineError` if there are none, or one is invalid."""
        if not self.options.server:
            raise EngineError("no server given: add server=URL to the model name, or export MBR_ESD_SERVER=URL")
        return [Address.parse(url) for url in self.options.server]

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(one.url for one in self.addresses)

    @cached_property
    def model(self) -> str:
        """The model name on the server; if the options do not specify a model, the only model of the server."""
        options = self.options
        if not options.model:
            return self._servers.serving("", self.dialect)
        if not (options.revision or options.adapter or options.vllm or Path(options.model).is_dir()):
            return options.model
        from mbr_esd_metric.generation.pretrained import model_name

        return model_name(options)

    @cached_property
    def dialect(self) -> Dialect:
        """The dialect in the options, or else the one detected in an earlier run, or else the one detected now."""
        name = self.options.dialect
        if name == "auto":
            earlier = read_cache(DIALECTS_FILE)
            names = {str(earlier.get(one.url)) for one in self.addresses} if self.options.server else {"vllm"}
            known = names.pop() if len(names) == 1 and names <= DIALECTS.keys() else None
            self._assumed = known is not None
            name = known or self._servers.dialect()
        return replace(get_dialect(name), reasoning_effort=self.options.reasoning_effort)

    @cached_property
    def problem(self) -> str | None:
        try:
            self.confirm()
            self.load()
        except EngineError as error:
            return str(error)
        return None

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """The model name on the server, and the dialect; equal to the identity of `engine=batch`."""
        identity, dialect = {"engine": "server", "model": self.model, "dtype": self.options.dtype}, self.dialect
        if dialect.name != "vllm":  # the default, omitted from the identity
            identity |= {"dialect": dialect.name, "dialect_version": str(dialect.version)}
        if dialect.reasoning_effort is not None:
            identity["reasoning_effort"] = dialect.reasoning_effort
        return identity

    def confirm(self) -> None:
        dialect = self.dialect
        if self._assumed and (spoken := self._servers.dialect()) != dialect.name:
            self.dialect = replace(get_dialect(spoken), reasoning_effort=dialect.reasoning_effort)
            self.__dict__.pop("identity", None)
        self._assumed = False

    def missing_capability(self, *, logprobs: bool, grammar: bool) -> str | None:
        dialect, missing = self.dialect, None
        if logprobs and not dialect.logprobs:
            fix = "use rule=mbr with weights=uniform, or a vLLM server"
            missing = f"dialect={dialect.name} does not return log-probabilities over the allowed tokens; {fix}"
        elif grammar and dialect.guidance not in ("regex", "gbnf"):
            fix = "remove it, or use a vLLM, SGLang or llama.cpp server"
            missing = f"dialect={dialect.name} does not support grammars; {fix}"
        if missing and self._assumed:
            self.confirm()
            return self.missing_capability(logprobs=logprobs, grammar=grammar)
        return missing

    def unsupported_settings(self, sampling: Sampling) -> tuple[str, ...]:
        dialect, able = self.dialect, self.dialect.takes_temperature
        unsupported = {
            "temperature": not able and not sampling.greedy,
            "top_k": not (dialect.top_k and able) and sampling.top_k > 0,
            "seed": not dialect.seed and not sampling.greedy,
        }
        return tuple(name for name, missing in unsupported.items() if missing)

    @property
    def default_temperature(self) -> float:
        return 1.0 if self.dialect.takes_temperature and not self.dialect.top_k else Sampling().temperature

    @property
    def retries(self) -> int:
        return self._progress.retries if self._progress else 0

    @property
    def samples_per_request(self) -> int:
        return self.dialect.per_request

    def load(self) -> None:
        """Raise `EngineError` if no server answers, or one does not serve the model. Servers are queried once."""
        self._servers.serving(self.model, self.dialect)

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        self.load()
        yield from self.client(sampling).generate(requests)

    def client(self, sampling: Sampling) -> Client:
        """The client of a run. Logs, once, the settings that the dialect does not support, because they affect
        scores."""
        from mbr_esd_metric.generation.server.client import Client, Progress, RetryPolicy

        dialect, policy = self.dialect, self._policy or RetryPolicy()
        left_out = [f"{name}={getattr(sampling, name)}" for name in self.unsupported_settings(sampling)]
        guided = {"schema": "a JSON schema in place of the grammar", "none": "no guided decoding"}
        if dialect.guidance in guided:
            left_out.append(f"the grammar (there is {guided[dialect.guidance]})")
        if left_out and self._progress is None:
            hot = "" if dialect.top_k or not dialect.takes_temperature else f" at temperature={sampling.temperature:g}"
            settings = f"in dialect={dialect.name}{hot}; left out: {', '.join(left_out)}"
            logger.info(f"{self.addresses[0]} gets requests {settings}")
        self._progress = self._progress or Progress()
        return Client(self.addresses, dialect, self.model, sampling, self.options, policy, self._progress)
