"""A segment: source and translation, their identifiers, and context."""

from __future__ import annotations

from dataclasses import dataclass, replace

#: The byte order mark, as a character.
MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class InlineCode:
    """An inline code of a translation tool, such as `<g id="1">` in XLIFF, which is not part of the text.

    Attributes:
        start, end: offsets of its content or displayed text; empty if there is none.
        id: its name in the file.
        text: its displayed text, or content.
        stands_alone: whether it has no content, such as `<x/>` and `<ph/>`.
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
        source_language, target_language: codes such as "de" or "pt-BR"; None if unknown.
        numbers: the numbers up to 1,000 that a plural form is used for; None if the text is not a plural form.
        source_codes, translation_codes: the inline codes of the two texts, which do not contain them as tags.
        source_is_key: whether the source is the key of a message whose text is in another file.
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


#: No metadata.
UNKNOWN = Context()


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive parts of a text, with equal numbers of parts in source and translation."""

    sources: tuple[str, ...]
    translations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartContext:
    """The context of the part that a model annotates: passages, of which the last contains the part, and the number of
    the part among all their parts, from 1."""

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
        label: its name in files and messages.
        system: the translation system; "" if there is only one.
        document: its document, if known.
        context: the surrounding text shown to the model, if the segment is a part of a text.
        known: metadata for the checks.
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
        """Source and translation for comparisons: without trailing white space or a byte order mark."""
        return self.source.removeprefix(MARK).rstrip(), self.translation.removeprefix(MARK).rstrip()

    @property
    def without_marks(self) -> Segment:
        """The segment without byte order marks."""
        source, translation = self.source.removeprefix(MARK), self.translation.removeprefix(MARK)
        return replace(self, source=source, translation=translation)
