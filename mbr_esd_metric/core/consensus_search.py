"""The rule `consensus`: the annotation of the highest expected utility among all annotations, not only the candidates.

    E* = argmax over E of  U(E) - c |E|,    U(E) = sum over supports s of w(s) u(E, s)

over the annotations E on the candidates' *grid*: a span begins and ends where some candidate's or support's span does,
lies where somebody marked something, and reaches over no bound over which none of theirs does; spans overlap only where
some of theirs do. c is `span_cost`, the price of a span.

Where the grid is small all such annotations without overlaps are tried, and all severity vectors. Elsewhere a local
search starts from the choice of MBR. With its first step it tries thresholds on the share of supports that mark an
interval (for a sum of ratios, as SoftF1, SoftDice and F1 are, the best annotation is such a threshold or near to one;
for the corpus softdice it is one exactly, see `level_shares`). A step changes one thing: add a span that some candidate
has, instead of what it overlaps or painted over it; drop a span; trim it or let it grow by a bound; merge it with the
next; split it; change its severity, or that of one interval. Of all that was tried the best is taken, changes that do
not touch one another are taken together, and so on until nothing is better or the budget is spent.

A step is only taken where it is better by more than rounding and the expected utility stays at MBR's or above. So the
answer is never worse than MBR's in either respect, and the same candidates in any order lead to the same answer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from mbr_esd_metric.core.annotation import Annotation, Severity, SpanKey
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.level_shares import LevelShares, level_spans
from mbr_esd_metric.core.similarity import Similarity
from mbr_esd_metric.core.trials import SpanBook, Trial, TrialTable

#: A step must gain more than this.
_GAIN = 1e-9
#: Annotations of a grid up to which all are tried: of four intervals there are 153.
_MOST_LISTED = 153
#: Severity vectors up to which those with a doubly marked character are tried as well: of four such intervals 256.
_MOST_DOUBLED = 256
#: A severity is tried where so many of those who mark a span give it to it.
_LEAST_SEVERITY = 0.2
#: Thresholds that are tried at the start.
_THRESHOLDS = 8
#: Trials in a whole search: so many for each candidate, but not fewer than the second.
_BUDGET = 3
_LEAST_BUDGET = 600


@dataclass(frozen=True, slots=True)
class Consensus:
    """What the search found.

    Attributes:
        annotation: its spans have categories, and no confidences.
        value: its expected utility U.
        tried: how many annotations were scored.
    """

    annotation: Annotation
    value: float
    tried: int


def find_consensus(
    table: AnnotationTable,
    columns: slice,
    weights: Floats,
    utility: Similarity,
    start: Annotation,
    value: float,
    span_cost: float = 0.0,
) -> Consensus:
    """Search for the annotation of the highest expected utility.

    Args:
        table: of candidates and supports.
        columns: the supports in it.
        weights: of the supports, shape (C,), of sum 1.
        utility: u.
        start: the choice of MBR, one of the table's.
        value: its expected utility.
        span_cost: c >= 0, in units of the utility.
    """
    search = _Search(table, columns, weights, utility, span_cost)
    return search.run(start, value)


#: A step: the spans that go, and those that come.
_Change: TypeAlias = "tuple[Sequence[SpanKey], tuple[SpanKey, ...]]"


def _after(trial: Trial, change: _Change) -> Trial:
    gone, come = change
    return tuple(sorted({*trial}.difference(gone).union(come)))


class _Search:
    """One segment's search; arguments as of `find_consensus`."""

    def __init__(
        self, table: AnnotationTable, columns: slice, weights: Floats, utility: Similarity, span_cost: float
    ) -> None:
        self._table, self._columns, self._weights = table, columns, weights
        self._utility, self._cost = utility, span_cost
        self._book = SpanBook(table, columns, weights)
        self._pieces = sorted({key[:2] for key in table.spans})
        self._place = table.place
        self._bounds = list(table.place)
        self._joined: list[bool] = table.joined.tolist()
        covers = (table.incidence @ table.inside.astype(table.dtype)).max(0, initial=0)
        #: Intervals that somebody marks, and those that somebody marks twice.
        self._marked: list[bool] = (covers > 0).tolist()
        self._twice: list[bool] = (covers > 1).tolist()
        self._overlaps = any(self._twice)
        self._shares = LevelShares.of(table, columns, weights).shares
        #: What the supports mark, as any error, as a minor and as a major one, summed up over the characters.
        minor = weights @ table.minor[columns]
        sums = np.cumsum(np.stack([self._shares[0], minor, self._shares[1]]) * table.widths, axis=1)
        self._sums: dict[str, list[float]] = {
            name: [0.0, *row] for name, row in zip(("any", *_SEVERITIES), sums.tolist(), strict=True)
        }
        self._worth: dict[tuple[int, int, float], list[Severity]] = {}
        self._seen: dict[Trial, float] = {}
        self._budget = max(_LEAST_BUDGET, _BUDGET * len(table))
        self._floor = 0.0

    def run(self, start: Annotation, value: float) -> Consensus:
        """See `find_consensus`."""
        best: Trial = start.key
        self._floor = value
        self._seen[best] = value
        stretches = self._stretches()
        if math.prod(_listed(last - first) for first, last in stretches) <= _MOST_LISTED:
            doubled = self._doubled() if self._overlaps else ()
            best = self._better(best, itertools.chain(self._every(stretches), doubled))
        if len(stretches) and (len(self._seen) == 1 or self._overlaps):
            best = self._climb(best)
        value = self._seen[best]
        annotation = start if best == start.key else self._book.annotation(best)
        return Consensus(annotation, value, len(self._seen))

    def _climb(self, best: Trial) -> Trial:
        """Step by step to where nothing is better.

        Steps that do not touch one another are taken together at a guess; what is a step away from there is scored in
        the same go, and dropped where the guess was wrong. After a step only what touches it is tried again.
        """
        base, extra, reach = best, list(self._thresholds()), self._everywhere
        while self._left > 0:
            changes = {_after(base, change): change for change in self._changes(base, *reach)}
            before = best
            best = self._better(best, [*extra, *changes])
            if base != before and self._objective(base) < self._objective(before):
                base, extra, reach = best, [], self._everywhere
                continue
            joined = [trial for trial in self._together(base, changes) if trial not in self._seen]
            if best == base and not joined:
                return best
            after = joined[-1] if joined and best in changes else best
            reach = self._reach(base, after) if best in changes else self._everywhere
            base, extra = after, joined
        return best

    @property
    def _everywhere(self) -> tuple[int, int]:
        return 0, self._table.length

    def _reach(self, one: Trial, other: Trial) -> tuple[int, int]:
        """The characters between which two trials differ, and as far on as spans may reach from there."""
        keys = set(one).symmetric_difference(other)
        first, last = self._place[min(key[0] for key in keys)], self._place[max(key[1] for key in keys)]
        while self._joined[first]:
            first -= 1
        while self._joined[last]:
            last += 1
        return self._bounds[first], self._bounds[last]

    def _objective(self, trial: Trial) -> float:
        return self._seen[trial] - self._cost * len(trial)

    def _better(self, best: Trial, trials: Iterable[Trial]) -> Trial:
        """The best of these and of the one there is; of equal ones that one, then the fewest spans, then the first."""
        new = [trial for trial in dict.fromkeys(trials) if trial not in self._seen][: max(0, self._left)]
        if new:
            table = TrialTable(self._table, self._columns, new, self._book)
            rows, columns = slice(0, len(new)), slice(len(new), len(table))
            values = self._utility.expected(table, rows, columns, self._weights)
            self._seen.update(zip(new, values.tolist(), strict=True))
            gains = values - self._cost * np.array([len(trial) for trial in new])
            gains[values < self._floor - 1e-12] = -np.inf
            if gains.max() > self._objective(best) + _GAIN:
                tied = np.flatnonzero(gains >= gains.max() - _GAIN).tolist()
                best = min((new[at] for at in tied), key=lambda trial: (len(trial), trial))
        return best

    @property
    def _left(self) -> int:
        return self._budget - len(self._seen)

    def _together(self, old: Trial, changes: dict[Trial, _Change]) -> Iterator[Trial]:
        """The best change with the next ones that gain and do not touch it, and so on."""
        least = self._objective(old) + _GAIN
        gaining = [trial for trial in changes if trial in self._seen and self._objective(trial) > least]
        gaining.sort(key=self._objective, reverse=True)
        joined = old
        taken: list[tuple[int, int]] = []
        for trial in gaining:
            gone, come = changes[trial]
            start = min([key[0] for key in (*gone, *come)])
            end = max([key[1] for key in (*gone, *come)])
            if all(end < other[0] or start > other[1] for other in taken):
                taken.append((start, end))
                joined = _after(joined, (gone, come))
                if len(taken) > 1:
                    yield joined

    # What can be tried.

    def _stretches(self) -> list[tuple[int, int]]:
        """First and last bound of each run of intervals over which spans may reach."""
        ends = [k for k, joined in enumerate(self._joined) if not joined]
        return [(first, last) for first, last in itertools.pairwise(ends) if self._marked[first]]

    def _every(self, stretches: Sequence[tuple[int, int]]) -> Iterator[Trial]:
        """All annotations without overlaps."""
        bounds = self._bounds
        parts = [
            [
                tuple([(bounds[first + a], bounds[first + b], severity) for a, b, severity in spans])
                for spans in _listing(last - first)
            ]
            for first, last in stretches
        ]
        for chosen in itertools.product(*parts):
            yield tuple(itertools.chain.from_iterable(chosen))

    def _doubled(self) -> Iterator[Trial]:
        """All severity vectors that have a minor and a major span over some character, if they are not too many."""
        levels = [
            range(4 if twice else 3 if marked else 1) for marked, twice in zip(self._marked, self._twice, strict=True)
        ]
        if math.prod(map(len, levels)) <= _MOST_DOUBLED:
            doubled = [of for of in itertools.product(*levels) if 3 in of]
            yield from level_spans(self._bounds, self._table.joined, np.array(doubled).reshape(-1, len(levels)))

    def _thresholds(self) -> Iterator[Trial]:
        """What is marked by a share of the supports above some threshold.

        By levels as the corpus softdice has them, with the severity that most of those give who mark it, and as minor.
        """
        yield ()
        shares = self._shares
        marked, major, _ = shares
        values = np.unique(shares[:2])
        if len(values) > _THRESHOLDS:
            values = values[np.linspace(0, len(values) - 1, _THRESHOLDS).round().astype(np.intp)]
        values = values[values > 0, None]
        some = marked >= values
        levels = np.concatenate([(shares >= values[:, :, None]).sum(1), some * (1 + (2 * major > marked)), some])
        yield from level_spans(self._bounds, self._table.joined, levels)

    def _changes(self, trial: Trial, low: int, high: int) -> Iterator[_Change]:
        """Everything that is one step away and touches the characters from `low` to `high`."""
        yield from self._span_changes(trial, low, high)
        yield from self._joins(trial, low, high)
        yield from self._new_spans(trial, low, high)
        yield from self._cuts(trial, low, high)

    def _span_changes(self, trial: Trial, low: int, high: int) -> Iterator[_Change]:
        """One span left out, of the other severity, or an interval shorter or longer at one end."""
        bounds, place, joined = self._bounds, self._place, self._joined
        for key in trial:
            start, end, severity = key
            if end <= low or start >= high:
                continue
            gone = (key,)
            yield gone, ()
            yield gone, ((start, end, _OTHER[severity]),)
            a, b = place[start], place[end]
            if a + 1 < b:
                yield gone, ((bounds[a + 1], end, severity),)
                yield gone, ((start, bounds[b - 1], severity),)
            if joined[a]:
                yield from self._unless_doubled(trial, gone, (bounds[a - 1], end, severity))
            if joined[b]:
                yield from self._unless_doubled(trial, gone, (start, bounds[b + 1], severity))

    def _joins(self, trial: Trial, low: int, high: int) -> Iterator[_Change]:
        """Two neighbours made one span, with the severity of either."""
        for key, other in itertools.pairwise(trial):
            if low <= key[0] < high and all(self._joined[self._place[key[1]] : self._place[other[0]] + 1]):
                for severity in dict.fromkeys((key[2], other[2])):
                    hull = (key[0], max(key[1], other[1]), severity)
                    yield from self._unless_doubled(trial, (key, other), hull)

    def _new_spans(self, trial: Trial, low: int, high: int) -> Iterator[_Change]:
        """A span of some support, in the place of those that it overlaps, beside what remains of them, or over them."""
        # A sum of ratios of value U takes what more than about U / 2 of the supports mark; half of that is left aside.
        least = self._floor / 4
        for start, end in self._pieces:
            if end <= low or start >= high:
                continue
            over = _overlapped(trial, start, end)
            same = len(over) == 1 and over[0][:2] == (start, end)
            if same and not self._overlaps:
                continue
            for severity in self._severities(start, end, least):
                new = (start, end, severity)
                if new not in trial:
                    if not same:
                        yield over, (new,)
                        if remains := _remains(over, start, end):
                            yield over, (new, *remains)
                    if over and self._overlaps:
                        yield from self._unless_doubled(trial, (), new)

    def _cuts(self, trial: Trial, low: int, high: int) -> Iterator[_Change]:
        """An interval cut out of the spans over it, or of another severity than they are."""
        for start, end in itertools.pairwise(self._bounds):
            if end <= low or start >= high:
                continue
            over = _overlapped(trial, start, end)
            if over and not (len(over) == 1 and over[0][:2] == (start, end)):
                remains = _remains(over, start, end)
                if len(remains) != 1 or len(over) > 1:  # else it was trimmed already
                    yield over, remains
                for severity in self._severities(start, end, 0.0):
                    yield over, ((start, end, severity), *remains)

    def _severities(self, start: int, end: int, least: float) -> list[Severity]:
        """With which severities a span is worth trying; none if fewer than a share of the supports mark it."""
        known = self._worth.get((start, end, least))
        if known is None:
            a, b = self._place[start], self._place[end]
            marked = self._sums["any"][b] - self._sums["any"][a]
            known = [
                name for name in _SEVERITIES if self._sums[name][b] - self._sums[name][a] >= marked * _LEAST_SEVERITY
            ]
            if marked < least * (end - start):
                known = []
            self._worth[start, end, least] = known
        return known

    def _unless_doubled(self, trial: Trial, gone: Sequence[SpanKey], new: SpanKey) -> Iterator[_Change]:
        """The step, unless its new span overlaps another where no candidate has two."""
        for key in trial:
            start, end = max(key[0], new[0]), min(key[1], new[1])
            overlaps = start < end and key not in gone and key != new
            if overlaps and not all(self._twice[self._place[start] : self._place[end]]):
                return
        yield gone, (new,)


_SEVERITIES: tuple[Severity, Severity] = ("minor", "major")
_OTHER: dict[Severity, Severity] = {"minor": "major", "major": "minor"}


def _overlapped(trial: Trial, start: int, end: int) -> list[SpanKey]:
    """The spans of a trial over some of these characters."""
    return [old for old in trial if old[0] < end and start < old[1]]


def _remains(spans: Sequence[SpanKey], low: int, high: int) -> tuple[SpanKey, ...]:
    """What is left of spans where another, from `low` to `high`, is painted over them."""
    left = [(start, low, severity) for start, _, severity in spans if start < low]
    right = [(high, end, severity) for _, end, severity in spans if high < end]
    return (*left, *right)


@cache
def _listed(intervals: int) -> int:
    """How many sets of spans that do not overlap there are on so many intervals."""
    return 1 if not intervals else _listed(intervals - 1) + 2 * sum(_listed(first) for first in range(intervals))


@cache
def _listing(intervals: int) -> Sequence[tuple[tuple[int, int, Severity], ...]]:
    """These sets, each span as its first bound, its last and its severity; fewer spans first."""
    if not intervals:
        return [()]
    found = list(_listing(intervals - 1))
    for first in range(intervals):
        for before in _listing(first):
            found += [(*before, (first, intervals, severity)) for severity in _SEVERITIES]
    return sorted(found, key=len)
