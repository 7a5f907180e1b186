"""The numbers behind the plots."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.errors import InputError, NoValidCandidateError
from mbr_esd_metric.report.distribution import finite, fold


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot. A `guide` is no data but what data are compared with."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    guide: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """One distinct annotation among a segment's candidates.

    Attributes:
        annotation: its spans.
        count: how many candidates say it.
        logprob: of the likeliest candidate that says it; None if unknown.
        utility: expected utility, the mean similarity to all candidates.
        human: mean similarity to the human annotations; None without any.
        chosen: rules that choose it.
    """

    annotation: Annotation
    count: int
    logprob: float | None
    utility: float
    human: float | None
    chosen: tuple[str, ...]


def likelihood_points(
    translation: str,
    candidates: Sequence[Candidate],
    humans: Sequence[Annotation] = (),
    options: DecisionOptions = DecisionOptions(),
) -> list[Point]:
    """Log-probability and expected utility, most probable annotation first (paper, Table 1: why MAP fails).

    Args:
        translation, candidates, options: as for `decide_segment`.
        humans: annotations, one for each rater.

    Raises:
        NoValidCandidateError: none of the candidates is valid.
    """
    hypotheses = fold(translation, candidates, options)
    if hypotheses is None:
        raise NoValidCandidateError(f"none of the {len(candidates)} candidates is valid")
    similarity = options.similarity
    decision = decide_segment(candidates, translation, options)
    choices: dict[int, list[str]] = {}
    if decision.index is not None:
        choices[hypotheses.of[decision.index]] = ["MBR"]
    choices.setdefault(hypotheses.best(hypotheses.counts.astype(float)), []).append("majority")
    if finite(float(hypotheses.logprobs.max())) is not None:
        choices.setdefault(hypotheses.best(hypotheses.logprobs), []).append("MAP")
    points = [
        Point(
            annotation,
            int(hypotheses.counts[at]),
            finite(float(hypotheses.logprobs[at])),
            decision.expected_utilities[hypotheses.index[at]],
            _mean([similarity.scalar(annotation, human, len(translation)) for human in humans]) if humans else None,
            tuple(choices.get(at, ())),
        )
        for at, annotation in enumerate(hypotheses.annotations)
    ]
    return sorted(points, key=lambda point: -math.inf if point.logprob is None else point.logprob, reverse=True)


#: What a plot calls a quantity -> its key in the trainer's log.
_LOGGED = {"loss": "loss", "reward accuracy": "rewards/accuracies", "reward margin": "rewards/margins"}


def human_points(
    translation: str,
    candidates: Sequence[Candidate],
    humans: Sequence[Annotation],
    logprobs: Sequence[float | None],
    options: DecisionOptions = DecisionOptions(),
) -> list[Point]:
    """The human annotations as points: their expected utility, and the log-probability that the model gives them.

    Args:
        translation, candidates, humans, options: as for `likelihood_points`.
        logprobs: of each; None if it is not known.
    """
    similarity = options.similarity
    hypotheses = fold(translation, candidates, options)
    if hypotheses is None:
        raise NoValidCandidateError(f"none of the {len(candidates)} candidates is valid")
    counted = list(zip(hypotheses.annotations, hypotheses.counts.tolist(), strict=True))
    total = sum(count for _, count in counted)
    return [
        Point(
            human,
            next((count for annotation, count in counted if annotation == human), 0),
            logprob,
            sum(count * similarity.scalar(human, a, len(translation)) for a, count in counted) / total,
            _mean([similarity.scalar(human, other, len(translation)) for other in humans]),
            (f"human {number}" if len(humans) > 1 else "human",),
        )
        for number, (human, logprob) in enumerate(zip(humans, logprobs, strict=True), 1)
    ]


def loss_curves(path: Path) -> dict[str, list[Curve]]:
    """Quantity -> training and validation curve over the steps, from the trainer's ``trainer_state.json``.

    Raises:
        InputError: no such file, or no list of logged steps in it.
    """
    state = path / "trainer_state.json" if path.is_dir() else path
    try:
        history: Any = json.loads(state.read_text(encoding="utf-8"))["log_history"]
        logged = [(float(entry["step"]), entry) for entry in history]
    except OSError as error:
        raise InputError(f"{state}: {(error.strerror or 'cannot be read').lower()}") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{state}: no log of a training run; give its folder, or its trainer_state.json") from None
    curves: dict[str, list[Curve]] = {}
    for name, key in _LOGGED.items():
        for label, prefix in (("training", ""), ("validation", "eval_")):
            points = [(step, float(entry[prefix + key])) for step, entry in logged if prefix + key in entry]
            if points:
                x, y = zip(*points, strict=True)
                curves.setdefault(name, []).append(Curve(label, x, y))
    if not curves:
        raise InputError(f"{state}: the log has no losses")
    return curves


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
