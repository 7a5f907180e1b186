"""A segment: source and translation, their identifiers, and context."""

from __future__ import annotations

from dataclasses import dataclass, replace

#: The byte order mark, as a character.
MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class InlineCode:
    """An inline code of a translation tool, which is not part of the text, such as `<g id="1">` of XLIFF.

    Attributes:
        start, end: the place of the text inside it, or that it shows; empty where there is none.
        id: its name in the file.
        text: what it shows, or holds.
        stands_alone: whether it is not a tag, such as `<x/>` and `<ph/>`.
    """

    start: int
    end: int
    id: str
    text: str
    stands_alone: bool


@dataclass(frozen=True, slots=True)
class Context:
    """Metadata of a segment that the checks use.

    Attributes:
        source_language, target_language: codes such as "de" or "pt-BR"; None where a language is not known.
        numbers: those that a plural form stands for, as far as 1,000; None of a text that is not a plural form.
        source_codes, translation_codes: the inline codes of the two texts, which they do not show as tags.
        source_is_key: whether the source is the name of a message, whose text is in another file.
    """

    source_language: str | None = None
    target_language: str | None = None
    numbers: frozenset[int] | None = None
    source_codes: tuple[InlineCode, ...] = ()
    translation_codes: tuple[InlineCode, ...] = ()
    source_is_key: bool = False

    @property
    def has_codes(self) -> bool:
        """Whether a text has an inline code."""
        return bool(self.source_codes or self.translation_codes)

    def with_languages(self, source: str, target: str) -> Context:
        """The context, with missing languages filled in."""
        if self.source_language is not None or self.target_language is not None:
            return self
        return replace(self, source_language=source, target_language=target)

    @property
    def one_number(self) -> bool:
        """Whether the text is a plural form for a single number, which may therefore omit the number."""
        return self.numbers is not None and len(self.numbers) == 1


#: Nothing is known.
UNKNOWN = Context()


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive parts of a text: as many of the source as of the translation."""

    sources: tuple[str, ...]
    translations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartContext:
    """The text around the part that a model marks: passages, the last with the part, and the number of the part among
    all their parts, from 1."""

    passages: tuple[Passage, ...]
    number: int

    @property
    def source(self) -> str:
        """The source of the passage with the part."""
        return " ".join(self.passages[-1].sources)


@dataclass(frozen=True, slots=True)
class Segment:
    """A source and its translation.

    Attributes:
        label: its name, in files and messages.
        system: what translated it; "" where there is one system only.
        document: its document, if that is known.
        context: the text around a part of a text, which the model reads.
        known: what checks know besides the texts.
    """

    source: str
    translation: str
    label: str = ""
    system: str = ""
    document: str = ""
    context: PartContext | None = None
    known: Context = UNKNOWN

    @property
    def compared_texts(self) -> tuple[str, str]:
        """Source and translation as they are compared: without white space at their ends, or a byte order mark."""
        return self.source.removeprefix(MARK).rstrip(), self.translation.removeprefix(MARK).rstrip()

    @property
    def without_marks(self) -> Segment:
        """The segment without byte order marks."""
        source, translation = self.source.removeprefix(MARK), self.translation.removeprefix(MARK)
        return replace(self, source=source, translation=translation)
