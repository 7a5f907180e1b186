"""An answer format: prompt, grammar and parser together, under one name.

A format has the words of the question, the grammar of the answer, and the parser that reads it. They are in one file,
so that they agree. A new format is a file next to this one, named like it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mbr_esd_metric.core.annotation import Annotation, Severity
from mbr_esd_metric.core.candidate import ExpectedSpans
from mbr_esd_metric.elicit.parse import AnswerParser
from mbr_esd_metric.elicit.prompt import Prompt, load_prompt


@dataclass(frozen=True, slots=True)
class Walk:
    """An answer that repeats the translation: after each unit the model chooses one mark, and nothing else. It may go
    on with the source, where a mark says whether the translation leaves the unit out.

    Neighbours whose marks say the same severity are one error span.

    The prompt is ``before + units + after``, the answer every unit with its mark. An engine that knows walks need not
    ask the model for the units, and may tell it more of each of them (see `marked`).

    Attributes:
        before, after: the text before and after the translation in the prompt.
        units: the translation cut at word boundaries; each begins with the white space before it.
        marks: what may follow a unit.
        severities: what each mark says of the unit before it; None for no error.
        between: what stands between the last mark of the translation and the first unit of the source.
        source_units: the source, cut in the same way; () where the answer ends with the translation.
        reverse: the text before the source where the source is read as the translation's translation.
    """

    before: str
    units: tuple[str, ...]
    after: str
    marks: tuple[str, ...]
    severities: tuple[Severity | None, ...]
    between: str = ""
    source_units: tuple[str, ...] = ()
    reverse: str = ""

    @property
    def pieces(self) -> tuple[str, ...]:
        """What the answer says before each mark."""
        first, *others = self.units
        after = (self.between + self.source_units[0], *self.source_units[1:]) if self.source_units else ()
        # As a continuation of the prompt the first word has a blank before it, in the answer it has none.
        return (first.removeprefix(" "), *others, *after)

    def expected(self, chosen: Sequence[int], probabilities: Sequence[Sequence[float]]) -> ExpectedSpans:
        """How many error spans the model expects, given the marks before each unit.

        Args:
            chosen: the mark of each unit, those of the source last, by its place in `marks`.
            probabilities: of each mark after each unit, given the marks chosen before; shape (units, marks).
        """
        sums: dict[Severity, float] = {"minor": 0.0, "major": 0.0}
        missing = 0.0
        before: Severity | None = None
        for number, (mark, chances) in enumerate(zip(chosen, probabilities, strict=True)):
            in_source = number >= len(self.units)
            if number == len(self.units):
                before = None
            for severity, chance in zip(self.severities, chances, strict=True):
                if severity is not None and severity != before:
                    sums[severity] += chance
                    missing += chance * in_source
            before = self.severities[mark]
        return ExpectedSpans(sums["minor"], sums["major"], missing)


class AnswerFormat(ABC):
    """One way to ask and to answer. It has no state: results depend only on the arguments."""

    #: The name in option strings: `format=NAME`.
    name: ClassVar[str]
    #: Built-in prompts by version; the newest is the last.
    templates: ClassVar[Mapping[str, str]]
    #: What reads the answers.
    reader: ClassVar[type[AnswerParser]]
    #: The answer as a JSON schema, in JSON, for servers that take no grammar; "" if it is no JSON.
    schema: ClassVar[str] = ""
    #: The only engine that answers in this form; "" where any does.
    engine: ClassVar[str] = ""
    #: Whether a model that nothing holds to the grammar answers in this form often enough.
    free: ClassVar[bool] = False
    #: Whether an answer also says what the translation leaves out, as spans of the source. Annotations are then
    #: compared over both texts, whether or not one has such a span.
    both_sides: ClassVar[bool] = False

    def prompt(self, name: str) -> Prompt:
        """The built-in prompt of that version, or the template file at that path; errors as `load_prompt`."""
        return load_prompt(name, self.templates)

    @abstractmethod
    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        """The regular expression that a whole answer matches.

        Args:
            translation: t.
            grounded: allow only pieces of the translation as error spans, and of the source as what is left out.
            source: s, which matters to formats of both sides alone.
        """

    def usual_tokens(self, translation: str) -> int:
        """A guess at the tokens of an answer, for estimates before there is one. In JSON it is the mean of the demo
        model on TED talks."""
        return 64

    def parser(
        self, translation: str, location: str = "first", source: str = "", unplaced: bool = False
    ) -> AnswerParser:
        """The reader of the candidates of one segment; arguments and errors as for `AnswerParser`."""
        return self.reader(translation, location, source if self.both_sides else None, unplaced)

    @abstractmethod
    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """The answer that says this annotation, and how many of its errors the format cannot say. A format of one side
        does not say spans of the source, and does not count them."""

    def walk(self, prompt: Prompt, source: str, translation: str, lp: str | None = None) -> Walk | None:
        """The answer as a walk through the translation; None if it is free text."""
        return None
