"""SoftF1 (paper, Section 4.2), the default utility.

    d = |vc - vs|_1,  P = 1 - d / (L + |vc|_1 + eps),  R = 1 - d / (L + |vs|_1 + eps)
    SoftF1 = 2 P R / (P + R)

with eps = 1 and v the severity vectors. As defined in the paper, it can leave [0, 1]: if a character is both major and
minor, d can exceed L + |vs|_1, R becomes negative, and the harmonic mean is unbounded below. So P and R are clipped at
0, and SoftF1 is 0 if both are. Without overlapping severities, d <= L and clipping has no effect.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, as_annotation
from mbr_esd_metric.core.kernels import EPS, AnnotationTable, Floats, products, severity_vector
from mbr_esd_metric.core.similarities import Similarity


def soft_f1(
    candidate: AnnotationLike, support: AnnotationLike, length: int, *, clip: bool = True, eps: float = EPS
) -> float:
    """SoftF1 in [0, 1] for a translation of `length` characters; symmetric, and 1 only for equal severity vectors.
    Without `clip`, it equals the paper's released code (0 if P + R <= 0), and with eps = 0 the paper's definition.
    Raises `InputError` if a span ends past the translation."""
    precision, recall = _precision_recall(as_annotation(candidate), as_annotation(support), length, eps)
    if precision == recall == 1:
        return 1.0
    if clip:
        precision, recall = max(precision, 0.0), max(recall, 0.0)
    return 2.0 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _precision_recall(candidate: Annotation, support: Annotation, length: int, eps: float) -> tuple[float, float]:
    """P and R without clipping; both are 1 only for equal severity vectors."""
    v_c, v_s = severity_vector(candidate, length), severity_vector(support, length)
    distance = float(np.abs(v_c - v_s).sum())
    if distance == 0:
        return 1.0, 1.0
    return 1.0 - distance / (length + float(v_c.sum()) + eps), 1.0 - distance / (length + float(v_s.sum()) + eps)


class SoftF1(Similarity):
    """SoftF1, clipped."""

    name: ClassVar[str] = "softf1"
    symmetric: ClassVar[bool] = True

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        return soft_f1(candidate, support, length)

    def precision_recall(self, candidate: Annotation, support: Annotation, length: int) -> tuple[float, float]:
        precision, recall = _precision_recall(candidate, support, length, EPS)
        return max(precision, 0.0), max(recall, 0.0)

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        # With a = L + |vc| + eps and b = L + |vs| + eps: P = (a - d) / a and R = (b - d) / b, so the harmonic mean is
        # (a - d)(b - d) / (b/2 (a - d) + a/2 (b - d)); and a - d = L + eps - |vs| + 2 sum min(vc, vs), exact in halves.
        norm_c, norm_s = table.norms[rows, None], table.norms[columns]
        base = table.length + EPS
        y = products(table.levels, rows, columns)
        y *= 2
        x = y + (base - norm_s)
        y += base - norm_c
        # P or R can only be negative if an annotation's norm exceeds the length of the translation.
        clipped = table.norms.max() > base
        if clipped:
            np.maximum(x, 0, out=x)
            np.maximum(y, 0, out=y)
        denominator = x * ((base + norm_s) / 2)
        weighted = y * ((base + norm_c) / 2)
        denominator += weighted
        if clipped:
            # 0 only if both P and R are clipped; then the numerator is 0, too.
            np.maximum(denominator, 1e-9, out=denominator)
        x *= y
        x /= denominator
        return x
