"""Joint decisions over a whole test set that maximise the expected corpus softdice, a ratio of sums.

With hypothesis h of segment k, supports s of weight w(s), and severity vectors v,

    a_k(h) = E_s[2 sum_i min(v_h[i], v_s[i])],    b_k(h) = |v_h|_1 + E_s[|v_s|_1]

`mbr-corpus` selects the candidates that maximise ``F = sum_k a_k / sum_k b_k``, by Dinkelbach's iteration (1967):
select the hypothesis with the largest ``a - F b`` in each segment, then recompute F, until it no longer changes. F
rises monotonically and ends at the maximum over all combinations. A segment is represented only by its pairs (a, b), of
which only those on the Pareto front can be selected.

`consensus-corpus` chooses among *all* annotations. With the threshold decomposition of `kernels` (steps of height h_j
at the levels t_j) and p_ij the weight of the supports with ``v_s[i] >= t_j``, an annotation E has

    A(E) = sum over i, j of  2 h_j p_ij 1[v_E[i] >= t_j],    B(E) = sum over i, j of  h_j (1[v_E[i] >= t_j] + p_ij)
    A - F B = const + sum over i, j of  h_j (2 p_ij - F) 1[v_E[i] >= t_j]

so for a given F, character i has level j exactly if ``p_ij > F / 2``. Higher levels are less likely (p_i1 >= p_i2 >=
p_i3), so the result is always a valid annotation: minor from the first level, major from the second, both from the
third. As F increases from 0 to 1, a segment has a sequence of annotations, one for each distinct p (`best_options`).
Only these can be optimal, and the iteration selects among them. A span never crosses a bound that no candidate's span
crosses, so adjacent errors that no candidate joined stay separate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity, SpanKey
from mbr_esd_metric.core.decision_problem import TIE, DecisionProblem
from mbr_esd_metric.core.kernels import BETA, GAMMA, AnnotationTable, Floats

#: Height of each level's step.
_STEPS = np.array([GAMMA, BETA - GAMMA, GAMMA])


@dataclass(frozen=True)
class CorpusChoice:
    """The decision of a `CorpusRule` for a whole test set.

    Attributes:
        chosen: for each segment, the position of the choice in its shortlist.
        ratios: the maximised ratio after each iteration; it never decreases, and the last value is the result.
    """

    chosen: npt.NDArray[np.intp]
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class Shortlist:
    """The possible answers of a `CorpusRule` for one segment, in tie-breaking order: at least one hypothesis or other
    annotation; and their statistics, shape (answers, k)."""

    answers: Sequence[int | Annotation]
    statistics: Floats


def overlap_and_size(problem: DecisionProblem) -> Floats:
    """(a, b) of each hypothesis, shape (n, 2)."""
    # E_s[min(v_h, v_s)] is linear in the supports' level indicators, so pairs of annotations are not needed.
    indicators, widths = problem.table.levels
    mean = (problem.weights @ indicators[problem.columns]) * widths
    overlap = 2 * (indicators[problem.rows] @ mean)
    size = problem.table.norms[problem.rows] + problem.weights @ problem.table.norms[problem.columns]
    return np.stack([overlap, size], axis=1)


def candidates_front(problem: DecisionProblem, statistics: Floats) -> Shortlist:
    """The Pareto front, in tie-breaking order: hypotheses such that no other one has more overlap and is not larger, or
    has at least the same overlap and is smaller."""
    overlap, size = statistics.T
    by_size = np.argsort(size, kind="stable")
    sizes = size[by_size]
    most = np.concatenate([[-np.inf], np.maximum.accumulate(overlap[by_size])])
    beaten = most[np.searchsorted(sizes, size, "right")] > overlap + TIE
    beaten |= most[np.searchsorted(sizes, size - TIE, "left")] >= overlap
    order = np.lexsort((np.array(problem.hypotheses.index), -problem.hypotheses.logprobs))
    front: npt.NDArray[np.intp] = order[~beaten[order]]
    return Shortlist(front.tolist(), statistics[front])


def annotations_front(problem: DecisionProblem) -> Shortlist:
    """The annotations that are optimal at some F in [0, 1] among all annotations, in increasing order of marked
    characters."""
    options, statistics = best_options(problem.table, problem.columns, problem.weights)
    known = {one.key: one for annotation in reversed(problem.table.annotations) for one in reversed(annotation.spans)}
    spans = {key: known.get(key) or _voted(problem, key) for option in options for key in option}
    answers = [Annotation.of_keys({key: spans[key] for key in option}) for option in reversed(options)]
    return Shortlist(answers, statistics[::-1])


def _voted(problem: DecisionProblem, key: SpanKey) -> ErrorSpan:
    """A span that no candidate has, with the most frequent category of its characters in the supports: votes are
    weighted by the support's weight times the common characters; ties are broken alphabetically."""
    start, end, _ = key
    votes: dict[str, float] = {}
    for annotation, weight in zip(problem.supports.annotations, problem.weights.tolist(), strict=True):
        for span in annotation:
            shared = min(end, span.end) - max(start, span.start)
            if shared > 0 and span.category is not None:
                votes[span.category] = votes.get(span.category, 0.0) + weight * shared
    return ErrorSpan(*key, category=min(votes, key=lambda one: (-votes[one], one)) if votes else None)


def maximise_ratio(segments: Sequence[Floats]) -> CorpusChoice:
    """Dinkelbach's iteration over segments, each with a and b of its options (at least one), shape (options, 2), in
    tie-breaking order. If no annotation has any span, the ratio is 1."""
    if not len(segments):
        return CorpusChoice(np.zeros(0, dtype=np.intp), (1.0,))
    lengths = [*map(len, segments)]
    starts = np.cumsum([0, *lengths[:-1]])
    a, b = np.ascontiguousarray(np.concatenate(segments).T)
    position = np.arange(len(a))
    ratios: list[float] = []
    chosen = starts
    while True:
        values = a - (ratios[-1] if ratios else 0.0) * b
        best = np.repeat(np.maximum.reduceat(values, starts), lengths)
        proposal = np.minimum.reduceat(np.where(values >= best - TIE, position, len(a)), starts)
        total = float(b[proposal].sum())
        ratio = float(a[proposal].sum()) / total if total else 1.0
        if ratios and ratio <= ratios[-1]:
            return CorpusChoice(chosen - starts, tuple(ratios))
        ratios.append(ratio)
        chosen = proposal


def best_options(table: AnnotationTable, columns: slice, weights: Floats) -> tuple[list[tuple[SpanKey, ...]], Floats]:
    """The sorted spans of every annotation that is optimal at some F in [0, 1], in decreasing order of marked
    characters; and A and B of each, shape (options, 2). For the arguments, see `with_confidence`."""
    both = np.zeros_like(table.marked) if table.both is None else table.both
    # p of each level in each of K elementary intervals, which determines the optimum. It decreases with the level.
    parts = [weights @ part[columns] for part in (table.marked, table.covers[0], both)]
    shares: Floats = np.array(parts, dtype=np.float64).reshape(3, -1)
    sizes = np.asarray(_STEPS[:, None] * np.diff(table.bounds), dtype=np.float64).reshape(3, -1)
    values = np.unique(shares[shares > 0])
    # From F = 2 p on, levels with probability p are no longer selected; F <= 1, so p above a half is always selected.
    thresholds = [shares > 0, *(shares > value + TIE for value in values if value <= 0.5)]
    starts, ends = np.sort(table.edges)
    # Bounds that some annotation's span crosses; the outermost are never crossed.
    joined = np.searchsorted(starts, table.bounds) > np.searchsorted(ends, table.bounds, "right")
    options = [level_spans(table.bounds.tolist(), joined, taken.sum(0)) for taken in thresholds]
    overlaps = [2 * (sizes * shares * taken).sum() for taken in thresholds]
    totals = [(sizes * taken).sum() + (sizes * shares).sum() for taken in thresholds]
    return options, np.stack([overlaps, totals], axis=1)


def level_spans(
    bounds: Sequence[int], joined: npt.NDArray[np.bool_], levels: npt.NDArray[np.intp]
) -> tuple[SpanKey, ...]:
    """The sorted, maximal spans of the annotation with these levels, from 0 (no error) to 3 (minor and major span),
    shape (K,). The second array says for each of the K + 1 bounds whether a span may cross it."""
    spans: list[SpanKey] = []
    by_severity: dict[Severity, npt.NDArray[np.bool_]] = {"major": levels >= 2, "minor": levels % 2 == 1}
    for severity, reached in by_severity.items():
        goes_on = reached[:-1] & reached[1:] & joined[1:-1]
        begins, ends = reached & ~np.append(False, goes_on), reached & ~np.append(goes_on, False)
        for start, end in zip(begins.nonzero()[0].tolist(), ends.nonzero()[0].tolist(), strict=True):
            spans.append((bounds[start], bounds[end + 1], severity))
    return tuple(sorted(spans))
