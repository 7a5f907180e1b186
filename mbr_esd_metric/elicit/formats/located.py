"""What formats share that are not JSON: texts read once, and spans found by their text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity
from mbr_esd_metric.elicit.parse import Invalid, Parsed, Said, check_parser_arguments


class PlainParser(ABC):
    """Reads the candidates of one segment; texts that repeat are read once.

    Args:
        translation: t.
        location: "first" or "successive"; see `located`.

    Raises:
        InputError: the translation is no text.
        OptionError: another location.
    """

    def __init__(self, translation: str, location: str = "first") -> None:
        check_parser_arguments(translation, location)
        self.translation = translation
        self.location = location
        self._texts: dict[str, Annotation | Invalid] = {}
        self._dropped: dict[str | None, int] = {}

    @abstractmethod
    def read(self, text: str) -> Parsed | Invalid:
        """The annotation that `text` spells, or why it spells none; never raises."""

    @abstractmethod
    def said(self, text: str) -> Said:
        """Where an answer says each span; see `AnswerParser.said`."""

    def parse(self, text: object) -> Parsed | Invalid:
        """As `read`, for whatever is given."""
        return self.read(text) if isinstance(text, str) else Invalid("not a text")

    def annotations(self, texts: Sequence[str]) -> list[Annotation | Invalid]:
        """The annotation of each text or why it has none; the same object for the same text."""
        for text in texts:
            if text not in self._texts:
                read = self.read(text)
                self._texts[text] = read if isinstance(read, Invalid) else read.annotation
                if isinstance(read, Parsed) and read.not_found:
                    self._dropped[text] = read.not_found
        return [self._texts[text] for text in texts]

    def not_found(self, texts: Sequence[str | None]) -> int:
        """How many errors of these texts, of those read so far, have a span that is not in the translation."""
        return sum(self._dropped.get(text, 0) for text in texts) if self._dropped else 0


def places(errors: Iterable[tuple[Severity, str]], translation: str, location: str) -> Iterator[ErrorSpan | None]:
    """The span of each error that is given by its text; None if it is not in the translation.

    Args:
        errors: severity and span text of each.
        translation: t.
        location: "first" takes the first verbatim occurrence, as the paper's code does; with "successive" a text that
            is repeated takes its next occurrence.
    """
    after: dict[str, int] = {}
    for severity, text in errors:
        start = translation.find(text, after.get(text, 0) if location == "successive" else 0) if text else -1
        if start >= 0:
            after[text] = start + len(text)
        yield None if start < 0 else ErrorSpan(start, start + len(text), severity)


def located(errors: Iterable[tuple[Severity, str]], translation: str, location: str) -> Parsed:
    """The annotation of errors that are given by their text; arguments as of `places`."""
    found = list(places(errors, translation, location))
    spans = [span for span in found if span is not None]
    return Parsed(Annotation(spans), len(found) - len(spans))
