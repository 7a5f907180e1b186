"""Score matrices, the input of all statistics, and their validation.

A score matrix is systems x segments. NaN (or None) in the gold matrix marks an unrated translation; metrics have a
finite score for every rated translation. Higher is better in both; gold MQM is stored as 0 (best) or negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, unknown

BoolMatrix = npt.NDArray[np.bool_]

#: The treatment of systems that are rated on different segments in SPA; see `pack_rated`.
Missing = Literal["toolkit", "pairs"]


@dataclass(frozen=True, slots=True)
class ScoreMatrices:
    """Gold and metric scores of the same translations. Gold is NaN if unrated; elsewhere, metrics are finite."""

    gold: Floats
    metrics: Mapping[str, Floats]
    rated: BoolMatrix


def cell_name(system: int, segment: int) -> str:
    """The name of a matrix cell in messages, with numbers from 1."""
    return f"system {system + 1}, segment {segment + 1}"


def percentile_interval(values: Floats | Sequence[float]) -> tuple[float, float]:
    """The middle 95% of resampled values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def rater_counts(human: Sequence[Sequence[Sequence[object]]]) -> npt.NDArray[np.intp]:
    """The number of raters of each translation, shape (systems, segments), from the spans of each rater."""
    rated = np.array([[[cell is not None for cell in row] for row in matrix] for matrix in human])
    counts: npt.NDArray[np.intp] = np.count_nonzero(rated, axis=0)
    return counts


def check_matrices(gold: npt.ArrayLike, metrics: Mapping[str, npt.ArrayLike], systems: int = 2) -> ScoreMatrices:
    """Gold and metrics as validated float64 matrices; `systems` is the minimum number of systems.

    Raises `InputError` for different shapes, too few systems, no ratings, or a metric without a finite score for a
    rated translation. The message has the metric, the system and the segment (both from 1).
    """
    scores = _matrix("gold", gold)
    if scores.shape[0] < systems:
        raise InputError(
            f"only {scores.shape[0]} system has gold scores; ranking needs at least two. For a single system, "
            "`mbr-esd leaderboard --view spans` compares error spans, and --statistics seg-spearman-none scores"
        )
    if np.isinf(scores).any():
        place = cell_name(*np.argwhere(np.isinf(scores))[0])
        raise InputError(f"gold is infinite at {place}; use NaN for unrated translations")
    rated = ~np.isnan(scores)
    if not rated.any():
        raise InputError("gold contains no ratings: every score is NaN")
    checked: dict[str, Floats] = {}
    for name, metric in metrics.items():
        values = _matrix(name, metric)
        if values.shape != scores.shape:
            shapes = "{} is {} x {} and gold is {} x {}".format(name, *values.shape, *scores.shape)
            raise InputError(f"{shapes}; both are systems x segments in the same order")
        missing = rated & ~np.isfinite(values)
        if missing.any():
            raise InputError(
                f"{name} has no finite score for {cell_name(*np.argwhere(missing)[0])}; "
                f"a metric needs a score for every rated translation ({missing.sum()} missing)"
            )
        checked[name] = values
    return ScoreMatrices(scores, checked, rated)


def pack_rated(data: ScoreMatrices, missing: Missing = "toolkit") -> ScoreMatrices:
    """The rated scores for SPA, systems x rated segments.

    If all systems are rated on the same segments, as in every MQM set of WMT so far, these are the rated columns.
    Otherwise, "pairs" keeps NaN for unrated translations, so that each pair of systems is compared on its common
    segments; "toolkit" packs the rated scores of each system, as mt-metrics-eval does, so that a column may mix
    segments.

    Raises:
        InputError: with "toolkit", different numbers of ratings per system; with "pairs", no segment that is rated for
            two systems; scores whose sums overflow 32-bit floats.
        OptionError: another value of `missing`.
    """
    if missing not in ("toolkit", "pairs"):
        raise unknown("treatment of missing ratings", missing, ("toolkit", "pairs"))
    rated = data.rated
    for name, values in (("gold", data.gold), *data.metrics.items()):
        with np.errstate(over="ignore"):
            largest = np.abs(np.where(rated, values, 0.0)).sum(axis=1).max()
        if largest > np.finfo(np.float32).max:
            raise InputError(
                f"{name} has scores that add up to {largest:.3g}, but SPA is computed in 32-bit floats (at most "
                "3.4e38); scale the scores"
            )
    counts = rated.sum(axis=1)
    if missing == "pairs" or bool((rated == rated[0]).all()):
        if not (rated.sum(axis=0) > 1).any():
            raise InputError("no segment is rated for two systems, so systems cannot be compared pair by pair")
        columns = rated.any(axis=0)
        return _select(data, lambda values: np.where(rated, values, np.nan)[:, columns])
    if (counts != counts[0]).any():
        system = int(np.flatnonzero(counts != counts[0])[0])
        raise InputError(
            f"system 1 has {counts[0]} rated segments and system {system + 1} has {counts[system]}; mt-metrics-eval's "
            "SPA needs equal numbers; compare each pair of systems on its common segments (missing='pairs'), "
            "or remove such systems"
        )
    return _select(data, lambda values: values[rated].reshape(len(values), -1))


def _select(data: ScoreMatrices, pick: Callable[[Floats], Floats]) -> ScoreMatrices:
    gold = np.ascontiguousarray(pick(data.gold))
    metrics = {name: np.ascontiguousarray(pick(values)) for name, values in data.metrics.items()}
    return ScoreMatrices(gold, metrics, ~np.isnan(gold))


def _matrix(name: str, values: npt.ArrayLike) -> Floats:
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a matrix of numbers: {error}") from None
    if matrix.ndim != 2:
        raise InputError(f"{name} has {matrix.ndim} dimension(s), not two (systems x segments)")
    return matrix
