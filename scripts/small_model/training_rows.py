"""Training rows of the small model: human annotations, assessments, scores of a teacher, and minimal pairs.

Development data are excluded: documents of newstest2020, and sources of minimal pairs (`held_out`).
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from post_edits import changed
from spoilt import Pair, Place, join

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import Rating
from mbr_esd_metric.files.streams import read_segments

#: Sampling weights of contrasts: of one word, of a frequent pair of words, and others; and what is frequent.
_ONE_WORD, _FREQUENT_PAIR, _SEVERAL_WORDS, _OFTEN = 3.0, 0.4, 0.7, 8


@dataclass(frozen=True)
class Row:
    """A training example. Targets that are None have no loss.

    Attributes:
        source, translation: the texts.
        errors: spans in the translation and their labels.
        missing, unsure: spans in the source that are omitted, or may be.
        sides: weights of the labels of translation and source.
        quality, rating: regression targets.
        edited: spans that a post-edit changes.
        order: the ranking target among the translations of its group.
    """

    source: str
    translation: str
    errors: tuple[tuple[int, int, int], ...] = ()
    missing: tuple[Place, ...] = ()
    unsure: tuple[Place, ...] = ()
    sides: tuple[float, float] = (1.0, 1.0)
    quality: float | None = None
    rating: float | None = None
    edited: tuple[Place, ...] | None = None
    order: float | None = None


#: The translations of a source: for each, the rows of its raters.
Source = list[list[Row]]


@dataclass
class Mqm:
    """A file of annotations.

    Attributes:
        weight: its sampling weight.
        sources: the sources with at least two translations.
        documents: the rows of each document, system and rater, in order, for documents with at least two segments.
    """

    weight: float
    sources: list[Source] = field(default_factory=list)
    documents: list[list[Row]] = field(default_factory=list)


def held_out(name: str, parts: int) -> bool:
    """Whether a document or a source with this name is held out for development: one of this many parts."""
    return zlib.crc32(name.encode()) % parts == 0


def quality(row: Row) -> float:
    return -math.log1p(min(25.0, sum(5.0 if label == 2 else 1.0 for *_, label in row.errors)))


def joined(first: Row, second: Row) -> Row:
    """The concatenation of two annotated translations."""
    source, translation = join(first.source, second.source), join(first.translation, second.translation)
    by = len(translation) - len(second.translation)
    errors = (*first.errors, *((a + by, b + by, label) for a, b, label in second.errors))
    row = replace(first, source=source, translation=translation, errors=errors, order=None)
    return replace(row, quality=quality(row))


def read_mqm_rows(path: str, weight: float) -> tuple[Mqm, list[Pair]]:
    """A file, and its translations without errors. The ranking target is the mean of the standardised qualities of the
    raters."""
    rows: list[tuple[Rating, Row]] = []
    for r in read_mqm(path):
        one = r.segment
        if not one.translation or max(len(one.source), len(one.translation)) > 1200:
            continue
        if "2020" in path and held_out(one.document, 8):
            continue
        errors = tuple((s.start, s.end, 2 if s.severity != "minor" else 1) for s in r.annotation)
        row = Row(one.source, one.translation, errors, sides=(1.0, 0.3))
        rows.append((r, replace(row, quality=quality(row))))
    by_rater: dict[str, list[float]] = defaultdict(list)
    for r, row in rows:
        by_rater[r.rater].append(quality(row))
    of_rater = {rater: (float(np.mean(values)), max(0.3, float(np.std(values)))) for rater, values in by_rater.items()}
    documents: dict[tuple[str, str, str], list[tuple[int, Row]]] = defaultdict(list)
    sources: dict[str, dict[str, list[tuple[float, Row]]]] = defaultdict(lambda: defaultdict(list))
    for r, row in rows:
        place = r.doc_segment or r.segment.label
        number = int(place) if place.isdigit() else len(documents)
        documents[r.segment.document, r.segment.system, r.rater].append((number, row))
        center, deviation = of_rater[r.rater]
        sources[row.source][row.translation].append(((quality(row) - center) / deviation, row))
    mqm = Mqm(weight)
    for some in documents.values():
        if len(some) > 1:
            mqm.documents.append([row for _, row in sorted(some, key=lambda one: one[0])])
    for translations in sources.values():
        if len(translations) > 1:
            mqm.sources.append([])
            for rated in translations.values():
                order, mean = float(np.mean([z for z, _ in rated])), float(np.mean([quality(row) for _, row in rated]))
                mqm.sources[-1].append([replace(row, quality=mean, order=2 * order) for _, row in rated])
    return mqm, [Pair(row.source, row.translation, r.lp or "") for r, row in rows if not r.errors]


def read_teacher(path: Path) -> list[Source]:
    """Sources with scores of a teacher for their translations, standardised per source."""
    sources: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for line in read_segments(path)[1:]:
        lp, _, _, source, target, score = line.split("\t")
        if target and max(len(source), len(target)) < 400:
            sources[lp, source][target] = float(score)
    made = []
    for (_, source), scores in sources.items():
        values = np.array(list(scores.values()))
        if len(values) > 2 and values.std() > 0.05:
            values = 1.5 * (values - values.mean()) / max(0.4, values.std())
            made.append(
                [[Row(source, t, sides=(0.0, 0.0), order=float(z))] for t, z in zip(scores, values, strict=True)]
            )
    return made


def read_minimal(path: Path, by: str = "kind") -> dict[str, list[list[Row]]]:
    """Pairs of a good translation and the same one with one error, from this field. Omissions are marked at the end of
    the previous word."""
    kinds: dict[str, list[list[Row]]] = defaultdict(list)
    for line in read_segments(path):
        one = json.loads(line)
        if held_out(one["src"], 12):
            continue
        wrong, label = one["wrong"], 1 if one["severity"] == "minor" else 2
        if not wrong and one["removed"]:
            at = one["removed"][0][0]
            wrong = [[max(0, at - 2), max(1, at)]]
        sides, errors = (4.0 if wrong else 0.0, 0.0), tuple((a, b, label) for a, b in wrong)
        good = Row(one["src"], one["good"], sides=(sides[0], 1.0), order=0.0)
        kinds[one[by]].append([good, Row(one["src"], one["bad"], errors, sides=sides, order=-3.0)])
    return dict(kinds)


def contrast_weights(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The sampling weights of pairs of a good and a bad translation. Pairs that differ in one word are the hardest, and
    weigh most, except for frequent ones such as "she" and "he", which many sources leave open."""
    changed = [_changed_word(good, bad) for good, bad in pairs]
    times = Counter(changed)

    def weight(words: tuple[str, str] | None) -> float:
        if words is None:
            return _SEVERAL_WORDS
        is_frequent = times[words] + times[words[::-1]] >= _OFTEN and not words[0][0].isdigit()
        return _FREQUENT_PAIR if is_frequent else _ONE_WORD

    return [weight(words) for words in changed]


def _changed_word(good: str, bad: str) -> tuple[str, str] | None:
    """The words of the two texts at the only place where their words differ; None if there are several, or none."""
    words, others = (re.findall(r"\w+", text) for text in (good, bad))
    changed = [two for two in zip(words, others, strict=False) if two[0] != two[1]]
    return changed[0] if len(changed) == 1 and len(words) == len(others) else None


def read_mlqe(folder: Path, lp: str, part: str) -> list[Row]:
    """Translations with ratings and post-edits."""
    name = "test20" if part == "test" else part
    [table] = folder.glob(f"{lp}*/{name}.{lp.replace('-', '')}.df.short.tsv")
    header, *lines = (line.split("\t") for line in read_segments(table))
    corrected = read_segments(folder / f"{lp}-{name}" / f"{name}.pe")
    places = [header.index(column) for column in ("original", "translation", "z_mean")]
    values = [[line[at].strip() for at in places] for line in lines]
    ratings = np.array([float(value[2]) for value in values])
    ratings = (ratings - ratings.mean()) / ratings.std()
    rows = []
    for (source, translation, _), correction, rating in zip(values, corrected, ratings, strict=True):
        spans = changed(translation, correction)
        edited = None if spans is None else tuple(spans)
        rows.append(Row(source, translation, sides=(0.0, 0.0), rating=float(np.clip(rating, -3, 2)), edited=edited))
    return rows
