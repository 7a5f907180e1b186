"""`engine=ray`: replicas of the engine vllm or transformers on the nodes of a Ray cluster.

Each actor loads one replica of the model, and processes batches of `ROWS` requests for up to `PART` samples, with
`AHEAD` batches queued. (Ray Data would read all requests first.) Replicas that do not fit yet are queued until a node
joins. If a replica is lost, its batches are redistributed, and a new replica is started when there are resources.
"""

from __future__ import annotations

import importlib.util
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from mbr_esd_metric.errors import RESUME, EngineError, require
from mbr_esd_metric.generation.engine import ENGINES, Engine, Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.engines.vllm import tensor_parallel

#: Samples per request, requests per batch, and queued batches per actor.
PART = 16
ROWS = 32
AHEAD = 2
#: The run ends if more than the number of replicas plus this are lost without a result in between.
MORE_LOSSES = 3


class RayEngine(Engine):
    """Runs on the cluster that ``ray.init()`` finds (``RAY_ADDRESS``), or on this machine.

    `concurrency` is the number of replicas, and `vllm=tensor_parallel_size:4` sets the number of GPUs per replica. The
    other options are passed to the engine in the actors.
    """

    name: ClassVar[str] = "ray"
    description: ClassVar[str] = "vllm or transformers on the nodes of a Ray cluster"
    packages: ClassVar[tuple[str, ...]] = ("ray",)
    extra: ClassVar[str] = "ray"

    @cached_property
    def copy(self) -> Engine:
        """The engine that each actor loads."""
        name = "vllm" if importlib.util.find_spec("vllm") is not None else "transformers"
        return ENGINES.get(name)(self.options)

    @property
    def problem(self) -> str | None:
        """The reason why Ray cannot run the model, or None. The check is for this machine, not for the cluster's
        nodes."""
        try:
            require("ray", "ray", "engine=ray")
        except EngineError as error:
            return str(error)
        return self.copy.problem

    @property
    def model(self) -> str:
        return self.copy.model

    @property
    def identity(self) -> Mapping[str, str]:
        return self.copy.identity

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        require("ray", "ray", "engine=ray")
        import ray

        if not ray.is_initialized():
            try:
                ray.init(log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise EngineError(
                    f"cannot connect to a Ray cluster: {error}; check RAY_ADDRESS, or run `ray start --head`"
                ) from error
        gpus = tensor_parallel(self.options) if ray.cluster_resources().get("GPU", 0) > 0 else 0
        copies = _Copies(ray.remote(num_cpus=1, num_gpus=gpus)(_Worker), (self.copy, sampling))
        try:
            yield from copies.results(_batches(requests), self.options.concurrency or 1)
        finally:
            for actor in copies.actors():
                ray.kill(actor)


def _batches(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """Batches of `ROWS` parts with `PART` samples each; requests are read lazily."""
    parts = (part for request in requests for part in request.parts(PART))
    while batch := list(islice(parts, ROWS)):
        yield batch


class _Copies:
    def __init__(self, worker: Any, arguments: tuple[Any, ...]) -> None:
        self._worker, self._arguments = worker, arguments
        #: Result reference -> its actor and batch; the batch is None while the actor loads the model.
        self._tasks: dict[Any, tuple[Any, list[Request] | None]] = {}
        #: Actor with a loaded model -> the number of its batches.
        self._load: dict[Any, int] = {}

    def actors(self) -> set[Any]:
        return {*self._load, *(actor for actor, _ in self._tasks.values())}

    def results(self, batches: Iterator[list[Request]], most: int) -> Iterator[Generated | Refused]:
        """The results of at most `most` actors, as they arrive. Raises `EngineError` for an error in an actor, or if
        too many actors are lost."""
        import ray

        lost, waiting = 0, deque(islice(batches, most))
        for _ in range(len(waiting)):
            self._spawn()
        while waiting or any(batch is not None for _, batch in self._tasks.values()):
            (done,), _ = ray.wait(list(self._tasks), num_returns=1)
            actor, batch = self._tasks.pop(done)
            parts: Sequence[Generated | Refused] = ()
            try:
                parts = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, EngineError):
                    raise EngineError(str(error.cause)) from None
                raise EngineError(f"Ray: {_last_line(error.cause)}; {RESUME}") from error
            except ray.exceptions.RayError as error:
                if batch is not None:
                    waiting.append(batch)
                if batch is None or self._load.pop(actor, None) is not None:  # the first lost result of this actor
                    ray.kill(actor)  # it may still be running, if only the connection is lost
                    self._spawn()
                    lost += 1
                if lost > most + MORE_LOSSES:
                    message = f"Ray lost {lost} replicas in a row: {_last_line(error)}; {RESUME}"
                    raise EngineError(message) from error
            else:
                if batch is None:
                    self._load[actor] = 0
                elif actor in self._load:
                    self._load[actor] -= 1
            while self._load:  # assign batches to the least busy actor until all queues are full
                idle = min(self._load, key=self._load.__getitem__)
                if self._load[idle] == AHEAD:
                    break
                batch = waiting.popleft() if waiting else next(batches, None)
                if batch is None:
                    break
                self._tasks[idle.sample.remote(batch)] = (idle, batch)
                self._load[idle] += 1
            if parts:
                lost = 0
                yield from parts

    def _spawn(self) -> None:
        actor = self._worker.remote(*self._arguments)
        self._tasks[actor.start.remote()] = (actor, None)


class _Worker:
    """The code of one actor."""

    def __init__(self, engine: Engine, sampling: Sampling) -> None:
        self._engine, self._sampling = engine, sampling

    def start(self) -> None:
        self._engine.load()

    def sample(self, requests: Sequence[Request]) -> list[Generated | Refused]:
        return list(self._engine.generate(requests, self._sampling))


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
