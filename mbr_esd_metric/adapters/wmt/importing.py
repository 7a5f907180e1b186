"""Writes human MQM annotations in the layout of mt-metrics-eval: texts, documents, gold scores and ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mbr_esd_metric.adapters.mqm_tsv import MqmData, MqmError, MqmRating, carry_span, check_same_text
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.layout import Layout
from mbr_esd_metric.adapters.wmt.meta_info import TestSetInfo, info_of, reference_name
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.adapters.wmt.target import Target, replacing
from mbr_esd_metric.errors import InputError, number_of
from mbr_esd_metric.files.paths import file_name

#: What the toolkit calls the ratings of all raters together.
_MERGED = "merged"


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote.

    Attributes:
        layout: the files of the new test set.
        systems, references, raters: their names.
        segments, documents, ratings: their numbers.
        notes: what was changed or left out, in addition to what the reader reports.
    """

    layout: Layout
    systems: tuple[str, ...]
    references: tuple[str, ...]
    raters: tuple[str, ...]
    segments: int
    documents: int
    ratings: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        people = number_of(len(self.raters), "rater")
        rated = f", {number_of(self.ratings, 'rating')} by {people}" if self.ratings else ""
        return (
            f"{self.layout.test_set} {self.layout.lp} in {self.layout.data}: "
            f"{number_of(len(self.systems), 'system')} (references: {', '.join(self.references) or 'none'}), "
            f"{number_of(self.segments, 'segment')} in {number_of(self.documents, 'document')}{rated}"
        )


def import_mqm(human: MqmData, target: Target, *, domain: str = "all") -> Imported:
    """Write a test set of human MQM annotations in the layout of mt-metrics-eval.

    Gold scores are made as WMT makes them: minus the penalties of all rows of a rater, source side included,
    averaged over the raters of a segment; a system's score is the mean of its rated segments.

    Args:
        human: what `read_mqm` returned.
        target: where to. A reference called "ref" takes the name of the test set's standard reference, as in other
            language pairs where the table has none.
        domain: of every segment, as the annotations do not say it.

    Raises:
        InputError: no rating in that language pair, a name the layout cannot carry, the test set is there, or metric
            scores of its older texts are.
        OptionError: a reference or a system to rename that is not in the data; a test set or a language pair whose name
            the layout cannot carry.
    """
    layout, lp = target.layout(), target.lp
    notes: list[str] = []
    info = info_of(target.test_set, lp)
    ratings = [r for r in human if r.lp in (None, lp)]
    if not ratings:
        there = ", ".join(sorted({r.lp for r in human if r.lp}))
        raise InputError(f"{human.path}: no ratings of {lp}; there are: {there}")
    if len(ratings) < len(human):
        notes.append(f"{len(human) - len(ratings)} ratings of other language pairs are left out")
    ratings = _renamed(ratings, target, notes)
    ratings = _identified(ratings, notes)
    table = _Table.of(ratings, human.path, notes)
    names = target.references_among(table.systems)
    _check_raters(layout, info.gold, table)
    with replacing(layout, [table.sources[key] for key in table.segments]) as new:
        _write(new, table, names, info, target.weights, domain)
    raters = tuple(sorted({r.rater for r in ratings}))
    return Imported(
        layout,
        table.systems,
        names,
        raters,
        len(table.segments),
        len({doc for doc, _ in table.segments}),
        len(table.ratings),
        tuple(notes),
    )


_Key = tuple[str, str]  # (document, segment)


@dataclass(frozen=True, slots=True)
class _Table:
    """Ratings by system, segment and rater; the segments are in the order of the test set."""

    systems: tuple[str, ...]
    segments: tuple[_Key, ...]
    sources: Mapping[_Key, str]
    targets: Mapping[tuple[str, _Key], str]
    ratings: Mapping[tuple[str, _Key, str], MqmRating]

    @classmethod
    def of(cls, ratings: Sequence[MqmRating], path: Path, notes: list[str]) -> _Table:
        sources: dict[_Key, str] = {}
        targets: dict[tuple[str, _Key], str] = {}
        kept: dict[tuple[str, _Key, str], MqmRating] = {}
        lines: dict[tuple[str, _Key], int] = {}
        twice = spellings = 0
        for rating in ratings:
            key = (rating.doc, rating.segment)
            sources.setdefault(key, rating.source)
            target = targets.setdefault((rating.system, key), rating.target)
            if target != rating.target:
                spellings += 1
                line = lines[rating.system, key]
                what = f"system {rating.system} for segment {rating.segment} of {rating.doc}"
                check_same_text(path, what, target, line, rating.target, rating.line)
            lines.setdefault((rating.system, key), rating.line)
            if (rating.system, key, rating.rater) in kept:
                twice += 1
                continue
            kept[rating.system, key, rating.rater] = _over(rating, target)
        if twice:
            notes.append(f"{twice} ratings by a rater who had rated the same translation: the first is kept")
        if spellings:
            notes.append(f"{spellings} ratings of another spelling of a translation: the first one is kept")
        segments = _ordered(sources)
        systems = tuple(sorted({system for system, _ in targets}))
        missing = len(systems) * len(segments) - len(targets)
        if missing:
            notes.append(f"{missing} translations are not in the annotations: written as not supplied")
        return cls(systems, segments, sources, targets, kept)


def _over(rating: MqmRating, target: str) -> MqmRating:
    """The rating, moved to another spelling of its translation. A span that cannot be found there loses its place."""
    if rating.target == target:
        return rating
    errors = []
    for error in rating.errors:
        place = carry_span(error.start, error.end, rating.target, target) if error.side == "target" else None
        if error.side != "target":
            errors.append(error)
        elif place is None:
            errors.append(replace(error, side=None, start=0, end=0))
        else:
            errors.append(replace(error, start=place[0], end=place[1]))
    return replace(rating, target=target, errors=tuple(errors))


def _ordered(keys: Iterable[_Key]) -> tuple[_Key, ...]:
    """Ordered by the segment's number if all have one, with each document in one piece; otherwise by first
    appearance."""
    listed = list(keys)
    if all(segment.isdecimal() for _, segment in listed):
        listed.sort(key=lambda key: int(key[1]))
    first: dict[str, int] = {}
    for doc, _ in listed:
        first.setdefault(doc, len(first))
    return tuple(sorted(listed, key=lambda key: first[key[0]]))


def _renamed(ratings: Sequence[MqmRating], target: Target, notes: list[str]) -> list[MqmRating]:
    names = {rating.system for rating in ratings}
    target.check_rename(names)
    change, standard = dict(target.rename), reference_name(target.test_set, target.lp)
    if standard is not None and "ref" in names - set(change) - set(target.references) and standard not in names:
        change["ref"] = standard
        notes.append(f"system ref is called {standard}, as the standard reference of the test set")
    return [replace(r, system=change[r.system]) if r.system in change else r for r in ratings]


def _identified(ratings: Sequence[MqmRating], notes: list[str]) -> list[MqmRating]:
    """Ratings whose document and segment name one source text.

    In bio-MQM they do not: documents are called after the system that translated them, and numbers come back
    with other sources. Then the source text itself says which segments are the same.
    """
    named = [r for r in ratings if r.system]
    if len(named) < len(ratings):
        notes.append(f"{len(ratings) - len(named)} ratings of a system without a name are left out")
    sources: dict[_Key, set[str]] = {}
    for rating in named:
        sources.setdefault((rating.doc, rating.segment), set()).add(rating.source)
    if all(len(texts) == 1 for texts in sources.values()):
        return named
    notes.append("documents and numbers do not name the segments: equal sources are taken as one segment")
    places: dict[str, tuple[str, str]] = {}
    for rating in named:
        places.setdefault(rating.source, (rating.doc, str(len(places) + 1)))
    return [replace(r, doc=places[r.source][0], segment=places[r.source][1]) for r in named]


def _rater_name(rater: str) -> str:
    """A rater's name in the layout, which takes no white space."""
    return "_".join(rater.split())


def _check_raters(layout: Layout, gold: str, table: _Table) -> None:
    """Check that every rater gets a file of their own, before anything is written."""
    names: dict[str, str] = {_MERGED: ""}
    for rater in dict.fromkeys(rater for _, _, rater in table.ratings):
        name = _rater_name(rater)
        if not name:
            raise InputError("a rating has no name of its rater; write one into the table")
        layout.human_rating(f"{gold}.{file_name(name, 'rater')}")
        if names.setdefault(name, rater) != rater:
            other = f"rater {names[name]!r} has" if names[name] else "all raters together have"
            raise InputError(f"rater {rater!r}: {other} the same file, {name!r}; change the name in the table")


def _write(
    layout: Layout, table: _Table, references: Sequence[str], info: TestSetInfo, weights: str, domain: str
) -> None:
    outputs = {s: [table.targets.get((s, key)) for key in table.segments] for s in table.systems}
    files.write_documents(layout.documents, ((domain, doc) for doc, _ in table.segments))
    for system, texts in outputs.items():
        files.write_text(layout.output(system), texts)
    for name in references:
        files.write_text(layout.reference(name), outputs[name])
    by_rater: dict[str, dict[tuple[str, _Key], MqmRating]] = {}
    for (system, key, rater), rating in table.ratings.items():
        by_rater.setdefault(rater, {})[system, key] = rating
    _write_scores(layout, table, by_rater, info.gold, weights, domain)
    for rater, ratings in by_rater.items():
        name = _rater_name(rater)
        _write_ratings(layout.human_rating(f"{info.gold}.{name}"), table, [(name, ratings)])
    if len(table.ratings) == len({(system, key) for system, key, _ in table.ratings}):
        # One rater a translation: together they are one full set, which the toolkit calls merged.
        _write_ratings(layout.human_rating(f"{info.gold}.{_MERGED}"), table, list(by_rater.items()))
    files.write_text(layout.source(), (table.sources[key] for key in table.segments))


def _write_scores(
    layout: Layout,
    table: _Table,
    by_rater: Mapping[str, Mapping[tuple[str, _Key], MqmRating]],
    gold: str,
    weights: str,
    domain: str,
) -> None:
    scores: dict[str, list[float | None]] = {}
    for system in table.systems:
        scores[system] = []
        for key in table.segments:
            given = [r[system, key].score(weights) for r in by_rater.values() if (system, key) in r]
            scores[system].append(float(np.mean(given)) if given else None)
    means = {s: [float(np.mean([v for v in values if v is not None]))] for s, values in scores.items()}
    files.write_scores(layout.human_scores(gold, "seg"), scores)
    files.write_scores(layout.human_scores(gold, "sys"), means)
    files.write_domain_scores(
        layout.human_scores(gold, "domain"), {s: {"_".join(domain.split()): m} for s, (m,) in means.items()}
    )


def _write_ratings(
    path: Path, table: _Table, raters: Sequence[tuple[str, Mapping[tuple[str, _Key], MqmRating]]]
) -> None:
    ratings: dict[str, list[Sequence[MqmError] | None]] = {}
    names: dict[str, list[str | None]] = {}
    for system in table.systems:
        cells = [(system, key) for key in table.segments]
        found = [next(((name, r[cell]) for name, r in raters if cell in r), None) for cell in cells]
        ratings[system] = [entry[1].errors if entry else None for entry in found]
        names[system] = [entry[0] if entry else None for entry in found]
    write_ratings(path, ratings, names)
