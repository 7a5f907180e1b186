"""The decision for a segment whose sentences were decided one by one.

Its annotation has the spans of all, at their places in the segment. Its score is the mean of the sentences' scores: it
stays in [0, 1] however long the text is, and agrees with people as well as any other
(docs/evidence/long-texts.md compares four).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, SpanKey
from mbr_esd_metric.core.decision import Decision, ScoredPart
from mbr_esd_metric.elicit.sentences import Part


def join_parts(decisions: Sequence[Decision], parts: Sequence[Part]) -> Decision:
    """The decision for a segment, of those for its parts.

    No candidate is the answer, so it has no index and no list of utilities; its expected utility is the parts' mean,
    and counts are sums. The standard deviation of its score is that of a mean of independent scores.

    Args:
        decisions: one a part, with offsets into its texts.
        parts: their places in the segment; one whose decision stands for the whole is returned as it is.
    """
    if len(parts) == 1:
        return decisions[0]
    k = len(parts)
    annotation, models = _moved(decisions, parts)
    deviations = [one.mqm_sd for one in decisions if one.mqm_sd is not None]
    reasons: Counter[str] = Counter()
    for one in decisions:
        reasons.update(one.reasons)
    return Decision(
        index=None,
        annotation=annotation,
        score=sum(one.score for one in decisions) / k,
        mqm=sum(one.mqm for one in decisions) / k,
        expected_utilities=(),
        expected_utility=sum(one.expected_utility for one in decisions) / k,
        valid=sum(one.valid for one in decisions),
        distinct=sum(one.distinct for one in decisions),
        invalid=sum(one.invalid for one in decisions),
        dropped=sum(one.dropped for one in decisions),
        reasons=dict(reasons),
        mqm_sd=math.sqrt(sum(sd * sd for sd in deviations)) / k if len(deviations) == k else None,
        unplaced=sum(one.unplaced for one in decisions),
        located=sum(one.located for one in decisions),
        unmarked=sum(one.unmarked for one in decisions),
        parts=tuple(ScoredPart(part.start, part.end, one.score) for one, part in zip(decisions, parts, strict=True)),
        models=models,
    )


def _moved(decisions: Sequence[Decision], parts: Sequence[Part]) -> tuple[Annotation, tuple[tuple[str, ...], ...]]:
    """All spans at their places in the segment, and the models of each."""
    spans: list[ErrorSpan] = []
    models: dict[SpanKey, tuple[str, ...]] = {}
    for decision, part in zip(decisions, parts, strict=True):
        for number, span in enumerate(decision.annotation):
            shift = part.start if span.side == "translation" else part.source_start
            spans.append(replace(span, start=span.start + shift, end=span.end + shift))
            if decision.models:
                models[spans[-1].key] = decision.models[number]
    annotation = Annotation(spans).missing(severity for one in decisions for severity in one.annotation.unplaced)
    return annotation, tuple(models[span.key] for span in annotation) if models else ()
