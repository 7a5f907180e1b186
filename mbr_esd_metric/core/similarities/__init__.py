"""Similarities of two annotations, used both as utilities of MBR decoding and as span metrics.

A new similarity is one file NAME.py in this folder with a subclass of `Similarity`: a scalar definition, its batched
form, and a name. Decoding, evaluation and command line look it up by name, and load it on demand. Other packages can
add similarities by entry points.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cache, reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.plugins import Catalog

if TYPE_CHECKING:
    from mbr_esd_metric.core.kernels import AnnotationTable, Floats

#: Pairs of annotations per block of `Similarity.expected`: larger arrays are allocated anew each time (twice as slow).
_BLOCK = 16_000


class Similarity(ABC):
    """Similarity of a candidate annotation to a support (or gold) annotation of the same translation. Higher is more
    similar; 1 for identical annotations."""

    #: The name in options: `utility=NAME`, also in means such as "softf1+scoresim".
    name: ClassVar[str]
    #: Whether it is symmetric, so that only half of the pairs need to be computed.
    symmetric: ClassVar[bool] = False

    @abstractmethod
    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        """The similarity of two annotations of a translation of `length` characters, by definition. Raises `InputError`
        if a span ends past the translation."""

    @abstractmethod
    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        """The similarity of every pair of candidates `rows` and supports `columns` of the table, shape (R, C)."""

    def precision_recall(self, candidate: Annotation, support: Annotation, length: int) -> tuple[float, float] | None:
        """Precision of the candidate and recall of the support, in [0, 1] each; None if the similarity is not based on
        them."""
        return None

    def expected(self, table: AnnotationTable, rows: slice, columns: slice, weights: Floats) -> Floats:
        """The expected similarity of each candidate, ``sum_s weights[s] * similarity(c, s)``, shape (R,), with weights
        of the supports, shape (C,), of sum 1. Blocks of candidates bound the memory."""
        import numpy as np

        start, stop, _ = rows.indices(len(table))
        expected: Floats = np.zeros(stop - start)
        halved = self.symmetric and rows == columns
        done = 0
        while done < len(expected):
            wide = slice(start + done, stop) if halved else columns
            beside = weights[done:] if halved else weights
            height = min(max(1, _BLOCK // max(1, len(beside))), len(expected) - done)
            block = self.matrix(table, slice(start + done, start + done + height), wide)
            expected[done : done + height] += block @ beside
            if halved:
                expected[done + height :] += weights[done : done + height] @ block[:, height:]
            done += height
        return expected

    def __str__(self) -> str:
        return self.name


class Mean(Similarity):
    """The weighted mean of similarities, ``sum_k w_k sim_k / sum_k w_k``, from pairs (weight > 0, similarity)."""

    def __init__(self, parts: tuple[tuple[float, Similarity], ...]) -> None:
        total = sum(weight for weight, _ in parts)
        self.parts = tuple((weight / total, similarity) for weight, similarity in parts)

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        return sum(weight * part.scalar(candidate, support, length) for weight, part in self.parts)

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        return reduce(add, (weight * part.matrix(table, rows, columns) for weight, part in self.parts))

    def expected(self, table: AnnotationTable, rows: slice, columns: slice, weights: Floats) -> Floats:
        return reduce(add, (weight * part.expected(table, rows, columns, weights) for weight, part in self.parts))

    def __str__(self) -> str:
        equal = len({weight for weight, _ in self.parts}) == 1
        return "+".join(f"{s}" if equal else f"{weight:g}*{s}" for weight, s in self.parts)


#: Entry point group for other packages: ``mbr_esd_metric.similarities``.
SIMILARITIES = Catalog("similarity", "similarities", __name__, Similarity, {"scoresim-mean": "scoresim"})  # type: ignore[type-abstract]


@cache
def get_similarity(expression: str | Similarity) -> Similarity:
    """The similarity with a name ("softf1"), or a weighted mean of several ("0.7*softf1+0.3*scoresim"); a `Similarity`
    is returned unchanged. Raises `OptionError` for an unknown name, and for a weight that is not a number above 0."""
    if isinstance(expression, Similarity):
        return expression
    parts = tuple((weight, SIMILARITIES.get(name)()) for weight, name in _terms(expression))
    return parts[0][1] if len(parts) == 1 else Mean(parts)


def check_similarity(expression: str | Similarity) -> None:
    """Validate the expression as `get_similarity` does, without loading this package's similarities."""
    if not isinstance(expression, Similarity):
        for _, name in _terms(expression):
            SIMILARITIES.check(name)


def _terms(expression: str) -> list[tuple[float, str]]:
    terms = []
    for term in expression.split("+"):
        number, star, name = term.strip().rpartition("*")
        try:
            weight = float(number) if star else 1.0
        except ValueError:
            weight = math.nan
        if not 0 < weight < math.inf:
            raise OptionError(f"similarity {expression!r}: {number!r} is not a weight, as in '0.7*softf1+0.3*scoresim'")
        terms.append((weight, name.strip()))
    return terms
