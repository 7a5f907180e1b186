"""MPP: Match with Partial overlap and Partial credit (Perrella et al. 2026, arXiv 2603.19921).

Spans of the two annotations are matched one to one. A matched pair earns overlap / (length of the candidate's
span) towards precision and overlap / (length of the support's span) towards recall:

    P = credits of the candidate's spans / number of them,  R likewise,  MPP = 2 P R / (P + R)

over the matching with the highest MPP. P is 1 if the candidate has no span, and R is 1 if the support has none. So
MPP is 1 for two empty annotations and 0 if only one is empty. Severity may count in one of two ways: a
penalty, where pairs of unequal severity earn 1 - penalty of their credit; or weights, where a pair earns the
lower of its two severities' weights and an annotation's denominator is the sum of the weights of its spans.
As an evaluation measure MPP is micro-averaged: credits and denominators are summed over a corpus (`corpus`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, Severity, as_annotation
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.matching import (
    MOST_OPTIONS,
    Bools,
    Indices,
    Options,
    best_matching,
    harmonic_mean,
    matching_options,
)
from mbr_esd_metric.core.severity import recent
from mbr_esd_metric.core.similarity import Similarity
from mbr_esd_metric.errors import OptionError

#: Pairs of spans processed at once.
_CELLS = 1 << 17

SeverityWeights: TypeAlias = Mapping[Severity, float]


def mpp(
    candidate: AnnotationLike,
    support: AnnotationLike,
    severity_penalty: float = 0.0,
    severity_weights: SeverityWeights | None = None,
) -> float:
    """MPP in [0, 1]; symmetric, and 1 only where the spans (and, if they count, their severities) are the
    same.

    Args:
        candidate, support: annotations, or iterables of spans.
        severity_penalty: in [0, 1]; what a pair of unequal severity loses.
        severity_weights: weight of "major" and of "minor" spans, instead of the penalty.

    Raises:
        OptionError: a penalty outside [0, 1], weights that are negative or incomplete, or both at once.
    """
    return Mpp(severity_penalty, severity_weights).scalar(as_annotation(candidate), as_annotation(support), 0)


@dataclass(frozen=True, slots=True)
class MppCounts:
    """The sums behind MPP; those of a corpus are the sums of its segments'.

    Attributes:
        precision_credit, candidate_mass: numerator and denominator of P.
        recall_credit, support_mass: numerator and denominator of R.
    """

    precision_credit: float
    candidate_mass: float
    recall_credit: float
    support_mass: float

    @property
    def precision(self) -> float:
        """P, 1 if nothing could be wrong."""
        return self.precision_credit / self.candidate_mass if self.candidate_mass else 1.0

    @property
    def recall(self) -> float:
        """R, 1 if nothing could be missed."""
        return self.recall_credit / self.support_mass if self.support_mass else 1.0

    @property
    def f_score(self) -> float:
        """2 P R / (P + R)."""
        return harmonic_mean(self.precision, self.recall)


@dataclass(frozen=True)
class Mpp(Similarity):
    """MPP; see `mpp` for the options."""

    name: ClassVar[str] = "mpp"
    symmetric: ClassVar[bool] = True
    severity_penalty: float = 0.0
    severity_weights: SeverityWeights | None = None

    def __post_init__(self) -> None:
        weights = self.severity_weights
        if not 0 <= self.severity_penalty <= 1:
            raise OptionError(f"MPP's severity penalty is in [0, 1], not {self.severity_penalty!r}")
        if weights is not None and self.severity_penalty:
            raise OptionError("MPP takes a severity penalty or severity weights, not both")
        if weights is not None and not all(0 <= weights.get(s, -1) < np.inf for s in ("major", "minor")):
            raise OptionError(f"MPP's severity weights need 'major' and 'minor', >= 0; got {dict(weights)!r}")

    def counts(self, candidate: Annotation, support: Annotation) -> MppCounts:
        """Credits of the best matching and the denominators."""
        if self.severity_weights is None and not self.severity_penalty:
            found = _uncontested_counts(candidate, support)
            if found is not None:
                return found
        table = AnnotationTable([candidate, support], _extent(candidate, support))
        mass_c, mass_s = (table.incidence @ self._mass(table)).astype(np.float64).tolist()
        if not (mass_c and mass_s):
            return MppCounts(0.0, mass_c, 0.0, mass_s)
        each = np.arange(len(table.spans))
        spans_c, spans_s = (np.repeat(each, row.astype(np.intp))[:, None] for row in table.incidence)
        precision, recall = (credits[..., 0] for credits in self._credits(table, spans_c, spans_s))
        best_p, best_r = best_matching(precision / mass_c, recall / mass_s)
        return MppCounts(best_p * mass_c, mass_c, best_r * mass_s, mass_s)

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        return self.counts(candidate, support).f_score

    def precision_recall(self, candidate: Annotation, support: Annotation, length: int) -> tuple[float, float]:
        counts = self.counts(candidate, support)
        return counts.precision, counts.recall

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        # Credits add up over sites, and at a site many annotations have the same variant, so what two variants can earn
        # is looked at once. Pairs of annotations that can come to too much are matched as a whole, one by one.
        variants, members = table.sites
        of_c, of_s = variants[:, rows], variants[:, columns]
        shape = of_c.shape[1], of_s.shape[1]
        first, second, places, nothing = [], [], [], 0
        for at_c, at_s in zip(of_c, of_s, strict=True):
            if at_c.any() and at_s.any():
                (c, place_c), (s, place_s) = (np.unique(at, return_inverse=True) for at in (at_c, at_s))
                first.append(np.repeat(c, len(s)))
                second.append(np.tile(s, len(c)))
                places.append((nothing + place_c[:, None] * len(s) + place_s).ravel())
                nothing += len(c) * len(s)
        options, large = self._options(table, np.concatenate([*first, [0]]), np.concatenate([*second, [0]]))
        ways = np.ones(shape[0] * shape[1])
        for at in places:
            ways *= np.where(large, np.inf, options.count)[at]
        total = Options(np.ones(len(ways), dtype=np.intp), np.zeros(len(ways)), np.zeros(len(ways)))
        for at in places:
            total = total.plus(options, np.where(ways > MOST_OPTIONS, nothing, at))
        mass = np.append(self._mass(table), 0)[members].sum(0)
        c, s = np.divmod(total.problem, shape[1])
        precision = _share(total.precision, mass[of_c].sum(0)[c])
        recall = _share(total.recall, mass[of_s].sum(0)[s])
        sums = precision + recall
        best = np.maximum.reduceat(2 * precision * recall / np.where(sums > 0, sums, 1.0), total.start)
        for pair in np.flatnonzero(ways > MOST_OPTIONS).tolist():
            one, other = table.annotations[rows][pair // shape[1]], table.annotations[columns][pair % shape[1]]
            best[pair] = self.counts(one, other).f_score
        return best.reshape(shape)

    def _options(self, table: AnnotationTable, first: Indices, second: Indices) -> tuple[Options, Bools]:
        """The credits that two variants can earn together, by `matching_options`, `_CELLS` pairs of spans at a
        time."""
        _, members = table.sites
        sizes = (members < len(table.spans)).sum(0)
        order = np.lexsort((sizes[second], sizes[first]))
        step = max(1, _CELLS // max(1, sizes[first].max() * sizes[second].max()))
        parts, large = [], np.zeros(len(order), dtype=bool)
        for start in range(0, len(order), step):
            block = order[start : start + step]
            spans_c, spans_s = (members[: sizes[of].max(), of] for of in (first[block], second[block]))
            options, large[block] = matching_options(*self._credits(table, spans_c, spans_s))
            parts.append((block[options.problem], options.precision, options.recall))
        return Options.gathered(parts), large

    def _mass(self, table: AnnotationTable) -> Floats:
        """What each of the table's spans counts, shape (S,)."""
        weights = self.severity_weights
        if weights is None:
            return np.ones(len(table.spans))
        return np.where(table.is_major, float(weights["major"]), float(weights["minor"]))

    def _credits(self, table: AnnotationTable, spans_c: Indices, spans_s: Indices) -> tuple[Floats, Floats]:
        """Credits towards precision and recall of the pairs of spans of each two annotations.

        Args:
            spans_c, spans_s: the table's spans that they have, shape (most, pairs); S where there are no more.

        Returns:
            Shape (spans, spans, pairs) each.
        """
        starts, ends = np.append(table.starts, 0), np.append(table.ends, 0)
        first = np.maximum(starts[spans_c][:, None], starts[spans_s])
        reward = np.maximum(np.minimum(ends[spans_c][:, None], ends[spans_s]) - first, 0).astype(np.float64)
        if self.severity_weights is not None:
            mass = np.append(self._mass(table), 0)
            reward *= np.minimum(mass[spans_c][:, None], mass[spans_s])
        elif self.severity_penalty:
            major = np.append(table.is_major, False)
            reward *= 1 - self.severity_penalty * (major[spans_c][:, None] != major[spans_s])
        sizes = np.maximum(ends - starts, 1)
        return reward / sizes[spans_c][:, None], reward / sizes[spans_s]


@recent(1)
def _uncontested_counts(candidate: Annotation, support: Annotation) -> MppCounts | None:
    """The counts of annotations none of whose spans has two partners, as most are; None for others."""
    credit_c = credit_s = 0.0
    taken: set[int] = set()
    spans = [span.key for span in support.spans]
    for start, end, _ in (span.key for span in candidate.spans):
        partner = -1
        for at, (first, last, _) in enumerate(spans):
            if first < end and start < last:
                if partner >= 0 or at in taken:
                    return None
                partner = at
        if partner >= 0:
            taken.add(partner)
            first, last, _ = spans[partner]
            overlap = min(end, last) - max(start, first)
            credit_c += overlap / (end - start)
            credit_s += overlap / (last - first)
    return MppCounts(credit_c, float(len(candidate.spans)), credit_s, float(len(spans)))


def _share(credit: Floats, mass: Floats) -> Floats:
    """credit / mass; 1 if there is nothing to find."""
    return np.divide(credit, mass, out=np.ones_like(credit), where=mass > 0)


def _extent(*annotations: Annotation) -> int:
    return max((span.end for annotation in annotations for span in annotation), default=0)
