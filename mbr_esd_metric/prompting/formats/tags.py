"""`format=tags`: the translation and the source once more, a tag after each word, then a score; by `engine=tagger`.

``=`` is right (in the source: translated), ``-`` a minor and ``+`` a major error (left out). Neighbours with one tag
are one error span, with the white space between them. Words are those of `prompting.text.pieces`:
punctuation stands apart, and in scripts without spaces a character is a word. The score may be absent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity, Side, mqm_score
from mbr_esd_metric.prompting.formats import AnswerFormat
from mbr_esd_metric.prompting.parse import AnswerParser, Invalid, Parsed
from mbr_esd_metric.prompting.pieces import escaped, pieces

#: Tag -> what it says of the word before it.
TAGS: dict[str, Severity | None] = {"=": None, "-": "minor", "+": "major"}
_SCORE = re.compile(r"\nScore: (-?[0-9]{1,2}(?:\.[0-9]{1,6})?)\Z")
#: The whole answer where the translation has no word.
_NO_WORDS = "="
_BETWEEN = "\nSource: "


class Word(NamedTuple):
    """A word: its characters ``[start, end)``; `text` has the white space before it as well."""

    start: int
    end: int
    text: str


@lru_cache(maxsize=1024)
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text, in order; white space before the first and after the last belongs to none."""
    words: list[Word] = []
    position = before = 0
    for piece in pieces(text):
        position += len(piece)
        if not piece.isspace():
            start = position - len(piece)
            words.append(Word(start, position, text[before if words else start : position]))
            before = position
    return tuple(words)


def tagged_texts(translation: str, source: str) -> list[str]:
    """The texts before the tags of an answer; none where the translation has no word."""
    texts = [word.text for word in words_of(translation)]
    left = [word.text for word in words_of(source)] if texts else []
    return [*texts, _BETWEEN + left[0], *left[1:]] if left else texts


def _tags_of(annotation: Annotation, words: Sequence[Word]) -> tuple[list[str], int]:
    """The tag of each word, and the number of errors without one.

    A word is tagged where an error covers half of it or more; an error that covers no word so far tags the one it
    covers most of. Where errors of both severities meet in one word, it is major.
    """
    tags, lost = ["="] * len(words), 0
    for tag, severity in TAGS.items():
        for span in (span for span in annotation if span.severity == severity):
            covered = [min(span.end, word.end) - max(span.start, word.start) for word in words]
            hit = [i for i, (c, w) in enumerate(zip(covered, words, strict=True)) if c > 0 and 2 * c >= w.end - w.start]
            best = max(range(len(words)), key=covered.__getitem__, default=None)
            if not hit and best is not None and covered[best] > 0:
                hit = [best]
            lost += not hit
            for i in hit:
                tags[i] = tag
    return tags, lost


class TagsParser(AnswerParser):
    """The reader of tags: every word of the translation has one, and then every word of the source."""

    def __post_init__(self) -> None:
        super().__post_init__()
        source = self.source or ""
        words: list[tuple[Side, Word]] = [("translation", word) for word in words_of(self.translation)]
        words += [("source", word) for word in words_of(source) if words]
        self._words = list(zip(tagged_texts(self.translation, source), words, strict=True))

    def read(self, text: str) -> Parsed | Invalid:
        score, at = _SCORE.search(text), 0
        reported = None if score is None else max(-25.0, min(0.0, float(score[1])))
        text = text if score is None else text[: score.start()]
        tagged: list[tuple[Side, str, Word, int]] = []
        for spelling, (side, word) in self._words:
            if not text.startswith(spelling, at):
                return Invalid(f"not the words of the {side}", reported)
            at += len(spelling) + 1
            tag = text[at - 1 : at]
            if tag not in TAGS:
                return Invalid("a word without a tag", reported)
            tagged.append((side, tag, word, at - 1))
        if text[at:].strip(" \n") if self._words else text != _NO_WORDS:
            return Invalid("more than the words", reported)
        said: dict[ErrorSpan, tuple[tuple[int, int], ...]] = {}
        for (side, tag), neighbours in groupby(tagged, key=itemgetter(0, 1)):
            if (severity := TAGS[tag]) is not None:
                run, category = [*neighbours], "omission" if side == "source" else None
                span = ErrorSpan(run[0][2].start, run[-1][2].end, severity, category, side=side)
                said[span] = tuple((place, place + 1) for *_, place in run)
        ranges = {span.key: places for span, places in said.items()}
        return Parsed(Annotation(said), self_reported_score=reported, ranges=ranges)


class TagsFormat(AnswerFormat):
    """Translation and source, each word with its tag; then, in a line of its own, a score."""

    name = "tags"
    reader = TagsParser
    engine = "tagger"
    both_sides = True

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        # Every answer is grounded: it has no other words than those of the texts.
        words = "".join(escaped(text) + r"(=|-|\+)" for text in tagged_texts(translation, source))
        return (words or _NO_WORDS) + r"(\nScore: -?[0-9]{1,2}(\.[0-9]{1,6})?)?"

    def usual_tokens(self, translation: str) -> int:
        return max(len(words_of(translation)), 1)  # one for each tag

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """The tag of each word, and the MQM score of the annotation."""
        words = words_of(translation)
        tags, lost = _tags_of(annotation.on("translation"), words)
        more, more_lost = _tags_of(annotation.on("source"), words_of(source) if words else ())
        tagged = zip(tagged_texts(translation, source), tags + more, strict=True)
        answer = "".join(text + tag for text, tag in tagged) or _NO_WORDS
        return f"{answer}\nScore: {mqm_score(annotation):g}", lost + more_lost
