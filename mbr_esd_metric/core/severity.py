"""Severity vectors (paper, Section 4.2): how bad each character of a translation is.

    v[i] = beta * 1[i in a major span] + gamma * 1[i in a minor span]

so that a character is worth 0, gamma, beta or, where a major and a minor span overlap, beta + gamma.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import is_
from typing import ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.core.annotation import Annotation, Severity

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Penalty of a character in a major span, and in a minor one (paper, Section 5.1); 0 < gamma < beta.
BETA = 1.0
GAMMA = 0.5
#: Keeps the denominators of SoftF1 and SoftDice above 0.
EPS = 1.0


def recent(size: int) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """A decorator: the last `size` results are given again for the very same arguments, by identity.

    The arguments must not change, and nobody may change a result. Equality is not enough: equal annotations may repeat
    a span.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        kept: tuple[tuple[tuple[object, ...], _T], ...] = ()

        @wraps(function)
        def remembering(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            nonlocal kept
            if kwargs:
                return function(*args, **kwargs)
            for known, result in kept:
                if len(known) == len(args) and all(map(is_, known, args)):
                    return result
            result = function(*args, **kwargs)
            kept = ((args, result), *kept[: size - 1])
            return result

        return remembering

    return decorate


@recent(4)
def covered(annotation: Annotation, length: int, severity: Severity) -> npt.NDArray[np.bool_]:
    """Which of the `length` characters are in a span of this severity.

    Raises:
        InputError: a span ends past the translation.
    """
    annotation.check_length(length)
    mask = np.zeros(length, dtype=bool)
    for span in annotation:
        if span.severity == severity:
            mask[span.start : span.end] = True
    mask.flags.writeable = False
    return mask


@recent(2)
def severity_vector(annotation: Annotation, length: int) -> npt.NDArray[np.float64]:
    """v, of shape (length,), with values 0, 0.5, 1 or 1.5.

    Raises:
        InputError: a span ends past the translation.
    """
    vector = np.zeros(length, np.float64)
    vector += BETA * covered(annotation, length, "major")
    vector += GAMMA * covered(annotation, length, "minor")
    vector.flags.writeable = False
    return vector
