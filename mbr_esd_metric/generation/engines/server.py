"""`engine=server`: any chat server, in the dialect that it speaks.

This is how ``comet-score`` reaches a large model on another machine, or from an environment with COMET's own
requirements: the server runs where the GPUs are, and this engine asks it for candidates over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from mbr_esd_metric.errors import EngineError, say
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.model_files import model_name
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.client import Client, Job, Prices, Progress, RetryPolicy
from mbr_esd_metric.generation.server.detection import addresses_of, check_served, confirm, dialect_of
from mbr_esd_metric.generation.server.dialects import Dialect
from mbr_esd_metric.generation.server.http import PROBE_SECONDS, Http, run_coroutine

_announced: set[str] = set()


class ServerEngine(Engine):
    """Asks one or several servers that all serve the same model in the same dialect.

    The key comes from ``MBR_ESD_API_KEY``; `address` says which servers it is sent to.
    """

    name: ClassVar[str] = "server"
    description: ClassVar[str] = "a server on this machine or another, where vLLM or the like holds the model"
    packages: ClassVar[tuple[str, ...]] = ("aiohttp",)
    extra: ClassVar[str] = "server"
    rank: ClassVar[int | None] = 1
    card_field: ClassVar[str] = "servers"
    how_to_set_field: ClassVar[str] = (
        "start a server on a machine with GPUs (mbr-esd serve {card}), then here: "
        "export MBR_ESD_SERVER=http://HOST:8000/v1"
    )
    loads_weights: ClassVar[bool] = False

    def __init__(self, options: EngineOptions, policy: RetryPolicy | None = None) -> None:
        """Connect. At least one server must answer, and those that answer must serve the model."""
        self._options = options
        self._policy, self._progress = policy or RetryPolicy(), Progress()
        self._model = model_name(options)
        self._servers = addresses_of(options)
        self._dialect = dialect_of(options)
        run_coroutine(_check(self._servers, self._dialect, self._model))
        confirm(options, self._dialect)

    @classmethod
    def dialect(cls, options: EngineOptions) -> Dialect:
        """The dialect of the servers."""
        return dialect_of(options)

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        try:
            servers = addresses_of(options)
            run_coroutine(_check(servers, cls.dialect(options), model_name(options)))
        except EngineError as error:
            return str(error)
        return None

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        """The name under which the server offers the model (see `model_name`), and the dialect."""
        # How a request travels changes no candidate, so `engine=batch` has the same.
        identity = {"engine": "server", "model": model_name(options), "dtype": options.dtype}
        return identity | cls.dialect(options).identity

    @classmethod
    def lacks(cls, options: EngineOptions, *, logprobs: bool, grammar: bool) -> str | None:
        dialect = cls.dialect(options)
        if logprobs and not dialect.logprobs:
            return (
                f"dialect={dialect.name} gives no log-probabilities over the admissible tokens; take rule=mbr with "
                "weights=uniform, or a server of vLLM"
            )
        if grammar and dialect.guidance not in ("regex", "gbnf"):
            return (
                f"dialect={dialect.name} takes no grammar; leave it out, or take a server of vLLM, SGLang or llama.cpp"
            )
        return None

    @classmethod
    def left_out(cls, options: EngineOptions, sampling: Sampling) -> tuple[str, ...]:
        return cls.dialect(options).left_out(sampling)

    @classmethod
    def samples_a_request(cls, options: EngineOptions) -> int:
        return cls.dialect(options).per_request

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        """Sample every request, many at a time; a part is yielded as soon as its reply is in, or refused for good.

        Requests go out in the order in which they are given, each taken when it can be sent. `EngineError` is raised
        only if no request can succeed.
        """
        yield from Client(self.job(self._options, sampling, self._servers, self._policy), requests, self._progress)

    @classmethod
    def job(cls, options: EngineOptions, sampling: Sampling, servers: list[Address], policy: RetryPolicy) -> Job:
        """The settings of a run; prints what the dialect leaves out, which changes what the numbers mean."""
        dialect = cls.dialect(options)
        left_out = [f"{name}={getattr(sampling, name)}" for name in dialect.left_out(sampling)]
        guided = {"schema": "a JSON schema in place of the grammar", "none": "nothing that holds the model to the form"}
        if dialect.guidance in guided:
            left_out.append(f"the grammar (there is {guided[dialect.guidance]})")
        line = f"mbr-esd: {servers[0]} is asked in dialect={dialect.name}; left out: {', '.join(left_out)}"
        if left_out and line not in _announced:
            _announced.add(line)
            say(line)
        return Job(
            servers=servers,
            dialect=dialect,
            model=model_name(options),
            sampling=sampling,
            policy=policy,
            prices=Prices(*(options.price or (0.0, 0.0)), options.max_cost),
            concurrency=options.concurrency,
        )


async def _check(servers: Iterable[Address], dialect: Dialect, model: str) -> None:
    """Ask every server what it serves; an error if none answers, or one that answers does not serve the model."""
    async with Http(PROBE_SECONDS) as http:
        problems = [await check_served(http, address, dialect, model) for address in servers]
    if (problem := problems[-1]) is not None and None not in problems:
        raise problem
