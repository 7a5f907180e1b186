"""The MQM score of an annotation (paper, Section 2): weighted span counts with a floor.

    Score(E) = max(w_maj * N_maj + w_min * N_min, alpha)

Counts are spans of both sides, not characters. 0 is best, alpha (-25) is worst: higher is better.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from mbr_esd_metric.core.annotation import AnnotationLike, ErrorSpan, as_annotation
from mbr_esd_metric.errors import unknown


@dataclass(frozen=True, slots=True)
class MqmWeights:
    """Penalties per span; all are <= 0.

    Attributes:
        name: in options and signatures.
        major, minor: w_maj and w_min.
        floor: alpha, the worst score.
        minor_punctuation: for a minor span whose category names punctuation.
        non_translation: for a major span whose category is non-translation.
    """

    name: str
    major: float
    minor: float
    floor: float
    minor_punctuation: float
    non_translation: float

    def of(self, span: ErrorSpan) -> float:
        """The penalty of one span."""
        category = (span.category or "").lower()
        if span.severity == "major":
            return self.non_translation if category.startswith("non-translation") else self.major
        return self.minor_punctuation if "punctuation" in category else self.minor

    def total(self, spans: Iterable[ErrorSpan]) -> float:
        """The sum of the penalties, without the floor.

        They are added one after the other, as WMT's gold scores were. From Python 3.12 on `sum` rounds otherwise, and
        ties between scores would depend on the Python.
        """
        return reduce(operator.add, map(self.of, spans), 0.0)


#: `paper`: Section 2 of the paper. `google`: Google's MQM (Freitag et al. 2021), minor punctuation and
#: non-translation apart.
WEIGHTS: Mapping[str, MqmWeights] = {
    "paper": MqmWeights("paper", -5.0, -1.0, -25.0, -1.0, -5.0),
    "google": MqmWeights("google", -5.0, -1.0, -25.0, -0.1, -25.0),
}


def weights_of(weights: str | MqmWeights) -> MqmWeights:
    """The weight set of that name, or the one given. Raises `OptionError` with the valid names."""
    if isinstance(weights, MqmWeights):
        return weights
    if weights not in WEIGHTS:
        raise unknown("MQM weights", weights, WEIGHTS)
    return WEIGHTS[weights]


def mqm_score(annotation: AnnotationLike, weights: str | MqmWeights = "paper") -> float:
    """Score(E) in [-25, 0] of an annotation, or an iterable of spans, by the weights "paper", "google" or others.

    Higher is better. Omissions without a place (`Annotation.unplaced`) count as well.
    """
    table = weights_of(weights)
    annotation = as_annotation(annotation)
    placed = table.total(annotation)
    without = sum(table.major if severity == "major" else table.minor for severity in annotation.unplaced)
    return max(placed + without, table.floor)


def unit_score(score: float, weights: str | MqmWeights = "paper") -> float:
    """An MQM score on xCOMET's scale, ``(25 + Score(E)) / 25`` in [0, 1]."""
    floor = weights_of(weights).floor
    return (score - floor) / -floor
