"""What a run asks servers for: its settings, and the parts of its requests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mbr_esd_metric.generation.engine import Request, Sampling
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.budget import Prices
from mbr_esd_metric.generation.server.dialect import Ask, Dialect
from mbr_esd_metric.generation.server.patience import Patience


@dataclass(frozen=True, slots=True)
class RequestPart:
    """Samples `first`, ..., `first + n - 1` of a request, which one HTTP request asks for."""

    request: Request
    first: int
    n: int

    def halves(self) -> tuple[RequestPart, RequestPart]:
        """The first half and the rest; for n > 1."""
        half = (self.n + 1) // 2
        return RequestPart(self.request, self.first, half), RequestPart(self.request, self.first + half, self.n - half)

    def without(self, first: int, count: int) -> list[RequestPart]:
        """What is left without samples `first`, ..., `first + count - 1`: a part before them, one after, or both."""
        ends = ((self.first, first), (first + count, self.first + self.n))
        return [RequestPart(self.request, begin, end - begin) for begin, end in ends if begin < end]

    @property
    def label(self) -> str:
        """How messages name the segment."""
        return self.request.label or self.request.key


def parts_of(requests: Iterable[Request], per_request: int) -> Iterator[RequestPart]:
    """The requests in parts; each request is taken when its first part is."""
    for request in requests:
        for done in range(0, request.n, per_request):
            yield RequestPart(request, request.first + done, min(per_request, request.n - done))


def sample_seed(seed: int, key: str) -> int:
    """Seed of sample 0 of a request; sample i takes this plus i.

    vLLM draws the samples of one request with seed, seed + 1, and so on. So sample i is the same however N is split
    over requests, and a run that goes on draws new samples, not copies.
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{key}".encode()).digest()[:6], "big")


@dataclass(frozen=True, slots=True)
class Job:
    """The settings of a run; `concurrency` is the number of requests in progress at the same time, and where it is
    `paced`, no server gets more of them than it can work on, and one."""

    servers: Sequence[Address]
    dialect: Dialect
    model: str
    sampling: Sampling
    patience: Patience
    prices: Prices
    concurrency: int
    paced: bool = True

    def ask(self, part: RequestPart) -> Ask:
        """The HTTP request of a part."""
        seed = sample_seed(self.sampling.seed, part.request.key) + part.first
        return Ask(part.request, part.first, part.n, self.model, seed, self.sampling)

    def bound(self, part: RequestPart) -> float:
        """The most that a part can cost."""
        return self.prices.bound(part.request.text, part.n * self.sampling.max_tokens)
