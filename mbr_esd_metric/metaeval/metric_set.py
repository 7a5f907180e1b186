"""The metrics of a language pair on the same translations: the input of leaderboards and statistics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import get_args

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Severity, as_annotation, mqm_score
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.metaeval.correlation import system_means
from mbr_esd_metric.metaeval.matrices import BoolMatrix
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, SpanCounts, SpanEvaluator, SpanScores

#: Base name, and whether the metric uses a reference; identifies a metric across language pairs.
Key = tuple[str, bool]


@dataclass(frozen=True, eq=False)
class MetricEntry:
    """One metric in one language pair.

    Attributes:
        name: base name, the same in every language pair.
        scores: a score matrix (`matrices`); None if the metric only scores systems.
        spans: systems x segments; None if the metric has no error spans.
        signature: the signature of the scores, if known.
        of_systems: one score per system; None to use the means over segments.
    """

    name: str
    uses_reference: bool
    scores: Floats | None
    spans: AnnotationMatrix | None = None
    signature: Signature | None = None
    of_systems: Floats | None = None

    @property
    def key(self) -> Key:
        """Base name, and whether the metric uses a reference."""
        return (self.name, self.uses_reference)

    @classmethod
    def of_spans(cls, name: str, spans: AnnotationMatrix, signature: Signature | None = None) -> MetricEntry:
        """The reference-free metric whose score is Score(E), with duplicate spans counted once."""
        every = [[None if cell is None else as_annotation(cell) for cell in row] for row in spans]
        scores = [[np.nan if a is None else mqm_score(a.with_spans(a)) for a in row] for row in every]
        return cls(name, False, np.array(scores), spans, signature)


@dataclass(frozen=True, eq=False)
class MetricSet:
    """All metrics of one language pair, on the same translations.

    Attributes:
        gold: a gold matrix (`matrices`).
        lengths: the number of characters of each translation, systems x segments.
        human: the spans of each rater.
        notes: notes for tables.
        documents: the document of each segment; needed for statistics at the document level.
        gold_of_systems, gold_of_documents: gold scores, shape (systems,) and systems x documents; None to use the means
            of the rated segments.

    Raises `InputError` if two metrics have the same key.
    """

    lp: str
    gold: Floats
    lengths: npt.NDArray[np.int64]
    human: Sequence[AnnotationMatrix]
    entries: Sequence[MetricEntry]
    notes: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    gold_of_systems: Floats | None = None
    gold_of_documents: Floats | None = None

    def __post_init__(self) -> None:
        for (name, _), times in Counter(entry.key for entry in self.entries).items():
            if times > 1:
                raise InputError(f"{self.lp}: metric {name} is present twice; choose one by its full name")

    @property
    def scores(self) -> dict[Key, Floats]:
        """Metric with segment scores -> its score matrix."""
        return {entry.key: entry.scores for entry in self.entries if entry.scores is not None}

    def means_of_documents(self, scores: Floats) -> Floats:
        """The mean over the segments of each document, ignoring NaN, systems x documents."""
        each = [[document == name for document in self.documents] for name in dict.fromkeys(self.documents)]
        return np.stack([system_means(scores[:, of]) for of in each], axis=1)

    def rated_by(self, human: Sequence[AnnotationMatrix]) -> MetricSet:
        """The set with these raters only, and gold scores only for translations that one of them rated."""
        rated = [
            [any(rater[i][j] is not None for rater in human) for j in range(len(row))]
            for i, row in enumerate(self.gold)
        ]
        return replace(self, human=human, gold=np.where(rated, self.gold, np.nan))

    def part(self, columns: BoolMatrix) -> MetricSet:
        """The set restricted to some segments, shape (segments,), without spans. System and document scores are the
        means over these segments."""
        entries = [
            replace(one, scores=one.scores[:, columns], spans=None, of_systems=None)
            for one in self.entries
            if one.scores is not None
        ]
        documents = tuple(compress(self.documents, columns))
        return MetricSet(self.lp, self.gold[:, columns], self.lengths[:, columns], (), entries, documents=documents)

    def span_scores(self, measures: Sequence[str]) -> dict[Key, SpanScores]:
        """Metric with error spans -> its evaluation; without raters, only its span counts on translations with gold."""
        evaluator = SpanEvaluator(self.human, self.lengths, measures) if len(self.human) else None
        scores = {}
        for entry in self.entries:
            if entry.spans is None:
                continue
            with labelled(f"{entry.name} in {self.lp}"):
                scores[entry.key] = evaluator.evaluate(entry.spans) if evaluator else self._counted(entry.spans)
        return scores

    def _counted(self, spans: AnnotationMatrix) -> SpanScores:
        rated = np.argwhere(~np.isnan(self.gold)).tolist()
        cells = [as_annotation(spans[i][j] or ()).on("translation") for i, j in rated]
        major, minor = (float(sum(cell.count(severity) for cell in cells)) for severity in get_args(Severity))
        return SpanScores({}, SpanCounts(major, minor, math.nan, math.nan), len(rated), {})


def spa_notes(sets: Sequence[MetricSet], exact: bool) -> list[str]:
    """The notes below a table with SPA: the variant, the segments compared, and the metrics with constant scores, for
    which SPA is uninformative."""
    notes = ["SPA: exact, of infinitely many permutations"] if exact else []
    same: dict[str, list[str]] = {}
    for one in sets:
        rated = ~np.isnan(one.gold)
        if constant := [name for (name, _), scores in one.scores.items() if np.ptp(scores[rated]) == 0]:
            same.setdefault(", ".join(constant), []).append(one.lp)
        if not (rated == rated[0]).all():
            shared = (rated.astype(np.int64) @ rated.T)[np.triu_indices(len(rated), 1)]
            none = f"; {(shared == 0).sum()} of {len(shared)} pairs have none" if (shared == 0).any() else ""
            both = sorted(shared[shared > 0].tolist()) or [0]
            count = " to ".join(map(str, dict.fromkeys((both[0], both[-1]))))
            notes.append(
                f"in {one.lp} systems are rated on different segments: SPA compares each pair of systems on the "
                f"{count} segments that both have{none}"
            )
    if same:
        why = "all its p-values are 1/2" if exact else "depends on the order of the systems"
        where = "; ".join(f"{names} in {', '.join(lps)}" for names, lps in same.items())
        notes.append(f"one score for everything, so that SPA says nothing and {why}: {where}")
    return notes
