"""The candidates of a segment in summary: how many mark each character, and the most frequent annotations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.core.decision_problem import Hypotheses
from mbr_esd_metric.core.kernels import AnnotationTable
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import read_annotations
from mbr_esd_metric.elicit.parse import Invalid
from mbr_esd_metric.errors import NoValidCandidateError
from mbr_esd_metric.report.rating_table import AnnotationCount, Distribution, Text


def distribution(
    text: Text, candidates: Sequence[Candidate], options: DecisionOptions = DecisionOptions(), most: int = 8
) -> Distribution:
    """Count the candidates of one segment; invalid ones are counted but not used.

    The `most` most frequent annotations are kept, the most frequent first; ties in order of appearance.
    """
    length = len(text.translation)
    try:
        read = read_annotations(candidates, text.translation, options, text.source)
        annotations = [None if isinstance(annotation, Invalid) else annotation for annotation in read]
        hypotheses = Hypotheses(annotations, [candidate.logprob for candidate in candidates])
    except NoValidCandidateError:
        return Distribution(text, 0, 0, len(candidates), [(length, 0, 0)] if length else [], [])
    order = sorted(range(len(hypotheses)), key=lambda h: -hypotheses.counts[h])[:most]
    # An infinite log-probability is unknown.
    logprobs = [one if math.isfinite(one) else None for one in hypotheses.logprobs.tolist()]
    most_frequent = [AnnotationCount(hypotheses.annotations[h], int(hypotheses.counts[h]), logprobs[h]) for h in order]
    valid = int(hypotheses.counts.sum())
    return Distribution(text, valid, len(hypotheses), len(candidates) - valid, runs(hypotheses, length), most_frequent)


def runs(hypotheses: Hypotheses, length: int) -> list[tuple[int, int, int]]:
    """(width, candidates that mark these characters, candidates that mark them as major), over all L characters of the
    translation."""
    table = AnnotationTable([annotation.on("translation") for annotation in hypotheses.annotations], length)
    counts = hypotheses.counts.astype(np.float64)
    # No candidate marks anything before the first bound or after the last.
    marked, major = ([0, *map(round, (counts @ rows).tolist()), 0] for rows in (table.marked, table.major))
    widths = np.diff([0, *table.bounds.tolist(), length]).tolist()
    pieces = [piece for piece in zip(widths, marked, major, strict=False) if piece[0]]
    return [(sum(width for width, *_ in same), *key) for key, same in groupby(pieces, itemgetter(1, 2))]
