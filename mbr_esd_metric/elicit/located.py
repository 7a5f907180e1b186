"""What formats share that are not JSON: spans are found by their text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity, Side
from mbr_esd_metric.elicit.parse import AnswerParser, Invalid, Parsed


class Written(NamedTuple):
    """An error that is given by its text, and the side in which that stands."""

    severity: Severity
    text: str
    side: Side = "translation"
    category: str | None = None


class PlainParser(AnswerParser):
    """Reads answers that give each error by its text."""

    @abstractmethod
    def read(self, text: str) -> Parsed | Invalid:
        """The annotation that `text` spells, or why it spells none; never raises."""

    def _read(self, text: str) -> Annotation | Invalid:
        read = self.read(text)
        if isinstance(read, Invalid):
            return read
        if read.not_found:
            self._dropped[text] = read
        return read.annotation

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
