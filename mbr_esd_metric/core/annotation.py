"""Error spans, annotations and their MQM score: immutable values with half-open character offsets.

An annotation of a translation t is a set of error spans. Offsets count Python characters (code points) of t: ``0 <=
start < end <= len(t)``. Omissions are located in the source s, so a span has a *side*. For comparisons, both sides are
joined into one text, t first: a source-side span ``[a, b)`` is ``[len(t) + a, len(t) + b)``. Kernels, similarities and
rules only use joined annotations.

The MQM score (paper, Section 2) is the weighted count of the spans of both sides, with a floor:

    Score(E) = max(w_maj * N_maj + w_min * N_min, alpha)

0 is best, alpha (-25) is worst.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from typing import Any, Literal, TypeAlias

from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.messages import number_of

Severity = Literal["major", "minor"]
#: The text that a span's offsets refer to.
Side = Literal["translation", "source"]
SIDES: tuple[Side, ...] = ("translation", "source")
#: Fields of a span's correction, by their names in files.
CORRECTION = ("correction", "reason", "agreement", "ambiguous")
#: Severities in data -> our severities.
SEVERITIES: dict[str, Severity] = {"critical": "major", "major": "major", "minor": "minor"}
#: Severities without a penalty; any other value may be a typo.
NO_PENALTY = ("neutral",)

#: (start, end, severity): the identity of a span. For source-side spans, `SOURCE_OFFSET`, which exceeds the length of
#: any translation, is added to the offsets, so that they are distinct and sorted last.
SpanKey = tuple[int, int, Severity]
SOURCE_OFFSET = 1 << 40

#: (position, severity): an error without characters, before the character at that index, or after the last one.
Point = tuple[int, Severity]


def fold_severity(severity: str) -> Severity | None:
    """`severity`, ignoring case and surrounding white space, as "major" or "minor"; None for other severities, which
    have neither penalty nor span."""
    return SEVERITIES.get(severity.strip().lower())


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """One error: characters of the translation, or omitted characters of the source, and a severity. Only these
    determine a span's identity.

    Attributes:
        start, end: the first character, from 0, and one past the last; other integers, such as numpy's, are converted
            to `int`.
        severity: "major" or "minor"; "critical" is read as "major".
        category: error category such as "accuracy", or None.
        confidence: in [0, 1], or None if unknown.
        side: the text that the offsets refer to, "translation" or "source".
        correction: the replacement for its characters, "" to delete them; None if unknown.
        reason: the reason for the correction, or None.
        agreement: the share, in [0, 1], of the candidates' corrections of these characters that equal this one; or
            None.
        ambiguous: whether its text occurs several times as whole words in the model's input, or only inside a word, so
            that the correction may be meant for another position.

    Raises:
        InputError: an invalid value; shares may exceed [0, 1] by rounding.
    """

    start: int
    end: int
    severity: Severity
    category: str | None = None
    confidence: float | None = None
    side: Side = "translation"
    correction: str | None = None
    reason: str | None = None
    agreement: float | None = None
    ambiguous: bool = False

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            if type(offset := getattr(self, name)) is not int:
                object.__setattr__(self, name, _whole(offset))
        if not 0 <= self.start < self.end:
            raise InputError(
                f"an error span needs integers 0 <= start < end, not start={self.start!r}, end={self.end!r}"
            )
        if self.severity not in ("major", "minor"):
            folded = fold_severity(self.severity) if isinstance(self.severity, str) else None
            if folded is None:
                raise InputError(
                    f"an error span's severity must be 'major' or 'minor' (or 'critical'), not {self.severity!r}"
                )
            object.__setattr__(self, "severity", folded)
        for name in ("category", "correction", "reason"):
            if (text := getattr(self, name)) is not None and not isinstance(text, str):
                raise InputError(f"an error span's {name} must be a string or None, not {text!r}")
        for name in ("confidence", "agreement"):
            if (share := getattr(self, name)) is not None and not _is_share(share):
                raise InputError(f"an error span's {name} must be a number in [0, 1] or None, not {share!r}")
        if not isinstance(self.ambiguous, bool):
            raise InputError(f"an error span's ambiguous must be true or false, not {self.ambiguous!r}")
        if self.side not in SIDES:
            raise InputError(f"an error span's side must be 'translation' or 'source', not {self.side!r}")

    def __repr__(self) -> str:
        shown = ["start", "end", "severity", "category", "confidence"]
        shown += ["side"] if self.side == "source" else []
        shown += self.correction_fields
        return f"ErrorSpan({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @property
    def correction_fields(self) -> dict[str, Any]:
        """The fields of the span's correction, by name in files; empty without a correction."""
        values = {name: getattr(self, name) for name in CORRECTION}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    @property
    def key(self) -> SpanKey:
        """The identity of a span."""
        offset = SOURCE_OFFSET if self.side == "source" else 0
        return (self.start + offset, self.end + offset, self.severity)

    def text_in(self, source: str, translation: str) -> str:
        """The characters of the span in the text of its side."""
        return (translation if self.side == "translation" else source)[self.start : self.end]

    @property
    def lost(self) -> str:
        """What messages say before the characters of a source-side span; "" for the translation."""
        return "missing from the translation: " if self.side == "source" else ""


_ATTRIBUTES = tuple(ErrorSpan.__dataclass_fields__)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Annotation:
    """An immutable set of error spans over one translation, ordered by side, start, end and severity.

    Annotations are equal if their keys and `unplaced` are. Of spans with the same key, only the first is kept
    (`of_rater` keeps all). Length and truth value are those of `spans`.

    Args:
        spans: `ErrorSpan` values, or mappings with "start", "end", "severity" and optionally the other attributes;
            spans with neutral or unknown severity are dropped.

    Raises:
        InputError: a malformed span, with its number from 1.
    """

    spans: tuple[ErrorSpan, ...]
    key: tuple[SpanKey, ...]
    #: Errors without characters. They are not spans, and only count in the character F1 of WMT23's task.
    points: tuple[Point, ...]
    #: Severities of omissions without a position. They only count in the score and in equality.
    unplaced: tuple[Severity, ...]

    def __init__(self, spans: AnnotationLike = ()) -> None:
        by_key: dict[SpanKey, ErrorSpan] = {}
        for span in _spans(spans):
            by_key.setdefault(span.key, span)
        _fill(self, by_key)

    @classmethod
    def of_keys(cls, by_key: Mapping[SpanKey, ErrorSpan]) -> Annotation:
        """The annotation with these span keys, for building many annotations from known keys."""
        return _fill(cls.__new__(cls), by_key)

    @classmethod
    def of_rater(cls, spans: AnnotationLike) -> Annotation:
        """The spans of a rater or submission, including several errors of the same severity on the same characters.
        Each counts in the score, in span counts and in MPP; character measures and equality use the set of spans."""
        return spans if isinstance(spans, Annotation) else _with(_spans(spans))

    def with_points(self, points: Iterable[Point]) -> Annotation:
        """A copy with these errors without characters added."""
        return _with(self.spans, points, self.unplaced)

    def with_unplaced(self, unplaced: Iterable[Severity]) -> Annotation:
        """A copy with omissions of these severities, without a position, added."""
        return _with(self.spans, self.points, sorted(unplaced))

    def with_spans(self, spans: Iterable[ErrorSpan]) -> Annotation:
        """A copy with other spans; errors without a span are kept."""
        return _with(Annotation(spans), self.points, self.unplaced)

    def on(self, side: Side) -> Annotation:
        """Only the spans of one side; `points` belong to the translation, and `unplaced` to neither side."""
        if not self.unplaced and not self.sided:
            return self if side == "translation" else EMPTY
        points = self.points if side == "translation" else ()
        return _with((span for span in self.spans if span.side == side), points)

    @property
    def sided(self) -> bool:
        """Whether any span is on the source side; such spans are sorted last."""
        return bool(self.spans) and self.spans[-1].side == "source"

    def concatenate_sides(self, length: int) -> Annotation:
        """Both sides joined for a translation of `length` characters. Raises `InputError` if a span ends past it."""
        self.on("translation").check_length(length)
        if not self.sided:
            return self
        spans = [
            replace(span, start=length + span.start, end=length + span.end, side="translation")
            for span in self.on("source")
        ]
        return _with([*self.on("translation"), *spans], self.points, self.unplaced)

    def split_sides(self, length: int) -> Annotation:
        """The inverse of `concatenate_sides`; a span over both texts becomes one on each side."""
        spans: list[ErrorSpan] = []
        for span in self.spans:
            if span.start < length:
                spans.append(span if span.end <= length else replace(span, end=length))
            if span.end > length:
                spans.append(replace(span, start=max(span.start - length, 0), end=span.end - length, side="source"))
        return _with(spans, self.points, self.unplaced)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotation):
            return NotImplemented
        return self.key == other.key and self.unplaced == other.unplaced

    def __hash__(self) -> int:
        return hash(self.key)

    def __iter__(self) -> Iterator[ErrorSpan]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        more = f".with_unplaced({list(self.unplaced)!r})" if self.unplaced else ""
        return f"Annotation({list(self.spans)!r}){more}"

    @property
    def clean(self) -> bool:
        """Whether there is no error: no span, point or unplaced omission."""
        return not (self.spans or self.points or self.unplaced)

    def count(self, severity: Severity) -> int:
        """The number of spans of this severity."""
        return sum(span.severity == severity for span in self.spans)

    def check_length(self, length: int) -> None:
        """Raise `InputError` if a span ends past a translation of `length` characters, or is on the source's side."""
        for span in self.spans:
            if span.side == "source":
                raise InputError(
                    f"error span [{span.start}, {span.end}) is in the source; join both sides first "
                    "(`decide` does this if given the source), or leave the source out (Annotation.on)"
                )
            if span.end > length:
                raise InputError(
                    f"error span [{span.start}, {span.end}) ends past the translation, which has "
                    f"{number_of(length, 'character')}"
                )


#: Accepted by every function as an annotation.
AnnotationLike: TypeAlias = "Annotation | Iterable[ErrorSpan | Mapping[str, Any]]"


def _fill(annotation: Annotation, by_key: Mapping[SpanKey, ErrorSpan]) -> Annotation:
    put = object.__setattr__  # created thousands of times per second
    key = tuple(sorted(by_key)) if len(by_key) > 1 else tuple(by_key)
    put(annotation, "key", key)
    put(annotation, "spans", tuple(map(by_key.__getitem__, key)))
    put(annotation, "points", ())
    put(annotation, "unplaced", ())
    return annotation


def _with(spans: Iterable[ErrorSpan], points: Iterable[Point] = (), unplaced: Iterable[Severity] = ()) -> Annotation:
    """The annotation with exactly these spans, including duplicates, and these other errors."""
    ordered = sorted(spans, key=lambda span: span.key)
    annotation = Annotation.of_keys({span.key: span for span in ordered})
    for name, value in (("spans", ordered), ("points", points), ("unplaced", unplaced)):
        object.__setattr__(annotation, name, tuple(value))
    return annotation


def as_annotation(spans: AnnotationLike) -> Annotation:
    """`spans` itself if it is an `Annotation`, otherwise an annotation of these spans."""
    return spans if isinstance(spans, Annotation) else Annotation(spans)


def _whole(offset: object) -> int:
    try:
        if isinstance(offset, bool):
            raise TypeError
        return operator.index(offset)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"an error span's start and end must be integers, not {offset!r}") from None


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and -1e-6 <= float(value) <= 1 + 1e-6


def _spans(items: AnnotationLike) -> Iterator[ErrorSpan]:
    """The spans of these items; raises the exceptions of `Annotation`."""
    if not isinstance(items, Iterable):
        raise InputError(f"error spans are {type(items).__name__}; give a list of ErrorSpans or dicts")
    for number, item in enumerate(items, 1):
        if isinstance(item, ErrorSpan):
            yield item
            continue
        if not isinstance(item, Mapping):
            raise InputError(f"error span {number} is {type(item).__name__}; give an ErrorSpan or a dict")
        if missing := [name for name in ("start", "end", "severity") if name not in item]:
            raise InputError(f"error span {number} has no {missing[0]!r}")
        severity = item["severity"]
        if not isinstance(severity, str):
            raise InputError(f"error span {number}: severity is {severity!r}; give 'major' or 'minor'")
        if fold_severity(severity) is not None:
            try:
                yield ErrorSpan(**{name: item[name] for name in _ATTRIBUTES if name in item})
            except InputError as error:
                raise InputError(f"error span {number}: {error}") from None
        elif severity.strip().lower() not in NO_PENALTY:
            known = f"its severity {severity!r} is not one of {', '.join((*SEVERITIES, *NO_PENALTY))}"
            warnings.warn(f"error span {number} is left out: {known}", stacklevel=3)


#: The annotation without errors.
EMPTY = Annotation()


@dataclass(frozen=True, slots=True)
class MqmWeights:
    """Penalties per span, w_maj and w_min, and alpha, the lowest score; all <= 0. Minor punctuation errors and major
    non-translation errors (by category) have separate penalties."""

    major: float
    minor: float
    floor: float
    minor_punctuation: float
    non_translation: float

    def of(self, span: ErrorSpan) -> float:
        """The penalty of one span."""
        category = (span.category or "").lower()
        if span.severity == "major":
            return self.non_translation if category.startswith("non-translation") else self.major
        return self.minor_punctuation if "punctuation" in category else self.minor

    def total(self, spans: Iterable[ErrorSpan]) -> float:
        """The sum of the penalties, without the floor."""
        # Sequentially, like WMT's gold scores; from Python 3.12 on, `sum` rounds differently.
        return reduce(operator.add, map(self.of, spans), 0.0)


#: `paper`: Section 2 of the paper. `google`: Google's MQM (Freitag et al. 2021), with special penalties for minor
#: punctuation and non-translation.
WEIGHTS: Mapping[str, MqmWeights] = {
    "paper": MqmWeights(-5.0, -1.0, -25.0, -1.0, -5.0),
    "google": MqmWeights(-5.0, -1.0, -25.0, -0.1, -25.0),
}


def weights_of(name: str) -> MqmWeights:
    """The weights with this name. Raises `OptionError` with the valid names."""
    if name not in WEIGHTS:
        raise unknown("MQM weights", name, WEIGHTS)
    return WEIGHTS[name]


def mqm_score(annotation: AnnotationLike, weights: str = "paper") -> float:
    """Score(E) in [-25, 0] of an annotation, or an iterable of spans, by the weights "paper" or "google";
    higher is better. Omissions without a place (`Annotation.unplaced`) count as well."""
    table = weights_of(weights)
    annotation = as_annotation(annotation)
    unplaced = sum(table.major if severity == "major" else table.minor for severity in annotation.unplaced)
    return max(table.total(annotation) + unplaced, table.floor)


def unit_score(score: float, weights: str = "paper") -> float:
    """An MQM score on xCOMET's scale, ``(25 + Score(E)) / 25`` in [0, 1]."""
    floor = weights_of(weights).floor
    return (score - floor) / -floor
