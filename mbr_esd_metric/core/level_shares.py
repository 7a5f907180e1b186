"""The annotations of a test set whose corpus softdice is expected to be highest, among *all* annotations.

With supports of weight w(s), severity vectors v and the threshold decomposition of `kernels` (steps of height h_j at
the levels t_j), write p_ij for the weight of the supports with ``v_s[i] >= t_j``. Then, for any annotation E,

    A(E) = E_s[2 sum_i min(v_E[i], v_s[i])] = sum over i, j of  2 h_j p_ij 1[v_E[i] >= t_j]
    B(E) = |v_E|_1 + E_s[|v_s|_1]           = sum over i, j of  h_j (1[v_E[i] >= t_j] + p_ij)

and the ratio of the sums of A and B over a test set is maximal at the F at which ``max_E sum (A - F B)`` is 0
(Dinkelbach 1967). For a given F that maximum falls apart into single characters and levels:

    A - F B = const + sum over i, j of  h_j (2 p_ij - F) 1[v_E[i] >= t_j]

so character i takes level j exactly where ``p_ij > F / 2``. Higher levels are less likely (p_i1 >= p_i2 >= p_i3), so
what is taken is always an annotation: minor from the first level, major from the second, both from the third. Nothing
changes within an elementary interval, so it has one threshold a level. As F goes from 0 to 1 a segment so passes
through a chain of annotations, one for each different p (`LevelShares.options`); these are all that can ever be
optimal, and choosing among them for a whole test set is what `mbr-corpus` does among candidates.

A span never reaches over a bound over which no candidate's span does, so errors that touch one another but that no
candidate took for one stay two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Severity, SpanKey
from mbr_esd_metric.core.hypotheses import TIE
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.severity import BETA, GAMMA

#: Height of each level's step.
_STEPS = np.array([GAMMA, BETA - GAMMA, GAMMA])


@dataclass(frozen=True, slots=True)
class Option:
    """An annotation, and what it adds to the sums of the test set.

    Attributes:
        spans: of the annotation, sorted.
        overlap: A.
        size: B.
    """

    spans: tuple[SpanKey, ...]
    overlap: float
    size: float


@dataclass(frozen=True)
class LevelShares:
    """How likely each level is in each elementary interval of one segment: all that the optimum depends on.

    Attributes:
        bounds: ends of the intervals, shape (K + 1,); one bound or none if there is no interval.
        joined: over which bounds a span may reach, shape (K + 1,).
        shares: p, the weight of the supports that reach each level, shape (3, K), falling with the level.
    """

    bounds: npt.NDArray[np.int64]
    joined: npt.NDArray[np.bool_]
    shares: Floats

    @classmethod
    def of(cls, table: AnnotationTable, columns: slice, weights: Floats) -> LevelShares:
        """The shares of weighted supports in `columns` of a table."""
        both = np.zeros_like(table.marked) if table.both is None else table.both
        parts = [weights @ part[columns] for part in (table.marked, table.major, both)]
        return cls(table.bounds, table.joined, np.array(parts, dtype=np.float64).reshape(3, -1))

    @property
    def sizes(self) -> Floats:
        """Height times width of each step, shape (3, K)."""
        return np.asarray(_STEPS[:, None] * np.diff(self.bounds), dtype=np.float64).reshape(3, -1)

    def options(self) -> list[Option]:
        """Every annotation that is the best one at some F in [0, 1]; those that mark more first."""
        values = np.unique(self.shares[self.shares > 0])
        # At F = 2 p what is as likely as p is not taken any more; no p above a half can be dropped.
        taken = [self.shares > 0, *(self.shares > value + TIE for value in values if value <= 0.5)]
        return [self._option(levels) for levels in taken]

    def _option(self, taken: npt.NDArray[np.bool_]) -> Option:
        sizes = self.sizes
        spans = level_spans(self.bounds.tolist(), self.joined, taken.sum(0))
        overlap = 2 * float((sizes * self.shares * taken).sum())
        return Option(spans, overlap, float((sizes * taken).sum() + (sizes * self.shares).sum()))


def level_spans(
    bounds: Sequence[int], joined: npt.NDArray[np.bool_], levels: npt.NDArray[np.intp]
) -> tuple[SpanKey, ...]:
    """The spans of the annotation that reaches these levels: each as long as can be; sorted.

    Args:
        bounds: of the intervals, K + 1 of them.
        joined: whether a span may reach over each bound; see `AnnotationTable.joined`.
        levels: in each interval, from 0 (no error) to 3 (a minor and a major span), shape (K,).
    """
    found: list[SpanKey] = []
    inner = joined[1:-1]
    levelled: tuple[tuple[Severity, npt.NDArray[np.bool_]], ...] = (
        ("major", levels >= 2),
        ("minor", (levels & 1).astype(bool)),
    )
    for severity, reached in levelled:
        goes_on = reached[:-1] & reached[1:] & inner
        begins, ends = reached.copy(), reached.copy()
        begins[1:] &= ~goes_on
        ends[:-1] &= ~goes_on
        for start, end in zip(begins.nonzero()[0].tolist(), ends.nonzero()[0].tolist(), strict=True):
            found.append((bounds[start], bounds[end + 1], severity))
    return tuple(sorted(found))
