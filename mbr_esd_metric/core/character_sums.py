"""Sums over the characters of many translations at once: what the scalar measures count, without a loop over them.

The characters of a block of translations are one row of numbers. How many spans cover each of them is a running sum of
the spans' starts and ends; a sum over one translation is a difference of two running sums. All are multiples of 1/2, so
that no sum is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.severity import BETA, GAMMA

_Counts = npt.NDArray[np.int32]

#: Characters of a block: its arrays stay in the processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class CharacterSums:
    """Sums of pairs of annotations, one entry a pair; v is the severity vector, c the candidate's and s the support's.

    Attributes:
        lengths: L, the characters of the translation.
        norm_c, norm_s: sum v.
        shared: sum min(vc, vs); sum abs(vc - vs) is norm_c + norm_s - 2 shared.
        credit: sum of the credits of `f1`.
        marked_c, marked_s: characters that a span covers.
        layered_credit: sum of the credits of `corpus_f1.wmt25_counts`.
        layers_c, layers_s: the same with a character for each span over it.
    """

    lengths: Floats
    norm_c: Floats
    norm_s: Floats
    shared: Floats
    credit: Floats
    marked_c: Floats
    marked_s: Floats
    layered_credit: Floats
    layers_c: Floats
    layers_s: Floats

    @classmethod
    def of(
        cls, candidates: Sequence[Annotation], supports: Sequence[Annotation], lengths: Sequence[int]
    ) -> CharacterSums:
        """The sums of each pair.

        Args:
            candidates, supports: equally many, and of the translation alone.
            lengths: characters of each translation.

        Raises:
            InputError: a span ends past its translation, or is on the source's side.
        """
        for sides in (candidates, supports):
            for annotation, length in zip(sides, lengths, strict=True):
                annotation.check_length(length)
        parts = [_block(candidates[at], supports[at], lengths[at]) for at in _blocks(lengths)]
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


@dataclass(frozen=True)
class AnnotationPairs:
    """Pairs of annotations, each of a translation of its own.

    Attributes:
        candidates, supports: annotations of the translation alone.
        lengths: characters of each translation.
    """

    candidates: Sequence[Annotation]
    supports: Sequence[Annotation]
    lengths: Sequence[int]

    @cached_property
    def sums(self) -> CharacterSums:
        """What several measures have in common, computed once, if one of them asks."""
        return CharacterSums.of(self.candidates, self.supports, self.lengths)


def _blocks(lengths: Sequence[int]) -> Iterator[slice]:
    """Runs of translations with no more than `_BLOCK` characters together, or of one translation."""
    start = characters = 0
    for at, length in enumerate(lengths):
        if at > start and characters + length > _BLOCK:
            yield slice(start, at)
            start, characters = at, 0
        characters += length
    yield slice(start, len(lengths))


def _block(candidates: Sequence[Annotation], supports: Sequence[Annotation], lengths: Sequence[int]) -> CharacterSums:
    sizes = np.asarray(lengths, dtype=np.int64)
    borders = np.concatenate([[0], np.cumsum(sizes)])
    major_c, minor_c = _covers(candidates, borders)
    major_s, minor_s = _covers(supports, borders)
    in_major_c, in_minor_c, in_major_s, in_minor_s = (one > 0 for one in (major_c, minor_c, major_s, minor_s))
    v_c = BETA * in_major_c + GAMMA * in_minor_c
    v_s = BETA * in_major_s + GAMMA * in_minor_s
    same = np.minimum(major_c, major_s) + np.minimum(minor_c, minor_s)
    layers_c, layers_s = major_c + minor_c, major_s + minor_s
    left = np.minimum(layers_c - same, layers_s - same)
    credit = np.maximum(
        BETA * ((in_major_c & in_major_s) | (in_minor_c & in_minor_s)),
        GAMMA * ((in_major_c & in_minor_s) | (in_minor_c & in_major_s)),
    )

    def total(values: npt.NDArray[Any]) -> Floats:
        running = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
        return np.asarray(running[borders[1:]] - running[borders[:-1]])

    return CharacterSums(
        sizes.astype(np.float64),
        total(v_c),
        total(v_s),
        total(np.minimum(v_c, v_s)),
        total(credit),
        total(in_major_c | in_minor_c),
        total(in_major_s | in_minor_s),
        BETA * total(same) + GAMMA * total(left),
        total(layers_c),
        total(layers_s),
    )


def _covers(annotations: Sequence[Annotation], borders: npt.NDArray[np.int64]) -> tuple[_Counts, _Counts]:
    """How many major spans, and how many minor ones, cover each character of the block."""
    starts: tuple[list[int], list[int]] = ([], [])
    ends: tuple[list[int], list[int]] = ([], [])
    for annotation, border in zip(annotations, borders.tolist(), strict=False):
        for span in annotation.spans:
            minor = span.severity == "minor"
            starts[minor].append(border + span.start)
            ends[minor].append(border + span.end)
    size = int(borders[-1]) + 1
    major, minor_ = (
        np.cumsum(
            np.bincount(np.array(begin, dtype=np.int64), minlength=size)
            - np.bincount(np.array(end, dtype=np.int64), minlength=size),
            dtype=np.int32,
        )[:-1]
        for begin, end in zip(starts, ends, strict=True)
    )
    return major, minor_
