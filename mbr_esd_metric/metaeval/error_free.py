"""Detection of error-free translations (task 3 of WMT26), a binary classification.

A translation is error-free in the gold labels if no rater marked an error and its score reaches a threshold
(`lowest_error_free`). The measure of the task is Matthews' correlation coefficient, with error-free as the positive
class, and 0 if a factor of the denominator is 0:

    MCC = (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))

`ErrorFreeModel` is a logistic regression on features of a metric's output: its score, Score(E) of its spans, their mass
(the share of characters in a span, minor ones counting half), the highest confidence of a span, the log of the length,
and the language pair. For metrics without spans, the features are score, length and language pair.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
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

#: The lowest ESA score of an error-free translation.
ESA_THRESHOLD = 85.0

_WITH_SPANS = ("score", "span score", "span mass", "confidence", "log length")
_WITHOUT = ("score", "log length")
#: Folds of the cross-validation, and bootstrap resamples for its intervals.
_FOLDS, _DRAWS = 5, 1000


@dataclass(frozen=True, slots=True)
class ErrorFree:
    """The confusion matrix of a prediction, in numbers of translations; error-free is the positive class."""

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
        """The share of error-free translations among those predicted to be error-free; 1 if none is predicted."""
        predicted = self.true_positives + self.false_positives
        return self.true_positives / predicted if predicted else 1.0

    @property
    def recall(self) -> float:
        """The share of error-free translations that are predicted to be error-free; 1 if there are none."""
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


def lowest_error_free(gold: str) -> float:
    """The lowest gold score of an error-free translation: 85 for ESA; 0 for MQM, where errors only in the source lower
    the score as well; minus infinity for other gold scores.

    Args:
        gold: the name of the gold scores, such as "mqm" or "esa-a".
    """
    return ESA_THRESHOLD if gold.startswith("esa") else 0.0 if gold.startswith("mqm") else -math.inf


def gold_labels(gold: npt.ArrayLike, human: Sequence[AnnotationMatrix] = (), threshold: float = -math.inf) -> Floats:
    """Gold labels, shape (systems, segments): 1 for an error-free translation, 0 for one with errors, NaN if unrated.

    Args:
        gold: a gold matrix (`matrices`).
        human: the spans of each rater; if empty, labels depend on the scores only.
        threshold: the lowest gold score of an error-free translation.
    """
    scores = np.asarray(gold, dtype=np.float64)
    labels: Floats = np.where(np.isnan(scores), np.nan, (scores >= threshold).astype(np.float64))
    for matrix in human:
        marked = np.array([[spans is not None and not as_annotation(spans).clean for spans in row] for row in matrix])
        labels = np.where(marked & ~np.isnan(labels), 0.0, labels)
    return labels


def unmarked(predicted: AnnotationMatrix) -> Floats:
    """Labels predicted by the absence of spans, shape (systems, segments): 1 without spans, 0 with spans, NaN without a
    prediction."""
    return np.array(
        [[np.nan if spans is None else float(as_annotation(spans).clean) for spans in row] for row in predicted]
    )


def error_free(labels: npt.ArrayLike, predicted: npt.ArrayLike) -> ErrorFree:
    """The confusion matrix of predicted labels. Raises `InputError` if there are no ratings, or a rated translation has
    no prediction.

    Args:
        labels: those of `gold_labels`.
        predicted: predicted labels.
    """
    gold, values = _paired(labels, predicted)
    clean, yes = gold > 0.5, values > 0.5
    counts = (clean & yes, ~clean & yes, clean & ~yes, ~clean & ~yes)
    return ErrorFree(*(int(cells.sum()) for cells in counts))


def best_threshold(labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[float, ErrorFree, float]:
    """The score threshold with the highest MCC, the confusion matrix at this threshold, and the AUC of the scores.

    Of several such thresholds, the highest is returned; infinity predicts no error-free translation. AUC is the
    probability that an error-free translation scores higher than one with errors, with ties counted half; NaN if all
    translations have the same label.

    Raises `InputError` if there are no ratings, or a rated translation has no score.
    """
    from scipy.stats import rankdata

    gold, values = _paired(labels, scores)
    results = _results(gold, values)
    best = max(results, key=lambda threshold: results[threshold].mcc)
    clean, others = int((gold > 0.5).sum()), int((gold <= 0.5).sum())
    wins = float(rankdata(values)[gold > 0.5].sum()) - clean * (clean + 1) / 2
    return best, results[best], wins / (clean * others) if clean and others else math.nan


def _results(gold: Floats, values: Floats) -> dict[float, ErrorFree]:
    """Threshold -> its confusion matrix, from infinity, which predicts no error-free translation, to the lowest
    value."""
    positive, order = gold > 0.5, np.argsort(-values, kind="stable")
    ranked = values[order]
    last = np.append(ranked[1:] != ranked[:-1], True)  # the last one of each group of equal scores
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
        raise InputError(f"{int(np.isnan(values[rated]).sum())} rated translations have no prediction")
    return gold[rated], values[rated]


@dataclass(frozen=True, slots=True)
class ScoredTranslation:
    """A metric's output for one translation of `length` characters.

    Attributes:
        score: the score, on any scale; higher is better.
        annotation: the predicted spans; None if the metric does not predict spans.
        document: the document of the translation; cross-validation does not split documents.
    """

    score: float
    annotation: Annotation | None
    length: int
    lp: str = ""
    document: str = ""

    @property
    def signals(self) -> dict[str, float]:
        """The features of `ErrorFreeModel`: name -> value."""
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
    """A logistic regression with a decision threshold.

    Attributes:
        weights: feature -> weight.
        bias: the intercept.
        languages: language pair -> its additional intercept, if trained on several pairs; 0 for other pairs.
        threshold: the lowest probability of a translation classified as error-free.
        scores: the lowest and the highest score in the training data.
        aim: the objective of the threshold, such as "mcc" or "precision 0.95".
        learnt_on: a description of the training data.
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
        """The hash that identifies the model in signatures."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]

    def probabilities(self, translations: Sequence[ScoredTranslation]) -> Floats:
        """The probability that each translation is error-free.

        Raises `InputError` if the model needs spans and the metric has none, or if the scores are on another scale than
        in training.
        """
        from scipy.special import expit

        low, high = self.scores
        if other := [one.score for one in translations if not 2 * low - high <= one.score <= 2 * high - low]:
            raise InputError(
                f"score {other[0]:g} is out of range: the model was trained on scores from {low:g} to {high:g}"
            )
        logits = _table(translations, list(self.weights)) @ list(self.weights.values()) + self.bias
        return np.asarray(expit(logits + [self.languages.get(one.lp, 0.0) for one in translations]))

    def clean(self, translations: Sequence[ScoredTranslation]) -> BoolMatrix:
        """Whether each translation is classified as error-free."""
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
        """Train on rated translations.

        Args:
            translations: the rated translations.
            labels: whether each is error-free.
            precision: the required precision: the threshold is the lowest one that reaches it. None for the threshold
                with the highest MCC.
            learnt_on: a description of the data.
            probabilities: the probabilities to choose the threshold on, such as cross-validated ones; None for those of
                the trained model.

        Raises `InputError` if all translations have the same label, or if no threshold reaches the precision.
        """
        gold = np.asarray(labels, dtype=np.float64)
        if len(set(gold.tolist())) < 2:
            kind = "are error-free" if gold.all() else "have errors"
            raise InputError(f"all {len(gold)} rated translations {kind}; training needs both kinds")
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
        """The model from decoded JSON. Raises `InputError`, `KeyError`, `ValueError` or `TypeError` if it is
        invalid."""
        if not isinstance(value, Mapping) or value.get("kind") != "error-free":
            raise InputError("not a file saved by `mbr-esd calibrate --error-free`")
        weights, languages = ({str(k): finite(v) for k, v in value[of].items()} for of in ("weights", "languages"))
        if set(weights) not in (set(_WITH_SPANS), set(_WITHOUT)):
            raise InputError("its features differ from those of this version; train it again with `mbr-esd calibrate`")
        (low, high), (bias, threshold) = map(finite, value["scores"]), map(finite, (value["bias"], value["threshold"]))
        return cls(weights, bias, languages, threshold, (low, high), str(value["aim"]), str(value["learnt_on"]))


def read_error_free(path: str | Path) -> ErrorFreeModel:
    """Read a model. Raises `InputError` if the file does not exist or is invalid."""
    value = read_json(Path(path).expanduser())
    with reading(str(path)):
        return ErrorFreeModel.from_json(value)


def write_error_free(path: str | Path, model: ErrorFreeModel) -> None:
    """Write a model atomically."""
    write_whole(path, json.dumps({"kind": "error-free", **asdict(model)}, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Validation:
    """The cross-validated result of a classifier.

    Attributes:
        name: the name of the classifier.
        result: the confusion matrix over all held-out translations; None for a simpler classifier that does not reach
            the precision in every fold.
        interval: the 95% bootstrap interval of the MCC, over documents.
        by_pair: language pair -> confusion matrix.
    """

    name: str
    result: ErrorFree | None = None
    interval: tuple[float, float] = (math.nan, math.nan)
    by_pair: Mapping[str, ErrorFree] = field(default_factory=dict)


def cross_validated(
    translations: Sequence[ScoredTranslation], labels: Sequence[bool], precision: float | None = None
) -> tuple[list[Validation], Floats]:
    """Five-fold cross-validation, over documents, of the model and of simpler classifiers; and the held-out
    probabilities of the model. With fewer than five documents, each is a fold. Raises `InputError` for fewer than two
    documents, and as `ErrorFreeModel.fit`.
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
    unreached: set[str] = set()
    for part in range(fold.max() + 1):
        learn, test = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        with labelled("without one fifth of the documents"):
            model = ErrorFreeModel.fit([translations[at] for at in learn.tolist()], gold[learn].tolist(), precision)
        probabilities[test] = model.probabilities([translations[at] for at in test.tolist()])
        answers["model"][test] = probabilities[test] >= model.threshold
        try:
            least = _threshold(gold[learn].astype(np.float64), scores[learn], precision)
        except InputError:
            unreached.add("score, threshold")
        else:
            answers["score, threshold"][test] = scores[test] >= least
    if all(one.annotation is not None for one in translations):
        answers["no span"] = np.array([one.annotation is not None and one.annotation.clean for one in translations])
    lps = np.array([one.lp for one in translations])
    tried = []
    for name, yes in answers.items():
        if name in unreached:
            tried.append(Validation(name))
            continue
        by_pair = {str(lp): error_free(gold[lps == lp], yes[lps == lp]) for lp in np.unique(lps)}
        each = [document == number for number in range(len(documents))]
        counts = np.array([astuple(error_free(gold[of], yes[of])) for of in each])
        draws = np.random.default_rng(0).integers(0, len(counts), (_DRAWS, len(counts)))
        interval = percentile_interval([ErrorFree(*map(int, counts[chosen].sum(axis=0))).mcc for chosen in draws])
        tried.append(Validation(name, error_free(gold, yes), interval, by_pair))
    return tried, probabilities


def _threshold(gold: Floats, values: Floats, precision: float | None) -> float:
    """The decision threshold, halfway between the lowest accepted value and the next lower one."""
    results = _results(gold, values)
    thresholds = list(results)
    if precision is None:
        best = max(thresholds, key=lambda threshold: results[threshold].mcc)
    else:
        precisions = {threshold: results[threshold].precision for threshold in thresholds[1:]}
        reached = [threshold for threshold, share in precisions.items() if share >= precision]
        if not reached:
            most = max(precisions.values())
            raise InputError(f"no threshold reaches a precision of {precision:g}; the highest precision is {most:.3f}")
        best = reached[-1]
    at = thresholds.index(best)
    return thresholds[1] + 1.0 if at == 0 else float(np.mean(thresholds[at : at + 2]))


def _table(translations: Sequence[ScoredTranslation], names: Sequence[str]) -> Floats:
    rows = []
    for one in translations:
        signals = one.signals
        if missing := [name for name in names if name not in signals]:
            raise InputError(f"no {missing[0]}: the error-free model needs a metric with error spans")
        rows.append([signals[name] for name in names])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def _regression(inputs: Floats, gold: Floats) -> Floats:
    """Weights w of a logistic regression, with the bias last, that minimise -log P(gold) + |w|^2 / 2."""
    from scipy.optimize import minimize
    from scipy.special import expit

    penalty = np.append(np.ones(inputs.shape[1] - 1), 1e-6)

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = inputs @ weights
        value = np.logaddexp(0, logits).sum() - gold @ logits + penalty @ weights**2 / 2
        return float(value), np.asarray(inputs.T @ (expit(logits) - gold) + penalty * weights)

    return np.asarray(minimize(loss, np.zeros(len(penalty)), jac=True, method="BFGS", options={"gtol": 1e-7}).x)
