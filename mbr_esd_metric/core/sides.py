"""Annotations of a translation t and of what it leaves out of the source s, joined to be compared.

Joined, they are over one text of ``L = len(t) + len(s)`` characters, t first: a source-side span ``[a, b)`` becomes
``[len(t) + a, len(t) + b)``. Kernels, similarities and rules see joined annotations only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan


def concatenate_sides(annotation: Annotation, length: int) -> Annotation:
    """The annotation of a translation of this length, joined. Raises `InputError` if a span ends past it."""
    annotation.on("translation").check_length(length)
    if not annotation.sided:
        return annotation
    moved = (
        replace(span, start=length + span.start, end=length + span.end, side="translation")
        for span in annotation.on("source")
    )
    return _with_spans(annotation, [*annotation.on("translation"), *moved])


def split_sides(annotation: Annotation, length: int) -> Annotation:
    """The inverse of `concatenate_sides`; a span over both texts becomes one on each side."""
    spans: list[ErrorSpan] = []
    for span in annotation:
        if span.start < length:
            spans.append(span if span.end <= length else replace(span, end=length))
        if span.end > length:
            spans.append(replace(span, start=max(span.start - length, 0), end=span.end - length, side="source"))
    return _with_spans(annotation, spans)


def _with_spans(annotation: Annotation, spans: Iterable[ErrorSpan]) -> Annotation:
    """These spans, repeats included, and what has no span."""
    return Annotation.of_rater(spans).with_points(annotation.points).with_unplaced(annotation.unplaced)
