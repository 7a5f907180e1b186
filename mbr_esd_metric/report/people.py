"""Tables of the ratings of a campaign: comparison of systems, effect of pre-filled spans, annotator statistics."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TypeVar, get_args

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.ratings import Fate, Rating, check_comparable
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.messages import number_of
from mbr_esd_metric.metaeval.comparison import SampledScore, compare, mean_score
from mbr_esd_metric.report.tables import Column, Table, TableRow, table_of

_Name = TypeVar("_Name")
#: System, language pair, document, segment and source: a translation, which several annotators may have rated.
_Key = tuple[str, ...]


def people_tables(ratings: Sequence[Rating], paths: Sequence[str | Path]) -> list[Table]:
    """Tables of systems, pairs of systems, pre-annotated spans, ratings with and without such spans, and annotators.

    A note below the comparison has the names and SHA-256 prefixes of the rating files. Raises `InputError` for ratings
    that are not comparable.
    """
    check_comparable(ratings)
    tables = [_systems(ratings), _pairs(ratings, paths), _suggested(ratings), _prefilled(ratings), _people(ratings)]
    return [table for table in tables if table is not None]


def _score(rating: Rating) -> float:
    """The score, from 0 to 100; the MQM score if the rating has none."""
    return rating.mqm() if rating.score is None else rating.score


def _key(rating: Rating) -> _Key:
    segment = rating.segment
    return segment.system, str(rating.lp), segment.document, segment.label, segment.source


def _grouped(ratings: Iterable[Rating], name: Callable[[Rating], _Name]) -> dict[_Name, list[Rating]]:
    groups: dict[_Name, list[Rating]] = defaultdict(list)
    for one in ratings:
        groups[name(one)].append(one)
    return groups


def _by_key(ratings: Iterable[Rating], value: Callable[[Rating], float]) -> dict[_Key, float]:
    """The mean over the raters of each translation."""
    return {key: fmean(map(value, group)) for key, group in _grouped(ratings, _key).items()}


def _systems(ratings: Sequence[Rating]) -> Table:
    rows: list[tuple[float, TableRow]] = []
    for name, group in _grouped(ratings, lambda one: one.segment.system).items():
        scores = _by_key(group, _score)
        mqm = _by_key((one for one in group if one.marked), Rating.mqm)
        mean = fmean(scores.values())
        row: TableRow = {
            Column("system", "system"): name,
            Column("segments", "segments"): len(scores),
            Column("ratings", "ratings"): len(group),
            Column("score", "score", best="max", digits=2): mean,
            Column("mqm", "MQM", best="max", digits=2): fmean(mqm.values()) if mqm else None,
            Column("seconds", "seconds per rating", digits=1): fmean(one.seconds for one in group) or None,
        }
        rows.append((-mean, row))
    return table_of("systems by human score", [row for _, row in sorted(rows, key=lambda one: one[0])])


def _pairs(ratings: Sequence[Rating], paths: Sequence[str | Path]) -> Table | None:
    """The comparison of each pair of systems on their common segments; pairs with fewer than two are omitted."""
    scores = _by_key(ratings, _score)
    rows: list[TableRow] = []
    for a, b in combinations(sorted({one.segment.system for one in ratings}), 2):
        both = [(key, (b, *key[1:])) for key in scores if key[0] == a and (b, *key[1:]) in scores]
        if len(both) < 2:
            continue
        first, second = ([SampledScore(scores[key], 0.0) for key in keys] for keys in zip(*both, strict=True))
        one = compare(first, second)
        low, high = one.interval
        better = f"{b if one.difference > 0 else a} is better" if one.differ else "no difference shown"
        rows.append(
            {
                Column("a", "a"): a,
                Column("b", "b"): b,
                Column("segments", "segments"): one.segments,
                Column("difference", "b - a", digits=2): one.difference,
                Column("interval", "95% interval"): f"{low:+.2f} to {high:+.2f}",
                Column("p", "p"): one.p_value,
                Column("verdict", "verdict"): better,
            }
        )
    files = [f"{Path(path).name} sha256:{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]}" for path in paths]
    note = f"signature: mbr-esd-metric {__version__}, {', '.join(files)}"
    return table_of("pairwise comparison of systems by human scores", rows, [note]) if rows else None


def _suggested(ratings: Sequence[Rating]) -> Table | None:
    """The shares of pre-filled spans that annotators kept, changed or deleted."""
    fates = [one.fate for rating in ratings for one in rating.suggested or ()]
    if not fates:
        return None
    shares = {Column(fate, fate, percent=True, digits=0): fates.count(fate) / len(fates) for fate in get_args(Fate)}
    added = sum(one.added for one in ratings if one.suggested is not None)
    notes = [f"annotators added {number_of(added, 'error')}"]
    return table_of("pre-filled spans", [{Column("number", "number"): len(fates), **shares}], notes)


def _prefilled(ratings: Sequence[Rating]) -> Table | None:
    """Time, errors and agreement of ratings with pre-filled spans, and of those without."""
    groups = _grouped(ratings, lambda one: "not pre-filled" if one.suggested is None else "pre-filled")
    if "pre-filled" not in groups:
        return None
    rows: list[TableRow] = []
    for name, group in sorted(groups.items(), reverse=True):
        seconds = [SampledScore(one.seconds, 0.0) for one in group]
        low, high = mean_score(seconds).interval if len(group) > 1 else (group[0].seconds, group[0].seconds)
        agreed = _agreement(group)
        rows.append(
            {
                Column("ratings", "ratings"): name,
                Column("number", "number"): len(group),
                Column("seconds", "seconds per rating", digits=1): fmean(one.seconds for one in group),
                Column("interval", "95% interval"): f"{low:.1f} to {high:.1f}",
                Column("errors", "errors each", digits=2): fmean(len(one.errors) for one in group),
                Column("pairs", "pairs of raters"): len(agreed),
                Column("agreement", "agreement (SoftF1)"): fmean(agreed) if agreed else None,
            }
        )
    return table_of("with and without pre-filled spans", rows)


def _agreement(ratings: Iterable[Rating]) -> list[float]:
    """SoftF1 of each pair of raters of the same translation."""
    similarity = get_similarity("softf1")
    return [
        similarity.scalar(a.annotation, b.annotation, len(a.segment.translation))
        for group in _grouped((one for one in ratings if one.marked), _key).values()
        for a, b in combinations(group, 2)
        if a.rater != b.rater
    ]


def _people(ratings: Sequence[Rating]) -> Table:
    rows: list[TableRow] = [
        {
            Column("annotator", "annotator"): name,
            Column("ratings", "ratings"): len(group),
            Column("minutes", "minutes", digits=1): sum(one.seconds for one in group) / 60 or None,
            Column("errors", "errors each", digits=2): fmean(len(one.errors) for one in group),
            Column("checks", "checks passed"): "/".join(map(str, group[0].checks)) if group[0].checks[1] else None,
        }
        for name, group in _grouped(ratings, lambda one: one.rater).items()
    ]
    return table_of("annotators", rows)
