"""The annotation priority of segments: which of them people should see, as many as the budget says.

A segment counts with all its systems; its priority is the mean over them of

    errors        -Score(E), the penalties of the predicted error spans
    metrics       the variance of the metrics' scores, each made to mean 0 and variance 1 first
    disagreement  the variance of Score(E) among the candidates that a model sampled
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.report.rating_table import CandidateColumn, RatingColumn, RatingTable

#: How segments can be chosen, with what each needs.
STRATEGIES: Mapping[str, str] = {
    "random": "nothing",
    "errors": "error spans",
    "metrics": "two inputs with scores",
    "disagreement": "a candidates file",
}


def prioritised(
    segments: Sequence[Sequence[int]],
    budget: int,
    by: str,
    sheet: RatingTable,
    annotations: Sequence[Annotation | None],
    seed: int,
) -> list[int]:
    """The numbers of the segments to annotate, in order.

    Args:
        segments: the rows of each in the sheet.
        budget: how many; all if there are not more.
        by: one of `STRATEGIES`.
        sheet: scores and candidates.
        annotations: the error spans of each row.
        seed: of random choice, and among segments of the same priority.

    Raises:
        InputError: the inputs have not what the strategy needs.
    """
    rng = random.Random(seed)
    order = rng.sample(range(len(segments)), len(segments))
    if by != "random":
        rows = {"errors": _errors, "metrics": _metrics, "disagreement": _disagreement}[by](sheet, annotations)
        if np.isnan(rows).all():
            raise InputError(f"--by {by} needs {STRATEGIES[by]}; give more inputs, or --by random")
        known = [np.mean([0.0 if np.isnan(rows[row]) else rows[row] for row in own]) for own in segments]
        order.sort(key=lambda number: -known[number])
    return sorted(order[:budget])


def _errors(sheet: RatingTable, annotations: Sequence[Annotation | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if one is None else -mqm_score(one) for one in annotations])


def _metrics(sheet: RatingTable, annotations: Sequence[Annotation | None]) -> npt.NDArray[np.float64]:
    scores = [_standard(column) for column in sheet.columns if not column.human]
    scores = [one for one in scores if not np.isnan(one).all()]
    return np.array(scores).var(axis=0) if len(scores) > 1 else np.full(len(sheet.rows), np.nan)


def _standard(column: RatingColumn) -> npt.NDArray[np.float64]:
    own = np.array([np.nan if one is None or one.own is None else one.own for one in column.ratings])
    known = own[~np.isnan(own)]
    if not len(known):
        return own
    mean, deviation = float(known.mean()), float(known.std())
    return (own - mean) / (deviation or 1.0)


def _disagreement(sheet: RatingTable, annotations: Sequence[Annotation | None]) -> npt.NDArray[np.float64]:
    if not sheet.candidates:
        return np.full(len(sheet.rows), np.nan)
    found: npt.NDArray[np.float64] = np.mean([_variances(column) for column in sheet.candidates], axis=0)
    return found


def _variances(column: CandidateColumn) -> npt.NDArray[np.float64]:
    """Of the most frequent annotations, which are what a sheet holds of the candidates."""
    found = []
    for one in column.distributions:
        if one is None or not one.said:
            found.append(np.nan)
            continue
        scores = np.array([mqm_score(said.annotation) for said in one.said])
        counts = np.array([said.count for said in one.said], dtype=float)
        mean = np.average(scores, weights=counts)
        found.append(float(np.average((scores - mean) ** 2, weights=counts)))
    return np.array(found)
