"""Annotations as arrays: severity vectors, and tables of the annotations of a segment.

Severity vectors (paper, Section 4.2) assign a severity to each character of a translation:

    v[i] = beta * 1[i in a major span] + gamma * 1[i in a minor span]

so the value of a character is 0, gamma, beta or, if a major and a minor span overlap, beta + gamma.

Batched similarities are computed from a table, without a loop over characters or pairs. The characters of a translation
fall into K *elementary intervals* between neighbouring span boundaries, on which all indicators are constant. So a sum
over characters of products of indicators is one matrix product. The minimum of two severity vectors is such a sum (its
threshold decomposition):

    min(vc, vs) = gamma 1[vc >= gamma] 1[vs >= gamma] + (beta - gamma) 1[vc >= beta] 1[vs >= beta]
                  + gamma 1[vc >= beta + gamma] 1[vs >= beta + gamma]

and ``|vc - vs| = vc + vs - 2 min(vc, vs)``. All terms are multiples of a half, so single precision is exact as long as
the sums stay below 2**23 (checked; longer translations use double precision).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, Severity

Floats: TypeAlias = npt.NDArray[np.float64]
_Reals: TypeAlias = npt.NDArray[Any]

#: Penalty of a character in a major span, and in a minor one (paper, Section 5.1); 0 < gamma < beta.
BETA, GAMMA = 1.0, 0.5
#: Keeps the denominators of SoftF1 and SoftDice positive.
EPS = 1.0
#: Longest translation for which sums of halves are exact in single precision: 1.5 * L < 2**23.
_SINGLE_LENGTH = 5_000_000


def span_counts(annotation: Annotation, length: int, severity: Severity) -> npt.NDArray[np.int64]:
    """The number of spans of this severity over each of the `length` characters; Raises `InputError` if one ends past
    them."""
    annotation.check_length(length)
    counts = np.zeros(length, dtype=np.int64)
    for span in annotation:
        if span.severity == severity:
            counts[span.start : span.end] += 1
    return counts


@lru_cache(maxsize=4)
def covered(annotation: Annotation, length: int, severity: Severity) -> npt.NDArray[np.bool_]:
    """Whether each of the `length` characters is in a span of this severity; raises the exceptions of `span_counts`."""
    mask = np.greater(span_counts(annotation, length, severity), 0)
    mask.flags.writeable = False
    return mask


@lru_cache(maxsize=2)
def severity_vector(annotation: Annotation, length: int) -> npt.NDArray[np.float64]:
    """v, of shape (length,), with values 0, 0.5, 1 or 1.5; `InputError` if a span ends past the text."""
    vector = BETA * covered(annotation, length, "major") + GAMMA * covered(annotation, length, "minor")
    vector.flags.writeable = False
    return vector


class AnnotationTable:
    """n annotations of one translation of L = `length` characters, on a common grid of K elementary intervals. Raises
    `InputError` if a span ends past the translation."""

    def __init__(self, annotations: Sequence[Annotation], length: int) -> None:
        self.annotations = annotations
        self.length = length
        #: The keys of their spans; raters may have marked a span more than once.
        self.keys = [a.key if len(a.key) == len(a.spans) else tuple(span.key for span in a.spans) for a in annotations]
        #: The index of each of the S distinct spans of all annotations.
        self.column = {key: index for index, key in enumerate(dict.fromkeys(chain.from_iterable(self.keys)))}
        starts, ends = [key[0] for key in self.column], [key[1] for key in self.column]
        if ends and max(ends) > length:
            for annotation in annotations:
                annotation.check_length(length)
        self.dtype: type[np.floating[Any]] = np.float32 if length <= _SINGLE_LENGTH else np.float64
        #: The first character of each span, and one past its last, (2, S).
        self.edges: npt.NDArray[np.int64] = np.array([starts, ends], dtype=np.int64)
        self.bounds: npt.NDArray[np.int64] = np.array(sorted({*starts, *ends}), dtype=np.int64)
        #: Number of characters of each elementary interval, shape (K,); some intervals are in no span.
        self.widths: _Reals = np.diff(self.bounds).astype(self.dtype)

    @cached_property
    def incidence(self) -> _Reals:
        """(n, S), 1 if the annotation has the span; more if a rater marked it more than once."""
        column, width = self.column, len(self.column)
        ones = [row * width + column[span] for row, key in enumerate(self.keys) for span in key]
        counts: _Reals = np.bincount(np.array(ones, dtype=np.intp), minlength=len(self) * width).astype(self.dtype)
        return counts.reshape(len(self), width)

    def __len__(self) -> int:
        return len(self.annotations)

    @cached_property
    def index_of_bound(self) -> dict[int, int]:
        """The index of each bound."""
        return {bound: number for number, bound in enumerate(self.bounds.tolist())}

    @cached_property
    def covers(self) -> tuple[_Reals, _Reals]:
        """1 if the annotation has a major span over the interval, shape (n, K); and the same for minor spans."""
        # +1 where a span starts and -1 where one ends: the cumulative sum is the number of spans over an interval.
        is_major = np.array([key[2] == "major" for key in self.column], dtype=bool)
        places, width = np.searchsorted(self.bounds, self.edges), len(self.bounds)
        covers = []
        for of in (is_major, ~is_major):
            rows, spans = np.nonzero(self.incidence * of)
            begins, ends = (np.bincount(at, minlength=len(self) * width) for at in rows * width + places[:, spans])
            sums = np.cumsum((begins - ends).reshape(len(self), width), axis=1)[:, :-1]
            covers.append(np.minimum(sums, 1).astype(self.dtype))
        return covers[0], covers[1]

    @cached_property
    def marked(self) -> _Reals:
        """1 if the annotation has any span over the interval, shape (n, K)."""
        return np.maximum(*self.covers)

    @cached_property
    def both(self) -> _Reals | None:
        """1 if a major and a minor span of the annotation overlap, (n, K); None if this never happens."""
        major, minor = self.covers
        both = major * minor
        return both if both.any() else None

    @cached_property
    def levels(self) -> tuple[_Reals, _Reals]:
        """The threshold decomposition: indicators (n, M) and the weight of each column (M,), including interval widths.
        Their `products` are the sums over characters of min(vc, vs), exactly."""
        parts, steps = [self.marked, self.covers[0]], [GAMMA, BETA - GAMMA]
        if self.both is not None:
            parts, steps = [*parts, self.both], [*steps, GAMMA]
        return np.concatenate(parts, axis=1), np.concatenate([step * self.widths for step in steps])

    @cached_property
    def norms(self) -> Floats:
        """|v|_1 of each annotation, shape (n,)."""
        indicators, weights = self.levels
        return (indicators @ weights).astype(np.float64)


def products(weighted: tuple[_Reals, _Reals], rows: slice, columns: slice) -> Floats:
    """``indicators[rows] diag(weights) indicators[columns]^T``, shape (R, C)."""
    indicators, weights = weighted
    return np.asarray((indicators[rows] * weights) @ indicators[columns].T, dtype=np.float64)
