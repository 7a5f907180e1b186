"""A permutation test between metrics, whatever it permutes: many pairs at once, drawn until the verdict is clear.

`SpaContest` is that of SPA (see `significance`): all draws of all metrics come from a few matrix products.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metaeval.exact import exact_p_values
from mbr_esd_metric.metaeval.matrices import BoolMatrix, FloatMatrix
from mbr_esd_metric.metaeval.spa import PERMUTATIONS, pairwise_p_values, signs, spa_of_p_values

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


_EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
_ONES = np.uint64(0x0001000100010001)

#: Draws that are computed together: few enough that the data of a test of WMT's size stay in the cache.
_BLOCK = 20


class SpaContest(Contest):
    """Swaps standardised scores, independently for each system and segment, and computes SPA of both results.

    All tests share the coins of a draw. So one matrix product for each metric gives the sums, over the segments with a
    negative sign, of the scores that a draw swaps. The sums of both results follow from these by additions, for each
    pair of metrics. Scores are rounded to whole multiples of a small unit, so that the sums are exact in single
    precision, whatever the order of the additions.
    """

    def __init__(self, gold: FloatMatrix, metrics: dict[str, FloatMatrix], exact: bool = False) -> None:
        self._exact = exact
        p_values = exact_p_values if exact else pairwise_p_values
        gold_p = p_values(gold)
        self.values = {name: spa_of_p_values(gold_p, p_values(scores)) for name, scores in metrics.items()}
        standard = {name: _standardised(scores) for name, scores in metrics.items()}
        systems, segments = gold.shape
        self._upper = np.triu_indices(systems, 1)
        self._flipped = (signs(segments).T < 0).astype(np.float32)
        unit = _unit(standard.values())
        self._scores = {name: np.rint(scores * unit).astype(np.float32) for name, scores in standard.items()}
        self._sums = {name: (scores @ self._flipped)[:, None] for name, scores in self._scores.items()}
        if exact:
            # Ties count half here too, so p-values of the draws are compared with such p-values.
            self._gold = self._doubled(_on_grid(gold) @ self._flipped)
            own = {name: self._doubled(sums[:, 0]) for name, sums in self._sums.items()}
            self._standard_values = {name: -self._error(counts[:, None])[0] for name, counts in own.items()}
        else:
            self._gold = 2 * np.rint(pairwise_p_values(gold)[self._upper] * PERMUTATIONS).astype(np.int32)
            self._standard_values = {
                name: spa_of_p_values(gold_p, pairwise_p_values(scores)) for name, scores in standard.items()
            }

    def _delta(self, a: str, b: str) -> float:
        return float(self._standard_values[b] - self._standard_values[a])

    def _sampler(self, k: int, seed: int, pool: Executor, workers: int) -> NextDraws:
        rng = np.random.default_rng(seed)
        systems, segments = next(iter(self._scores.values())).shape
        rooms = [_Room.of(systems, min(_BLOCK, k)) for _ in range(workers)]
        spread: Callable[..., Iterable[Any]] = map if workers == 1 else pool.map

        def draw(pairs: Sequence[MetricPair], count: int) -> dict[MetricPair, npt.NDArray[np.float64]]:
            names = list(dict.fromkeys(name for pair in pairs for name in pair))
            # One product for each metric, or for each pair if these are fewer. The sums are exact, so both are equal.
            wanted = names if len(names) < len(pairs) else []
            size = -(-len(pairs) // workers)
            shares = [pairs[at : at + size] for at in range(0, len(pairs), size)]
            parts = []
            for at in range(0, count, _BLOCK):
                # (systems, draws, segments)
                flips = coins(rng, min(_BLOCK, count - at), systems, segments).swapaxes(0, 1)
                products = spread(self._flipped_sums, (self._scores[name] for name in wanted), repeat(flips))
                sums = dict(zip(wanted, products, strict=True))
                found = spread(self._differences, shares, rooms[: len(shares)], repeat(flips), repeat(sums))
                parts.append([values for share in found for values in share])
            return {pair: np.concatenate(values) for pair, values in zip(pairs, zip(*parts, strict=True), strict=True)}

        return draw

    def _differences(
        self, pairs: Sequence[MetricPair], room: _Room, coins: BoolMatrix, sums: Mapping[str, npt.NDArray[np.float32]]
    ) -> list[npt.NDArray[np.float64]]:
        """For each pair the differences of draws with these coins.

        Args:
            pairs: of metrics.
            room: the arrays to work in.
            coins: (systems, draws, segments).
            sums: `_flipped_sums` of each metric; if it is empty, they are computed for each pair.
        """
        found = []
        draws = coins.shape[1]
        change, half = room.change[:, :draws], room.half[:, :draws]
        for a, b in pairs:
            if self._same(a, b):
                found.append(np.zeros(draws))
                continue
            if sums:
                np.subtract(sums[b], sums[a], out=change)
            else:
                change = self._flipped_sums(self._scores[b] - self._scores[a], coins)
            error_a = self._error(self._counts(np.add(self._sums[a], change, out=half), room))
            error_b = self._error(self._counts(np.subtract(self._sums[b], change, out=half), room))
            found.append(error_a - error_b)
        return found

    def _same(self, a: str, b: str) -> bool:
        """Whether two metrics have the same scores, up to scale."""
        first, second = self._scores[a], self._scores[b]
        return bool(first[0, 0] == second[0, 0]) and np.array_equal(first, second)

    def _flipped_sums(self, scores: npt.NDArray[np.float32], coins: BoolMatrix) -> npt.NDArray[np.float32]:
        """Sums of the scores that each draw swaps, over the segments with a negative sign.

        Args:
            scores: (systems, segments).
            coins: (systems, draws, segments).

        Returns:
            (systems, draws, PERMUTATIONS).
        """
        systems, draws, segments = coins.shape
        chosen = np.where(coins, scores[:, None], np.float32(0)).reshape(-1, segments)
        return np.asarray((chosen @ self._flipped).reshape(systems, draws, PERMUTATIONS))

    def _error(self, counts: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """One minus SPA of each draw, of (pairs of systems, draws) doubled counts."""
        total = np.abs(counts - self._gold[:, None]).sum(axis=0)
        return np.asarray(total / (2.0 * PERMUTATIONS * len(self._gold)))

    def _doubled(self, sums: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """`_counts` of (systems, PERMUTATIONS) sums, (pairs of systems,)."""
        return self._counts(sums[:, None], _Room.of(len(sums), 1))[:, 0]

    def _counts(self, sums: npt.NDArray[np.float32], room: _Room) -> npt.NDArray[np.int32]:
        """Twice the number of permutations that give system i at least its observed lead over j, for i < j.

        The lead under the signs s reaches the observed one if ``sum(s * d) >= sum(d)``, that is, if the differences of
        the segments with a negative sign add up to at most 0. So two sums are compared, and nothing is subtracted. With
        `exact`, permutations that just reach the lead count once, not twice.

        Args:
            sums: (systems, draws, PERMUTATIONS) of each system's scores over the segments with a negative sign.
            room: the arrays to work in.

        Returns:
            (pairs of systems, draws).
        """
        counts = _compared(sums, room, np.less_equal)
        return counts + _compared(sums, room, np.less) if self._exact else 2 * counts


@dataclass(frozen=True, slots=True)
class _Room:
    """The arrays that a thread works in; they are kept from test to test.

    Attributes:
        change, half: (systems, draws, PERMUTATIONS).
        reached: (pairs of systems, draws, PERMUTATIONS).
    """

    change: npt.NDArray[np.float32]
    half: npt.NDArray[np.float32]
    reached: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, systems: int, draws: int) -> _Room:
        """Room for so many draws at once."""
        shape = (systems, draws, PERMUTATIONS)
        pairs = systems * (systems - 1) // 2
        return cls(np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty((pairs, *shape[1:]), np.bool_))


def _compared(sums: npt.NDArray[np.float32], room: _Room, comparison: np.ufunc) -> npt.NDArray[np.int32]:
    """How often the comparison holds between the sums of systems i < j, (pairs of systems, draws)."""
    systems, draws, _ = sums.shape
    # A view of the room's first bytes, so that all draws of a pair are one stretch of memory.
    pairs = systems * (systems - 1) // 2
    reached = room.reached.reshape(-1)[: pairs * draws * PERMUTATIONS].reshape(pairs, draws, PERMUTATIONS)
    at = 0
    for i in range(systems - 1):
        following = at + systems - 1 - i
        comparison(sums[i], sums[i + 1 :], out=reached[at:following])
        at = following
    # Eight truth values at a time as the bytes of one word; PERMUTATIONS / 8 <= 255, so no byte overflows. Then these
    # bytes in twos, and the twos added up in the word's highest 16 bits.
    words = np.add.reduce(reached.view(np.uint64), axis=2)
    words = (words & _EVEN_BYTES) + ((words >> np.uint64(8)) & _EVEN_BYTES)
    return np.asarray((words * _ONES) >> np.uint64(48), dtype=np.int32)


def _standardised(scores: FloatMatrix) -> FloatMatrix:
    """The scores shifted and scaled to mean zero and unit deviation; a constant metric becomes zero.

    (mt-metrics-eval divides by zero there. Every comparison with NaN is then false, and the p-value is 0 or 1 by
    accident.)
    """
    if (scores == scores[0, 0]).all():
        return np.zeros_like(scores)
    return np.asarray((scores - scores.mean()) / scores.std())


def _unit(scores: Iterable[FloatMatrix]) -> float:
    """The number of steps in 1, on a grid so fine that rounding changes no sum, and so coarse that sums are exact.

    Single precision holds whole numbers up to 2^24. The sums of two matrices are added, and rounding adds a little.
    """
    largest = max((float(np.abs(matrix).sum(axis=1).max()) for matrix in scores), default=0.0)
    return float(2.0 ** np.floor(np.log2((1 << 22) / largest))) if largest else 1.0


def _on_grid(scores: FloatMatrix) -> npt.NDArray[np.float32]:
    centred = scores - scores.mean()
    return np.asarray(np.rint(centred * _unit([centred])), dtype=np.float32)
