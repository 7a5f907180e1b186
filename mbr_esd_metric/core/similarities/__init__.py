"""Similarities of two annotations: utilities of MBR decoding and span metrics alike.

Each similarity has its own file, named like it, so a new one needs no edit elsewhere. Other packages offer similarities
by entry points. Their names are known without loading them.
"""

from __future__ import annotations

import math
from functools import cache

from mbr_esd_metric.core.similarity import Mean, Similarity
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.plugins import Catalog

__all__ = ["SIMILARITIES", "Similarity", "check_similarity", "get_similarity", "similarity_names"]


#: Entry points of other packages: ``mbr_esd_metric.similarities``.
SIMILARITIES = Catalog("similarity", "similarities", __name__, Similarity, {"scoresim-mean": "scoresim"})  # type: ignore[type-abstract]


def similarity_names() -> list[str]:
    """The names that `get_similarity` takes, apart from their means."""
    return SIMILARITIES.names()


def get_similarity(expression: str | Similarity) -> Similarity:
    """The similarity of a name ("softf1"), or a mean of several ("softf1+scoresim", "0.7*softf1+0.3*scoresim").

    Weights are divided by their sum. A `Similarity` is returned as it is.

    Raises:
        OptionError: an unknown name (with the nearest ones), or a weight that is not a number above 0.
    """
    return expression if isinstance(expression, Similarity) else _named(expression)


def check_similarity(expression: str | Similarity) -> None:
    """Raise as `get_similarity` does. No similarity of this package is loaded."""
    if not isinstance(expression, Similarity):
        for _, name in _terms(expression):
            SIMILARITIES.check(name)


@cache
def _named(expression: str) -> Similarity:
    parts = tuple((weight, SIMILARITIES.get(name)()) for weight, name in _terms(expression))
    return parts[0][1] if len(parts) == 1 else Mean(parts)


def _terms(expression: str) -> list[tuple[float, str]]:
    """Pairs of weight and name."""
    terms = []
    for term in expression.split("+"):
        number, star, name = term.strip().rpartition("*")
        try:
            weight = float(number) if star else 1.0
        except ValueError:
            weight = math.nan
        if not 0 < weight < math.inf:
            raise OptionError(
                f"similarity {expression!r}: {number!r} is no weight; write such as '0.7*softf1+0.3*scoresim'"
            )
        terms.append((weight, name.strip()))
    return terms
