"""Annotations for property tests: overlapping, nested, at both ends, in none of a translation of any length."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.core.kernels import severity_vector


@st.composite
def annotations(draw: st.DrawFn, length: int, most: int = 6) -> Annotation:
    """One annotation of a translation of `length` characters."""
    if not length:
        return Annotation()
    spans = []
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, length - 1))
        end = draw(st.integers(start + 1, length))
        spans.append(ErrorSpan(start, end, draw(st.sampled_from(["major", "minor"]))))
    return Annotation(spans)


@st.composite
def several(draw: st.DrawFn, least: int, most: int) -> tuple[int, list[Annotation]]:
    """A length and annotations of a translation of that length."""
    length = draw(st.integers(0, 24))
    return length, draw(st.lists(annotations(length), min_size=least, max_size=most))


def drawn(rng: random.Random, length: int, most: int = 4) -> Annotation:
    """One annotation, without hypothesis."""
    spans = []
    for _ in range(rng.randint(0, most)):
        start = rng.randrange(length)
        spans.append(ErrorSpan(start, rng.randint(start + 1, length), rng.choice(["major", "minor"])))
    return Annotation(spans)


def matrix(
    rng: np.random.Generator, systems: int, segments: int, length: int, most: int = 3, sure: float = 0.0
) -> list[list[Annotation]]:
    """Random annotations, systems x segments; that share of their spans has a confidence in tenths."""

    def span() -> ErrorSpan:
        start = int(rng.integers(0, length - 1))
        end = int(rng.integers(start + 1, length + 1))
        confidence = float(rng.integers(0, 11)) / 10 if rng.random() < sure else None
        return ErrorSpan(start, end, "major" if rng.integers(2) else "minor", confidence=confidence)

    return [
        [Annotation([span() for _ in range(rng.integers(0, most + 1))]) for _ in range(segments)]
        for _ in range(systems)
    ]


def overlap_and_size(
    vector: npt.NDArray[np.float64], items: Sequence[Annotation], weights: npt.NDArray[np.float64] | None = None
) -> tuple[float, float]:
    """Numerator and denominator of the expected corpus softdice of a severity vector, by their definitions."""
    supports = [severity_vector(item, len(vector)) for item in items]
    overlaps, sizes = [2 * np.minimum(vector, v).sum() for v in supports], [v.sum() for v in supports]
    return float(np.average(overlaps, weights=weights)), float(vector.sum() + np.average(sizes, weights=weights))
