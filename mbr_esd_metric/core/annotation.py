"""Error spans and annotations: immutable values with half-open character offsets.

An annotation of a translation t is a set of error spans. Offsets count Python characters (code points) of t
and are half-open: ``0 <= start < end <= len(t)``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from mbr_esd_metric.errors import InputError

Severity = Literal["major", "minor"]

#: Severities in data and ours. A severity that is not listed has no penalty and no span.
SEVERITIES: dict[str, Severity] = {"critical": "major", "major": "major", "minor": "minor"}

#: (start, end, severity): what makes two spans the same, whatever their category, text or confidence.
SpanKey = tuple[int, int, Severity]

#: (place, severity): an error without characters, before the character of that index, or behind the last one.
Point = tuple[int, Severity]


def fold_severity(severity: str) -> Severity | None:
    """`severity`, in any letter case and with white space round it, as "major" or "minor"; None for others.

    Those carry no span. Where a model's answer is read, an unknown one makes the answer invalid; see `elicit.parse`.
    """
    return SEVERITIES.get(severity.strip().lower())


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """One error: the characters ``[start, end)`` of a translation, and how bad they are.

    Attributes:
        start: first character, from 0; any whole number, such as numpy's, becomes an `int`.
        end: one past the last character, ``end > start``.
        severity: "major" or "minor"; "critical" is taken in as "major".
        category: error category such as "accuracy"; not part of the span's identity.
        confidence: in [0, 1], or None if unknown; not part of the span's identity.

    Raises:
        InputError: for offsets that are no span, a severity other than critical, major and minor, or a confidence
            outside [0, 1] by more than rounding.
    """

    start: int
    end: int
    severity: Severity
    category: str | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if type(self.start) is not int or type(self.end) is not int:
            object.__setattr__(self, "start", _whole(self.start))
            object.__setattr__(self, "end", _whole(self.end))
        if not 0 <= self.start < self.end:
            raise InputError(
                f"an error span needs whole numbers 0 <= start < end, not start={self.start!r}, end={self.end!r}"
            )
        folded = fold_severity(self.severity) if isinstance(self.severity, str) else None
        if folded is None:
            raise InputError(f"an error span's severity is 'major' or 'minor' (or 'critical'), not {self.severity!r}")
        object.__setattr__(self, "severity", folded)
        if self.confidence is not None:
            try:
                valid = -1e-6 <= self.confidence <= 1 + 1e-6
            except TypeError:
                valid = False
            if not valid:
                raise InputError(f"an error span's confidence is a number in [0, 1] or None, not {self.confidence!r}")

    @property
    def key(self) -> SpanKey:
        """What identifies a span: (start, end, severity)."""
        return (self.start, self.end, self.severity)


class Annotation:
    """An immutable set of error spans over one translation, in canonical order (start, end, severity).

    Two annotations are equal, and have the same hash, if their sets of (start, end, severity) are equal. If several
    spans have the same key, the first is kept. Only `of_rater` keeps all of them: `spans` is then longer than `key`.

    Args:
        spans: `ErrorSpan` values, or mappings with "start", "end", "severity" and optionally "category" and
            "confidence". Mappings whose severity is neutral or unknown are left out, as such spans carry no
            penalty.

    Raises:
        InputError: for a span that is malformed, with its number from 1.
    """

    __slots__ = ("key", "spans")

    spans: tuple[ErrorSpan, ...]
    key: tuple[SpanKey, ...]
    #: Errors without characters. They are no spans: the character F1 of WMT23's task counts them, nothing else does.
    points: tuple[Point, ...] = ()

    def __init__(self, spans: AnnotationLike = ()) -> None:
        by_key: dict[SpanKey, ErrorSpan] = {}
        if not isinstance(spans, Iterable):
            raise InputError(f"error spans are {type(spans).__name__}; give a list of ErrorSpans or dicts")
        for number, item in enumerate(spans, 1):
            span = _as_span(item, number)
            if span is not None:
                by_key.setdefault(span.key, span)
        key = tuple(sorted(by_key))
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "spans", tuple(by_key[k] for k in key))

    @classmethod
    def of_rater(cls, spans: AnnotationLike) -> Annotation:
        """A human's annotation. It keeps several errors of one severity on the same characters, as their categories
        differ.

        Each error counts in the score, in span counts and in MPP. Measures of characters see the set of spans,
        because a character is covered or not. Equality compares the sets too.

        Raises:
            InputError: for a span that is malformed, with its number from 1.
        """
        if isinstance(spans, Annotation):
            return spans
        found = (_as_span(item, number) for number, item in enumerate(spans, 1))
        kept = sorted((span for span in found if span is not None), key=lambda span: span.key)
        return _restored(tuple(kept))

    @classmethod
    def of_keys(cls, by_key: Mapping[SpanKey, ErrorSpan]) -> Annotation:
        """The annotation of these spans, given by key. For code that makes many annotations and knows the keys."""
        annotation = cls.__new__(cls)
        key = tuple(sorted(by_key)) if len(by_key) > 1 else tuple(by_key)
        object.__setattr__(annotation, "key", key)
        object.__setattr__(annotation, "spans", tuple(map(by_key.__getitem__, key)))
        return annotation

    def pointing(self, points: Iterable[Point]) -> Annotation:
        """The same spans, and these errors without characters."""
        kept = tuple(points)
        return _pointed(self.spans, kept) if kept or self.points else self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an Annotation is immutable")

    def __reduce__(self) -> tuple[Callable[[tuple[ErrorSpan, ...]], Annotation], tuple[tuple[ErrorSpan, ...]]]:
        return (_restored, (self.spans,))

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Annotation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __iter__(self) -> Iterator[ErrorSpan]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        return f"Annotation({list(self.spans)!r})"

    @property
    def clean(self) -> bool:
        """Whether there is no error, neither a span nor a point."""
        return not (self.spans or self.points)

    def count(self, severity: Severity) -> int:
        """How many spans have this severity."""
        return sum(span.severity == severity for span in self.spans)

    def check_length(self, length: int) -> None:
        """Raise `InputError` if a span ends past a translation of `length` characters."""
        for span in self.spans:
            if span.end > length:
                raise InputError(
                    f"error span [{span.start}, {span.end}) ends past the translation, which has {length} characters"
                )


class _Pointed(Annotation):
    """An annotation with errors that have no characters."""

    __slots__ = ("points",)

    def __reduce__(self) -> Any:
        return (_pointed, (self.spans, self.points))


#: What every function accepts as an annotation.
AnnotationLike: TypeAlias = "Annotation | Iterable[ErrorSpan | Mapping[str, Any]]"

#: No error at all.
EMPTY = Annotation()


def _restored(spans: tuple[ErrorSpan, ...]) -> Annotation:
    """The annotation of exactly these spans, which are in order."""
    annotation = Annotation.__new__(Annotation)
    _fill(annotation, spans)
    return annotation


def _pointed(spans: tuple[ErrorSpan, ...], points: tuple[Point, ...]) -> Annotation:
    annotation = _Pointed.__new__(_Pointed)
    _fill(annotation, spans)
    object.__setattr__(annotation, "points", points)
    return annotation


def _fill(annotation: Annotation, spans: tuple[ErrorSpan, ...]) -> None:
    object.__setattr__(annotation, "spans", spans)
    object.__setattr__(annotation, "key", tuple(dict.fromkeys(span.key for span in spans)))


def as_annotation(spans: AnnotationLike) -> Annotation:
    """`spans` itself if it is an `Annotation`, else an annotation made from it."""
    return spans if isinstance(spans, Annotation) else Annotation(spans)


def _whole(offset: object) -> int:
    try:
        if isinstance(offset, bool):
            raise TypeError
        return operator.index(offset)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"an error span's start and end are whole numbers, not {offset!r}") from None


def _as_span(item: ErrorSpan | Mapping[str, Any], number: int) -> ErrorSpan | None:
    if isinstance(item, ErrorSpan):
        return item
    if not isinstance(item, Mapping):
        raise InputError(f"error span {number} is {type(item).__name__}; give an ErrorSpan or a dict")
    for name in ("start", "end", "severity"):
        if name not in item:
            raise InputError(f"error span {number} has no {name!r}")
    if not isinstance(item["severity"], str):
        raise InputError(f"error span {number}: severity is {item['severity']!r}; give 'major' or 'minor'")
    severity = fold_severity(item["severity"])
    if severity is None:
        return None
    try:
        return ErrorSpan(
            item["start"],
            item["end"],
            severity,
            cast("str | None", item.get("category")),
            cast("float | None", item.get("confidence")),
        )
    except InputError as error:
        raise InputError(f"error span {number}: {error}") from None


@dataclass(frozen=True, slots=True)
class Judged:
    """An annotation and its expected utility."""

    annotation: Annotation
    value: float
