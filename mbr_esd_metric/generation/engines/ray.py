"""`engine=ray`: copies of the engine vllm or transformers on the machines of a Ray cluster, fed by Ray Data.

Each actor holds one copy of the model. vLLM runs it where it is installed, and transformers elsewhere. A row stands
for up to `PART` samples of one segment. An actor samples `ROWS` rows in one call and returns them together, so a run
that is stopped loses at most these rows for each actor. The samples are the same as those of that engine on one
machine; Ray only decides where they are drawn. (``ray.data.llm`` would give one output a row, in a dialect of its own.)
"""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from mbr_esd_metric.errors import KEPT, EngineError, MissingDependencyError
from mbr_esd_metric.generation.base import Engine, EngineOptions, Generated, Request, Sampling
from mbr_esd_metric.generation.registry import engine_class

#: Samples in a row, and rows that an actor is given at once.
PART = 16
ROWS = 32


class RayEngine(Engine):
    """Runs on the cluster that ``ray.init()`` finds (``RAY_ADDRESS``), else on this machine alone.

    `data_parallel` is the number of copies, and `tensor_parallel` the GPUs for each copy. The other options go to the
    engine in the actors.
    """

    name: ClassVar[str] = "ray"
    description: ClassVar[str] = "vllm or transformers on the machines of a Ray cluster"
    packages: ClassVar[tuple[str, ...]] = ("ray",)
    extra: ClassVar[str] = "ray"

    def __init__(self, options: EngineOptions) -> None:
        """Connect to the cluster; the model is loaded by the actors when `generate` starts.

        Raises:
            MissingDependencyError: Ray is not installed.
            EngineError: no cluster can be reached or started.
        """
        _require_ray()
        import ray

        self._options = options
        if not ray.is_initialized():
            try:
                ray.init(log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise EngineError(f"no Ray cluster: {error}; see RAY_ADDRESS, or `ray start --head`") from error

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        """Why Ray cannot run the model; None if it can, judged by this machine in place of the cluster's."""
        try:
            _require_ray()
        except EngineError as error:
            return str(error)
        return engine_class(_inner()).problem(replace(options, data_parallel=1))

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        """The identity of the engine in the actors, which draws the samples."""
        return engine_class(_inner()).identity(options)

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        """Spread the requests over the actors, and yield the parts as the actors return them.

        Raises:
            EngineError: an actor failed; the message is the actor's.
        """
        import ray

        step = 1 if sampling.greedy else PART
        rows = [
            {"part": pickle.dumps(replace(request, first=request.first + done, n=min(step, request.n - done)))}
            for request in requests
            for done in range(0, request.n, step)
        ]
        if not rows:
            return
        copies = self._options.data_parallel
        has_gpus = ray.cluster_resources().get("GPU", 0) > 0
        ray.data.DataContext.get_current().enable_progress_bars = False
        data = ray.data.from_items(rows, override_num_blocks=max(1, -(-len(rows) // ROWS))).map_batches(
            _Copy,
            fn_constructor_args=(replace(self._options, data_parallel=1), sampling, _inner()),
            batch_size=ROWS,
            concurrency=copies,
            num_gpus=self._options.tensor_parallel if has_gpus else 0,
        )
        try:
            for row in data.iter_rows():
                yield pickle.loads(row["part"])
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, EngineError):
                raise EngineError(str(cause)) from None
            last = str(cause).strip().splitlines()[-1]
            raise EngineError(f"Ray: {last}; {KEPT}") from error


class _Copy:
    """One actor: it holds an engine and samples the batches of rows that Ray Data gives it.

    Requests and samples are pickled, because Ray's own columns would change None and dataclasses.
    """

    def __init__(self, options: EngineOptions, sampling: Sampling, inner: str) -> None:
        self._engine = engine_class(inner)(options)
        self._sampling = sampling

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        requests = [pickle.loads(part) for part in batch["part"]]
        return {"part": [pickle.dumps(part) for part in self._engine.generate(requests, self._sampling)]}


def _inner() -> str:
    return "vllm" if importlib.util.find_spec("vllm") is not None else "transformers"


def _require_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise MissingDependencyError("ray", "ray", "engine=ray")
