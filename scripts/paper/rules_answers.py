"""Answers of every decision rule for each translation, from stored candidates. Part of `rules_page.py`."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import MqmRating
from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.similarities import similarity_names
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus, decide_segment, read_annotations
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import read_candidates
from mbr_esd_metric.files.streams import numbered_lines

Floats = npt.NDArray[np.float64]

#: Row of the page -> the rule that it shows.
RULES: dict[str, DecisionOptions] = {
    "no error": DecisionOptions("empty"),
    "MAP": DecisionOptions("map"),
    "majority": DecisionOptions("majority"),
    **{f"MBR {u}": DecisionOptions("mbr", u) for u in (*similarity_names(), "softf1+scoresim")},
    "MBR corpus": DecisionOptions("mbr-corpus"),
    "consensus corpus": DecisionOptions("consensus-corpus"),
    "expected score (MBR softf1)": DecisionOptions("mbr", score="expected"),
}
#: The same for a file with one answer of each translation, with the file's label in place of {}.
SINGLE: dict[str, DecisionOptions] = {
    "{}": DecisionOptions("greedy"),
}


@dataclass(frozen=True)
class Item:
    """A translation, its candidates and its ratings."""

    source: str
    translation: str
    candidates: CandidateColumns
    ratings: Sequence[MqmRating]


@dataclass(frozen=True)
class Answers:
    """A rule's scores and annotations, one each a translation; a row of other scores has no annotations."""

    scores: Floats
    annotations: Sequence[Annotation] | None
    cost: float

    @classmethod
    def of(cls, decisions: Sequence[Decision], cost: float) -> Answers:
        """The decisions of a rule."""
        return cls(np.array([d.mqm for d in decisions]), [d.annotation for d in decisions], cost)


class Reader:
    """Files into items, by the options of the command line."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.answers, self._n, self._most = args.format, args.n, args.most
        self.unit, self._count = "characters", len
        if args.tokenizer:
            self.unit, self._count = "tokens", _tokenizer(args.tokenizer)

    def items(self, candidates: str, human: str) -> list[Item]:
        """The translations that have both; candidates beyond the first n are left out."""
        rated: dict[tuple[str, str], list[MqmRating]] = defaultdict(list)
        for rating in read_mqm(human).ratings:
            rated[rating.source.rstrip(), rating.target.rstrip()].append(rating)
        items = []
        for record in islice(read_candidates(candidates), self._most):
            ratings = rated.get((record.src.rstrip(), record.mt.rstrip()))
            if ratings:
                columns = record.columns
                items.append(Item(record.src, record.mt, columns.picked(range(len(columns))[: self._n]), ratings))
        if not items:
            raise InputError(f"{candidates} and {human} have no translation in common")
        return items

    def single(self, items: Sequence[Item], path: str) -> list[Item]:
        """The same translations, each with the one answer that a file has for it."""
        decoded = _by_text(path, ((r.src, r.mt, r.columns) for r in read_candidates(path)), items)
        return [replace(item, candidates=columns) for item, columns in zip(items, decoded, strict=True)]

    def without_answer(self, items: Sequence[Item]) -> tuple[list[Item], int]:
        """The items, where no candidate can be read with the answer "no error" instead; and how many those are."""
        options = DecisionOptions(format=self.answers)
        answered, silent = [], 0
        for item in items:
            if not any(isinstance(a, Annotation) for a in read_annotations(item.candidates, item.translation, options)):
                silent += 1
                nothing = CandidateColumns([None], [0.0], [False], [EMPTY])
                item = replace(item, candidates=nothing)
            answered.append(item)
        return answered, silent

    def cost(self, items: Sequence[Item]) -> float:
        """Tokens (or characters) of all answers of a translation, on average."""
        return sum(self._count(text or "") for item in items for text in item.candidates.texts) / len(items)

    def decided(self, items: Sequence[Item], options: DecisionOptions) -> list[Decision]:
        """The decision for each translation."""
        options = replace(options, format=self.answers)
        if options.whole_set:
            return list(decide_corpus([(item.candidates, item.translation) for item in items], options).decisions)
        return [decide_segment(item.candidates, item.translation, options) for item in items]


def possible(rules: Mapping[str, DecisionOptions], items: Sequence[Item]) -> dict[str, DecisionOptions]:
    """The rows whose rule and score find all that they need in the candidates."""
    columns = [item.candidates for item in items]
    lacking = set()
    if any(None in one.logprobs or len(set(one.models or ())) > 1 for one in columns):
        lacking |= {row for row, options in rules.items() if options.decided_by.needs_logprobs}
    return {row: options for row, options in rules.items() if row not in lacking}


def _tokenizer(name: str):  # type: ignore[no-untyped-def]
    """Function that counts a text's tokens, by the tokenizer of a model of ours, of the hub, or in a folder."""
    from transformers import AutoTokenizer

    from mbr_esd_metric.metric.cards import card_names, get_card

    path = get_card(name).engine_options("transformers").model if name in card_names() else name
    tokenizer = AutoTokenizer.from_pretrained(path)
    return lambda text: len(tokenizer(text, add_special_tokens=False).input_ids)


def _by_text(path: str, records: Iterable[tuple[str, str, object]], items: Sequence[Item]) -> list:  # type: ignore[type-arg]
    """The value in a file for each item, by source and translation."""
    values = {(source.rstrip(), translation.rstrip()): value for source, translation, value in records}
    keys = [(item.source.rstrip(), item.translation.rstrip()) for item in items]
    missing = sum(key not in values for key in keys)
    if missing:
        raise InputError(f"{path} lacks {missing} of {len(items)} translations, such as {items[0].translation!r}")
    return [values[key] for key in keys]


def _read_scores(path: str, items: Sequence[Item]) -> Floats:
    """The score of each item in a file of JSON lines."""
    scores = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            scores.append((one["src"], one["mt"], float(one["score"])))
        except (ValueError, KeyError, TypeError):
            raise InputError(f'{path}, line {number}: not {{"src": ..., "mt": ..., "score": ...}}') from None
    return np.array(_by_text(path, scores, items), dtype=float)


def of_set(name: str, options: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Label and file of each option NAME LABEL FILE of a set."""
    return [(label, path) for set_name, label, path in options if set_name == name]


def without_candidates(name: str, items: Sequence[Item], args: argparse.Namespace) -> dict[str, Answers]:
    """The rows of scores that need no candidates: the length, and the files of `--scores`."""
    lengths = np.array([len(item.translation) for item in items], dtype=float)
    rows = {"length": Answers(-lengths, None, 0.0)}
    for label, path in of_set(name, args.scores):
        rows[label] = Answers(_read_scores(path, items), None, 0.0)
    return rows


def markdown_table(corner: str, header: Sequence[str], rows: Mapping[str, Sequence[str]]) -> list[str]:
    """Its lines; `corner` is the title of the column of row names."""
    lines = [f"| {corner} | " + " | ".join(header) + " |", "|---|" + "--:|" * len(header)]
    return lines + [f"| {row} | " + " | ".join(cells) + " |" for row, cells in rows.items()]
