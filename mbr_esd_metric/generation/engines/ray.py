"""`engine=ray`: copies of the engine vllm or transformers on the nodes of a Ray cluster.

Each actor holds one copy of the model and gets batches of `ROWS` requests for up to `PART` samples, `AHEAD` of them at
a time. (Ray Data would read all requests first.) A copy for which the cluster has no room waits until a machine joins.
If one is lost, its batches go to the other copies, and a new copy takes its place when there is room.
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

#: Samples in a request, requests in a batch, and batches that an actor has at a time.
PART = 16
ROWS = 32
AHEAD = 2
#: More copies than there are may be lost without a result between them, before the run ends.
MORE_LOSSES = 3


class RayEngine(Engine):
    """Runs on the cluster that ``ray.init()`` finds (``RAY_ADDRESS``), else on this machine alone.

    `concurrency` is the number of copies, and `vllm=tensor_parallel_size:4` the GPUs for each copy. The other options
    go to the engine in the actors.
    """

    name: ClassVar[str] = "ray"
    description: ClassVar[str] = "vllm or transformers on the nodes of a Ray cluster"
    packages: ClassVar[tuple[str, ...]] = ("ray",)
    extra: ClassVar[str] = "ray"

    @cached_property
    def copy(self) -> Engine:
        """The engine that each actor gets and loads, which draws the samples."""
        name = "vllm" if importlib.util.find_spec("vllm") is not None else "transformers"
        return ENGINES.get(name)(self.options)

    @property
    def problem(self) -> str | None:
        """Why Ray cannot run the model; None if it can, judged by this machine in place of the cluster's."""
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
    """Parts of `PART` samples, `ROWS` together; requests are read as they are needed."""
    parts = (part for request in requests for part in request.parts(PART))
    while batch := list(islice(parts, ROWS)):
        yield batch


class _Copies:
    def __init__(self, worker: Any, arguments: tuple[Any, ...]) -> None:
        self._worker, self._arguments = worker, arguments
        #: Reference of a result -> the actor at work, and the batch that it samples; None: it loads the model.
        self._tasks: dict[Any, tuple[Any, list[Request] | None]] = {}
        #: Actors that have the model -> the number of their batches.
        self._load: dict[Any, int] = {}

    def actors(self) -> set[Any]:
        return {*self._load, *(actor for actor, _ in self._tasks.values())}

    def results(self, batches: Iterator[list[Request]], most: int) -> Iterator[Generated | Refused]:
        """The parts of `most` actors or fewer, as they come; raises an actor's error, or that many are lost."""
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
                if batch is None or self._load.pop(actor, None) is not None:  # the first that is missed of this actor
                    ray.kill(actor)  # it may still be at work, if only the way to it is cut
                    self._spawn()
                    lost += 1
                if lost > most + MORE_LOSSES:
                    message = f"Ray lost {lost} copies of the model in a row: {_last_line(error)}; {RESUME}"
                    raise EngineError(message) from error
            else:
                if batch is None:
                    self._load[actor] = 0
                elif actor in self._load:
                    self._load[actor] -= 1
            while self._load:  # each actor gets batches until it has enough, the least busy one first
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
    """One actor."""

    def __init__(self, engine: Engine, sampling: Sampling) -> None:
        self._engine, self._sampling = engine, sampling

    def start(self) -> None:
        self._engine.load()

    def sample(self, requests: Sequence[Request]) -> list[Generated | Refused]:
        return list(self._engine.generate(requests, self._sampling))


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
