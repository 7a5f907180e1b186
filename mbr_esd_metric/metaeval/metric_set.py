"""The metrics of one language pair over the same translations, from any source: with error spans, or scores alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import labelled
from mbr_esd_metric.metaeval.matrices import FloatMatrix, FloatVector
from mbr_esd_metric.metaeval.spa import constant_metrics
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, SpanEvaluator, SpanScores

#: Base name, and whether a reference was used. Entries of several language pairs with the same key share a row.
Key = tuple[str, bool]


@dataclass(frozen=True, eq=False)
class MetricEntry:
    """One metric in one language pair.

    Attributes:
        name: base name, the same in every language pair.
        uses_reference: whether it saw a reference.
        scores: a score matrix (`matrices`).
        spans: systems x segments; None if the metric has no error spans.
        signature: what the scores depend on, if known.
    """

    name: str
    uses_reference: bool
    scores: Floats
    spans: AnnotationMatrix | None = None
    signature: str | None = None

    @property
    def key(self) -> Key:
        """Entries with the same key share a row."""
        return (self.name, self.uses_reference)


@dataclass(frozen=True, eq=False)
class MetricSet:
    """All metrics of one language pair, such as "en-de", on the same translations.

    Attributes:
        gold: a gold matrix (`matrices`).
        lengths: systems x segments, characters of each translation.
        human: one or several sets of human spans, systems x segments each.
        notes: what readers of the table should know.
    """

    lp: str
    gold: Floats
    lengths: npt.NDArray[np.int64]
    human: Sequence[AnnotationMatrix]
    entries: Sequence[MetricEntry]
    notes: tuple[str, ...] = ()

    @property
    def constant(self) -> list[str]:
        """The names of `spa.constant_metrics`."""
        return constant_metrics(self.gold, [(entry.name, entry.scores) for entry in self.entries])

    def span_scores(self, evaluator: SpanEvaluator) -> dict[Key, SpanScores]:
        """The evaluation of each metric that has error spans; errors name the metric."""
        scores = {}
        for entry in self.entries:
            if entry.spans is not None:
                with labelled(f"{entry.name} in {self.lp}"):
                    scores[entry.key] = evaluator.evaluate(entry.spans)
        return scores


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of gold or a metric.

    Attributes:
        segments: systems x segments, NaN if there is none; None if only systems are scored.
        systems: one score for each system, shape (systems,), NaN if there is none; None where the means of segments
            count.
        documents: systems x documents, where they are scored by themselves; else the mean of the rated segments counts.
    """

    segments: FloatMatrix | None
    systems: FloatVector | None = None
    documents: FloatMatrix | None = None


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """Scores of one language pair over the same translations; the systems have the same order in all of them.

    `documents` are those of each segment, `notes` what readers of a table should know.
    """

    lp: str
    documents: tuple[str, ...]
    gold: Scores
    metrics: Mapping[Key, Scores]
    notes: tuple[str, ...] = ()

    @property
    def constant(self) -> list[str]:
        """The names of `spa.constant_metrics`."""
        scores = [(name, one.segments) for (name, _), one in self.metrics.items() if one.segments is not None]
        return [] if self.gold.segments is None else constant_metrics(self.gold.segments, scores)
