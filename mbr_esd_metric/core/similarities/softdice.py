"""SoftDice: the overlap of two severity vectors, relative to their size.

    SoftDice = (2 sum_i min(vc[i], vs[i]) + eps) / (|vc|_1 + |vs|_1 + eps),  eps = 1

SoftF1 is close to an accuracy over characters, most of which are correct, so it ranks "no error" above a second
professional annotator. SoftDice ignores characters that neither annotation marks. With D = |vc - vs|_1 and T = |vc|_1 +
|vs|_1, min(a, b) = (a + b - |a - b|) / 2 gives SoftDice = 1 - D / (T + eps). Therefore:

* It is symmetric, at most 1, and 1 only where D = 0; above 0, since D <= T < T + eps. So it has no plateau at 0.
* It strictly decreases with every edit that adds a mark of severity x > 0 where neither vector has one (D and T
  increase by x, and D < T + eps), or that deletes a mark on which they agree (D increases and T decreases by x).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, as_annotation
from mbr_esd_metric.core.kernels import EPS, AnnotationTable, Floats, products, severity_vector
from mbr_esd_metric.core.similarities import Similarity


def soft_dice(candidate: AnnotationLike, support: AnnotationLike, length: int) -> float:
    """SoftDice in (0, 1]; symmetric, 1 only for equal vectors. Raises `InputError` for a span past `length`."""
    v_c = severity_vector(as_annotation(candidate), length)
    v_s = severity_vector(as_annotation(support), length)
    return (2 * float(np.minimum(v_c, v_s).sum()) + EPS) / (float(v_c.sum()) + float(v_s.sum()) + EPS)


class SoftDice(Similarity):
    """SoftDice of one segment. The measure softdice-corpus sums numerators and denominators, without eps."""

    name: ClassVar[str] = "softdice"
    symmetric: ClassVar[bool] = True

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        return soft_dice(candidate, support, length)

    def precision_recall(self, candidate: Annotation, support: Annotation, length: int) -> tuple[float, float]:
        # Twice the overlap relative to twice one side: the harmonic mean is SoftDice.
        v_c, v_s = severity_vector(candidate, length), severity_vector(support, length)
        shared = 2 * float(np.minimum(v_c, v_s).sum()) + EPS
        return shared / (2 * float(v_c.sum()) + EPS), shared / (2 * float(v_s.sum()) + EPS)

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        numerator = products(table.levels, rows, columns)
        numerator *= 2
        numerator += EPS
        numerator /= table.norms[rows, None] + (table.norms[None, columns] + EPS)
        return numerator
