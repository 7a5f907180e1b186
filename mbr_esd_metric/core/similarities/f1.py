"""Character F1 with partial credit, as in WMT's quality estimation tasks (paper, Section 4.1).

    c_i = max(beta mc ms, beta nc ns, gamma mc ns, gamma nc ms)       credit of character i
    F1  = 2 sum_i c_i / (S(Ec) + S(Es))                               S(E): characters covered by any span

with m and n the indicators of a major and of a minor span over i. Two empty annotations have F1 = 1; without any credit
F1 = 0, regardless of the distance of the spans (the zero plateau that SoftF1 avoids).

The WMT shared tasks sum counts over the segments of a corpus, and compute one F1 from them:

    P = sum_k C_k / sum_k S_k(Ec),  R = sum_k C_k / sum_k S_k(Es),  F1 = 2 sum_k C_k / sum_k (S_k(Ec) + S_k(Es))

* ``wmt23`` (QE task 2, error spans): C and S as above: a character counts once, regardless of the number of spans. An
  error without characters (`Annotation.points`) marks the character after it, or an extra one at the end of the text.
* ``wmt25`` (MT evaluation task 2): a character counts once per span over it. At each character, spans of the same
  severity are paired with credit 1, and the remaining spans with credit 0.5.

Neither is a mean of segment F1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, ErrorSpan, as_annotation
from mbr_esd_metric.core.kernels import BETA, GAMMA, AnnotationTable, Floats, covered, products, span_counts
from mbr_esd_metric.core.similarities import Similarity


def f1(candidate: AnnotationLike, support: AnnotationLike, length: int) -> float:
    """F1 of two annotations of a translation of `length` characters, in [0, 1]; symmetric. `InputError` if a span ends
    past the translation."""
    credit, size_c, size_s = f1_counts(as_annotation(candidate), as_annotation(support), length)
    return 2 * credit / (size_c + size_s) if size_c + size_s else 1.0


@lru_cache(maxsize=1)
def f1_counts(candidate: Annotation, support: Annotation, length: int) -> tuple[float, int, int]:
    """Credit C, and the numbers of marked characters, S(Ec) and S(Es)."""
    major_c, minor_c = covered(candidate, length, "major"), covered(candidate, length, "minor")
    major_s, minor_s = covered(support, length, "major"), covered(support, length, "minor")
    credit = np.maximum(
        BETA * ((major_c & major_s) | (minor_c & minor_s)), GAMMA * ((major_c & minor_s) | (minor_c & major_s))
    )
    return float(credit.sum()), int((major_c | minor_c).sum()), int((major_s | minor_s).sum())


class F1(Similarity):
    """Character F1. Its credit is a sum of products: gamma if both mark a character, plus beta - gamma if the
    severities agree."""

    name: ClassVar[str] = "f1"
    symmetric: ClassVar[bool] = True

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        return f1(candidate, support, length)

    def precision_recall(self, candidate: Annotation, support: Annotation, length: int) -> tuple[float, float]:
        credit, size_c, size_s = f1_counts(candidate, support, length)
        return credit / size_c if size_c else 1.0, credit / size_s if size_s else 1.0

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        # Agreement is 1[major both] + 1[minor both] - 1[all four].
        parts, steps = [table.marked, *table.covers], [GAMMA, BETA - GAMMA, BETA - GAMMA]
        if table.both is not None:
            parts, steps = [*parts, table.both], [*steps, GAMMA - BETA]
        weights = np.concatenate([step * table.widths for step in steps])
        credit = products((np.concatenate(parts, axis=1), weights), rows, columns)
        size = (table.marked @ table.widths).astype(np.float64)
        total = size[rows, None] + size[None, columns]
        return np.where(total > 0, 2 * credit / np.maximum(total, 1), 1.0)


def wmt23_counts(candidate: Annotation, support: Annotation, length: int) -> tuple[float, float, float]:
    """C, S(Ec) and S(Es) of one segment, as in WMT23's script; raises the exceptions of `f1`."""
    if candidate.points or support.points:
        for side in (candidate, support):
            side.check_length(length)
        candidate, support, length = _points_as_spans(candidate), _points_as_spans(support), length + 1
    return f1_counts(candidate, support, length)


def wmt25_counts(candidate: Annotation, support: Annotation, length: int) -> tuple[float, float, float]:
    """C, S(Ec) and S(Es) of one segment, as in WMT25's script; raises the exceptions of `f1`."""
    major_c, minor_c = span_counts(candidate, length, "major"), span_counts(candidate, length, "minor")
    major_s, minor_s = span_counts(support, length, "major"), span_counts(support, length, "minor")
    same = np.minimum(major_c, major_s) + np.minimum(minor_c, minor_s)
    left = np.minimum(major_c + minor_c - same, major_s + minor_s - same)
    credit = BETA * float(same.sum()) + GAMMA * float(left.sum())
    return credit, float((major_c + minor_c).sum()), float((major_s + minor_s).sum())


def _points_as_spans(annotation: Annotation) -> Annotation:
    return Annotation([*annotation, *(ErrorSpan(at, at + 1, severity) for at, severity in annotation.points)])
