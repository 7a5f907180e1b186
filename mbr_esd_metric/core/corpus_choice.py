"""The choices over a whole test set that maximise the ratio behind the corpus softdice.

With hypothesis h of segment k,

    a_k(h) = E_s[2 sum_i min(v_h[i], v_s[i])],    b_k(h) = |v_h|_1 + E_s[|v_s|_1]

and the choice that maximises ``F = sum_k a_k / sum_k b_k`` is found by Dinkelbach's iteration: take the hypothesis
with the largest ``a - F b`` in each segment, then compute F again, until it no longer changes. F rises monotonically
and ends at the maximum over all combinations. A segment enters by its pairs (a, b) alone, and of these only the ones on
its Pareto front can ever be chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, SpanKey
from mbr_esd_metric.core.decision_problem import DecisionProblem
from mbr_esd_metric.core.hypotheses import TIE
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.level_shares import LevelShares
from mbr_esd_metric.core.rule import CorpusChoice, Shortlist


def overlap_and_size(problem: DecisionProblem) -> Floats:
    """(a, b) of each hypothesis, shape (n, 2).

    E_s[min(v_h, v_s)] is linear in the supports' level indicators, so no pair of annotations is formed.
    """
    table = problem.table
    indicators, widths = table.levels
    mean = (problem.weights @ indicators[problem.columns]) * widths
    overlap = 2 * (indicators[problem.rows] @ mean)
    size = table.norms[problem.rows] + problem.weights @ table.norms[problem.columns]
    return np.stack([overlap, size], axis=1)


def candidates_front(problem: DecisionProblem, statistics: Floats) -> Shortlist:
    """The Pareto front: hypotheses that no other beats for any F in [0, 1], in the order of ties.

    A hypothesis is beaten if another one has more overlap and is not larger, or has at least the same overlap and is
    smaller.
    """
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
    """The annotations that are best at some F in [0, 1] among all annotations, those that mark less first."""
    options = LevelShares.of(problem.table, problem.columns, problem.weights).options()[::-1]
    known = {
        span.key: span for annotation in reversed(problem.table.annotations) for span in reversed(annotation.spans)
    }
    spans = {key: known.get(key) or _voted(problem, key) for option in options for key in option.spans}
    answers = [Annotation.of_keys({key: spans[key] for key in option.spans}) for option in options]
    return Shortlist(answers, np.array([(option.overlap, option.size) for option in options]))


def _voted(problem: DecisionProblem, key: SpanKey) -> ErrorSpan:
    """A span that no candidate has, with the category that most supports gave to its characters.

    A vote counts the support's weight times the characters that the two spans share; equal votes go to the category
    that is first in the alphabet.
    """
    start, end, _ = key
    votes: dict[str, float] = {}
    for annotation, weight in zip(problem.supports.annotations, problem.weights.tolist(), strict=True):
        for span in annotation:
            shared = min(end, span.end) - max(start, span.start)
            if shared > 0 and span.category is not None:
                votes[span.category] = votes.get(span.category, 0.0) + weight * shared
    return ErrorSpan(*key, category=min(votes, key=lambda one: (-votes[one], one)) if votes else None)


def maximise_ratio(overlap: Sequence[Floats], size: Sequence[Floats]) -> CorpusChoice:
    """Dinkelbach's iteration over segments.

    Args:
        overlap, size: per segment a and b of its options (at least one), in the order in which ties are resolved.

    Returns:
        The choice and the ratios; where no annotation has any span the ratio is 1.
    """
    if not len(overlap):
        return CorpusChoice(np.zeros(0, dtype=np.intp), (1.0,))
    starts = np.cumsum([0, *(len(options) for options in overlap[:-1])])
    a, b = np.concatenate(overlap), np.concatenate(size)
    lengths = np.diff([*starts, len(a)])
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
