"""A score learnt from people's: a monotone map from what a model expects along a walk to the MQM score.

    z = c_0 + sum_k c_k phi_k(e)        with every c >= 0
    Score = max(1 - exp(z), -25)

e are the `ExpectedSpans` of a walk. The features phi, of m minor and M major spans, x of them in the source, n words
and s nats of surprisal, are m, M and x; the same divided by sqrt(n), and by n; and s/n. No feature falls where errors
are added at the same number of words, and no c is negative, so more errors never raise the score. A sum over words is
right where people count errors, and a mean where they rate an impression; a learnt score may lie between.

The c minimise, over translations i with people's score g_i (0 is best, -25 the worst) and weights w_i of sum 1,

    sum_i w_i (z_i - ln(1 - g_i))^2 + r sum_k (v_k c_k)^2        r = 1e-3

v_k the standard deviation of phi_k. The logarithm keeps a few very bad translations from deciding alone.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mbr_esd_metric.core.candidate import NO_SPANS, ExpectedSpans
from mbr_esd_metric.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

#: The features, in order.
FEATURES = (
    "minor",
    "major",
    "missing",
    "minor/sqrt(words)",
    "major/sqrt(words)",
    "missing/sqrt(words)",
    "minor/words",
    "major/words",
    "missing/words",
    "surprisal/words",
)
_FLOOR = -25.0
_RIDGE = 1e-3
#: Fewest translations to learn from, and how often the coordinates are gone through.
_ENOUGH, _ROUNDS = 30, 2000


@dataclass(frozen=True, slots=True)
class LearntScore:
    """The map.

    Attributes:
        intercept: c_0.
        weights: c of each of `FEATURES`.
        learnt_on: what it was learnt on, in words.
    """

    what: ClassVar[str] = "learnt score"

    intercept: float
    weights: tuple[float, ...]
    learnt_on: str = ""

    def __post_init__(self) -> None:
        every = (self.intercept, *self.weights)
        if len(self.weights) != len(FEATURES) or not all(0 <= one < math.inf for one in every):
            raise InputError(f"a learnt score has an intercept and {len(FEATURES)} weights, all of them numbers from 0")

    def __str__(self) -> str:
        """``learnt-`` and eight digits of its content, as signatures have it."""
        content = json.dumps([self.intercept, *self.weights])
        return f"learnt-{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def of(self, expected: ExpectedSpans) -> float:
        """The score of what was expected along one walk, in [-25, 0]; higher is better.

        Raises:
            InputError: the number of words is not known, as of candidates that were stored by an earlier version.
        """
        if expected.words < 1 and expected != NO_SPANS:
            raise InputError(
                "a candidate does not say how many words its translation has, which a learnt score needs; sample "
                "again, into a new store"
            )
        z = self.intercept + sum(c * phi for c, phi in zip(self.weights, features(expected), strict=True))
        return max(1 - math.exp(min(z, 10.0)), _FLOOR)

    @classmethod
    def fit(
        cls,
        expected: Sequence[ExpectedSpans],
        scores: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        learnt_on: str = "",
    ) -> LearntScore:
        """Learn it; the c by coordinate descent, which finds the only minimum.

        Args:
            expected: of each translation, the mean over its candidates.
            scores: people's, g in [-25, 0], shape (n,).
            weight: w > 0, shape (n,); 1 each where none are given.
            learnt_on: kept with the map.

        Raises:
            InputError: fewer than 30 translations, or a score above 0.
        """
        import numpy as np

        g = np.asarray(scores, dtype=np.float64)
        if len(g) < _ENOUGH or len(expected) != len(g):
            raise InputError(f"a score is learnt from {_ENOUGH} translations or more, and there are {len(g)}")
        if not (np.isfinite(g) & (g <= 0)).all():
            raise InputError("people's scores are MQM scores, at most 0")
        y = np.log1p(-np.maximum(g, _FLOOR))
        w = np.ones(len(g)) if weight is None else np.asarray(weight, dtype=np.float64)
        w = w / w.sum()
        phi = np.array([features(one) for one in expected])
        scale = np.sqrt(w @ (phi - w @ phi) ** 2)
        used = scale > 0
        x = np.column_stack([np.ones(len(g)), phi[:, used] / scale[used]])
        hessian = (x.T * w) @ x + np.diag([0.0, *[_RIDGE] * int(used.sum())])
        target = (x.T * w) @ y
        c = np.zeros(x.shape[1])
        for _ in range(_ROUNDS):
            for k in range(len(c)):
                c[k] = max(0.0, c[k] + (target[k] - hessian[k] @ c) / hessian[k, k])
        weights = np.zeros(len(FEATURES))
        weights[used] = c[1:] / scale[used]
        return cls(float(c[0]), tuple(weights.tolist()), learnt_on)

    def to_json(self) -> dict[str, object]:
        """What a file holds."""
        return {
            "score": "learnt",
            "learnt_on": self.learnt_on,
            "intercept": self.intercept,
            "weights": dict(zip(FEATURES, self.weights, strict=True)),
        }

    @classmethod
    def from_json(cls, value: object) -> LearntScore:
        """From what a file holds.

        Raises:
            InputError: it is something else.
        """
        weights = value.get("weights") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(weights, Mapping) or set(weights) != set(FEATURES):
            raise InputError('this is no learnt score; `mbr-esd calibrate --score` writes one ("score": "learnt")')
        every = [value.get("intercept"), *(weights[name] for name in FEATURES)]
        numbers = [float(one) for one in every if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(numbers) != len(every):
            raise InputError("the intercept and the weights of a learnt score are numbers from 0")
        return cls(numbers[0], tuple(numbers[1:]), str(value.get("learnt_on", "")))


def features(expected: ExpectedSpans) -> list[float]:
    """The values of `FEATURES`."""
    spans, n = (expected.minor, expected.major, expected.missing), max(expected.words, 1)
    return [*spans, *(e / math.sqrt(n) for e in spans), *(e / n for e in spans), expected.surprisal / n]


def mean_expected(expected: Sequence[ExpectedSpans]) -> ExpectedSpans:
    """The mean over candidates of one translation."""
    first = expected[0]
    m, big, missing = (sum(getattr(one, name) for one in expected) / len(expected) for name in FEATURES[:3])
    return ExpectedSpans(m, big, missing, first.words, first.surprisal)
