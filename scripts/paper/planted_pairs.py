"""Pairs of a good translation and the same one with an error planted: which rule sees it. Part of `rules_page.py`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rules_answers import RULES, SINGLE, Answers, Item, Reader, markdown_table, of_set, possible, without_candidates

from mbr_esd_metric.files.records import read_candidates


@dataclass(frozen=True)
class Pair:
    """A translation without and with a planted error."""

    kind: str
    good: Item
    bad: Item

    @property
    def place(self) -> tuple[int, int]:
        """The characters of `bad` that `good` has not; where something was left out, one character on each side."""
        good, bad = self.good.translation, self.bad.translation
        start = _common(good, bad)
        same = _common(good[start:][::-1], bad[start:][::-1])
        end = len(bad) - same
        if end > start:
            return start, end
        # What was left out of "one two three" may have begun with "two" or with its first letter further on.
        return max(0, len(bad) - _common(good[::-1], bad[::-1]) - 1), start + 1


def _common(one: str, other: str) -> int:
    """Characters that both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _read(candidates: str, table: str) -> Iterator[Pair]:
    candidates_of = {(record.src, record.mt): record.columns for record in read_candidates(candidates)}
    for line in Path(table).read_text(encoding="utf-8").splitlines()[1:]:
        kind, _, source, *texts = line.split("\t")
        good, bad = (Item(source, text, candidates_of[source, text], []) for text in texts)
        yield Pair(kind, good, bad)


def _cells(pairs: Sequence[Pair], kinds: Sequence[str], answers: Answers) -> list[str]:
    """Counts of a row: right, even, touched, then right by kind."""
    good, bad = answers.scores[::2], answers.scores[1::2]
    right, even = bad < good - 1e-9, abs(bad - good) <= 1e-9
    touched = "-"
    if answers.annotations is not None:
        places = zip((pair.place for pair in pairs), answers.annotations[1::2], strict=True)
        touched = str(sum(any(s.start < end and s.end > start for s in spans) for (start, end), spans in places))
    by_kind = (sum(bool(x) for x, pair in zip(right, pairs, strict=True) if pair.kind == kind) for kind in kinds)
    return [str(int(right.sum())), str(int(even.sum())), touched, *map(str, by_kind)]


def pairs_section(name: str, candidates: str, table: str, args: argparse.Namespace, reader: Reader) -> str:
    """Table of how often each rule scores the planted error lower, and marks an error at its place."""
    pairs = list(_read(candidates, table))
    items = [item for pair in pairs for item in (pair.good, pair.bad)]
    answers = {row: Answers.of(reader.decided(items, options), 0.0) for row, options in possible(RULES, items).items()}
    for label, file in of_set(name, args.single):
        decoded = reader.single(items, file)
        for row, options in possible(SINGLE, decoded).items():
            answers[row.format(label)] = Answers.of(reader.decided(decoded, options), 0.0)
    answers |= without_candidates(name, items, args)
    kinds = Counter(pair.kind for pair in pairs)
    header = ["right", "even", "touched", *(f"{kind} {count}" for kind, count in kinds.items())]
    lines = [
        f"## {name}",
        "",
        f"{len(pairs)} pairs. *Right*: the translation with the error scores lower; *even*: both score the same. "
        "*Touched*: an error of the answer overlaps what was planted, or the characters on both sides of what was "
        "left out. By kind: right.",
        "",
        *markdown_table("rule", header, {row: _cells(pairs, list(kinds), one) for row, one in answers.items()}),
        "",
    ]
    return "\n".join(lines)
