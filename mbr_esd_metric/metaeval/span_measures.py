"""Measures of predicted error spans against gold ones. Each is a function of sums of statistics over translations.

* The name of a similarity, or of a mean of several ("softf1", "f1", "softdice", "softf1+scoresim"): its mean over
  translations.
* A name that ends in "-corpus": computed once, from sums over the corpus. A translation with many errors then weighs
  more than one with few, and a clean translation counts only if somebody marked something in it.

      mpp-corpus       MPP, micro-averaged (Perrella et al. 2026)
      softdice-corpus  sum 2 |min(vc, vs)|_1 / sum (|vc|_1 + |vs|_1)
      f1-corpus        2 sum C / sum (S(Ec) + S(Es)): the character F1 of the WMT quality estimation tasks
      f1-wmt25-corpus  the same as the WMT25 task counts it, where a character counts for each span over it

* Any of these followed by "-precision" or "-recall": how much of the prediction is right, and how much of the gold
  spans is found. Means of several similarities and scoresim have no such parts.

      f1, f1-corpus      P = C / S(Ec)                         R = C / S(Es)
      mpp, mpp-corpus    P = credits / spans predicted         R = credits / gold spans
      softdice           P = (2 M + eps) / (2 |vc|_1 + eps)    R = (2 M + eps) / (2 |vs|_1 + eps),  M = |min(vc, vs)|_1
      softdice-corpus    P = sum M / sum |vc|_1                R = sum M / sum |vs|_1
      softf1             P and R of its definition

Only the sums count, so a bootstrap or a selection of segments does not need the annotations again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.kernels import severity_vector
from mbr_esd_metric.core.similarities import SIMILARITIES, get_similarity
from mbr_esd_metric.core.similarities.f1 import wmt23_counts, wmt25_counts
from mbr_esd_metric.core.similarities.mpp import Mpp, share
from mbr_esd_metric.errors import OptionError, unknown
from mbr_esd_metric.metaeval.matrices import FloatMatrix

#: The measures that tables show by default.
DEFAULT_MEASURES = ("softf1", "f1", "softdice", "mpp-corpus", "softdice-corpus", "f1-corpus")

#: Suffixes of the parts of a measure.
PARTS = ("precision", "recall")


@dataclass(frozen=True, slots=True)
class SpanMeasure:
    """One measure, in [0, 1], higher is better.

    Attributes:
        statistics: of a prediction, a gold annotation and the length of the translation. For a mean over translations,
            the value and 1; for a measure of the corpus, the credit of the prediction, the most that it could be, and
            the same for gold.
        value: the measure, shape (...), of sums of statistics, shape (..., their number).
    """

    name: str
    statistics: Callable[[Annotation, Annotation, int], tuple[float, ...]]
    value: Callable[[FloatMatrix], FloatMatrix]


def corpus_precision(sums: FloatMatrix) -> FloatMatrix:
    """The share of the prediction that is right, of the sums of a corpus measure; 1 if nothing is predicted."""
    return share(sums[..., 0], sums[..., 1])


def corpus_recall(sums: FloatMatrix) -> FloatMatrix:
    """The share of the gold spans that is found, of the sums of a corpus measure; 1 if there are none."""
    return share(sums[..., 2], sums[..., 3])


def _harmonic_mean(sums: FloatMatrix) -> FloatMatrix:
    precision, recall = corpus_precision(sums), corpus_recall(sums)
    total = precision + recall
    return np.asarray(2 * precision * recall / np.where(total > 0, total, 1.0))


_MPP = Mpp()


def _overlap(name: str, counts: Callable[[Annotation, Annotation, int], tuple[float, float, float]]) -> SpanMeasure:
    """Twice the credit over what both sides could earn, where both earn the same; `counts` gives these three."""

    def statistics(predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        credit, most_c, most_s = counts(predicted, gold, length)
        return (credit, most_c, credit, most_s)

    return SpanMeasure(name, statistics, lambda sums: share(sums[..., 0] + sums[..., 2], sums[..., 1] + sums[..., 3]))


def _soft_dice_counts(predicted: Annotation, gold: Annotation, length: int) -> tuple[float, float, float]:
    """SoftDice without the eps of the single translation."""
    v_c, v_s = severity_vector(predicted, length), severity_vector(gold, length)
    return float(np.minimum(v_c, v_s).sum()), float(v_c.sum()), float(v_s.sum())


#: The measures of a corpus, each made of its precision and its recall.
CORPUS_MEASURES: Mapping[str, SpanMeasure] = {
    measure.name: measure
    for measure in (
        SpanMeasure("mpp-corpus", lambda predicted, gold, length: _MPP.counts(predicted, gold), _harmonic_mean),
        _overlap("softdice-corpus", _soft_dice_counts),
        _overlap("f1-corpus", wmt23_counts),
        _overlap("f1-wmt25-corpus", wmt25_counts),
    )
}


def span_measure(name: str) -> SpanMeasure:
    """The measure of that name. Raises `OptionError`: an unknown name, or a part of a measure that has none."""
    whole, _, part = name.rpartition("-")
    if part not in PARTS or not whole:
        whole, part = name, ""
    if whole in CORPUS_MEASURES:
        measure = CORPUS_MEASURES[whole]
        value = {"": measure.value, "precision": corpus_precision, "recall": corpus_recall}[part]
        return replace(measure, name=name, value=value)
    if not ({"+", "*"} & set(whole) or whole in SIMILARITIES.names()):
        raise unknown("span measure", name, [*CORPUS_MEASURES, *SIMILARITIES.names()])
    similarity = get_similarity(whole)
    if part and similarity.precision_recall(EMPTY, EMPTY, 1) is None:
        raise OptionError(f"{name}: {whole} is not made of precision and recall")

    def statistics(predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        if not part:
            return (similarity.scalar(predicted, gold, length), 1.0)
        parts = similarity.precision_recall(predicted, gold, length)
        assert parts is not None
        return (parts[PARTS.index(part)], 1.0)

    full = f"{similarity}-{part}" if part else str(similarity)
    return SpanMeasure(full, statistics, lambda sums: share(sums[..., 0], sums[..., 1]))


def expand_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with "NAME-parts" replaced by the measure, its precision and its recall; they are not checked."""
    measures: list[str] = []
    for name in names:
        whole = name.removesuffix("-parts")
        measures += [name] if whole == name else [whole, *(f"{whole}-{part}" for part in PARTS)]
    return tuple(dict.fromkeys(measures))
