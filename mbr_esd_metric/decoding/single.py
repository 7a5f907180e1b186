"""Confidences of a single answer, such as a distilled model's: there are no other samples for it to agree with.

The confidence of a span s that an answer y says is the probability with which the model wrote what says s,

    confidence(s) = exp( sum_{i in T(s)} log M(y_i | y_1 ... y_{i-1}, x) )

T(s) the tokens that spell a character of it: that there is an error (or another one), its words with their end, and
its severity; in `format=marked` the marks of its words. log M is at temperature 1 over the tokens that the grammar
admits, so that what the grammar forces costs nothing. The category is left out: it is not part of what a span is.
It is a probability of these very words given what stands before them, and so lower than the share of samples that would
mark the same characters; `mbr-esd calibrate` learns how often it is confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from mbr_esd_metric.core.annotation import Annotation, SpanKey
from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.elicit.formats import AnswerParser


def span_probabilities(candidates: CandidateColumns, parser: AnswerParser) -> dict[SpanKey, float]:
    """The confidence of each span of the only candidate; empty if there are several, or its tokens are unknown."""
    if candidates.token_logprobs is None or len(candidates) != 1 or (text := candidates.texts[0]) is None:
        return {}
    found: dict[SpanKey, float] = {}
    for key, ranges in parser.said(text).items():
        in_bytes = [(_bytes(text[:start]), _bytes(text[:end])) for start, end in ranges]
        # Rounding may bring a sum above 0.
        found[key] = math.exp(min(candidates.token_logprobs.total(in_bytes), 0.0))
    return found


def with_probabilities(annotation: Annotation, found: Mapping[SpanKey, float]) -> Annotation:
    """The annotation with these confidences; other spans keep theirs."""
    return annotation.with_spans(replace(span, confidence=found.get(span.key, span.confidence)) for span in annotation)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
