"""MPP: Match with Partial overlap and Partial credit (Perrella et al. 2026, arXiv 2603.19921).

Spans of the two annotations are matched one to one. A matched pair earns overlap / (length of the candidate's
span) towards precision and overlap / (length of the support's span) towards recall:

    P = credits of the candidate's spans / number of them,  R likewise,  MPP = 2 P R / (P + R)

over the matching with the highest MPP. P is 1 if the candidate has no span, and R is 1 if the support has none. So
MPP is 1 for two empty annotations and 0 if only one is empty. Severity can be taken into account by a penalty (pairs of
unequal severity earn 1 - penalty of their credit) or by weights (a pair earns the lower of its two severities' weights,
and the denominator is the sum of the weights of an annotation's spans). As an evaluation measure MPP is micro-averaged:
credits and denominators are summed over a corpus (`metaeval.spans`, mpp-corpus).

A pair earns different credits towards P and R, so the best matching is not an assignment problem. Dynamic programming
matches the candidate's spans one after the other. The state is the set of used spans of the support, without those that
no later span overlaps; for each state, only the Pareto front of the two sums of credits is kept. If there are more than
`_TANGLED` states, the support's spans are matched one after the other instead; if this exceeds the limit too, the
assignment with the highest total credit is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, Severity, SpanKey, as_annotation
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.similarities import Similarity
from mbr_esd_metric.errors import OptionError

#: Maximum number of states: that of eight spans that all overlap with eight others.
_TANGLED = 256

SeverityWeights: TypeAlias = Mapping[Severity, float]
#: Sums of credits of a matching, towards P and towards R.
_Credits: TypeAlias = tuple[float, float]
#: For each span of the candidate, the overlapping spans of the support, with the pair's credits.
_Edges: TypeAlias = Sequence[Sequence[tuple[int, float, float]]]


def mpp(
    candidate: AnnotationLike,
    support: AnnotationLike,
    severity_penalty: float = 0.0,
    severity_weights: SeverityWeights | None = None,
) -> float:
    """MPP in [0, 1]; symmetric, and 1 only if the spans (and, if they count, their severities) are equal. Severities
    count by a penalty in [0, 1], or by weights >= 0 for "major" and "minor". Raises `OptionError` for invalid values,
    or both options."""
    return Mpp(severity_penalty, severity_weights).scalar(as_annotation(candidate), as_annotation(support), 0)


class MppCounts(NamedTuple):
    """The numerators and denominators of P and R; corpus counts are sums over segments."""

    precision_credit: float
    candidate_mass: float
    recall_credit: float
    support_mass: float


@dataclass(frozen=True, eq=False)
class Mpp(Similarity):
    """MPP; see `mpp` for the options."""

    name: ClassVar[str] = "mpp"
    symmetric: ClassVar[bool] = True
    severity_penalty: float = 0.0
    severity_weights: SeverityWeights | None = None

    def __post_init__(self) -> None:
        weights = self.severity_weights
        if not 0 <= self.severity_penalty <= 1:
            raise OptionError(f"MPP's severity penalty must be in [0, 1], not {self.severity_penalty!r}")
        if weights is not None and self.severity_penalty:
            raise OptionError("MPP takes a severity penalty or severity weights, not both")
        if weights is not None and not all(0 <= weights.get(s, -1) < np.inf for s in ("major", "minor")):
            raise OptionError(f"MPP's severity weights need 'major' and 'minor', >= 0; got {dict(weights)!r}")

    def counts(self, candidate: Annotation, support: Annotation) -> MppCounts:
        """Credits of the best matching and the denominators."""
        return _counts(self, *(tuple(span.key for span in side.spans) for side in (candidate, support)))

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        return _harmonic_mean(*self.precision_recall(candidate, support, length))

    def precision_recall(self, candidate: Annotation, support: Annotation, length: int) -> tuple[float, float]:
        credit_c, mass_c, credit_s, mass_s = self.counts(candidate, support)
        return credit_c / mass_c if mass_c else 1.0, credit_s / mass_s if mass_s else 1.0

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        # Credits are sums over groups of overlapping spans. Many annotations share a variant of a group, so the credits
        # of two variants are computed once; they are nearly always a single pair of sums.
        of, variants = _overlap_groups(table)
        masses = np.array([self.mass(variant) for variant in variants])
        mass_c, mass_s = (masses[of[:, part]].sum(0) for part in (rows, columns))
        precision, recall = np.zeros((2, len(mass_c), len(mass_s)))
        several: dict[tuple[int, int], list[list[_Credits]]] = {}
        known: dict[tuple[int, int], list[_Credits]] = {}

        def sums_of(i: int, j: int) -> list[_Credits]:
            if (j, i) in known:
                return [(p, r) for r, p in known[j, i]]
            return known.setdefault((i, j), self.matchings(variants[i], variants[j]))

        for at_c, at_s in zip(of[:, rows], of[:, columns], strict=True):
            (c, place_c), (s, place_s) = (np.unique(at, return_inverse=True) for at in (at_c, at_s))
            choices = [[sums_of(i, j) for j in s.tolist()] for i in c.tolist()]
            open_ = np.array([[len(one) > 1 for one in row] for row in choices])[place_c][:, place_s]
            sums = np.array([[one[0] for one in row] for row in choices])[place_c][:, place_s]
            precision += np.where(open_, 0, sums[..., 0])
            recall += np.where(open_, 0, sums[..., 1])
            for i, j in np.argwhere(open_).tolist():
                several.setdefault((i, j), []).append(choices[place_c[i]][place_s[j]])
        for (i, j), parts in several.items():
            fronts = [[(float(precision[i, j]), float(recall[i, j]))], *parts]
            precision[i, j], recall[i, j] = _best(_combined(fronts), float(mass_c[i]), float(mass_s[j]))
        precision, recall = share(precision, mass_c[:, None]), share(recall, mass_s)
        total = precision + recall
        return np.asarray(2 * precision * recall / np.where(total > 0, total, 1.0))

    def mass(self, spans: Sequence[SpanKey]) -> float:
        """The denominator of an annotation with these spans."""
        weights = self.severity_weights
        return float(len(spans)) if weights is None else float(sum(weights[severity] for _, _, severity in spans))

    def matchings(self, candidate: Sequence[SpanKey], support: Sequence[SpanKey]) -> list[_Credits]:
        """The Pareto front of the sums of credits over all matchings; beyond the state limit, of a single matching."""
        edges: list[list[tuple[int, float, float]]] = []
        for start, end, severity in candidate:
            edges.append([])
            for at, (first, last, other) in enumerate(support):
                if first < end and start < last:
                    reward = float(min(end, last) - max(start, first))
                    if self.severity_weights is not None:
                        reward *= min(self.severity_weights[severity], self.severity_weights[other])
                    elif severity != other:
                        reward *= 1 - self.severity_penalty
                    edges[-1].append((at, reward / (end - start), reward / (last - first)))
        return _matchings(edges)


def _overlap_groups(table: AnnotationTable) -> tuple[npt.NDArray[np.intp], list[tuple[SpanKey, ...]]]:
    """Groups of spans such that spans of different groups never overlap in any annotation: the index of each
    annotation's variant of each group, shape (groups, n), 0 if it has no span in it; and each variant's spans."""
    group: dict[SpanKey, int] = {}
    reach, last = 0, -1
    for key in sorted(table.column):
        last += key[0] >= reach
        reach = max(reach, key[1])
        group[key] = last
    variants: dict[tuple[SpanKey, ...], int] = {(): 0}
    of = np.zeros((last + 1, len(table)), dtype=np.intp)
    for row, keys in enumerate(table.keys):
        by_group: dict[int, list[SpanKey]] = {}
        for key in keys:
            by_group.setdefault(group[key], []).append(key)
        for at, spans in by_group.items():
            of[at, row] = variants.setdefault(tuple(spans), len(variants))
    return of, list(variants)


@lru_cache(maxsize=1)
def _counts(mpp: Mpp, candidate: tuple[SpanKey, ...], support: tuple[SpanKey, ...]) -> MppCounts:
    mass_c, mass_s = mpp.mass(candidate), mpp.mass(support)
    if not (mass_c and mass_s):
        return MppCounts(0.0, mass_c, 0.0, mass_s)
    precision, recall = _best(mpp.matchings(candidate, support), mass_c, mass_s)
    return MppCounts(precision, mass_c, recall, mass_s)


def _matchings(edges: _Edges, swapped: bool = False) -> list[_Credits]:
    last = {at: number for number, row in enumerate(edges) for at, _, _ in row}
    if len(last) == sum(map(len, edges)) and max(map(len, edges), default=0) < 2:
        alone = [row[0] for row in edges if row]
        return [(sum([p for _, p, _ in alone]), sum([r for _, _, r in alone]))]
    fronts: list[list[_Credits]] = []
    begin = 0
    # Used spans of the support as a bit set -> sums; None beyond the limit.
    states: dict[int, list[_Credits]] | None = {0: [(0.0, 0.0)]}
    open_ = 0
    for number, row in enumerate(edges):
        passed = ~sum(1 << at for at, _, _ in row if last[at] == number)
        open_ = (open_ | sum(1 << at for at, _, _ in row)) & passed
        if states is not None:
            following: dict[int, list[_Credits]] = {}
            for used, sums in states.items():
                following.setdefault(used & passed, []).extend(sums)
                for at, p, r in row:
                    if not used >> at & 1:
                        following.setdefault((used | 1 << at) & passed, []).extend([(a + p, b + r) for a, b in sums])
            states = {used: _front(sums) for used, sums in following.items()}
            if len(states) > _TANGLED:
                states = None
        if not open_:
            # No later span overlaps these.
            part = edges[begin : number + 1]
            if states is not None:
                fronts.append(states[0])
            elif swapped:
                fronts.append(_assigned(part))
            else:
                fronts.append([(p, r) for r, p in _matchings(_from_support(part), swapped=True)])
            states, begin = {0: [(0.0, 0.0)]}, number + 1
    return _combined(fronts)


def _from_support(edges: _Edges) -> _Edges:
    """The same pairs, by span of the support."""
    rows: dict[int, list[tuple[int, float, float]]] = {}
    for number, row in enumerate(edges):
        for at, p, r in row:
            rows.setdefault(at, []).append((number, r, p))
    return [rows[at] for at in sorted(rows)]


def _front(sums: list[_Credits]) -> list[_Credits]:
    """The Pareto front of sums, without duplicates, in decreasing order of P."""
    if len(sums) == 1:
        return sums
    front, most = [], -1.0
    for p, r in sorted(sums, reverse=True):
        if r > most + 1e-12:
            front.append((p, r))
            most = r
    return front


def _combined(fronts: Sequence[list[_Credits]]) -> list[_Credits]:
    """The sums of combinations of matchings, one from each front."""
    total = [(0.0, 0.0)]
    for front in fronts:
        total = _front([(a + p, b + r) for a, b in total for p, r in front])
    return total


def _best(sums: Sequence[_Credits], mass_c: float, mass_s: float) -> _Credits:
    """The matching with the highest MPP, then the highest P + R, then the highest P."""
    if len(sums) == 1:
        return sums[0]
    shares = [(p / mass_c, r / mass_s) for p, r in sums]
    values = [(round(_harmonic_mean(p, r), 12), round(p + r, 12), p) for p, r in shares]
    return sums[values.index(max(values))]


def _assigned(edges: _Edges) -> list[_Credits]:
    """The sums of the assignment with the highest total credit."""
    from scipy.optimize import linear_sum_assignment

    columns = {at: column for column, at in enumerate(dict.fromkeys(at for row in edges for at, _, _ in row))}
    credits = np.zeros((2, len(edges), len(columns)))
    for number, row in enumerate(edges):
        for at, p, r in row:
            credits[:, number, columns[at]] = p, r
    chosen = linear_sum_assignment(credits.sum(0), maximize=True)
    return [(float(credits[0][chosen].sum()), float(credits[1][chosen].sum()))]


def _harmonic_mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def share(credit: Floats, mass: Floats) -> Floats:
    """credit / mass, with NumPy broadcasting; 1 where the mass is 0."""
    return np.divide(credit, mass, out=np.ones_like(credit), where=mass > 0)
