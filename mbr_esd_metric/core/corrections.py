"""Corrections of error spans: selection among the candidates' corrections, and the corrected translation.

Of the corrections of the same characters, with their candidates' weights w, the one of highest expected utility wins:

    U(c) = sum_d w(d) u(c, d) / sum_d w(d)

u is 1 for equal texts; 0 between a deletion ("") and any other text; otherwise the mean of sacreBLEU's sentence chrF,
in [0, 1], of c against d and of d against c.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Side
from mbr_esd_metric.core.decision_problem import TIE

#: Characters of a text that a correction replaces.
Place = tuple[Side, int, int]

#: Text after the number of corrections that `corrected` skips.
NOT_APPLIED = "not applied, because the text occurs several times or inside a word"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate's correction of some characters, with the candidate's weight, log-probability and index, and whether
    its position is ambiguous."""

    correction: str
    reason: str | None
    weight: float
    logprob: float
    index: int
    ambiguous: bool = False


def proposals(
    annotations: Iterable[Annotation | None], weights: Sequence[float], logprobs: Sequence[float | None]
) -> dict[Place, list[Proposal]]:
    """The corrections for each position, regardless of severity. The arguments have one value per candidate; the
    annotation of an invalid one is None."""
    found: dict[Place, list[Proposal]] = {}
    for index, (annotation, weight, logprob) in enumerate(zip(annotations, weights, logprobs, strict=True)):
        for span in annotation or ():
            if span.correction is not None:
                logprob = -math.inf if logprob is None else logprob
                one = Proposal(span.correction, span.reason, float(weight), logprob, index, span.ambiguous)
                found.setdefault((span.side, span.start, span.end), []).append(one)
    return found


def with_corrections(annotation: Annotation, proposed: Mapping[Place, Sequence[Proposal]]) -> Annotation:
    """The annotation, where each span has the correction with the highest expected utility, the reason given by the
    most probable candidate with it, and its share of the weights as `agreement`. In a tie, the more probable one wins,
    then the lower index.
    """
    spans = []
    for span in annotation:
        some = proposed.get((span.side, span.start, span.end))
        spans.append(span if some is None else replace(span, **_chosen(some)))
    return annotation.with_spans(spans)


def _chosen(some: Sequence[Proposal]) -> dict[str, Any]:
    likeliest: dict[str, Proposal] = {}
    weights: dict[str, float] = {}
    for one in sorted(some, key=lambda one: (-one.logprob, one.index)):
        likeliest.setdefault(one.correction, one)
        weights[one.correction] = weights.get(one.correction, 0.0) + one.weight
    total = sum(weights.values()) or 1.0
    values = [sum(w / total * _utility(*sorted((text, other))) for other, w in weights.items()) for text in weights]
    best = max(values)
    # `likeliest` is in tie-breaking order, so the first one wins.
    one = next(one for one, value in zip(likeliest.values(), values, strict=True) if value >= best - TIE)
    agreement = weights[one.correction] / total
    return {"correction": one.correction, "reason": one.reason, "agreement": agreement, "ambiguous": one.ambiguous}


@lru_cache(maxsize=1 << 16)
def _utility(one: str, other: str) -> float:
    if one == other or not one or not other:
        return float(one == other)
    from sacrebleu import sentence_chrf

    return float(sentence_chrf(one, [other]).score + sentence_chrf(other, [one]).score) / 200


def not_applied(annotation: Annotation) -> int:
    """The number of corrections that `corrected` skips because their position is ambiguous."""
    return sum(span.correction is not None and span.ambiguous for span in annotation)


def corrected(translation: str, annotation: Annotation) -> str:
    """The corrected translation. Of overlapping spans, the more severe is corrected, then the longer, then the first
    one. Spans without a correction, or with an ambiguous position, are unchanged."""
    taken: list[tuple[ErrorSpan, str]] = []
    for span in sorted(annotation.on("translation"), key=lambda one: (one.severity != "major", one.start - one.end)):
        free = all(span.end <= other.start or other.end <= span.start for other, _ in taken)
        if span.correction is not None and free and not span.ambiguous:
            taken.append((span, span.correction))
    for span, text in sorted(taken, key=lambda one: -one[0].start):
        translation = translation[: span.start] + text + translation[span.end :]
    return translation
