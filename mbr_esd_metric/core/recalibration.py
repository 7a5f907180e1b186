"""A monotone map from confidences to confirmation rates, learnt by isotonic regression.

    minimise  sum_i (y_i - f(c_i))^2   over all non-decreasing f, with confidences c and confirmed shares y in [0, 1]. f
is constant on blocks of confidences, interpolated linearly between blocks, and constant outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError


@dataclass(frozen=True, slots=True)
class Recalibration:
    """The map f: non-decreasing values `confirmed` at each `confidence`, in [0, 1], and a description of its data."""

    confidence: tuple[float, ...]
    confirmed: tuple[float, ...]
    learnt_on: str = ""

    def __post_init__(self) -> None:
        x, y = np.array(self.confidence), np.array(self.confirmed)
        good = len(x) == len(y) > 0 and bool((np.diff(x) >= 0).all() and (np.diff(y) >= 0).all())
        if not good or not all(0 <= end <= 1 for end in (x[0], x[-1], y[0], y[-1])):
            raise InputError("a recalibration needs two non-decreasing lists of equal length with values in [0, 1]")

    @classmethod
    def fit(cls, confidence: npt.ArrayLike, confirmed: npt.ArrayLike, learnt_on: str = "") -> Recalibration:
        """Learn f from c and y, shape (n,) each. Raises `InputError` for empty data, and for values outside [0, 1]."""
        from scipy.optimize import isotonic_regression

        c, y = np.asarray(confidence, dtype=np.float64), np.asarray(confirmed, dtype=np.float64)
        if not len(c):
            raise InputError("no error spans to learn a recalibration from")
        if not ((c >= 0) & (c <= 1) & (y >= 0) & (y <= 1)).all():
            raise InputError("a recalibration is learnt from numbers in [0, 1]")
        x, of = np.unique(c, return_inverse=True)
        mass = np.bincount(of).astype(np.float64)
        fitted = isotonic_regression(np.bincount(of, y) / mass, weights=mass)
        points: list[tuple[float, float]] = []
        for start, end in pairwise(fitted.blocks.tolist()):
            value = min(max(float(fitted.x[start]), 0.0), 1.0)
            points += dict.fromkeys([(float(x[start]), value), (float(x[end - 1]), value)])
        return cls(tuple(p[0] for p in points), tuple(p[1] for p in points), learnt_on)

    def of(self, confidence: npt.ArrayLike) -> Floats:
        """Apply f to confidences; the result has the same shape."""
        values = np.interp(np.asarray(confidence, dtype=np.float64), self.confidence, self.confirmed)
        return np.asarray(values, dtype=np.float64)

    def annotation(self, annotation: Annotation) -> Annotation:
        """The annotation with f applied to the confidences; spans without confidence and rule-based ones (category
        `check/...`) are unchanged."""
        return annotation.with_spans(
            span
            if span.confidence is None or (span.category or "").startswith("check/")
            else replace(span, confidence=float(self.of(span.confidence)))
            for span in annotation
        )

    def to_json(self) -> dict[str, object]:
        """The object of a file."""
        return {"recalibration": "isotonic", "learnt_on": self.learnt_on} | {
            name: list(getattr(self, name)) for name in ("confidence", "confirmed")
        }

    @classmethod
    def from_json(cls, value: object) -> Recalibration:
        """The map in a file's object. Raises `InputError` for any other object."""
        if not isinstance(value, Mapping) or value.get("recalibration") != "isotonic":
            raise InputError(
                'this is not a recalibration; `mbr-esd calibrate --save` writes one ("recalibration": "isotonic")'
            )
        lists: list[Any] = [value.get(name) for name in ("confidence", "confirmed")]
        if not all(isinstance(numbers, list) and {*map(type, numbers)} <= {int, float} for numbers in lists):
            raise InputError('"confidence" and "confirmed" of a recalibration must be lists of numbers')
        x, y = (tuple(map(float, numbers)) for numbers in lists)
        return cls(x, y, str(value.get("learnt_on", "")))
