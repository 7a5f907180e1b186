"""`format=marked`: the translation once more, with a mark after each word: ``=`` fine, ``-`` minor, ``+`` major.

A small model that has to copy the wrong words learns to copy before it learns to judge. Here it only judges: the words
are given, each mark is one choice among three, and an error's place needs no search. Neighbours with one mark are one
error, with the white space between them. The answer is as long as the translation, but all of it save the marks is
known beforehand, so that an engine reads the words instead of sampling them (see `Walk`).

Words are those of `mbr_esd_metric.elicit.words.pieces`: punctuation stands apart, and in scripts without spaces a
character is a word.

`format=marked-omissions` goes on with the source, each of its words marked as said (`=`) or left out (`-`, `+`). There
the model is told how surprising a word of the source is to who has read the translation: what is left out surprises.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity, Side
from mbr_esd_metric.elicit.answer_format import AnswerFormat, Walk
from mbr_esd_metric.elicit.parse import Invalid, Parsed, PlainParser
from mbr_esd_metric.elicit.prompt import Prompt
from mbr_esd_metric.elicit.words import escaped, pieces

#: Mark -> what it says of the word before it.
MARKS: dict[str, Severity | None] = {"=": None, "-": "minor", "+": "major"}
_MARK_OF: dict[Severity | None, str] = {severity: mark for mark, severity in MARKS.items()}
_CHOICE = r"(=|-|\+)"
_TRANSLATION = re.compile(r"\{(?:translation|target_seg)\}")
#: The whole answer where there is no word to mark.
_NO_WORDS = "="
#: What stands between translation and source.
BETWEEN = "\nSource: "


class Word(NamedTuple):
    """One word: its characters ``[start, end)``; `text` has the white space before it as well."""

    start: int
    end: int
    text: str


def words_of(translation: str) -> list[Word]:
    """The words of a translation, in order; white space before the first and after the last belongs to none."""
    found: list[Word] = []
    position = before = 0
    for piece in pieces(translation):
        position += len(piece)
        if not piece.isspace():
            start = position - len(piece)
            found.append(Word(start, position, translation[before if found else start : position]))
            before = position
    return found


def marks_of(annotation: Annotation, words: list[Word]) -> tuple[list[str], int]:
    """The mark of each word, and how many errors no mark says.

    The errors and the words are of one text. A word is marked where an error covers half of it or more; an error that
    covers no word so far marks the one it covers most of. Where errors of both severities meet in one word, it is
    major.
    """
    marks = [_MARK_OF[None]] * len(words)
    lost = 0
    for severity in ("minor", "major"):
        for span in annotation:
            if span.severity != severity:
                continue
            covered = [min(span.end, word.end) - max(span.start, word.start) for word in words]
            hit = [i for i, (c, w) in enumerate(zip(covered, words, strict=True)) if c > 0 and 2 * c >= w.end - w.start]
            best = max(range(len(words)), key=covered.__getitem__, default=None)
            if not hit and best is not None and covered[best] > 0:
                hit = [best]
            lost += not hit
            for i in hit:
                marks[i] = _MARK_OF[span.severity]
    return marks, lost


class MarkedParser(PlainParser):
    """Reads marked answers; every word of the translation has to be there, with its mark, and then of the source."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._units: list[tuple[Side, str, Word]] = [
            ("translation", unit.text, unit) for unit in words_of(self.translation)
        ]
        for number, unit in enumerate(words_of(self.source or "") if self._units else ()):
            self._units.append(("source", unit.text if number else BETWEEN + unit.text, unit))

    def read(self, text: str) -> Parsed | Invalid:
        """A span is said by the marks of its words."""
        read = self._spans(text)
        if isinstance(read, Invalid):
            return read
        return Parsed(Annotation(span for span, _ in read), ranges={span.key: marks for span, marks in read})

    def _spans(self, text: str) -> list[tuple[ErrorSpan, tuple[tuple[int, int], ...]]] | Invalid:
        """Each span, and where its marks stand."""
        at = 0
        spans: list[tuple[ErrorSpan, tuple[tuple[int, int], ...]]] = []
        marks: tuple[tuple[int, int], ...]
        before: tuple[Severity | None, Side] = (None, "translation")
        for side, said, unit in self._units:
            if not text.startswith(said, at):
                return Invalid(f"not the words of the {side}")
            at += len(said) + 1
            mark = text[at - 1 : at]
            if mark not in MARKS or not mark:
                return Invalid("a word without a tag")
            severity = MARKS[mark]
            if severity is not None:
                start, marks = unit.start, ((at - 1, at),)
                if (severity, side) == before:
                    first, others = spans.pop()
                    start, marks = first.start, (*others, *marks)
                category = "omission" if side == "source" else None
                spans.append((ErrorSpan(start, unit.end, severity, category, side=side), marks))
            before = (severity, side)
        rest = text[at:]
        if rest.strip(" \n") if self._units else rest != _NO_WORDS:
            return Invalid(f"more than the words of the {self._units[-1][0] if self._units else 'translation'}")
        return spans


class MarkedFormat(AnswerFormat):
    """The translation with a mark after each word; before it chooses, the model is told how surprising the word is."""

    name = "marked"
    templates = MappingProxyType({"v1": "Source: {source}\nTranslation: {translation}\nMarked:"})
    reader = MarkedParser
    engine = "transformers"

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        """Every answer is grounded: it has no other words than those of the texts."""
        return "".join(escaped(text) + _CHOICE for text in self._texts(translation, source)) or _NO_WORDS

    def usual_tokens(self, translation: str) -> int:
        """A mark after each word; an engine that walks reads the words themselves."""
        return max(len(words_of(translation)), 1)

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        texts = self._texts(translation, source)
        marks, lost = marks_of(annotation.on("translation"), words_of(translation))
        if len(texts) > len(marks):
            missing = Annotation(replace(span, side="translation") for span in annotation.on("source"))
            more, unsaid = marks_of(missing, words_of(source))
            marks, lost = marks + more, lost + unsaid
        return "".join(text + mark for text, mark in zip(texts, marks, strict=True)) or _NO_WORDS, lost

    def walk(self, prompt: Prompt, source: str, translation: str, lp: str | None = None) -> Walk | None:
        """None as well where the translation has no word."""
        words = tuple(word.text for word in words_of(translation))
        if not words:
            return None
        # The parts are rendered one by one: nothing in the texts can be taken for the place of the translation.
        before, after = (
            Prompt(prompt.version, part).render(source, "", lp) for part in _TRANSLATION.split(prompt.template, 1)
        )
        walk = Walk(before.removesuffix(" "), (" " + words[0], *words[1:]), after, tuple(MARKS), tuple(MARKS.values()))
        others = [word.text for word in words_of(source)] if self.both_sides else []
        if not others:
            return walk
        reverse = Prompt(prompt.version, _TRANSLATION.split(prompt.template, 1)[0]).render(
            translation, "", "-".join(reversed(lp.split("-", 1))) if lp else None
        )
        return replace(
            walk,
            between=BETWEEN.removesuffix(" "),
            source_units=(" " + others[0], *others[1:]),
            reverse=reverse.removesuffix(" "),
        )

    def _texts(self, translation: str, source: str) -> list[str]:
        """What an answer says before each mark."""
        texts = [word.text for word in words_of(translation)]
        others = [word.text for word in words_of(source)] if self.both_sides and texts else []
        return [*texts, BETWEEN + others[0], *others[1:]] if others else texts


class MarkedOmissionsFormat(MarkedFormat):
    """As `marked`, and behind it the source with a mark after each word: said, or left out."""

    name = "marked-omissions"
    both_sides = True
