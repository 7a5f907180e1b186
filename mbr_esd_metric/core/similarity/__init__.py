"""Similarities of two annotations: utilities of MBR decoding and span metrics alike.

Each similarity has its own file. Every module of this folder that defines a subclass of `Similarity` with a `name` is
found by that name, so a new similarity needs no edit elsewhere. Other packages offer similarities by entry points.
"""

from __future__ import annotations

import math
from functools import cache

from mbr_esd_metric.core.discovery import Catalog
from mbr_esd_metric.core.similarity.base import Similarity
from mbr_esd_metric.core.similarity.f1 import f1
from mbr_esd_metric.core.similarity.mean import Mean
from mbr_esd_metric.core.similarity.mpp import mpp
from mbr_esd_metric.core.similarity.score_sim import score_sim
from mbr_esd_metric.core.similarity.soft_dice import soft_dice
from mbr_esd_metric.core.similarity.soft_f1 import soft_f1
from mbr_esd_metric.errors import OptionError

__all__ = [
    "SIMILARITIES",
    "Similarity",
    "f1",
    "get_similarity",
    "mpp",
    "score_sim",
    "similarity_names",
    "soft_dice",
    "soft_f1",
]


#: Entry points of other packages: ``mbr_esd_metric.similarities``.
SIMILARITIES = Catalog("similarity", "similarities", __name__, Similarity)  # type: ignore[type-abstract]


def similarity_names() -> list[str]:
    """The names that `get_similarity` takes, apart from their means."""
    return SIMILARITIES.names()


def get_similarity(expression: str | Similarity) -> Similarity:
    """The similarity of that name, or a mean of several.

    Args:
        expression: a name ("softf1"), a mean ("softf1+scoresim"), a weighted mean
            ("0.7*softf1+0.3*scoresim"), or a `Similarity`, which is returned as it is. Weights are divided by
            their sum.

    Raises:
        OptionError: an unknown name (with the nearest ones), or a weight that is not a number above 0.
    """
    return expression if isinstance(expression, Similarity) else _named(expression)


@cache
def _named(expression: str) -> Similarity:
    parts = tuple(_weighted(term.strip(), expression) for term in expression.split("+"))
    return parts[0][1] if len(parts) == 1 else Mean(parts)


def _weighted(term: str, expression: str) -> tuple[float, Similarity]:
    number, star, name = term.rpartition("*")
    try:
        weight = float(number) if star else 1.0
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise OptionError(
            f"similarity {expression!r}: {number!r} is no weight; write such as '0.7*softf1+0.3*scoresim'"
        )
    name = name.strip()
    return weight, SIMILARITIES.get(name)()
