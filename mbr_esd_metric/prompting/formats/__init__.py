"""Answer formats: prompt, grammar and parser under one name.

Each has its own file here, named like it, and its prompts in `prompts/`. Other packages offer formats by entry points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cache
from typing import ClassVar

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.plugins import Catalog
from mbr_esd_metric.prompting.parse import AnswerParser
from mbr_esd_metric.prompting.prompt import Prompt, built_in, load_prompt


def spans_by_text(annotation: Annotation, translation: str, source: str) -> Iterator[tuple[ErrorSpan, str]]:
    """Each span whose words do not stand earlier in its text, so that an answer can give it by them; and the words."""
    for span in annotation:
        side = translation if span.side == "translation" else source
        text = side[span.start : span.end]
        if side.find(text) == span.start:
            yield span, text


class AnswerFormat(ABC):
    """One way to ask and to answer. It has no state: results depend only on the arguments."""

    #: The name in option strings: `format=NAME`.
    name: ClassVar[str]
    #: Prompts by version, of a format of another package; ours are files.
    templates: ClassVar[Mapping[str, str]] = {}
    #: What reads the answers.
    reader: ClassVar[type[AnswerParser]]
    #: The answer as a JSON schema, in JSON, for servers that take no grammar; "" if it is no JSON.
    schema: ClassVar[str] = ""
    #: The only engine that answers in this form; "" where any does.
    engine: ClassVar[str] = ""
    #: Whether a model that nothing holds to the grammar answers in this form often enough.
    free: ClassVar[bool] = False
    #: Whether an answer also says what the translation leaves out, as spans of the source.
    both_sides: ClassVar[bool] = False
    #: Whether errors have corrections.
    corrections: ClassVar[bool] = False

    def prompt(self, name: str) -> Prompt:
        """The built-in prompt of that version, or the template file at that path. Raises as `load_prompt`."""
        return load_prompt(name, self.templates or built_in(self.name))

    @abstractmethod
    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        """The regular expression of a whole answer. With `grounded`, only words that stand in the translation can be
        error spans, and only words of the source omissions, in formats of both sides."""

    def usual_tokens(self, translation: str) -> int:
        """A guess at the tokens of an answer, for estimates before there is one."""
        return 64  # JSON: the mean of the demo model on TED talks

    def parser(self, translation: str, location: str = "word", source: str = "") -> AnswerParser:
        """The reader of the candidates of one segment; arguments and what raises are those of `AnswerParser`."""
        return self.reader(translation, location, source if self.both_sides else None)

    @abstractmethod
    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """The answer with this annotation, and the number of its errors that the format cannot write. A format of one
        side neither writes nor counts spans of the source."""


#: Formats that stand in another one's file.
_BESIDE = {"compact-omissions": "compact", "json-omissions": "json"}
#: Entry points of other packages: ``mbr_esd_metric.formats``.
FORMATS = Catalog("format", "formats", __name__, AnswerFormat, _BESIDE)  # type: ignore[type-abstract]


@cache
def get_format(name: str) -> AnswerFormat:
    """The answer format of that name. Raises `OptionError` with the nearest names if there is none."""
    return FORMATS.get(name)()
