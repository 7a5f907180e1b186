"""Detection of translations without error (WMT26's task 3): a yes or no for each translation.

Gold says yes if no rater marked an error and the score reaches a threshold (85 of 100 for ESA). The task's measure is
Matthews' correlation coefficient, with "without error" as the positive class; 0 if a factor is 0:

    MCC = (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))

`ErrorFreeModel` learns the answer from signals of a metric: its score, Score(E) of its spans, their mass (the share of
characters in a span, minor ones counting half), the highest confidence of a span, and the log of the length; without
spans, the score and the length. A logistic regression of them and of the language pair gives a probability.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, as_annotation, mqm_score
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, labelled
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.files.untrusted import finite, read_json, reading
from mbr_esd_metric.metaeval.matrices import BoolMatrix, percentile_interval
from mbr_esd_metric.metaeval.spans import AnnotationMatrix, confidence_of

#: The least score of an ESA annotation without error.
ESA_THRESHOLD = 85.0

_WITH_SPANS = ("score", "span score", "span mass", "confidence", "log length")
_WITHOUT = ("score", "log length")
#: Parts of a cross-validation, and resamples of its intervals.
_FOLDS, _DRAWS = 5, 1000


@dataclass(frozen=True, slots=True)
class ErrorFree:
    """The agreement of a prediction with gold, in numbers of translations; positive is one without error."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def mcc(self) -> float:
        """Matthews' correlation coefficient, in [-1, 1]."""
        tp, fp, fn, tn = self.true_positives, self.false_positives, self.false_negatives, self.true_negatives
        product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        return (tp * tn - fp * fn) / math.sqrt(product) if product else 0.0

    @property
    def precision(self) -> float:
        """The share of the translations predicted to be without error that are; 1 if none is predicted."""
        predicted = self.true_positives + self.false_positives
        return self.true_positives / predicted if predicted else 1.0

    @property
    def recall(self) -> float:
        """The share of the translations without error that are predicted; 1 if there are none."""
        positives = self.true_positives + self.false_negatives
        return self.true_positives / positives if positives else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def accuracy(self) -> float:
        """The share of translations with a correct prediction."""
        right = self.true_positives + self.true_negatives
        return right / (right + self.false_positives + self.false_negatives)


def gold_labels(gold: npt.ArrayLike, human: Sequence[AnnotationMatrix] = (), threshold: float = -math.inf) -> Floats:
    """1 if a translation is without error, 0 if it is not, NaN if nobody rated it; (systems, segments).

    `gold` is a gold matrix (`matrices`), `threshold` that of its scores; without spans of raters they alone decide.
    """
    scores = np.asarray(gold, dtype=np.float64)
    labels: Floats = np.where(np.isnan(scores), np.nan, (scores >= threshold).astype(np.float64))
    for matrix in human:
        marked = np.array([[spans is not None and not as_annotation(spans).clean for spans in row] for row in matrix])
        labels = np.where(marked & ~np.isnan(labels), 0.0, labels)
    return labels


def unmarked(predicted: AnnotationMatrix) -> Floats:
    """1 if no error is predicted, 0 if one is, NaN if there is no prediction; (systems, segments)."""
    return np.array(
        [[np.nan if spans is None else float(as_annotation(spans).clean) for spans in row] for row in predicted]
    )


def error_free(labels: npt.ArrayLike, predicted: npt.ArrayLike) -> ErrorFree:
    """Labels of `gold_labels` against a metric's. Raises `InputError` for no rating, or a missing prediction."""
    gold, values = _paired(labels, predicted)
    clean, yes = gold > 0.5, values > 0.5
    counts = (clean & yes, ~clean & yes, clean & ~yes, ~clean & ~yes)
    return ErrorFree(*(int(cells.sum()) for cells in counts))


def best_threshold(labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[float, ErrorFree, float]:
    """The threshold of a score with the highest MCC, the highest of several, and infinity if none is predicted; what it
    reaches; and the AUC: how probably a translation without error scores above one with errors, where a tie counts
    half, NaN if only one of the two kinds occurs.

    Raises `InputError` for no rating, or a score that is missing where gold has a label.
    """
    from scipy.stats import rankdata

    gold, values = _paired(labels, scores)
    results = _results(gold, values)
    best = max(results, key=lambda threshold: results[threshold].mcc)
    clean, others = int((gold > 0.5).sum()), int((gold <= 0.5).sum())
    wins = float(rankdata(values)[gold > 0.5].sum()) - clean * (clean + 1) / 2
    return best, results[best], wins / (clean * others) if clean and others else math.nan


def _results(gold: Floats, values: Floats) -> dict[float, ErrorFree]:
    """Threshold -> what it reaches, from infinity, which predicts "without error" for none, down to the least value."""
    positive, order = gold > 0.5, np.argsort(-values, kind="stable")
    ranked = values[order]
    last = np.append(ranked[1:] != ranked[:-1], True)  # one past it, the threshold is a lower score
    tp = np.append(0, np.cumsum(positive[order])[last]).tolist()
    fp = np.append(0, np.cumsum(~positive[order])[last]).tolist()
    thresholds = [math.inf, *ranked[last].tolist()]
    counts = zip(thresholds, tp, fp, strict=True)
    return {threshold: ErrorFree(t, f, tp[-1] - t, fp[-1] - f) for threshold, t, f in counts}


def _paired(labels: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Floats, Floats]:
    gold, values = np.asarray(labels, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    rated = ~np.isnan(gold)
    if not rated.any():
        raise InputError("gold contains no ratings")
    if np.isnan(values[rated]).any():
        raise InputError(f"no prediction for {int(np.isnan(values[rated]).sum())} rated translations")
    return gold[rated], values[rated]


@dataclass(frozen=True, slots=True)
class ScoredTranslation:
    """A metric's output for one translation of `length` characters; the annotation is None if it has no spans.

    The score may be on any scale, higher is better. A cross-validation keeps a document together.
    """

    score: float
    annotation: Annotation | None
    length: int
    lp: str = ""
    document: str = ""

    @property
    def signals(self) -> dict[str, float]:
        """Name -> value, of those that `ErrorFreeModel` learns from."""
        signals = {"score": self.score, "log length": math.log1p(self.length)}
        if self.annotation is None:
            return signals
        marked = np.zeros(max(self.length, 1))
        for span in self.annotation.on("translation"):
            part = marked[span.start : span.end]
            np.maximum(part, 1.0 if span.severity == "major" else 0.5, out=part)
        return signals | {
            "span score": mqm_score(self.annotation),
            "span mass": float(marked.mean()),
            "confidence": max(map(confidence_of, self.annotation), default=0.0),
        }


@dataclass(frozen=True, slots=True)
class ErrorFreeModel:
    """A logistic regression, and the least probability of a yes.

    Attributes:
        weights: of each signal.
        languages: language pair -> its addend, where there are several; others add nothing.
        scores: the lowest and the highest score in the data.
        aim: of the threshold, such as "mcc" or "precision 0.95".
        learnt_on: the data, in words.
    """

    weights: Mapping[str, float]
    bias: float
    languages: Mapping[str, float]
    threshold: float
    scores: tuple[float, float]
    aim: str
    learnt_on: str

    @property
    def digest(self) -> str:
        """Its name in signatures."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]

    def probabilities(self, translations: Sequence[ScoredTranslation]) -> Floats:
        """The probability of each translation of being without error.

        Raises `InputError`: a metric without spans for a model that learnt with them, or scores on another scale.
        """
        from scipy.special import expit

        low, high = self.scores
        if other := [one.score for one in translations if not 2 * low - high <= one.score <= 2 * high - low]:
            raise InputError(f"a score of {other[0]:g}, but it was learnt on scores from {low:g} to {high:g}")
        logits = _table(translations, list(self.weights)) @ list(self.weights.values()) + self.bias
        return np.asarray(expit(logits + [self.languages.get(one.lp, 0.0) for one in translations]))

    def clean(self, translations: Sequence[ScoredTranslation]) -> BoolMatrix:
        """A yes or no for each translation."""
        return self.probabilities(translations) >= self.threshold

    @classmethod
    def fit(
        cls,
        translations: Sequence[ScoredTranslation],
        labels: Sequence[bool],
        precision: float | None = None,
        learnt_on: str = "",
        probabilities: Floats | None = None,
    ) -> ErrorFreeModel:
        """Learn from rated translations, and from whether each is without error.

        The threshold has the highest MCC, or is the lowest one with that precision; on `probabilities` from elsewhere,
        if given, else on those of the model itself. Raises `InputError`: only one kind of translation, or no threshold
        with that precision.
        """
        gold = np.asarray(labels, dtype=np.float64)
        if len(set(gold.tolist())) < 2:
            kind = "without error" if gold.all() else "with errors"
            raise InputError(f"all {len(gold)} rated translations are {kind}; learning needs both kinds")
        names = _WITH_SPANS if all(one.annotation is not None for one in translations) else _WITHOUT
        table, pairs = _table(translations, names), sorted({one.lp for one in translations})
        mean, scale = table.mean(axis=0), np.where(table.std(axis=0) > 0, table.std(axis=0), 1.0)
        of_pair = [[*(float(one.lp == pair) for pair in pairs if len(pairs) > 1), 1.0] for one in translations]
        fitted = _regression(np.hstack([(table - mean) / scale, of_pair]), gold)
        weights = fitted[: len(names)] / scale
        model = cls(
            weights=dict(zip(names, weights.tolist(), strict=True)),
            bias=float(fitted[-1] - mean @ weights),
            languages=dict(zip(pairs, fitted[len(names) : -1].tolist(), strict=False)),
            threshold=0.5,
            scores=(min(one.score for one in translations), max(one.score for one in translations)),
            aim="mcc" if precision is None else f"precision {precision:g}",
            learnt_on=learnt_on,
        )
        probabilities = model.probabilities(translations) if probabilities is None else probabilities
        return replace(model, threshold=_threshold(gold, probabilities, precision))

    @classmethod
    def from_json(cls, value: Any) -> ErrorFreeModel:
        """The model of a decoded file; raises `InputError`, `KeyError`, `ValueError` or `TypeError` if it is none."""
        if not isinstance(value, Mapping) or value.get("kind") != "error-free":
            raise InputError("not a file saved by `mbr-esd calibrate --error-free`")
        weights, languages = ({str(k): finite(v) for k, v in value[of].items()} for of in ("weights", "languages"))
        if set(weights) not in (set(_WITH_SPANS), set(_WITHOUT)):
            raise InputError("its signals differ from this version's; learn it again")
        (low, high), (bias, threshold) = map(finite, value["scores"]), map(finite, (value["bias"], value["threshold"]))
        return cls(weights, bias, languages, threshold, (low, high), str(value["aim"]), str(value["learnt_on"]))


def read_error_free(path: str | Path) -> ErrorFreeModel:
    """The model in a file. Raises `InputError`: no such file, or something else in it."""
    value = read_json(Path(path).expanduser())
    with reading(str(path)):
        return ErrorFreeModel.from_json(value)


def write_error_free(path: str | Path, model: ErrorFreeModel) -> None:
    """Write it, whole or not at all."""
    write_whole(path, json.dumps({"kind": "error-free", **asdict(model)}, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Validation:
    """One way to tell translations without error, on those that it was not learnt on; with the 95% interval of the MCC
    over resampled documents."""

    name: str
    result: ErrorFree
    interval: tuple[float, float]
    by_pair: Mapping[str, ErrorFree]


def cross_validated(
    translations: Sequence[ScoredTranslation], labels: Sequence[bool], precision: float | None = None
) -> tuple[list[Validation], Floats]:
    """The model beside simpler ways, each learnt on four fifths of the documents and tried on the last; and the model's
    probabilities where it was not learnt. Raises `InputError`: fewer than two documents, or as `ErrorFreeModel.fit`.
    """
    gold = np.asarray(labels, dtype=np.bool_)
    documents, document = np.unique([one.document for one in translations], return_inverse=True)
    if len(documents) < 2:
        raise InputError("all rated translations are from one document; cross-validation needs several")
    hashes = np.array([zlib.crc32(f"0 {name}".encode()) for name in documents.tolist()])
    order = np.lexsort((documents, hashes))
    fold = np.argsort(order)[document] % min(_FOLDS, len(documents))
    scores = np.array([one.score for one in translations])
    probabilities = np.full(len(translations), np.nan)
    answers = {name: np.zeros(len(translations), dtype=np.bool_) for name in ("never", "score, threshold", "model")}
    for part in range(fold.max() + 1):
        learn, test = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        with labelled("without one fifth of the documents"):
            model = ErrorFreeModel.fit([translations[at] for at in learn.tolist()], gold[learn].tolist(), precision)
        probabilities[test] = model.probabilities([translations[at] for at in test.tolist()])
        answers["model"][test] = probabilities[test] >= model.threshold
        least = _threshold(gold[learn].astype(np.float64), scores[learn], precision)
        answers["score, threshold"][test] = scores[test] >= least
    if all(one.annotation is not None for one in translations):
        answers["no span"] = np.array([one.annotation is not None and one.annotation.clean for one in translations])
    lps = np.array([one.lp for one in translations])
    tried = []
    for name, yes in answers.items():
        by_pair = {str(lp): error_free(gold[lps == lp], yes[lps == lp]) for lp in np.unique(lps)}
        each = [document == number for number in range(len(documents))]
        counts = np.array([astuple(error_free(gold[of], yes[of])) for of in each])
        draws = np.random.default_rng(0).integers(0, len(counts), (_DRAWS, len(counts)))
        interval = percentile_interval([ErrorFree(*map(int, counts[chosen].sum(axis=0))).mcc for chosen in draws])
        tried.append(Validation(name, error_free(gold, yes), interval, by_pair))
    return tried, probabilities


def _threshold(gold: Floats, values: Floats, precision: float | None) -> float:
    """The least value of a yes: halfway to the next lower one."""
    results = _results(gold, values)
    thresholds = list(results)
    if precision is None:
        best = max(thresholds, key=lambda threshold: results[threshold].mcc)
    else:
        precisions = {threshold: results[threshold].precision for threshold in thresholds[1:]}
        reached = [threshold for threshold, share in precisions.items() if share >= precision]
        if not reached:
            most = max(precisions.values())
            raise InputError(f"no threshold has a precision of {precision:g}; the highest is {most:.3f}")
        best = reached[-1]
    at = thresholds.index(best)
    return thresholds[1] + 1.0 if at == 0 else float(np.mean(thresholds[at : at + 2]))


def _table(translations: Sequence[ScoredTranslation], names: Sequence[str]) -> Floats:
    rows = []
    for one in translations:
        signals = one.signals
        if missing := [name for name in names if name not in signals]:
            raise InputError(f"no {missing[0]}: it was learnt on a metric with error spans, but this metric has none")
        rows.append([signals[name] for name in names])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def _regression(inputs: Floats, gold: Floats) -> Floats:
    """Weights w of a logistic regression, and the bias as the last of them: the least -log P(gold) + |w|^2 / 2."""
    from scipy.optimize import minimize
    from scipy.special import expit

    penalty = np.append(np.ones(inputs.shape[1] - 1), 1e-6)

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = inputs @ weights
        value = np.logaddexp(0, logits).sum() - gold @ logits + penalty @ weights**2 / 2
        return float(value), np.asarray(inputs.T @ (expit(logits) - gold) + penalty * weights)

    return np.asarray(minimize(loss, np.zeros(len(penalty)), jac=True, method="BFGS", options={"gtol": 1e-7}).x)
