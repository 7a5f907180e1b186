"""Annotations that no candidate gave, on the grid of those that candidates gave: what the search for a consensus tries.

A trial is a set of spans whose ends are bounds of an `AnnotationTable`. `TrialTable` puts many of them into the rows
before the table's supports, so that every similarity scores them in the form that it has already.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, SpanKey
from mbr_esd_metric.core.kernels import AnnotationTable, Floats

#: Spans of a trial, sorted.
Trial = tuple[SpanKey, ...]


class SpanBits(dict[SpanKey, int]):
    """Span -> the intervals that it covers, as the bits of a number: bit k for a minor span, bit K + k for a major one.

    Args:
        table: whose K intervals they are.
    """

    def __init__(self, table: AnnotationTable) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, key: SpanKey) -> int:
        start, end, severity = key
        place = self._table.place
        bits = (1 << place[end]) - (1 << place[start])
        self[key] = bits if severity == "minor" else bits << len(self._table.widths)
        return self[key]


class SpanBook:
    """The spans that trials are made of, with their categories.

    Args:
        table: of candidates and supports.
        columns: the supports in it, who vote for the category of a span that is new.
        weights: of the supports, shape (C,).

    Attributes:
        bits: of each span the intervals that it covers; see `SpanBits`.
    """

    def __init__(self, table: AnnotationTable, columns: slice, weights: Floats) -> None:
        self.bits = SpanBits(table)
        self._table = table
        self._voters = columns
        self._weights = weights
        self._spans: dict[SpanKey, ErrorSpan] = {}

    def annotation(self, trial: Trial) -> Annotation:
        """A trial as an annotation; its spans have categories."""
        return Annotation.of_keys({key: self.span(key) for key in trial})

    def span(self, key: SpanKey) -> ErrorSpan:
        """A span with the category that a candidate gave to it; else that which most supports gave to its characters.

        A vote counts the support's weight times the characters that the two spans share; equal votes go to the
        category that is first in the alphabet.
        """
        if key not in self._spans:
            self._spans[key] = self._known.get(key) or ErrorSpan(*key, category=self._category(key))
        return self._spans[key]

    @cached_property
    def _known(self) -> dict[SpanKey, ErrorSpan]:
        known: dict[SpanKey, ErrorSpan] = {}
        for annotation in self._table.annotations:
            for span in annotation:
                known.setdefault(span.key, span)
        return known

    def _category(self, key: SpanKey) -> str | None:
        start, end, _ = key
        votes: dict[str, float] = {}
        for annotation, weight in zip(self._table.annotations[self._voters], self._weights.tolist(), strict=True):
            for span in annotation:
                shared = min(end, span.end) - max(start, span.start)
                if shared > 0 and span.category is not None:
                    votes[span.category] = votes.get(span.category, 0.0) + weight * shared
        return min(votes, key=lambda category: (-votes[category], category)) if votes else None


class TrialTable(AnnotationTable):
    """Trials in the first rows, then the supports of another table; on that table's grid.

    What a trial covers is put together from its spans' bits, and what the supports cover is the other table's. The
    spans of each row are only looked up for similarities that need them.

    Args:
        table: of candidates and supports.
        columns: the supports in it.
        trials: what is tried.
        book: of the spans.
    """

    def __init__(self, table: AnnotationTable, columns: slice, trials: Sequence[Trial], book: SpanBook) -> None:
        super().__init__(_Lazy(trials, book, table.annotations[columns]), table.length, grid=table)
        self._table, self._columns, self._trials, self._book = table, columns, trials, book

    @cached_property
    def _covers(self) -> npt.NDArray[np.uint8]:
        """Which intervals a minor (first K) or a major span (next K) of each trial covers, shape (trials, >= 2 K)."""
        size = len(self.widths) // 4 + 1
        rows = []
        for trial in self._trials:
            bits = 0
            for key in trial:
                bits |= self._book.bits[key]
            rows.append(bits.to_bytes(size, "little"))
        packed = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), size)
        return np.unpackbits(packed, axis=1, bitorder="little")

    @cached_property
    def major(self) -> npt.NDArray[np.floating[Any]]:
        return np.concatenate(
            [self._covers[:, len(self.widths) : 2 * len(self.widths)], self._table.major[self._columns]]
        )

    @cached_property
    def minor(self) -> npt.NDArray[np.floating[Any]]:
        return np.concatenate([self._covers[:, : len(self.widths)], self._table.minor[self._columns]])

    @cached_property
    def column(self) -> dict[SpanKey, int]:
        column = dict(self._table.column)
        for key in dict.fromkeys(itertools.chain.from_iterable(self._trials)):
            column.setdefault(key, len(column))
        return column

    @cached_property
    def incidence(self) -> npt.NDArray[np.floating[Any]]:
        given = self._table.incidence[self._columns]
        found = np.zeros((len(self), len(self.column)), dtype=self.dtype)
        rows = [row for row, trial in enumerate(self._trials) for _ in trial]
        found[rows, [self.column[key] for key in itertools.chain.from_iterable(self._trials)]] = 1
        found[len(self._trials) :, : given.shape[1]] = given
        return found


class _Lazy(Sequence[Annotation]):
    """Trials as annotations, made when somebody looks at them (most similarities look at the arrays alone)."""

    def __init__(self, trials: Sequence[Trial], book: SpanBook, others: Sequence[Annotation]) -> None:
        self._trials, self._book, self._others = trials, book, others

    def __len__(self) -> int:
        return len(self._trials) + len(self._others)

    @overload
    def __getitem__(self, at: int) -> Annotation: ...
    @overload
    def __getitem__(self, at: slice) -> list[Annotation]: ...
    def __getitem__(self, at: int | slice) -> Annotation | list[Annotation]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
        if at < len(self._trials):
            return self._book.annotation(self._trials[at])
        return self._others[at - len(self._trials)]
