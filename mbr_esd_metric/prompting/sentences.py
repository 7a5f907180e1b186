"""Parts of a segment that are marked one by one: its sentences, each with the source sentences that it translates.

Sentences are those of the package `sentencex`. They are aligned by their lengths, as by Gale and Church (Computational
Linguistics 19(1), 1993), whose constants are below. With l_s and l_t the characters of a pair of groups of sentences,
those of the text that has fewer in all stretched to the other,

    delta = (l_t - l_s) / sqrt(6.8 (l_s + l_t) / 2)
    cost  = -log(P(sizes of the groups) * 2 (1 - Phi(|delta|))) - 2 (shared numbers and names)

and the alignment is the cheapest path through both texts. The last term is not theirs. A pair whose delta is above 3 is
not to be trusted; it is joined with its neighbours to a block of a few sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise, takewhile
from unicodedata import combining

from mbr_esd_metric.messages import encodable
from mbr_esd_metric.prompting.languages import language_code, language_pair
from mbr_esd_metric.prompting.text import is_blank

#: The most characters of a sentence; a longer piece is cut, in Thai at its spaces.
LONGEST = 400
#: Places to cut a long piece, the best first: behind the end of a sentence, between words, anywhere.
_CUTS = tuple(map(re.compile, (r"[.!?…。！？؟।][\"'”’»」』)\]]*\s*", r"\s+", r"[,;:，、；：]", r".")))
#: What belongs to the end of a sentence behind the last character of a piece that is cut there.
_TAIL = re.compile(r"[\"'”’»」』)\]]*\s*")
#: Numbers, and words with a capital letter, which may be names. Those that both texts have tie their sentences.
_ANCHOR = re.compile(r"\d+|\b[A-ZÀ-ÖØ-ÞА-Я][\w'’-]{2,}")
#: (sentences of the source, of the translation) -> Gale and Church's probability, each order of a kind by itself.
_KINDS = {(1, 1): 0.89, (1, 0): 0.0099, (0, 1): 0.0099, (2, 1): 0.089, (1, 2): 0.089, (2, 2): 0.011}
_VARIANCE, _SQRT_2 = 6.8, math.sqrt(2)
#: Cost of an anchor that a pair shares.
_TIE = -2.0
#: |delta| above this is implausible; about 3 pairs of 1000 are there by chance.
IMPLAUSIBLE = 3.0
#: The most sentences of the translation that one block of implausible pairs has.
_BLOCK = 4
#: How far pairs may be from the diagonal of both texts, beside the difference of their numbers of sentences. In long
#: texts the band gets narrower, down to this, so that about so many pairs are looked at.
_BAND, _MOST_PAIRS = 12, 200_000


@dataclass(frozen=True, slots=True)
class Part:
    """Sentences of a translation and of its source that belong together, half-open offsets without white space."""

    start: int
    end: int
    source_start: int
    source_end: int


@lru_cache(maxsize=4096)  # the source of many systems
def sentences(text: str, language: str = "") -> tuple[str, ...]:
    """The sentences of a text, each with the blanks behind it; joined they are the text. Blanks alone are one
    sentence. The language, such as "de", decides which abbreviations and ordinals are known; "" is English."""
    from sentencex import segment

    cut: list[str] = []
    end = 0
    for piece in segment(language or "en", encodable(text)):
        piece, end = text[end : end + len(piece)], end + len(piece)
        if cut and (is_blank(piece) or is_blank(cut[-1])):
            cut[-1] += piece
        else:
            cut.append(piece)
    return tuple(one for piece in cut for one in _cut(piece))


def _cut(piece: str) -> list[str]:
    """The piece in pieces of at most `LONGEST` characters, and white space."""
    short = []
    begin, length = 0, len(piece.rstrip())
    while length - begin > LONGEST:
        # All of a match that may end here is before `stop`, so that a long piece is read once.
        stop = _TAIL.match(piece, begin + LONGEST).end()  # type: ignore[union-attr]
        at = next((end for cut in _CUTS for end in _ends(cut, piece, begin, stop)), begin + LONGEST)
        while at < len(piece) and combining(piece[at]):
            at += 1
        short.append(piece[begin:at])
        begin = at
    rest = piece[begin:]
    return [*short, rest] if rest.strip() or not short else [*short[:-1], short[-1] + rest]


def _ends(cut: re.Pattern[str], piece: str, begin: int, stop: int) -> Iterator[int]:
    """The places to cut, the last first, before which a piece is neither too short nor too long without its blanks."""
    near = [*takewhile(lambda match: match.start() <= begin + LONGEST, cut.finditer(piece, begin, stop))]
    ends = (match.end() for match in reversed(near))
    return (end for end in ends if LONGEST // 4 < len(piece[begin:end].rstrip()) <= LONGEST)


def parts(source: str, translation: str, lp: str | None = None) -> tuple[Part, ...]:
    """The parts of a segment, in order; they cover both texts but for white space. One where there is nothing to
    divide, or where a text is blank. The language pair is such as "en-de"."""
    undivided = (Part(0, len(translation), 0, len(source)),)
    if is_blank(source) or is_blank(translation):
        return undivided
    from_language, to_language = map(language_code, language_pair(lp)) if lp else ("", "")
    of_source, of_translation = sentences(source, from_language), sentences(translation, to_language)
    pairs = align(of_source, of_translation)
    if len(pairs) == 1:
        return undivided
    s_ends, t_ends = [0, *accumulate(map(len, of_source))], [0, *accumulate(map(len, of_translation))]
    return tuple(
        Part(*_trimmed(translation, t_ends[b], t_ends[d]), *_trimmed(source, s_ends[a], s_ends[c]))
        for (a, b), (c, d) in pairs
    )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    inside = text[start:end]
    return end - len(inside.lstrip()), start + len(inside.rstrip())


#: The numbers of sentences of source and translation that stand before a cut through both texts.
Cut = tuple[int, int]


def align(source: Sequence[str], translation: Sequence[str]) -> list[tuple[Cut, Cut]]:
    """Groups of sentences that belong together, in order, each from one cut to the next. No text is empty."""
    costs = PairCosts(source, translation)
    diagonal = [*pairwise((i, i) for i in range(len(source) + 1))]
    if len(source) == len(translation) and all(costs.plausible(*pair) for pair in diagonal):
        return diagonal
    return _blocks(cheapest_path(costs), costs)


class PairCosts:
    """The costs of pairing groups of sentences. `size` is the number of sentences of source and translation."""

    def __init__(self, source: Sequence[str], translation: Sequence[str]) -> None:
        self.size = (len(source), len(translation))
        self._lengths = tuple([0, *accumulate(len(one.strip()) for one in side)] for side in (source, translation))
        # Both in the characters of the side that has more of them.
        longest = max(side[-1] for side in self._lengths)
        self._units = [longest / max(side[-1], 1) for side in self._lengths]
        anchors = [[set(_ANCHOR.findall(one)) for one in side] for side in (source, translation)]
        shared = set().union(*anchors[0]) & set().union(*anchors[1])
        #: For each side and size of a group, by its first sentence: the anchors in it that both texts have.
        self._anchors = [
            [[set().union(*side[at : at + size]) & shared for at in range(len(side))] for size in (0, 1, 2)]
            for side in anchors
        ]

    def delta(self, begin: Cut, end: Cut) -> float:
        """The difference of the two lengths, in standard deviations; positive where the translation is longer."""
        (source, translation), (of_source, of_translation) = self._lengths, self._units
        of_source *= source[end[0]] - source[begin[0]]
        of_translation *= translation[end[1]] - translation[begin[1]]
        return (of_translation - of_source) / math.sqrt(_VARIANCE * max((of_source + of_translation) / 2, 1.0))

    def plausible(self, begin: Cut, end: Cut) -> bool:
        """Whether the lengths of a pair are similar enough."""
        return abs(self.delta(begin, end)) <= IMPLAUSIBLE

    def cost(self, begin: Cut, end: Cut) -> float:
        """The cost of a pair of one of `_KINDS`."""
        a, b = end[0] - begin[0], end[1] - begin[1]
        # 2 (1 - Phi(|delta|)) is erfc(|delta| / sqrt 2), which is 0 far out.
        chance = max(math.erfc(abs(self.delta(begin, end)) / _SQRT_2), 1e-60)
        cost = -math.log(_KINDS[a, b] * chance)
        if a and b and (of_source := self._anchors[0][a][begin[0]]):
            cost += _TIE * len(of_source & self._anchors[1][b][begin[1]])
        return cost


def cheapest_path(costs: PairCosts) -> list[Cut]:
    """The cuts of the cheapest alignment, from (0, 0) to the end of both texts."""
    n, m = costs.size
    band = min(_BAND + abs(n - m), max(_BAND, _MOST_PAIRS // (2 * n)))
    best: dict[Cut, tuple[float, Cut]] = {(0, 0): (0.0, (0, 0))}
    for i in range(n + 1):
        middle = round(i * m / n)
        for j in range(max(0, middle - band), min(m, middle + band) + 1):
            befores = [before for a, b in _KINDS if (before := (i - a, j - b)) in best]
            if befores:
                best[i, j] = min((best[before][0] + costs.cost(before, (i, j)), before) for before in befores)
    path = [(n, m)]
    while path[-1] != (0, 0):
        path.append(best[path[-1]][1])
    return path[::-1]


def _blocks(path: Sequence[Cut], costs: PairCosts) -> list[tuple[Cut, Cut]]:
    """The pairs of a path, those that lack a side or are implausible joined with their neighbours."""
    blocks: list[tuple[Cut, Cut]] = []
    begin = path[0]
    for before, end in pairwise(path):
        if blocks and begin == before and (end[0] == before[0] or end[1] == before[1]):
            blocks[-1] = (blocks[-1][0], end)  # a sentence without a counterpart belongs to the pair before it
            begin = end
        elif end[0] > begin[0] and end[1] > begin[1] and (costs.plausible(begin, end) or end[1] - begin[1] >= _BLOCK):
            blocks.append((begin, end))
            begin = end
    if begin != path[-1]:
        first = blocks.pop()[0] if blocks else begin
        blocks.append((first, path[-1]))
    return blocks
