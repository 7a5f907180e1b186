"""What formats share that are not JSON: texts read once, and spans found by their text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity, Side
from mbr_esd_metric.elicit.parse import LONGEST, TOO_LONG, Invalid, Parsed, Said, check_parser_arguments


class Written(NamedTuple):
    """An error that is given by its text, and the side in which that stands."""

    severity: Severity
    text: str
    side: Side = "translation"
    category: str | None = None


class PlainParser(ABC):
    """Reads the candidates of one segment; texts that repeat are read once.

    Args:
        translation: t.
        location: "first" takes the first verbatim occurrence of a span's text, as the paper's code does; with
            "successive" a text that is repeated takes its next occurrence.
        source: s, where answers say what is left out of it; else None.
        unplaced: annotations have omissions whose words are not found (`Annotation.unplaced`).

    Raises:
        InputError: the translation is no text.
        OptionError: another location.
    """

    def __init__(
        self, translation: str, location: str = "first", source: str | None = None, unplaced: bool = False
    ) -> None:
        check_parser_arguments(translation, location)
        self.translation = translation
        self.source = source
        self.location = location
        self._with_unplaced = unplaced
        self._texts: dict[str, Annotation | Invalid] = {}
        self._dropped: dict[str | None, Parsed] = {}

    @abstractmethod
    def read(self, text: str) -> Parsed | Invalid:
        """The annotation that `text` spells, or why it spells none; never raises."""

    @abstractmethod
    def said(self, text: str) -> Said:
        """Where an answer says each span; see `AnswerParser.said`."""

    def stated(self, text: str) -> float | None:
        """The score that an answer states, in [-25, 0]; None if it states none."""
        return None

    def parse(self, text: object) -> Parsed | Invalid:
        """As `read`, for whatever is given."""
        if not isinstance(text, str):
            return Invalid("not a text")
        return self.read(text) if len(text) <= LONGEST else TOO_LONG

    def annotations(self, texts: Sequence[str]) -> list[Annotation | Invalid]:
        """The annotation of each text or why it has none; the same object for the same text."""
        for text in texts:
            if text not in self._texts:
                read = self.parse(text)
                self._texts[text] = read if isinstance(read, Invalid) else read.annotation
                if isinstance(read, Parsed) and read.not_found:
                    self._dropped[text] = read
        return [self._texts[text] for text in texts]

    def not_found(self, texts: Sequence[str | None]) -> int:
        """How many errors of these texts, of those read so far, have a span that is not in the translation."""
        return sum(self._dropped[text].not_found for text in texts if text in self._dropped)

    def unplaced(self, texts: Sequence[str | None]) -> int:
        """How many of those are omissions."""
        return sum(self._dropped[text].unplaced for text in texts if text in self._dropped)

    def places(self, errors: Iterable[Written]) -> Iterator[ErrorSpan | None]:
        """The span of each error; None if its text is not there."""
        after: dict[tuple[Side, str], int] = {}
        for severity, text, side, category in errors:
            whole = self.translation if side == "translation" else self.source or ""
            begin = after.get((side, text), 0) if self.location == "successive" else 0
            start = whole.find(text, begin) if text else -1
            if start >= 0:
                after[side, text] = start + len(text)
            name = category or ("omission" if side == "source" else None)
            yield None if start < 0 else ErrorSpan(start, start + len(text), severity, name, side=side)

    def located(self, errors: Sequence[Written]) -> Parsed:
        """The annotation of errors that are given by their text."""
        found = list(self.places(errors))
        spans = [span for span in found if span is not None]
        pairs = zip(errors, found, strict=True)
        unplaced = [error.severity for error, span in pairs if span is None and error.side == "source"]
        annotation = Annotation(spans)
        if self._with_unplaced:
            annotation = annotation.missing(unplaced)
        return Parsed(annotation, len(found) - len(spans), unplaced=len(unplaced))
