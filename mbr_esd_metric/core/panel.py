"""Weights of several annotators (models or people), learnt only from their agreement, without labels.

The model has one factor. Over the segments k of a test set, the MQM scores of annotator a, standardised, are

    x_a[k] = l_a t[k] + sqrt(1 - l_a^2) e_a[k],    so that  corr(x_a, x_b) = l_a l_b  for a != b

with t the common factor, e_a independent errors, and the loading l_a the *reliability* of a: its correlation with t.
Loadings are estimated from the correlations by principal axis factoring: the first eigenvector of the matrix with
diagonal l_a^2, iterated until convergence. The best linear estimate of t (Bartlett 1937) has the weights

    w_a = l_a / (1 - l_a^2),    scaled to the sum 1

An annotator whose scores do not vary, or do not correlate with the others', has weight 0. Annotators whose scores
correlate by `COPY` or more are not independent and share one weight. docs/evidence/panels.md compares this with other
estimators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import number_of

#: Minimum numbers of segments and annotators for learning weights.
FEWEST_SEGMENTS, FEWEST_ANNOTATORS = 100, 3
#: Minimum correlation of scores at which two annotators count as one; large models and people reach 0.6.
COPY = 0.8
#: The largest squared loading, which bounds the weight of one annotator.
_LARGEST = 0.95


@dataclass(frozen=True, slots=True)
class Panelist:
    """An annotator of a panel.

    Attributes:
        weight: total weight of the annotator's candidates; the weights of a panel sum to 1.
        reliability: the loading l, in [0, 1); NaN if it was not learnt.
        scale: the factor that scales the annotator's MQM scores to the panel's standard deviation.
    """

    name: str
    weight: float
    reliability: float
    scale: float


@dataclass(frozen=True)
class Panel:
    """The annotators of a test set and their weights.

    Attributes:
        panelists: sorted by weight, then by name.
        segments: number of segments used for learning.
        equal_because: reason for equal weights; "" if the weights were learnt.
    """

    panelists: tuple[Panelist, ...]
    segments: int
    equal_because: str = ""

    def shares(self, annotators: Sequence[str | None]) -> Floats:
        """The weights of the candidates of one segment, by their annotators, shape (n,), of sum 1. Candidates of an
        annotator share its weight; if all weights are 0, candidates are weighted equally. Raises `InputError` for a
        candidate without annotator.
        """
        if None in annotators:
            raise InputError(f'candidate {annotators.index(None) + 1} has no "annotator"; weights=agreement needs it')
        weights = {one.name: one.weight for one in self.panelists}
        shares = np.array([weights.get(str(name), 0.0) / annotators.count(name) for name in annotators])
        return np.asarray(shares / shares.sum() if shares.any() else np.full(len(shares), 1 / len(shares)))

    def scales(self, annotators: Sequence[str | None]) -> Floats:
        """The factor of each candidate's MQM score, shape (n,)."""
        scales = {one.name: one.scale for one in self.panelists}
        return np.array([scales.get(str(name), 1.0) for name in annotators])

    def __str__(self) -> str:
        """The weights in a signature: ``agreement/a=0.26,b=0.19``, or ``agreement/equal``."""
        learnt = ",".join(f"{one.name}={one.weight:.3f}" for one in self.panelists)
        return f"agreement/{'equal' if self.equal_because else learnt}"

    @property
    def line(self) -> str:
        """The weights as one readable line."""
        if self.equal_because:
            return f"weights=agreement: equal weights, because {self.equal_because}"
        weights = ", ".join(f"{one.name} {one.weight:.2f}" for one in self.panelists)
        return f"weights learnt from the agreement on {number_of(self.segments, 'segment')}: {weights}"

    @classmethod
    def learnt(cls, scores: Sequence[Mapping[str, float]]) -> Panel:
        """The panel learnt from each segment's MQM scores by annotator; a note lists the weights."""
        names = sorted({name for segment in scores for name in segment})
        table = np.array([[one.get(name, np.nan) for name in names] for one in scores]).reshape(len(scores), len(names))
        several = int((np.isfinite(table).sum(1) > 1).sum())
        panelists, why = [Panelist(name, 1 / len(names), np.nan, 1.0) for name in names], ""
        if len(names) < FEWEST_ANNOTATORS:
            why = f"learning needs {FEWEST_ANNOTATORS} annotators, but there are {len(names)}"
        elif several < FEWEST_SEGMENTS:
            why = f"learning needs {FEWEST_SEGMENTS} segments with several annotators, but there are {several}"
        elif (learnt := _weighed(names, table)) is None:
            why = "the annotators do not agree"
        else:
            panelists = sorted(learnt, key=lambda one: (-round(one.weight, 9), one.name))
        panel = cls(tuple(panelists), several, why)
        logger.info(panel.line)
        return panel


def _weighed(names: Sequence[str], table: Floats) -> list[Panelist] | None:
    """The panelists for the columns of a table of scores, shape (segments, n); None if they do not agree."""
    agreement = correlations(table)
    copies = agreement >= COPY
    # Copies of an annotator count once, with the same loading.
    kept, number = np.unique(np.argmax(copies, axis=1), return_inverse=True)
    reliability = loadings(agreement[np.ix_(kept, kept)])[number]
    weights = reliability / (1 - reliability**2) / copies.sum(1)
    if not weights.any():
        return None
    weights /= weights.sum()
    deviations = np.nanstd(table, axis=0)
    scales = np.divide(float(weights @ deviations), deviations, out=np.ones(len(names)), where=deviations > 0)
    columns = zip(names, weights.tolist(), reliability.tolist(), scales.tolist(), strict=True)
    return [Panelist(*one) for one in columns]


def correlations(table: Floats) -> Floats:
    """Pearson correlations between the columns of a table, shape (segments, n), over the segments where both have a
    value. 0 if a column does not vary; the mean of the known correlations for columns with fewer than 10 common
    segments."""
    result = np.full((table.shape[1],) * 2, np.nan)
    for i, j in combinations(range(len(result)), 2):
        x, y = table[np.isfinite(table[:, [i, j]]).all(1)][:, [i, j]].T
        if len(x) >= 10:
            varies = np.ptp(x) > 0 and np.ptp(y) > 0
            result[i, j] = result[j, i] = np.corrcoef(x, y)[0, 1] if varies else 0.0
    known = result[np.isfinite(result)]
    result[np.isnan(result)] = known.mean() if len(known) else 0.0
    np.fill_diagonal(result, 1.0)
    return result


def loadings(table: Floats) -> Floats:
    """The loadings of one factor, shape (n,), each at least 0, for a table of correlations, shape (n, n)."""
    others = np.where(np.eye(len(table), dtype=bool), 0.0, table)
    communalities: Floats = np.clip(others.max(1, initial=0.0), 0.0, _LARGEST)
    for _ in range(500):
        values, vectors = np.linalg.eigh(others + np.diag(communalities))
        first = vectors[:, -1] * np.sqrt(max(values[-1], 0.0))
        first = np.maximum(first * np.sign(first.sum()), 0.0)
        before, communalities = communalities, np.clip(first**2, 0.0, _LARGEST)
        if np.abs(communalities - before).max(initial=0.0) < 1e-9:
            break
    return np.asarray(np.sqrt(communalities))
