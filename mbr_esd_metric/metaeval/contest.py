"""A permutation test between metrics, whatever it permutes: many pairs at once, drawn until the verdict is clear."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import OptionError

#: Two metrics by name: does the second beat the first?
MetricPair: TypeAlias = tuple[str, str]
#: Called with the number of further draws that are done.
DrawsDone: TypeAlias = Callable[[int], None]
#: (pairs, number) -> the next draws of each pair; every call takes some of the pairs of the call before.
NextDraws: TypeAlias = Callable[[Sequence[MetricPair], int], dict[MetricPair, npt.NDArray[np.float64]]]


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """Stop drawing as soon as the verdict is clear; mt-metrics-eval's WMT tasks use blocks of 100.

    Attributes:
        block: the number of draws between two checks.
        low, high: stop if the p-value so far is below `low` or above `high`.
    """

    block: int = 100
    low: float = 0.02
    high: float = 0.5


@dataclass(frozen=True, slots=True)
class PermBoth:
    """The outcome of one test.

    Attributes:
        p_value: small if b is better than a.
        delta: statistic of b minus that of a.
        draws: the k (or fewer, see `EarlyStop`) differences under the null hypothesis.
    """

    p_value: float
    delta: float
    draws: npt.NDArray[np.float64] = field(repr=False, compare=False)


class Contest(ABC):
    """Metrics prepared for many tests: everything that depends on a single metric is computed once.

    Attributes:
        values: metric -> its statistic, higher is better.
    """

    values: dict[str, float]

    def test(self, a: str, b: str, k: int, seed: int, stop: EarlyStop | None) -> PermBoth:
        """`perm_both` for two of the metrics by name."""
        return self.tests([(a, b)], k, seed, stop)[a, b]

    def tests(
        self,
        pairs: Sequence[MetricPair],
        k: int,
        seed: int,
        stop: EarlyStop | None,
        workers: int = 1,
        progress: DrawsDone | None = None,
    ) -> dict[MetricPair, PermBoth]:
        """`perm_both` for each pair (a, b) by name; all share their draws, as they share the seed.

        Args:
            pairs: of names in `values`.
            k, seed, stop: as for `perm_both`.
            workers: threads.
            progress: called with numbers of draws that were made, or that are not needed; they add up to k for a pair.
        """
        if k < 1:
            raise OptionError(f"k is {k}; a permutation test needs at least one draw")
        if not pairs:
            return {}
        deltas = {pair: self._delta(*pair) for pair in pairs}
        draws = {pair: np.empty(0) for pair in pairs}
        reached = dict.fromkeys(pairs, 0)
        open_pairs = list(pairs)
        block = k if stop is None else stop.block
        with ThreadPoolExecutor(workers) as pool:
            draw = self._sampler(k, seed, pool, workers)
            for start in range(0, k, block):
                count = min(block, k - start)
                found = draw(open_pairs, count)
                closed = set()
                for pair in open_pairs:
                    draws[pair] = np.append(draws[pair], found[pair])
                    # Equal differences must count as reached, whatever the order of their additions.
                    reached[pair] += int((found[pair] >= deltas[pair] - 1e-12).sum())
                    if stop is not None and not stop.low <= reached[pair] / len(draws[pair]) <= stop.high:
                        closed.add(pair)
                if progress is not None:
                    progress(count * len(open_pairs) + (k - start - count) * len(closed))
                open_pairs = [pair for pair in open_pairs if pair not in closed]
                if not open_pairs:
                    break
        return {pair: PermBoth(reached[pair] / len(draws[pair]), deltas[pair], draws[pair]) for pair in pairs}

    @abstractmethod
    def _delta(self, a: str, b: str) -> float:
        """The observed difference, b minus a."""

    @abstractmethod
    def _sampler(self, k: int, seed: int, pool: Executor, workers: int) -> NextDraws:
        """Returns a function that draws the next differences under the null hypothesis, for some pairs; at most k."""


def coins(rng: np.random.Generator, draws: int, systems: int, segments: int) -> npt.NDArray[np.bool_]:
    """(draws, systems, segments) fair coins; the stream is the same however the draws are cut into calls."""
    count = systems * segments
    words = rng.integers(0, 1 << 64, size=(draws, -(-count // 64)), dtype=np.uint64)
    bits = np.unpackbits(words.view(np.uint8), axis=1, count=count)
    return bits.view(np.bool_).reshape(draws, systems, segments)
