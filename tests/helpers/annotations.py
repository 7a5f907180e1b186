"""Annotations for property tests: overlapping, nested, at both ends, in none of a translation of any length."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.elicit.parse import CandidateParser, Invalid


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
def several(draw: st.DrawFn, least: int = 2, most: int = 5) -> tuple[int, list[Annotation]]:
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


def parse_candidate(text: object, translation: str, location: str = "first") -> Annotation | Invalid:
    """The annotation that one text spells, or why it spells none."""
    parsed = CandidateParser(translation, location).parse(text)
    return parsed if isinstance(parsed, Invalid) else parsed.annotation
