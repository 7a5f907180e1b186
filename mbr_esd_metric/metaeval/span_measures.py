"""Measures of predicted error spans against gold ones. Each is a function of sums of statistics over translations.

* The name of a similarity, or of a mean of several ("softf1", "f1", "softdice", "softf1+scoresim"): its mean over
  translations.
* A name that ends in "-corpus": computed once, from sums over the corpus. A translation with many errors then weighs
  more than one with few, and a clean translation counts only if somebody marked something in it.

      mpp-corpus       MPP, micro-averaged (Perrella et al. 2026)
      softdice-corpus  sum 2 |min(vc, vs)|_1 / sum (|vc|_1 + |vs|_1)
      f1-corpus        2 sum C / sum (S(Ec) + S(Es)): the character F1 of the WMT quality estimation tasks
      f1-wmt25-corpus  the same as the WMT25 task counts it, where a character counts for each span over it

* Any of these followed by "-precision" or "-recall" ("f1-corpus-precision"): how much of the prediction is right, and
  how much of the gold spans is found. Means of several similarities and scoresim have no such parts.

      f1, f1-corpus      P = C / S(Ec)                         R = C / S(Es)
      mpp, mpp-corpus    P = credits / spans predicted         R = credits / gold spans
      softdice           P = (2 M + eps) / (2 |vc|_1 + eps)    R = (2 M + eps) / (2 |vs|_1 + eps),  M = |min(vc, vs)|_1
      softdice-corpus    P = sum M / sum |vc|_1                R = sum M / sum |vs|_1
      softf1             P and R of its definition

Only the sums count, so a bootstrap or a selection of segments does not need the annotations again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.kernels import severity_vector
from mbr_esd_metric.core.similarities import Similarity, get_similarity, similarity_names
from mbr_esd_metric.core.similarities.f1 import wmt23_counts, wmt25_counts
from mbr_esd_metric.core.similarities.mpp import Mpp
from mbr_esd_metric.errors import OptionError, unknown
from mbr_esd_metric.metaeval.matrices import FloatMatrix

#: The measures that tables show by default, in this order.
DEFAULT_MEASURES = ("softf1", "f1", "softdice", "mpp-corpus", "softdice-corpus", "f1-corpus")


#: Suffixes of the parts of a measure.
PARTS = ("precision", "recall")


class SpanMeasure(ABC):
    """One measure, in [0, 1], higher is better.

    Attributes:
        name: as `span_measure` takes it.
        width: the number of statistics of a translation.
    """

    name: str
    width: int

    @abstractmethod
    def statistics(self, predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        """The statistics of one translation of `length` characters."""

    @abstractmethod
    def value(self, sums: FloatMatrix) -> FloatMatrix:
        """The measure, shape (...), of sums of statistics, shape (..., width)."""


class SegmentMean(SpanMeasure):
    """The mean of a similarity over translations."""

    width = 2

    def __init__(self, similarity: Similarity) -> None:
        self.name = str(similarity)
        self._similarity = similarity

    def statistics(self, predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        return (self._similarity.scalar(predicted, gold, length), 1.0)

    def value(self, sums: FloatMatrix) -> FloatMatrix:
        return _ratio(sums[..., 0], sums[..., 1])


class SegmentPart(SegmentMean):
    """The mean of a similarity's precision or recall over translations."""

    def __init__(self, similarity: Similarity, part: str) -> None:
        super().__init__(similarity)
        self.name = f"{similarity}-{part}"
        self._index = PARTS.index(part)

    def statistics(self, predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        parts = self._similarity.precision_recall(predicted, gold, length)
        assert parts is not None, self.name
        return (parts[self._index], 1.0)


class CorpusMeasure(SpanMeasure):
    """A measure that is made of the precision and the recall of a corpus.

    A translation has four statistics: the credit of the prediction, the most that it could be, and the same for gold.
    """

    width = 4

    def precision(self, sums: FloatMatrix) -> FloatMatrix:
        """The share of the prediction that is right; 1 if nothing is predicted."""
        return _ratio(sums[..., 0], sums[..., 1])

    def recall(self, sums: FloatMatrix) -> FloatMatrix:
        """The share of the gold spans that is found; 1 if there are none."""
        return _ratio(sums[..., 2], sums[..., 3])


class CorpusMpp(CorpusMeasure):
    """MPP of a corpus: credits and numbers of spans are added up for each of the two sides."""

    name = "mpp-corpus"

    def __init__(self) -> None:
        self._mpp = Mpp()

    def statistics(self, predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        counts = self._mpp.counts(predicted, gold)
        return (counts.precision_credit, counts.candidate_mass, counts.recall_credit, counts.support_mass)

    def value(self, sums: FloatMatrix) -> FloatMatrix:
        precision, recall = self.precision(sums), self.recall(sums)
        total = precision + recall
        return np.asarray(2 * precision * recall / np.where(total > 0, total, 1.0))


class CorpusOverlap(CorpusMeasure):
    """A measure where both sides earn the same: twice the credit over what both could earn.

    Args:
        name: of the measure.
        counts: of a prediction, a gold annotation and the length: credit, and what each side could earn.
    """

    def __init__(self, name: str, counts: Callable[[Annotation, Annotation, int], tuple[float, float, float]]) -> None:
        self.name = name
        self._counts = counts

    def statistics(self, predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        credit, most_c, most_s = self._counts(predicted, gold, length)
        return (credit, most_c, credit, most_s)

    def value(self, sums: FloatMatrix) -> FloatMatrix:
        return _ratio(sums[..., 0] + sums[..., 2], sums[..., 1] + sums[..., 3])


def _soft_dice_counts(predicted: Annotation, gold: Annotation, length: int) -> tuple[float, float, float]:
    """SoftDice without the eps of the single translation."""
    v_c, v_s = severity_vector(predicted, length), severity_vector(gold, length)
    return float(np.minimum(v_c, v_s).sum()), float(v_c.sum()), float(v_s.sum())


class CorpusPart(SpanMeasure):
    """The precision or the recall of a corpus measure."""

    def __init__(self, whole: CorpusMeasure, part: str) -> None:
        self.name = f"{whole.name}-{part}"
        self.width = whole.width
        self._whole = whole
        self._part = whole.precision if part == "precision" else whole.recall

    def statistics(self, predicted: Annotation, gold: Annotation, length: int) -> tuple[float, ...]:
        return self._whole.statistics(predicted, gold, length)

    def value(self, sums: FloatMatrix) -> FloatMatrix:
        return self._part(sums)


_CORPUS: Mapping[str, CorpusMeasure] = {
    measure.name: measure
    for measure in (
        CorpusMpp(),
        CorpusOverlap("softdice-corpus", _soft_dice_counts),
        CorpusOverlap("f1-corpus", wmt23_counts),
        CorpusOverlap("f1-wmt25-corpus", wmt25_counts),
    )
}


def span_measure(name: str) -> SpanMeasure:
    """The measure of that name.

    Raises:
        OptionError: an unknown name, with the nearest ones; a part of a measure that has none.
    """
    whole, part = split_part(name)
    if whole in _CORPUS:
        return CorpusPart(_CORPUS[whole], part) if part else _CORPUS[whole]
    if not ({"+", "*"} & set(whole) or whole in similarity_names()):
        raise unknown("span measure", name, [*_CORPUS, *similarity_names()])
    similarity = get_similarity(whole)
    if not part:
        return SegmentMean(similarity)
    if similarity.precision_recall(EMPTY, EMPTY, 1) is None:
        raise OptionError(f"{name}: {whole} is not made of precision and recall")
    return SegmentPart(similarity, part)


def split_part(name: str) -> tuple[str, str]:
    """A measure's name without its part, and the part: "precision", "recall" or ""."""
    whole, _, part = name.rpartition("-")
    return (whole, part) if part in PARTS and whole else (name, "")


def expanded(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with "NAME-parts" replaced by the measure, its precision and its recall; they are not checked."""
    found: list[str] = []
    for name in names:
        whole = name.removesuffix("-parts")
        found += [name] if whole == name else [whole, *(f"{whole}-{part}" for part in PARTS)]
    return tuple(dict.fromkeys(found))


def _ratio(numerator: FloatMatrix, denominator: FloatMatrix) -> FloatMatrix:
    """Numerator / denominator; 1 if both are 0."""
    return np.asarray(np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), 1.0))
