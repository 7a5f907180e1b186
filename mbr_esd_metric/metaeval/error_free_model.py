"""Whether a translation is without error, decided by a small model of what a metric says of it.

The signals of a translation are the metric's score, Score(E) of its spans, their mass (the share of characters in a
span, minor ones counting half), the highest confidence of a span, and the log of the length; without spans, the score
and the length. A logistic regression of them and of the language pair, with a ridge penalty, gives a probability. The
translation is said to be without error where that reaches the threshold: the one with the highest MCC, or the lowest
one with the precision that is asked for.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.files.untrusted import decoded, finite, reading
from mbr_esd_metric.metaeval.error_free import ErrorFree, best_threshold, error_free
from mbr_esd_metric.metaeval.matrices import FloatVector

_WITH_SPANS = ("score", "span score", "span mass", "confidence", "log length")
_WITHOUT = ("score", "log length")
#: Weight of the ridge penalty on standardised signals, and the rounds of Newton's method.
_RIDGE, _ROUNDS = 1.0, 25
#: Parts of a cross-validation, and resamples of its intervals.
_FOLDS, _DRAWS = 5, 1000


@dataclass(frozen=True, slots=True)
class Judged:
    """What a metric says of one translation.

    Attributes:
        score: on any scale, higher is better.
        annotation: its spans; None if the metric has none.
        length: of the translation in characters.
        lp: language pair, "" if unknown.
        document: whose translations belong together in a cross-validation.
    """

    score: float
    annotation: Annotation | None
    length: int
    lp: str = ""
    document: str = ""

    @property
    def signals(self) -> dict[str, float]:
        """Name -> value."""
        signals = {"score": self.score, "log length": math.log1p(self.length)}
        if self.annotation is None:
            return signals
        marked = np.zeros(max(self.length, 1))
        for span in self.annotation.on("translation"):
            part = marked[span.start : span.end]
            np.maximum(part, 1.0 if span.severity == "major" else 0.5, out=part)
        sure = [1.0 if span.confidence is None else span.confidence for span in self.annotation]
        return signals | {
            "span score": mqm_score(self.annotation),
            "span mass": float(marked.mean()),
            "confidence": max(sure, default=0.0),
        }


@dataclass(frozen=True, slots=True)
class ErrorFreeModel:
    """A probability of being without error, and the threshold from which it is said.

    Attributes:
        signals: their names, in order.
        mean, scale: of each signal where it was learnt; signals are standardised.
        weights, bias: of the logistic regression.
        languages: language pair -> what it adds, where there are several; others add nothing.
        threshold: the least probability.
        scores: the lowest and the highest score where it was learnt.
        aim: what the threshold is best for, such as "mcc" or "precision 0.95".
        learnt_on: what it was learnt on.
    """

    signals: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    languages: Mapping[str, float]
    threshold: float
    scores: tuple[float, float]
    aim: str
    learnt_on: str

    @property
    def digest(self) -> str:
        """What signatures name it by."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]

    def probabilities(self, judged: Sequence[Judged]) -> FloatVector:
        """The probability of each translation of being without error.

        Raises:
            InputError: a metric without spans for a model that was learnt with them, or scores on another scale.
        """
        low, high = self.scores
        for one in judged:
            if not low - (high - low) <= one.score <= high + (high - low):
                raise InputError(
                    f"a score of {one.score:g}, and the scores it was learnt on go from {low:g} to {high:g}"
                )
        table = _table(judged, self.signals)
        logits = ((table - self.mean) / self.scale) @ np.array(self.weights) + self.bias
        logits += [self.languages.get(one.lp, 0.0) for one in judged]
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30))))

    def clean(self, judged: Sequence[Judged]) -> npt.NDArray[np.bool_]:
        """Whether each translation is said to be without error; errors as of `probabilities`."""
        return self.probabilities(judged) >= self.threshold

    @classmethod
    def fit(
        cls,
        judged: Sequence[Judged],
        labels: Sequence[bool],
        precision: float | None = None,
        learnt_on: str = "",
        thresholds: FloatVector | None = None,
    ) -> ErrorFreeModel:
        """Learn from translations of which it is known.

        Args:
            judged: what the metric says.
            labels: whether each is without error.
            precision: that the threshold has to reach; without, it has the highest MCC.
            learnt_on: what they are.
            thresholds: probabilities to choose the threshold on; by default those of the model itself.

        Raises:
            InputError: only one kind of translation, or no threshold with that precision.
        """
        gold = np.asarray(labels, dtype=np.float64)
        if len(set(gold.tolist())) < 2:
            kind = "without error" if gold.all() else "with errors"
            raise InputError(f"all {len(gold)} rated translations are {kind}; learning needs both kinds")
        names = _WITH_SPANS if all(one.annotation is not None for one in judged) else _WITHOUT
        table = _table(judged, names)
        mean, scale = table.mean(axis=0), np.where(table.std(axis=0) > 0, table.std(axis=0), 1.0)
        pairs = sorted({one.lp for one in judged})
        pairs = pairs if len(pairs) > 1 else []
        of_pair = np.array([[float(one.lp == pair) for pair in pairs] for one in judged]).reshape(len(judged), -1)
        inputs = np.hstack([(table - mean) / scale, of_pair, np.ones((len(judged), 1))])
        found = _regression(inputs, gold)
        languages = dict(zip(pairs, found[len(names) : -1].tolist(), strict=True))
        values = table[:, names.index("score")]
        untold = cls(
            names,
            tuple(mean.tolist()),
            tuple(scale.tolist()),
            tuple(found[: len(names)].tolist()),
            float(found[-1]),
            languages,
            0.5,
            (float(values.min()), float(values.max())),
            "mcc" if precision is None else f"precision {precision:g}",
            learnt_on,
        )
        probabilities = untold.probabilities(judged) if thresholds is None else thresholds
        return cls(**{**_fields(untold), "threshold": _threshold(gold, probabilities, precision)})

    def to_json(self) -> dict[str, Any]:
        """The object of the file."""
        return {"kind": "error-free", **asdict(self)}

    @classmethod
    def from_json(cls, value: Any) -> ErrorFreeModel:
        """The model of a decoded file.

        Raises:
            InputError, KeyError, ValueError, TypeError: it is no such object.
        """
        if not isinstance(value, Mapping) or value.get("kind") != "error-free":
            raise InputError("not what `mbr-esd calibrate --error-free` saves")
        lists = {key: tuple(map(finite, value[key])) for key in ("mean", "scale", "weights", "scores")}
        signals = tuple(map(str, value["signals"]))
        if signals not in (_WITH_SPANS, _WITHOUT) or any(
            len(lists[key]) != len(signals) for key in ("mean", "scale", "weights")
        ):
            raise InputError("its signals are not those of this version; learn it again")
        low, high = lists["scores"]
        return cls(
            signals,
            lists["mean"],
            lists["scale"],
            lists["weights"],
            finite(value["bias"]),
            {str(pair): finite(weight) for pair, weight in value["languages"].items()},
            finite(value["threshold"]),
            (low, high),
            str(value["aim"]),
            str(value["learnt_on"]),
        )


def read_error_free(path: str | Path) -> ErrorFreeModel:
    """The model in a file.

    Raises:
        InputError: no such file, or something else in it.
    """
    with reading(str(path)):
        try:
            content = Path(path).expanduser().read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})") from None
        return ErrorFreeModel.from_json(decoded(content))


def write_error_free(path: str | Path, model: ErrorFreeModel) -> None:
    """Write it, whole or not at all."""
    write_whole(path, json.dumps(model.to_json(), indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Tried:
    """One way to say "without error", on translations that it was not learnt on.

    Attributes:
        name: of the way.
        result: how it agrees with gold.
        interval: of the MCC, 95%, over resampled documents.
        by_pair: language pair -> the result there.
    """

    name: str
    result: ErrorFree
    interval: tuple[float, float]
    by_pair: Mapping[str, ErrorFree]


def cross_validated(
    judged: Sequence[Judged], labels: Sequence[bool], precision: float | None = None, seed: int = 0
) -> tuple[list[Tried], FloatVector]:
    """The model beside simpler ways, each learnt on four fifths of the documents and tried on the last.

    Returns:
        The ways, and the model's probabilities where it was not learnt.

    Raises:
        InputError: fewer than two documents, or as `ErrorFreeModel.fit`.
    """
    gold = np.asarray(labels, dtype=np.bool_)
    documents = sorted({one.document for one in judged})
    if len(documents) < 2:
        raise InputError("the rated translations are of one document; a cross-validation needs several")
    order = sorted(documents, key=lambda name: (zlib.crc32(f"{seed} {name}".encode()), name))
    fold = {name: at % min(_FOLDS, len(order)) for at, name in enumerate(order)}
    folds = np.array([fold[one.document] for one in judged])
    probabilities = np.full(len(judged), np.nan)
    ways = {name: np.zeros(len(judged), dtype=np.bool_) for name in ("never", "score, threshold", "model")}
    for part in sorted(set(folds.tolist())):
        learn, test = np.flatnonzero(folds != part), np.flatnonzero(folds == part)
        own, other = [judged[at] for at in learn.tolist()], [judged[at] for at in test.tolist()]
        try:
            model = ErrorFreeModel.fit(own, gold[learn].tolist(), precision)
        except InputError as error:
            raise InputError(f"without one fifth of the documents: {error}") from None
        probabilities[test] = model.probabilities(other)
        ways["model"][test] = probabilities[test] >= model.threshold
        scores = np.array([one.score for one in own])
        least = _threshold(gold[learn].astype(np.float64), scores, precision)
        ways["score, threshold"][test] = np.array([one.score for one in other]) >= least
    if all(one.annotation is not None for one in judged):
        ways["no span"] = np.array([one.annotation is not None and one.annotation.clean for one in judged])
    of = [np.flatnonzero([one.document == name for one in judged]) for name in documents]
    pairs = sorted({one.lp for one in judged})
    of_pair = {pair: np.array([one.lp == pair for one in judged]) for pair in pairs}
    tried = []
    for name, said in ways.items():
        by_pair = {pair: error_free(gold[own], said[own]) for pair, own in of_pair.items()}
        tried.append(Tried(name, error_free(gold, said), _interval(gold, said, of, seed), by_pair))
    return tried, probabilities


def _interval(
    gold: npt.NDArray[np.bool_], said: npt.NDArray[np.bool_], documents: Sequence[npt.NDArray[np.intp]], seed: int
) -> tuple[float, float]:
    cells = [(gold & said), (~gold & said), (gold & ~said), (~gold & ~said)]
    counts = np.array([[int(cell[own].sum()) for cell in cells] for own in documents])
    drawn = np.random.default_rng(seed).integers(0, len(documents), (_DRAWS, len(documents)))
    values = [ErrorFree(*map(int, counts[own].sum(axis=0))).mcc for own in drawn]
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _threshold(gold: FloatVector, values: FloatVector, precision: float | None) -> float:
    """The value from which "without error" is said: halfway to the next lower one."""
    ranked = np.unique(values)
    if precision is None:
        best = best_threshold(gold, values).threshold
    else:
        # The lowest value with that precision.
        reached = [v for v in ranked.tolist() if gold[values >= v].mean() >= precision]
        best = min(reached, default=math.inf)
    if math.isinf(best):
        if precision is not None:
            most = max(float(gold[values >= value].mean()) for value in ranked.tolist())
            raise InputError(f"no threshold has a precision of {precision:g}; the highest is {most:.3f}")
        return float(ranked[-1]) + 1.0
    below = ranked[ranked < best]
    return float((best + below[-1]) / 2) if len(below) else float(best)


def _table(judged: Sequence[Judged], names: Sequence[str]) -> npt.NDArray[np.float64]:
    rows = []
    for one in judged:
        signals = one.signals
        if missing := [name for name in names if name not in signals]:
            raise InputError(f"no {missing[0]}: it was learnt on a metric with error spans, and this one has none")
        rows.append([signals[name] for name in names])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def _regression(inputs: npt.NDArray[np.float64], gold: FloatVector) -> FloatVector:
    """Weights of a logistic regression with a ridge penalty on all but the last, by Newton's method."""
    penalty = np.full(inputs.shape[1], _RIDGE)
    penalty[-1] = 1e-6
    weights = np.zeros(inputs.shape[1])
    for _ in range(_ROUNDS):
        chances = 1.0 / (1.0 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        slope = inputs.T @ (gold - chances) - penalty * weights
        curvature = (inputs * (chances * (1 - chances))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def _fields(model: ErrorFreeModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.__dataclass_fields__}
