"""Similarities of two annotations: utilities of MBR decoding and span metrics alike.

Each similarity has its own file, named like it, so a new one needs no edit elsewhere. Other packages offer similarities
by entry points. Their names are known without loading them.
"""

from mbr_esd_metric.core.similarity import (
    SIMILARITIES,
    Similarity,
    check_similarity,
    get_similarity,
    similarity_names,
)

__all__ = ["SIMILARITIES", "Similarity", "check_similarity", "get_similarity", "similarity_names"]
