"""Optimal one-to-one matching of error spans for MPP: which spans are paired so that the F-score is highest.

A pair of spans earns one credit towards precision and another towards recall, and the F-score is the harmonic
mean of the two sums, so no single assignment problem gives the best matching. Two facts still make it fast, and exact
but for ties of many equal spans:

* For every t in [0, 1], ``H(P, R) = 2 P R / (P + R) <= 2 (t^2 P + (1 - t)^2 R)``, with equality at t = R / (P
  + R). So an assignment problem with credits weighted by t^2 and (1 - t)^2 bounds the F-score of *all* matchings.
  Mostly its own solution reaches the bound and so is the best one.
* If not, assignments are listed in order of decreasing weighted credit (Murty 1968) until the bound falls below the
  best F-score found.
* Equal spans have many equal matchings, which would all be listed; the best of the first `_LISTED` counts.

If many pairs of annotations are compared, small problems are enumerated instead, all at once. Only matchings that no
other one beats in both sums of credits are kept. The sums of independent problems are added.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count, permutations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats

Bools: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]
_Node: TypeAlias = tuple[float, int, Floats, frozenset[tuple[int, int]], tuple[Indices, Indices]]

_TOLERANCE = 1e-12
#: Most matchings of competing spans to enumerate: all of seven spans with seven, or of four with nine.
_ENUMERATED = 5040
#: Most matchings that are listed.
_LISTED = 200
#: Matchings enumerated at once.
_SUMS = 1 << 17
#: Most options to list.
MOST_OPTIONS = 64


def harmonic_mean(precision: float, recall: float) -> float:
    """``2 P R / (P + R)``; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def best_matching(precision: Floats, recall: Floats) -> tuple[float, float]:
    """The sums of credits of the matching with the highest harmonic mean.

    Among matchings with the same harmonic mean, the one with the highest sum of P and R counts, then the highest P.

    Args:
        precision, recall: credit of each pair of spans, shape (candidate's spans, support's spans), not
            negative, already divided by the denominators of the whole annotations, so that their sums over a
            matching are P and R.

    Returns:
        P and R of that matching.
    """
    total_p, total_r, rows, columns = _uncontested(precision, recall)
    if not len(rows):
        return total_p, total_r
    p, r = precision[np.ix_(rows, columns)], recall[np.ix_(rows, columns)]
    t = _tightest(p, r, total_p, total_r)
    best: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    constant = t * t * total_p + (1 - t) ** 2 * total_r
    for number, (value, pairs) in enumerate(_ranked_assignments(t * t * p + (1 - t) ** 2 * r)):
        if 2 * (value + constant) < best[0] - _TOLERANCE or number == _LISTED:
            break
        best = _better_of(total_p + float(p[pairs].sum()), total_r + float(r[pairs].sum()), best)
    return best[2], best[3]


@dataclass(frozen=True)
class Options:
    """The possible sums of credits, towards P and towards R, of each of n problems.

    Attributes:
        count: options of each problem, at least one, shape (n,).
        precision, recall: the sums, one problem after the other.
    """

    count: Indices
    precision: Floats
    recall: Floats

    @classmethod
    def gathered(cls, parts: Sequence[tuple[Indices, Floats, Floats]]) -> Options:
        """Of the problem, P and R of each option, in any order."""
        problem, precision, recall = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(problem, kind="stable")
        return cls(np.bincount(problem), precision[order], recall[order])

    @cached_property
    def start(self) -> Indices:
        """Where the options of each problem begin."""
        return np.cumsum(self.count) - self.count

    @property
    def problem(self) -> Indices:
        """Of each option."""
        return np.repeat(np.arange(len(self.count)), self.count)

    def plus(self, other: Options, which: Indices) -> Options:
        """Each option of each problem k together with each of the problem ``which[k]`` of `other`."""
        added = np.repeat(which, self.count)
        at, more = other.start[added], other.count[added]
        if more.max(initial=1) == 1:
            return Options(self.count, self.precision + other.precision[at], self.recall + other.recall[at])
        rows = np.repeat(np.arange(len(added)), more)
        at = np.arange(len(rows)) + (at + more - np.cumsum(more))[rows]
        return Options(
            np.add.reduceat(more, self.start),
            self.precision[rows] + other.precision[at],
            self.recall[rows] + other.recall[at],
        )


def matching_options(precision: Floats, recall: Floats) -> tuple[Options, Bools]:
    """The sums of credits of the matchings of many problems, without those that another one beats in both sums.

    Pairs of spans that compete fall into components. Each component is enumerated separately.

    Args:
        precision, recall: credits of the pairs of spans, shape (candidate's spans, support's spans, problems).

    Returns:
        The options, and which problems have too many of them, shape (problems,). Those have one meaningless option.
    """
    edges = (precision > 0) | (recall > 0)
    partners_c, partners_s = (edges.sum(axis, keepdims=True, dtype=np.int16) for axis in (1, 0))
    contested = edges & ((partners_c > 1) | (partners_s > 1))
    n = edges.shape[2]
    sums = [np.where(contested, 0, credits).sum((0, 1)) for credits in (precision, recall)]
    options, large = Options(np.ones(n, dtype=np.intp), sums[0], sums[1]), np.zeros(n, dtype=bool)
    tangled = np.flatnonzero(contested.any((0, 1)))
    if not len(tangled):
        return options, large
    precision, recall = precision[..., tangled], recall[..., tangled]
    label_c, label_s = _components(contested[..., tangled])
    owner, label = np.nonzero((label_c == np.arange(len(label_c))[:, None]).T)
    in_c, in_s = label_c[:, owner] == label, label_s[:, owner] == label
    size_c, size_s = in_c.sum(0), in_s.sum(0)
    nothing = len(owner)
    parts = [(np.array([nothing]), np.zeros(1), np.zeros(1))]
    for a, b in sorted(set(zip(size_c.tolist(), size_s.tolist(), strict=True))):
        same = np.flatnonzero((size_c == a) & (size_s == b))
        if math.perm(max(a, b), min(a, b)) > _ENUMERATED:
            large[tangled[owner[same]]] = True
            parts.append((same, np.zeros(len(same)), np.zeros(len(same))))
            continue
        c, s = (np.argsort(~spans[:, same], axis=0, kind="stable") for spans in (in_c, in_s))
        cells = c[:a, None], s[None, :b], owner[same]
        parts += [(same[k], p, r) for k, p, r in _enumerated(precision[cells], recall[cells])]
    components = Options.gathered(parts)
    owner = tangled[owner]
    ways = np.ones(n)
    np.multiply.at(ways, owner, components.count[:nothing])
    large |= ways > MOST_OPTIONS
    order = np.arange(nothing) - np.searchsorted(owner, owner)
    for k in range(order.max() + 1):
        which = np.full(n, nothing)
        here = np.flatnonzero((order == k) & ~large[owner])
        which[owner[here]] = here
        options = options.plus(components, which)
    return options, large


def _components(contested: Bools) -> tuple[Indices, Indices]:
    """The connected component of each candidate's and each support's span, named by its first candidate's span.

    Spans without a pair get a number that belongs to no span.
    """
    a = len(contested)
    of_c = np.where(contested.any(1), np.arange(a, dtype=np.int16)[:, None], np.int16(a))
    while True:
        of_s = np.where(contested, of_c[:, None], np.int16(a)).min(0)
        lower = np.where(contested, of_s, np.int16(a)).min(1)
        if (lower == of_c).all():
            return of_c, of_s
        of_c = lower


def _enumerated(precision: Floats, recall: Floats) -> Iterator[tuple[Indices, Floats, Floats]]:
    """Problem, P and R of the matchings that no other one beats in both sums, for many small problems.

    Credits are not negative, so only matchings that leave no span of the smaller side alone are looked at.
    """
    if len(precision) > precision.shape[1]:
        precision, recall = precision.swapaxes(0, 1), recall.swapaxes(0, 1)
    partners = _partners(*precision.shape[:2])
    step = max(1, _SUMS // len(partners))
    for start in range(0, precision.shape[2], step):
        p, r = (_sums(credits[..., start : start + step], partners) for credits in (precision, recall))
        most_p, most_r = p.max(0), r.max(0)
        least_p, least_r = np.where(r == most_r, p, 0).max(0), np.where(p == most_p, r, 0).max(0)
        both = least_p == most_p
        yield np.flatnonzero(both) + start, most_p[both], most_r[both]
        rest = np.flatnonzero(~both)
        if not len(rest):
            continue
        # Elsewhere it is between those that are best for one of the sums.
        problem, matching = np.nonzero(((p >= least_p) & (r >= least_r))[:, rest].T)
        problem = rest[problem]
        p, r = p[matching, problem], r[matching, problem]
        front = _front(problem, p, r)
        yield problem[front] + start, p[front], r[front]


@cache
def _partners(few: int, many: int) -> Indices:
    """The partners of few spans among many, a row a matching."""
    return np.array(list(permutations(range(many), few)), dtype=np.intp)


def _sums(credits: Floats, partners: Indices) -> Floats:
    """The credit of each matching, shape (matchings, problems)."""
    total: Floats = credits[0, partners[:, 0]]
    for span in range(1, len(credits)):
        total += credits[span, partners[:, span]]
    return total


def _front(owner: Indices, p: Floats, r: Floats) -> Indices:
    """Which options are not beaten: no other option of the same owner is higher in one sum and at least equal in the
    other."""
    order = np.lexsort((-r, -p, owner))
    height = owner * len(owner) + np.unique(r, return_inverse=True)[1]
    front: Indices = order[np.diff(np.maximum.accumulate(height[order]), prepend=-1) > 0]
    return front


def _uncontested(precision: Floats, recall: Floats) -> tuple[float, float, Indices, Indices]:
    """P and R of the pairs that compete with no other pair, and the rows and columns of the rest."""
    edges = (precision > 0) | (recall > 0)
    contested = edges & ((edges.sum(1, keepdims=True) > 1) | (edges.sum(0, keepdims=True) > 1))
    free = edges & ~contested
    rows, columns = np.flatnonzero(contested.any(1)), np.flatnonzero(contested.any(0))
    return float(precision[free].sum()), float(recall[free].sum()), rows, columns


def _better_of(sum_p: float, sum_r: float, best: tuple[float, ...]) -> tuple[float, ...]:
    """The better of two matchings by F-score, then the sum of both, then P; the second is given by these and R."""
    key = (harmonic_mean(sum_p, sum_r), sum_p + sum_r, sum_p, sum_r)
    for value, other in zip(key, best, strict=True):
        if abs(value - other) > _TOLERANCE:
            return key if value > other else best
    return best


def _assign(weights: Floats) -> tuple[Indices, Indices]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(weights, maximize=True)
    return rows, columns


def _tightest(p: Floats, r: Floats, total_p: float, total_r: float) -> float:
    """The t whose bound on the F-score of all matchings is lowest, by bisection over the slope of the bound.

    The bound ``max over matchings of t^2 P + (1 - t)^2 R`` is convex in t, and ``t P - (1 - t) R`` of a best
    matching is half a slope of it. The bisection ends early where a matching has the slope 0: it reaches its
    own bound.
    """
    low, high = 0.0, 1.0
    t = 0.5
    for _ in range(40):
        pairs = _assign(t * t * p + (1 - t) ** 2 * r)
        sum_p, sum_r = total_p + float(p[pairs].sum()), total_r + float(r[pairs].sum())
        own = sum_r / (sum_p + sum_r)
        if abs(own - t) < 1e-9:
            break
        if own < t:
            high = t
        else:
            low = t
        # The matching's own t solves the problem at once if the matching stays best there.
        t = own if low < own < high else (low + high) / 2
    return t


def _ranked_assignments(weights: Floats) -> Iterator[tuple[float, tuple[Indices, Indices]]]:
    """Matchings of the positive pairs, from the highest sum of weights down (Murty's partition), each once.

    A pair that is ruled out has weight 0, which is a pair left unmatched; a pair that is kept has nothing but
    0 beside it.
    """

    def node(weights: Floats, kept: frozenset[tuple[int, int]]) -> _Node:
        rows, columns = _assign(weights)
        used = weights[rows, columns] > 0
        rows, columns = rows[used], columns[used]
        return -float(weights[rows, columns].sum()), next(order), weights, kept, (rows, columns)

    order = count()
    heap = [node(weights, frozenset())]
    while heap:
        negative, _, weights, kept, pairs = heapq.heappop(heap)
        yield -negative, pairs
        for i, j in zip(*pairs, strict=True):
            if (i, j) in kept:
                continue
            without = weights.copy()
            without[i, j] = 0
            heapq.heappush(heap, node(without, kept))
            kept |= {(i, j)}
            alone = weights[i, j]
            weights = weights.copy()
            weights[i, :] = 0
            weights[:, j] = 0
            weights[i, j] = alone
