"""Character F1 of a corpus as the WMT shared tasks count it: sums over segments first, one F1 from them.

    P = sum_k C_k / sum_k S_k(Ec),  R = sum_k C_k / sum_k S_k(Es),  F1 = 2 sum_k C_k / sum_k (S_k(Ec) + S_k(Es))

* ``wmt23`` (QE task 2, error spans): C and S as in `f1`: a character counts once, however many spans cover it. An
  error without characters (`Annotation.points`) marks the character before which it stands; behind the text, there is
  room for one more.
* ``wmt25`` (MT evaluation task 2): a character counts once for each span over it. Of the spans over a character, those
  that find one of the same severity on the other side earn 1, and pairs of what is left earn 0.5.

Neither is a mean of segment F1. Other corpus measures need no counts here: MPP has `Mpp.counts`, and softdice uses
the sums of its definition. Only the sums of segments matter, so a bootstrap reuses them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity
from mbr_esd_metric.core.severity import BETA, GAMMA
from mbr_esd_metric.core.similarities.f1 import f1_counts


def wmt23_counts(candidate: Annotation, support: Annotation, length: int) -> tuple[float, float, float]:
    """C, S(Ec) and S(Es) of one segment as WMT23's script sums them.

    Raises:
        InputError: a span ends past the translation of `length` characters.
    """
    if candidate.points or support.points:
        for side in (candidate, support):
            side.check_length(length)
        candidate, support, length = _points_as_spans(candidate), _points_as_spans(support), length + 1
    return f1_counts(candidate, support, length)


def wmt25_counts(candidate: Annotation, support: Annotation, length: int) -> tuple[float, float, float]:
    """C, S(Ec) and S(Es) of one segment as WMT25's script sums them.

    Raises:
        InputError: a span ends past the translation of `length` characters.
    """
    major_c, minor_c = _covers(candidate, length, "major"), _covers(candidate, length, "minor")
    major_s, minor_s = _covers(support, length, "major"), _covers(support, length, "minor")
    same = np.minimum(major_c, major_s) + np.minimum(minor_c, minor_s)
    left = np.minimum(major_c + minor_c - same, major_s + minor_s - same)
    credit = BETA * float(same.sum()) + GAMMA * float(left.sum())
    return credit, float((major_c + minor_c).sum()), float((major_s + minor_s).sum())


def _points_as_spans(annotation: Annotation) -> Annotation:
    return Annotation([*annotation, *(ErrorSpan(at, at + 1, severity) for at, severity in annotation.points)])


def _covers(annotation: Annotation, length: int, severity: Severity) -> npt.NDArray[np.int64]:
    """How many spans of this severity cover each character, shape (length,)."""
    annotation.check_length(length)
    covers = np.zeros(length, dtype=np.int64)
    for span in annotation:
        if span.severity == severity:
            covers[span.start : span.end] += 1
    return covers
