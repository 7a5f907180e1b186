"""The distinct annotations among the candidates of a segment: what every decision rule chooses from.

Duplicates are folded first: candidates with the same spans are one *hypothesis* with a weight, and everything is
computed over distinct hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.errors import InputError, NoValidCandidateError, unknown

#: How to weight supports; see `Hypotheses.weights`.
WEIGHTINGS = ("uniform", "model")

#: Values this close to the best are ties.
TIE = 1e-9


class Hypotheses:
    """The distinct annotations among the candidates of one segment.

    Args:
        annotations: one for each candidate; None if it is invalid.
        logprobs: one for each candidate; None if unknown.
        outputs: what each candidate wrote, if known; the weights "model" add up different outputs only.
        models: which model wrote each candidate, if there are several; each weighs the same as a support.

    Attributes:
        of: the hypothesis of each candidate, -1 for an invalid one.
        counts: candidates of each hypothesis, shape (n,).
        index: the candidate that represents each hypothesis: the likeliest of its duplicates, then the first.
        annotations: of these candidates.
        logprobs: of these candidates, shape (n,); -inf where unknown.

    Raises:
        InputError: a log-probability that is not a number or above 0 by more than rounding.
        NoValidCandidateError: there is no valid candidate.
    """

    def __init__(
        self,
        annotations: Sequence[Annotation | None],
        logprobs: Sequence[float | None] | None = None,
        outputs: Sequence[Hashable | None] | None = None,
        models: Sequence[Hashable | None] | None = None,
    ) -> None:
        self._given = logprobs
        self._models = models
        self._outputs = outputs
        by_object: dict[int, int] = {}
        by_spans: dict[object, int] = {}
        # Each object is compared only once; a parser returns the same object for the same spans.
        for annotation in {id(annotation): annotation for annotation in annotations}.values():
            by_object[id(annotation)] = -1 if annotation is None else by_spans.setdefault(annotation.key, len(by_spans))
        self.of: list[int] = [by_object[id(annotation)] for annotation in annotations]
        n = len(by_spans)
        if not n:
            raise NoValidCandidateError(
                f"none of the {len(annotations)} candidates is valid" if annotations else "no candidates"
            )
        self.index: list[int] = [-1] * n
        best = [-math.inf] * n
        if logprobs is None or logprobs.count(None) == len(logprobs):
            for i in range(len(self.of) - 1, -1, -1):
                if self.of[i] >= 0:
                    self.index[self.of[i]] = i
        else:
            values = [-math.inf if value is None else value for value in logprobs]
            if not (np.array(values) <= 1e-3).all():
                i = next(i for i, value in enumerate(values) if not value <= 1e-3)
                raise InputError(f"candidate {i}: {values[i]!r} is not a log-probability (a number <= 0)")
            for i, h in enumerate(self.of):
                if h >= 0 and (values[i] > best[h] or self.index[h] < 0):
                    best[h] = values[i]
                    self.index[h] = i
        self.annotations: list[Annotation] = [annotations[i] for i in self.index]  # type: ignore[misc]
        self.logprobs: Floats = np.array(best)
        valid = self.of if min(self.of) >= 0 else [h for h in self.of if h >= 0]
        self.counts: npt.NDArray[np.intp] = np.bincount(valid, minlength=n)

    def __len__(self) -> int:
        return len(self.index)

    def weights(self, weighting: str = "uniform") -> Floats:
        """The weight of each hypothesis as a support, shape (n,), of sum 1.

        With several models, the weights of each model's candidates sum to the same, and so for "model".

        "uniform" counts candidates. "model" takes the probability of the hypothesis under the model: the sum over the
        different outputs with this annotation, normalised over the hypotheses.

        Raises:
            InputError: "model", if a log-probability is missing or all are -inf.
        """
        if weighting not in WEIGHTINGS:
            raise unknown("weights", weighting, WEIGHTINGS)
        if self._models is None:
            return self._weights_of(range(len(self.of)), weighting)
        by_model: dict[Hashable, list[int]] = {}
        for i, model in enumerate(self._models):
            if self.of[i] >= 0:
                by_model.setdefault(model, []).append(i)
        shares: Floats = np.mean([self._weights_of(candidates, weighting) for candidates in by_model.values()], axis=0)
        return shares

    def _weights_of(self, candidates: Sequence[int], weighting: str) -> Floats:
        """`weights`, of these candidates alone."""
        if weighting == "uniform":
            counts = self.counts
            if len(candidates) < len(self.of):
                counts = np.bincount([self.of[i] for i in candidates if self.of[i] >= 0], minlength=len(self))
            uniform: Floats = counts / counts.sum()
            return uniform
        outputs: dict[tuple[int, Hashable], float] = {}
        for i in candidates:
            hypothesis = self.of[i]
            if hypothesis >= 0:
                logprob = self._given[i] if self._given is not None else None
                if logprob is None:
                    raise InputError(f"candidate {i} has no log-probability, which weights 'model' needs")
                key = (hypothesis, self._outputs[i] if self._outputs is not None else None)
                outputs[key] = max(outputs.get(key, -math.inf), logprob)
        highest = max(outputs.values())
        if highest == -math.inf:
            raise InputError("every candidate has log-probability -inf, so weights 'model' are undefined")
        mass: Floats = np.zeros(len(self))
        for (hypothesis, _), logprob in outputs.items():
            mass[hypothesis] += math.exp(logprob - highest)
        mass /= mass.sum()
        return mass

    def best(self, values: Floats) -> int:
        """The hypothesis with the highest value. In a tie the likelier one wins, then the lower candidate index."""
        tied = np.flatnonzero(values >= values.max() - TIE)
        if len(tied) == 1:
            return int(tied[0])
        return int(min(tied, key=lambda h: (-self.logprobs[h], self.index[h])))
