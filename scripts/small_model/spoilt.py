"""Synthetic translations with gross errors, with exact labels of both texts.

Gross errors, such as a copy of the source, half a translation, or the translation of another sentence, are rare in
human annotations, so models trained on these alone do not detect them. Here they are generated from clean parallel
texts. The errors in the translation, and the omitted parts of the source, are known by construction; where they are
not, at the boundary of a cut, there is no label (`Spoilt.unsure`).

A word of the source is omitted if no part of the translation has its meaning: it is omitted from the translation of
another sentence, but not from a copy of the source.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.prompting.formats.tags import words_of

Place = tuple[int, int]
#: The end of a clause.
_CLAUSE = re.compile(r"(?<=[,;:.!?])\s+|(?<=[，；：。！？、])")
#: Minimum length of a clause in characters; maximum difference of its relative length from that of its translation.
_SHORTEST, _FAR = 8, 0.08
#: Scripts without spaces between words.
_WITHOUT_BLANKS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
#: Half the width of the unlabelled part of the source around a cut of the translation, as a share of its length.
_EDGE = 0.12


@dataclass(frozen=True, slots=True)
class Pair:
    """A source with a complete translation.

    Attributes:
        source, translation: the texts.
        lp: the language pair, such as "en-de".
        links: positions of aligned words in the source and in the translation; empty if unknown.
    """

    source: str
    translation: str
    lp: str
    links: tuple[tuple[Place, Place], ...] = ()

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of the source and the target language."""
        source, _, target = self.lp.partition("-")
        return source, target

    def swapped(self) -> Pair:
        """The pair in the reverse direction."""
        source, target = self.languages
        links = tuple((target_place, source_place) for source_place, target_place in self.links)
        return Pair(self.translation, self.source, f"{target}-{source}", links)

    def joined(self, other: Pair) -> Pair:
        """The concatenation of this pair and another one."""
        source, translation = join(self.source, other.source), join(self.translation, other.translation)
        by, to = len(source) - len(other.source), len(translation) - len(other.translation)
        moved = tuple(((a + by, b + by), (c + to, d + to)) for (a, b), (c, d) in other.links)
        return Pair(source, translation, self.lp, self.links + moved if self.links and other.links else ())


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A spoilt translation.

    Attributes:
        kind: the kind of error, a key of `KINDS`.
        good: the original pair.
        translation: the spoilt translation.
        wrong: the spans of major errors in the translation.
        missing: the spans of omissions in the source.
        unsure: the spans of the source without a label.
    """

    kind: str
    good: Pair
    translation: str
    wrong: tuple[Place, ...] = ()
    missing: tuple[Place, ...] = ()
    unsure: tuple[Place, ...] = ()


def join(first: str, second: str) -> str:
    """The concatenation of two texts, with a space unless the script has none."""
    return first + ("" if _WITHOUT_BLANKS.match(first[-2:-1]) and _WITHOUT_BLANKS.match(second[:1]) else " ") + second


class Spoiler:
    """Spoils translations, using the texts of other pairs.

    Args:
        pairs: the pairs of all language pairs.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs: dict[str, list[Pair]] = {}
        self._texts: dict[str, list[str]] = {}
        for pair in pairs:
            self._pairs.setdefault(pair.lp, []).append(pair)
            self._texts.setdefault(pair.languages[1], []).append(pair.translation)

    def spoil(self, pair: Pair, kind: str, rng: random.Random) -> Spoilt | None:
        """`pair` with an error of this kind; None if it is not applicable."""
        made = KINDS[kind](self, pair, rng)
        if made is None or made.translation.strip() in ("", made.good.translation):
            return None
        return replace(made, kind=kind)

    def another(self, pair: Pair, rng: random.Random) -> Pair:
        """Another pair with the same languages, preferably of similar length."""
        drawn = rng.choices([p for p in rng.choices(self._pairs[pair.lp], k=12) if p.source != pair.source], k=4)
        return min(drawn, key=lambda p: abs(len(p.source) - len(pair.source)) * rng.random())

    def segment(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """Two segments, one of which is not translated."""
        other = self.another(pair, rng)
        both = pair.joined(other)
        if rng.random() < 0.6:
            return Spoilt(
                "", both, pair.translation, missing=((len(both.source) - len(other.source), len(both.source)),)
            )
        return Spoilt("", both, other.translation, missing=((0, len(pair.source)),))

    def clause(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """A clause is omitted, if both texts have the same number of clauses at about the same positions."""
        clauses, translated = _clauses(pair.source), _clauses(pair.translation)
        if len(clauses) != len(translated) or len(clauses) < 2:
            return None
        fitting = [
            (s, t)
            for s, t in zip(clauses, translated, strict=True)
            if min(s[1] - s[0], 3 * (t[1] - t[0])) >= _SHORTEST
            and all(abs(s[i] / len(pair.source) - t[i] / len(pair.translation)) < _FAR for i in (0, 1))
        ]
        if not fitting:
            return None
        s, t = rng.choice(fitting)
        text = (pair.translation[: t[0]] + pair.translation[t[1] :]).strip()
        end = pair.translation[-1]
        if t[1] == len(pair.translation) and not end.isalnum():
            text = text.rstrip(",;: ，；：、") + end
        if t[0] == 0:
            text = text[:1].upper() + text[1:]
        return Spoilt("", pair, text, missing=(s,))

    def cut(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """The end is omitted, or occasionally the beginning."""
        words = words_of(pair.translation)
        if len(words) < 6:
            return None
        at = words[rng.randint(round(0.3 * len(words)), round(0.75 * len(words)))].start
        last = rng.random() < 0.85
        removed = (at, len(pair.translation)) if last else (0, at)
        text = pair.translation[:at].rstrip() if last else pair.translation[at:]
        if last and not pair.translation[-1].isalnum() and rng.random() < 0.4:
            text = text.rstrip(",;:- ") + pair.translation[-1]
        missing, unsure = _lost(pair, removed)
        return Spoilt("", pair, text, missing=missing, unsure=unsure)

    def words(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """One to five words are omitted, if their alignment is known."""
        words = words_of(pair.translation)
        count = rng.randint(1, 5)
        if not pair.links or len(words) < count + 4:
            return None
        first = rng.randrange(len(words) - count)
        removed = (words[first].start, words[first + count - 1].end)
        missing, unsure = _lost(pair, removed)
        if not missing or sum(end - start for start, end in missing) < 4:
            return None
        text = pair.translation[: removed[0]].rstrip(" ") + pair.translation[removed[1] :]
        return Spoilt("", pair, text.strip(), missing=missing, unsure=unsure)

    def copied(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """The source in place of its translation."""
        return Spoilt("", pair, pair.source, wrong=((0, len(pair.source)),))

    def half_copied(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """Two segments, of which the second, or the first, is left in the source language."""
        other = self.another(pair, rng)
        return _half(pair, other, other.source, rng, missing=False)

    def unrelated(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """Another segment's translation."""
        return _nothing(pair, self.another(pair, rng).translation)

    def half_unrelated(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """Two segments, of which one has the translation of another segment."""
        other = self.another(pair, rng)
        return _half(pair, other, self.another(other, rng).translation, rng, missing=True)

    def language(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """Another segment in another language, occasionally in the source language."""
        source, target = pair.languages
        others = [one for one in self._texts if one not in pair.languages]
        language = source if rng.random() < 0.2 or not others else rng.choice(others)
        texts = self._texts.get(language)
        text = rng.choice(texts) if texts else ""
        return _nothing(pair, text) if text and text != pair.source and language != target else None

    def twice(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """Said twice."""
        text = join(pair.translation, pair.translation)
        return Spoilt("", pair, text, wrong=((len(text) - len(pair.translation), len(text)),))

    def half_twice(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """A part of at least three words is repeated; the repetition is an error."""
        words = words_of(pair.translation)
        if len(words) < 6:
            return None
        count = rng.randint(3, max(3, 2 * len(words) // 3))
        first = rng.choice([0, len(words) - count, rng.randrange(len(words) - count + 1)])
        part, end = pair.translation[words[first].start : words[first + count - 1].end], words[first + count - 1].end
        before = join(pair.translation[:end], part)
        return Spoilt("", pair, before + pair.translation[end:], wrong=((len(before) - len(part), len(before)),))

    def shuffled(self, pair: Pair, rng: random.Random) -> Spoilt | None:
        """The words in random order."""
        parts = pair.translation.split()
        blank = " " if len(parts) > 2 else ""
        if not blank:
            parts = [word.text.strip() for word in words_of(pair.translation)]
        if len(parts) < 5:
            return None
        rng.shuffle(parts)
        text = blank.join(parts)
        return Spoilt("", pair, text, wrong=((0, len(text)),))


def _half(pair: Pair, other: Pair, text: str, rng: random.Random, missing: bool) -> Spoilt:
    """Two segments, of which one has `text` in place of its translation; `missing` if `text` omits its content."""
    if rng.random() < 0.5:
        good, whole = pair.joined(other), join(pair.translation, text)
        wrong, lost = (len(whole) - len(text), len(whole)), (len(good.source) - len(other.source), len(good.source))
    else:
        good, whole = other.joined(pair), join(text, pair.translation)
        wrong, lost = (0, len(text)), (0, len(other.source))
    return Spoilt("", good, whole, wrong=(wrong,), missing=(lost,) if missing else ())


def _nothing(pair: Pair, text: str) -> Spoilt:
    """A translation that omits the whole source."""
    return Spoilt("", pair, text, wrong=((0, len(text)),), missing=((0, len(pair.source)),))


def _clauses(text: str) -> list[Place]:
    """The clauses of a text, with trailing whitespace."""
    starts = [0, *(match.end() for match in _CLAUSE.finditer(text) if match.end() < len(text))]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _lost(pair: Pair, cut: Place) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """The spans of the source that are omitted if a span of the translation is deleted, and those without a label.

    With known links, a word is omitted if all of its aligned words are deleted; a word without a link has the label of
    its neighbours if they agree. Otherwise, the texts are assumed to be monotonically aligned.
    """
    words = words_of(pair.source)
    states: list[bool | None] = []
    for word in words:
        if pair.links:
            linked = [
                target_place
                for source_place, target_place in pair.links
                if source_place[0] < word.end and source_place[1] > word.start
            ]
            inside = [cut[0] <= start and end <= cut[1] for start, end in linked]
            states.append(inside[0] if inside and len(set(inside)) == 1 else None)
        else:
            middle = (word.start + word.end) / 2 / len(pair.source)
            first, last = cut[0] / len(pair.translation), cut[1] / len(pair.translation)
            near = min(abs(middle - edge) for edge in (first, last) if 0 < edge < 1)
            states.append(None if near < _EDGE else first < middle < last)
    if pair.links:
        known = [(i, state) for i, state in enumerate(states) if state is not None]
        for i, state in enumerate(states):
            if state is None:
                before = next((s for j, s in reversed(known) if j < i), None)
                after = next((s for j, s in known if j > i), None)
                states[i] = before if before == after else None
    missing = tuple((w.start, w.end) for w, state in zip(words, states, strict=True) if state)
    unsure = tuple((w.start, w.end) for w, state in zip(words, states, strict=True) if state is None)
    return missing, unsure


#: Kind -> its rule.
KINDS: dict[str, Callable[[Spoiler, Pair, random.Random], Spoilt | None]] = {
    rule.__name__: rule
    for rule in (
        Spoiler.segment,
        Spoiler.clause,
        Spoiler.cut,
        Spoiler.words,
        Spoiler.copied,
        Spoiler.half_copied,
        Spoiler.unrelated,
        Spoiler.half_unrelated,
        Spoiler.language,
        Spoiler.twice,
        Spoiler.half_twice,
        Spoiler.shuffled,
    )
}
